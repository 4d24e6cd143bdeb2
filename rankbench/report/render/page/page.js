"use strict";
{
  const root = document.documentElement;

  /* The colours: as the system has them, light, or dark. A browser may forbid to keep the choice. */
  const themes = document.querySelectorAll("input[name=theme]");
  for (const choice of themes) {
    choice.checked = choice.value === (root.dataset.theme || "auto");
    choice.addEventListener("change", () => {
      root.dataset.theme = choice.value;
      try { localStorage.setItem("rankbench-theme", choice.value); } catch { /* the choice lasts until the page is closed */ }
      redrawAll();
    });
  }
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => redrawAll());

  /* Tables: a click on a heading sorts by its column, a second one backwards, a third one restores the order. */
  const NEXT = { none: "ascending", ascending: "descending", descending: "none" };

  const number = text => parseFloat(text.replace("−", "-"));

  function compare(one, other, numeric) {
    if (!numeric) return one.localeCompare(other, "en", { numeric: true });
    return number(one) - number(other);
  }

  function sort(table, heading) {
    const direction = NEXT[heading.getAttribute("aria-sort")];
    for (const other of heading.parentNode.children) other.setAttribute("aria-sort", other === heading ? direction : "none");
    const body = table.tBodies[0];
    body.original ??= [...body.rows];
    const column = heading.cellIndex;
    const sign = direction === "descending" ? -1 : 1;
    const rows = body.original.map(row => [row, row.cells[column]?.textContent.trim() ?? ""]);
    const isNumber = text => !Number.isNaN(number(text));
    const numeric = heading.classList.contains("number") && rows.some(([, text]) => isNumber(text));
    const known = text => text !== "" && (!numeric || isNumber(text));
    if (direction !== "none") {
      rows.sort(([, one], [, other]) =>
        known(one) && known(other) ? sign * compare(one, other, numeric) : known(other) - known(one));
    }
    body.append(...rows.map(([row]) => row));
    markRepeated(table);
  }

  /* A first cell that repeats the one above it is not shown. */
  function markRepeated(table) {
    let above = "";
    for (const row of table.tBodies[0].rows) {
      if (row.hidden) continue;
      const text = row.cells[0].textContent;
      row.classList.toggle("same", text === above);
      above = text;
    }
  }

  for (const table of document.querySelectorAll("table")) {
    for (const heading of table.tHead.querySelectorAll("th")) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      heading.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => sort(table, heading));
    }
  }

  /* Figures: drawn when they come near the window, and again when something about them has changed. */
  const experiments = new Map();
  const near = new IntersectionObserver(entries => {
    for (const { target, isIntersecting } of entries) {
      const one = experiments.get(target.closest("article"));
      one.near = isIntersecting;
      if (isIntersecting && one.stale) draw(one);
    }
  }, { rootMargin: "300px" });

  function redraw(one) {
    one.stale = true;
    if (one.near) draw(one);
  }

  function redrawAll() {
    for (const one of experiments.values()) redraw(one);
  }

  /* The plotting script is in the page, or beside it if it is shared with other pages; it is read once, when needed. */
  const plotlySource = () => document.getElementById("plotly");
  let waiting = null;

  function withPlotly(go) {
    if (window.Plotly) return go();
    if (waiting) return void waiting.push(go);
    const source = plotlySource(), script = document.createElement("script");
    if (source.dataset.file) {
      waiting = [go];
      script.addEventListener("load", () => { for (const one of waiting.splice(0)) one(); });
      script.addEventListener("error", () => {
        const why = `The figures need the file ${source.dataset.file} beside this page.`;
        for (const box of document.querySelectorAll(".figure")) box.textContent = why;
      });
      script.src = source.dataset.file;
      document.head.append(script);
    } else {
      script.textContent = source.textContent;
      document.head.append(script);
      go();
    }
  }

  /* A colour of the style sheet as it is in the chosen theme. */
  function colour(name) {
    const probe = document.createElement("span");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }

  const isDark = () => root.dataset.theme === "dark" || (root.dataset.theme !== "light" && dark.matches);

  /* A line's colour, mixed with white where the page is dark. */
  function lifted(hex) {
    if (!isDark()) return hex;
    return "#" + [1, 3, 5].map(at => {
      const part = parseInt(hex.slice(at, at + 2), 16);
      return Math.round(part + (255 - part) * 0.35).toString(16).padStart(2, "0");
    }).join("");
  }

  const columnsFor = panels => Math.min({ 2: 2, 4: 2 }[panels] ?? 3, panels, innerWidth < 640 ? 1 : innerWidth < 1000 ? 2 : 3);

  /* The room of a figure is kept before it is drawn, so that nothing moves. */
  function size(one) {
    const panels = Number(one.box.dataset.panels);
    const columns = columnsFor(panels);
    one.box.style.height = `${Math.ceil(panels / columns) * one.box.dataset.height + 2}rem`;
    one.box.style.maxWidth = columns === 1 ? "46rem" : "";
  }

  function draw(one) {
    one.figures ??= JSON.parse(one.article.querySelector("script.figures").textContent);
    const figure = one.figures[one.metric ? one.metric.value : Object.keys(one.figures)[0]];
    one.columns = columnsFor(figure.layout.annotations.length);
    one.box.setAttribute("aria-label", figure.about);
    one.article.querySelector(".caption").textContent = figure.caption;
    size(one);
    const data = figure.data.map(trace => ({
      ...trace,
      visible: !trace.meta.some(name => one.off.has(name)),
      line: { ...trace.line, color: lifted(trace.line.color) },
      ...(trace.marker && { marker: { ...trace.marker, color: lifted(trace.marker.color) } }),
    }));
    one.stale = false;
    withPlotly(() => Plotly.react(one.box, data, layoutOf(figure.layout, one), { responsive: true, displayModeBar: false }));
  }

  function layoutOf(given, one) {
    const [ink, line, paper, soft] = ["--ink", "--line", "--paper", "--soft"].map(colour);
    const columns = one.columns;
    const rows = Math.ceil(given.annotations.length / columns);
    const tallest = Math.max(...given.annotations.map(title => title.text.split("<br>").length));
    const layout = {
      ...given,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: ink, size: 12, family: getComputedStyle(document.body).fontFamily },
      hoverlabel: { namelength: -1, bgcolor: paper, bordercolor: line, font: { color: ink } },
      hovermode: "closest",
      grid: { rows, columns, pattern: "independent", xgap: 0.16, ygap: (4.5 + tallest) / one.box.dataset.height },
      margin: { l: 60, r: 12, t: 13 + 15 * tallest, b: 48 },
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    };
    layout.annotations = given.annotations.map(title => ({ ...title, font: { size: 12, color: soft } }));
    for (const [key, axis] of Object.entries(given)) {
      const place = /^([xy])axis(\d*)$/.exec(key);
      if (!place) continue;
      const number = Number(place[2] || 1) - 1;
      const outer = place[1] === "x" || number % columns === 0;
      layout[key] = {
        gridcolor: line, zerolinecolor: line, linecolor: line, automargin: outer,
        ...axis,
        title: outer && axis.title ? { ...axis.title, font: { size: 12, color: soft } } : { text: "" },
        showticklabels: outer || !axis.ticktext,
      };
    }
    return layout;
  }

  /* What a reader chooses for one experiment: rows by their text, solvers, and the metric of the figure. */
  function show(one) {
    const words = one.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let all = 0, shown = 0;
    for (const table of one.article.querySelectorAll("table")) {
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = one.off.has(row.dataset.solver) || !words.every(word => text.includes(word));
        all += 1;
        shown += row.hidden ? 0 : 1;
      }
      markRepeated(table);
    }
    one.count.textContent = shown < all ? `${shown} of ${all} rows shown` : "";
  }

  for (const filter of document.querySelectorAll(".filter")) {
    const article = filter.closest("article");
    const one = {
      article,
      box: article.querySelector(".figure"),
      filter,
      metric: article.querySelector(".metric"),
      count: article.querySelector(".count"),
      off: new Set(),
      near: false,
      stale: true,
    };
    experiments.set(article, one);
    filter.addEventListener("input", () => show(one));
    const boxes = [...article.querySelectorAll(".switch input")];
    const switched = () => {
      one.off = new Set(boxes.filter(box => !box.checked).map(box => box.value));
      show(one);
      redraw(one);
    };
    for (const box of boxes) box.addEventListener("change", switched);
    for (const [name, checked] of [["every", true], ["none", false]]) {
      article.querySelector(`button.${name}`)?.addEventListener("click", () => {
        for (const box of boxes) box.checked = checked;
        switched();
      });
    }
    one.metric?.addEventListener("change", () => redraw(one));
    if (one.box) {
      size(one);
    }
  }

  /* The plotting script stands at the end of the page, so no figure is drawn before the page has been read.
     One beside the page is read ahead, so that a page that is printed at once has its figures. */
  if (experiments.size && document.querySelector(".figure")) {
    addEventListener("load", () => { if (plotlySource().dataset.file) withPlotly(() => {}); });
  }
  addEventListener("DOMContentLoaded", () => {
    for (const one of experiments.values()) if (one.box) near.observe(one.box);
  });

  addEventListener("resize", () => {
    for (const one of experiments.values()) {
      if (one.columns && one.columns !== columnsFor(Number(one.box.dataset.panels))) redraw(one);
    }
  });

  /* Paper is white: what is printed has the light colours, whatever the reader chose. */
  let chosen = null;
  addEventListener("beforeprint", () => {
    const anew = isDark();
    chosen ??= root.dataset.theme;
    root.dataset.theme = "light";
    for (const one of experiments.values()) if (one.box && (one.stale || anew)) draw(one);
  });
  addEventListener("afterprint", () => {
    root.dataset.theme = chosen ?? "auto";
    chosen = null;
    if (isDark()) redrawAll();
  });
}
