"""The page in a real browser: it is quiet and whole, its tables sort and filter, its figures follow the reader."""

import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise

import pytest
from helpers import made_up, made_up_run, tiny

from rankbench.experiments import Curve, Figure, Published
from rankbench.names import Pattern
from rankbench.report.analysis.ranks import Ranks
from rankbench.report.render.figures.series import drawing
from rankbench.report.render.page import PLOTLY, page
from rankbench.report.sections import Section

pytestmark = pytest.mark.slow

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is missing: pip install playwright")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
EVIL = "<img src=x onerror=alert(1)> & </script><script>alert(2)</script>"
SOLVERS = ("global[lam=10]", "sgd[rank=2]", "sgd[rank=3]")
VALUES = {"global[lam=10]": 0.9, "sgd[rank=2]": 0.25, "sgd[rank=3]": 0.5}
FIGURES = {
    "tiny-curve": Figure("curve", metric="ndcg@5", x="step"),
    "tiny-bars": Figure("bars"),
    "tiny-sweep": Figure("sweep", metric="ndcg@5", x="n", curves=(Curve("theory", [8, 9], [0.3, 0.2]),)),
}
DATA = ("low-rank[users=20,items=30,per_user=20]", "low-rank[users=20,items=31,per_user=20]")
PUBLISHED = (Published(Pattern("global"), "ndcg@5", 0.75),)
RANKS = Ranks(
    "NDCG@5", "higher", 5, ("three", "two", "one"), (1.0, 2.0, 3.0), (("three", "two"),), "", ((0.9, 0.5, 1.0),) * 2
)
ABOUT = "What it is.\n\n| solver | what |\n| --- | --- |\n| `sgd` | *fast* |\n| `global` | slow |"
FAILED = {"status": "failed", "reason": EVIL, "curve": (), "counted": ()}


@pytest.fixture(scope="module")
def browser():
    """Chromium without a window."""
    if CHROMIUM is None:
        pytest.skip("no Chromium found: apt install chromium")
    with sync_api.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a page about three experiments; in the second one a solver failed."""
    out = tmp_path_factory.mktemp("page")
    sections = []
    for name, figure in FIGURES.items():
        asked = {"figure": figure, "published": PUBLISHED, "solvers": SOLVERS, "repetitions": 1, "data": DATA}
        run = made_up_run(out, tiny(name=name, about=ABOUT, **asked), lambda cell: VALUES[cell.solver.written])
        for cell in run.plan.cells:
            if name == "tiny-bars" and cell.solver.written == "sgd[rank=3]":
                run.keep(made_up(cell, 0.5, **FAILED), {})
        study = run.study()
        sections.append(Section(study, name, drawing(study), ranks=RANKS if name == "tiny-sweep" else None))
    (out / "index.html").write_text(page(sections), encoding="utf-8")
    return out


@pytest.fixture(scope="module")
def served(folder):
    """The address of the page on a server on this machine."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args):
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/index.html"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def opened(browser, folder):
    """Opens the page; afterwards it must have asked for nothing but itself, and have said nothing."""
    contexts = []

    def go(address="", width=1280, height=900, before="", **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        tab = context.new_page()
        asked, said = [], []
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
        if before:
            tab.add_init_script(before)
        where = address or (folder / "index.html").as_uri()
        tab.goto(where)
        contexts.append((context, where, asked, said))
        return tab

    yield go
    for context, where, asked, said in contexts:
        context.close()
        assert said == []
        assert set(asked) == {where}


def draw(figure):
    """Scroll to a figure and wait until it is drawn."""
    figure.scroll_into_view_if_needed()
    figure.locator("svg.main-svg").first.wait_for(state="attached")


def draw_all(tab):
    """Draw every figure of the page."""
    for figure in tab.locator(".figure").all():
        draw(figure)


def column(tab, table, heading):
    """The texts of a column of the rows that are shown."""
    place = tab.locator(f"{table} th").all_inner_texts().index(heading)
    return tab.locator(f"{table} tbody tr:visible td:nth-child({place + 1})").all_text_contents()


def button(tab, table, heading):
    """The button in a heading of a table."""
    return tab.locator(f"{table} th button").get_by_text(heading, exact=True)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("how", ["file", "http"])
def test_every_figure_is_drawn_and_nothing_is_wider_than_the_window(opened, served, how, width):
    tab = opened(served if how == "http" else "", width)
    draw_all(tab)
    assert tab.locator(".figure").count() == len(FIGURES)
    traces = [figure.locator(".trace").count() for figure in tab.locator(".figure").all()]
    assert traces[0] >= 6 and all(count >= 4 for count in traces)
    assert tab.evaluate("document.scrollingElement.scrollWidth") <= width
    outside = """[...document.querySelectorAll("body *")].filter(one =>
        !one.closest(".wide, svg, .unseen, .skip, .figure") && one.getBoundingClientRect().right > innerWidth + 1)
        .map(one => one.tagName + "." + one.className)"""
    assert tab.evaluate(outside) == []


def test_on_a_narrow_screen_each_published_number_is_a_card_with_its_verdict_in_sight(opened):
    tab = opened(width=390)
    article = tab.locator("#tiny-curve")
    cards = article.locator(".published tbody tr")
    for cell in cards.locator("td").all():
        box = cell.bounding_box()
        assert 0 <= box["x"] and box["x"] + box["width"] <= 390
    assert cards.count() == 2 and article.locator(".published td:first-child span:visible").count() == 2
    article.locator(".filter").fill("items=31")
    assert article.locator(".published tbody tr:visible").count() == 1


@pytest.mark.parametrize(
    "cells", [("data", "solver", "metric"), ("data", "split", "solver", "metric")], ids=["one split", "several"]
)
def test_a_number_on_a_card_is_called_what_its_column_is_called(opened, cells):
    tab = opened(width=390)
    names = (*cells, "published", "measured", "difference", "expected", "verdict")
    row = "".join(f"<td class='name'>{name}</td>" for name in names)
    tab.evaluate("row => { document.querySelector('.published tbody').innerHTML = `<tr>${row}</tr>`; }", row)
    shown = (
        tab.locator(".published")
        .first.locator("tbody td")
        .evaluate_all("all => all.map(one => [one.textContent, getComputedStyle(one, '::before').content])")
    )
    told = {text: before.strip('" ') for text, before in shown if before != "none"}
    assert told == {name: name for name in ("published", "measured", "difference", "expected")}


def test_a_figure_is_drawn_only_when_it_comes_near(opened):
    tab = opened(width=390, height=300)
    tab.wait_for_load_state("load")
    last = tab.locator(".figure").last
    assert tab.evaluate("typeof window.Plotly") == "undefined" and last.locator("svg").count() == 0
    draw(last)
    assert tab.locator(".figure").first.locator("svg").count() == 0


def test_nothing_moves_when_the_figures_are_drawn(opened):
    tab = opened(height=300)
    tops = "[...document.querySelectorAll('table, h3, h4')].map(one => one.getBoundingClientRect().top + scrollY)"
    before = tab.evaluate(tops)
    draw_all(tab)
    assert tab.evaluate(tops) == before


def test_all_figures_are_drawn_for_print(opened):
    tab = opened(width=390, height=300)
    tab.wait_for_load_state("load")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert all(figure.locator(".trace").count() for figure in tab.locator(".figure").all())


def test_what_is_printed_has_the_colours_for_paper_and_then_its_own_again(opened):
    tab = opened(color_scheme="dark")
    draw(tab.locator(".figure").first)
    ink = "getComputedStyle(document.body).color + getComputedStyle(document.querySelector('.ytick text')).fill"
    before = tab.evaluate(ink)
    for event in ("beforeprint", "beforeprint", "afterprint"):
        tab.evaluate("name => dispatchEvent(new Event(name))", event)
        assert (tab.evaluate(ink) == before) is (event == "afterprint")
    assert tab.evaluate("document.documentElement.dataset.theme") == "auto"


def test_a_heading_sorts_its_column_both_ways_and_then_restores_the_order(opened):
    tab, table = opened(), "#tiny-bars .all table"
    rows = tab.locator(f"{table} tbody tr").all_text_contents()
    head = button(tab, table, "NDCG@5")
    head.click()
    ascending = column(tab, table, "NDCG@5")
    numbers = [float(text) for text in ascending if text]
    assert numbers == sorted(numbers) and len(set(numbers)) == 2 and ascending[-1] == ""  # that of the failed solver
    now = tab.locator(f"{table} tbody tr").all_text_contents()
    assert now != rows and sorted(now) == sorted(rows)  # whole rows have moved
    assert tab.locator(f"{table} th[aria-sort=ascending]").all_inner_texts() == ["NDCG@5"]
    head.click()
    numbers = [float(text) for text in column(tab, table, "NDCG@5") if text]
    assert numbers == sorted(numbers, reverse=True) and column(tab, table, "NDCG@5")[-1] == ""
    head.click()
    assert tab.locator(f"{table} tbody tr").all_text_contents() == rows
    assert tab.locator(f"{table} th[aria-sort=none]").count() == tab.locator(f"{table} th").count()


def test_differences_sort_as_signed_numbers_and_ties_keep_their_order(opened):
    tab, table = opened(), "#scores table"
    before = column(tab, table, "paper")
    button(tab, table, "published").click()
    counts = [int(text) for text in column(tab, table, "published")]
    assert all(one <= other for one, other in pairwise(counts))
    assert sorted(column(tab, table, "paper")) == sorted(before)
    table = "#tiny-curve .published table"
    button(tab, table, "difference").click()
    data = column(tab, table, "data")
    assert column(tab, table, "difference") == ["+0.1500", "+0.1500"] and len(set(data)) == 2
    button(tab, table, "difference").click()
    assert column(tab, table, "data") == data


def test_a_column_of_verdicts_sorts_by_its_words(opened):
    tab, table = opened(), "#tiny-curve .all table"
    before = column(tab, table, "against the best")
    button(tab, table, "against the best").first.click()
    words = [text.partition(",")[0] for text in column(tab, table, "against the best")]
    assert words == sorted(words) and len(set(words)) > 1
    assert [text.partition(",")[0] for text in before] != words


def test_a_repeated_first_cell_is_shown_again_where_sorting_parts_it(opened):
    tab, table = opened(), "#tiny-curve .all table"
    assert tab.locator(f"{table} tr.same").count() == 4  # two data sets of three solvers
    button(tab, table, "solver").click()
    assert tab.locator(f"{table} tr.same").count() == 0


def test_a_filter_leaves_the_rows_with_all_its_words_and_says_how_many(opened):
    tab = opened()
    article = tab.locator("#tiny-curve")
    everything = article.locator("tbody tr").count()
    article.locator(".filter").fill("SGD 31")
    shown = article.locator("tbody tr:visible").all_text_contents()
    assert len(shown) == 2 and all("sgd" in text and "items=31" in text for text in shown)
    assert article.locator(".count").inner_text() == f"2 of {everything} rows shown"
    article.locator(".filter").fill("")
    assert article.locator("tbody tr:visible").count() == everything and article.locator(".count").inner_text() == ""


def test_the_figure_shows_the_metric_that_is_chosen(opened):
    tab = opened()
    article = tab.locator("#tiny-curve")
    draw(article.locator(".figure"))
    assert article.locator(".metric option").all_inner_texts() == ["NDCG@5", "pairwise error"]
    assert "NDCG@5" in article.locator(".ytitle").first.text_content()
    assert "NDCG@5" in article.locator(".figure").get_attribute("aria-label")
    article.locator(".metric").select_option(label="pairwise error")
    article.locator(".ytitle").filter(has_text="pairwise").first.wait_for(state="attached")
    assert "NDCG@5" not in article.locator(".figure").get_attribute("aria-label")
    assert "lower is better" in article.locator(".figure").get_attribute("aria-label")


def test_a_switch_hides_its_solver_in_the_figure_and_in_the_tables(opened):
    tab = opened()
    article = tab.locator("#tiny-sweep")
    draw(article.locator(".figure"))
    traces, rows = article.locator(".trace").count(), article.locator("tbody tr:visible").count()
    switch = article.get_by_role("checkbox", name="Global ranking", exact=True)
    switch.uncheck()
    hidden = article.locator("tbody tr:not(:visible)").all_text_contents()
    assert len(hidden) == 4 and all("global" in text for text in hidden)  # published and all, on two data sets
    assert article.locator(".trace").count() < traces
    assert article.locator(".count").inner_text() == f"{rows - 4} of {rows} rows shown"
    article.get_by_role("button", name="none").click()
    assert article.locator(".trace").count() == 0
    article.get_by_role("button", name="all").click()
    assert switch.is_checked() and article.locator(".trace").count() == traces
    assert article.locator("tbody tr:visible").count() == rows


def test_everything_can_be_reached_and_used_by_the_keyboard(opened):
    tab = opened()
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    assert tab.locator(".skip").bounding_box()["x"] >= 0
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.tagName") == "MAIN"
    wanted = "#tiny-curve :is(input, select, button, summary, .wide)"
    tab.evaluate(f"for (const one of document.querySelectorAll('{wanted}')) one.dataset.wanted = 'yes'")
    reached, outlines = 0, set()
    used = {"sorted": False, "switched": False}
    while tab.evaluate("!document.activeElement.closest('#tiny-bars')"):
        tab.keyboard.press("Tab")
        kind = tab.evaluate("document.activeElement.matches('th button') ? 'th' : document.activeElement.type")
        if tab.evaluate("document.activeElement.dataset.wanted === 'yes'"):
            reached += 1
            outlines.add(tab.evaluate("""(() => { const one = document.activeElement;
                return getComputedStyle(one.closest(".switch") ?? one).outlineStyle; })()"""))  # fmt: skip
            if kind == "th" and not used["sorted"]:
                tab.keyboard.press("Enter")
                tab.keyboard.press("Space")
                used["sorted"] = tab.locator("#tiny-curve th[aria-sort=descending]").count() == 1
            elif kind == "checkbox" and not used["switched"]:
                tab.keyboard.press("Space")
                used["switched"] = tab.evaluate("!document.activeElement.checked")
    assert reached == tab.locator(wanted).count() > 10
    assert used == {"sorted": True, "switched": True}
    assert "none" not in outlines


BACKGROUND = "getComputedStyle(document.body).backgroundColor"


@pytest.mark.parametrize("system", ["light", "dark"])
def test_the_colours_are_the_systems_until_others_are_chosen_and_those_stay(opened, system):
    tab = opened(color_scheme=system)
    found = {"auto": tab.evaluate(BACKGROUND)}
    for name in ("Light", "Dark"):
        tab.get_by_role("radio", name=name).check(force=True)
        found[name.lower()] = tab.evaluate(BACKGROUND)
    assert found["light"] == "rgb(255, 255, 255)" != found["dark"]
    assert found["auto"] == found[system]
    tab.reload()
    assert tab.evaluate(BACKGROUND) == found["dark"] and tab.get_by_role("radio", name="Dark").is_checked()
    tab.get_by_role("radio", name="Dark").focus()
    tab.keyboard.press("ArrowLeft")
    assert tab.evaluate(BACKGROUND) == found["light"]
    draw_all(tab)
    tab.get_by_role("radio", name="Dark").check(force=True)
    ink = tab.evaluate("getComputedStyle(document.body).color")
    tab.locator(".figure").last.scroll_into_view_if_needed()
    tick = "getComputedStyle([...document.querySelectorAll('.figure')].at(-1).querySelector('.ytick text')).fill"
    tab.wait_for_function(f"{tick} === '{ink}'")


def test_without_storage_the_page_works_all_the_same(opened):
    forbidden = (
        "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('no', 'SecurityError'); }})"
    )
    tab = opened(before=forbidden, color_scheme="light")
    light = tab.evaluate(BACKGROUND)
    tab.get_by_role("radio", name="Dark").check(force=True)
    assert tab.evaluate(BACKGROUND) != light
    draw_all(tab)


def luminance(colour):
    """The relative luminance of a colour, as the Web Content Accessibility Guidelines define it."""
    parts = [part / 255 for part in colour]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("ground", ["--paper", "--tint"])
def test_text_of_every_colour_has_enough_contrast(opened, scheme, ground):
    tab = opened(color_scheme=scheme)
    read = """name => { const one = document.body.appendChild(document.createElement("i"));
        one.style.color = `var(${name})`; const found = getComputedStyle(one).color; one.remove();
        return found.match(/\\d+/g).map(Number); }"""
    behind = luminance(tab.evaluate(read, ground))
    for name in ("--ink", "--soft", "--accent", "--good", "--bad"):
        text = luminance(tab.evaluate(read, name))
        ratio = (max(text, behind) + 0.05) / (min(text, behind) + 0.05)
        assert ratio >= 4.5, f"{name} on {ground}: {ratio:.2f}"


@pytest.mark.parametrize(("wish", "behaviour"), [("reduce", "auto"), ("no-preference", "smooth")])
def test_nothing_moves_for_those_who_ask_for_it(opened, wish, behaviour):
    tab = opened(reduced_motion=wish)
    assert tab.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == behaviour
    moving = tab.evaluate("getComputedStyle(document.querySelector('.switch')).transitionDuration")
    assert (moving == "0s") is (wish == "reduce")


def test_texts_of_others_are_shown_as_texts(opened):
    tab = opened()
    assert EVIL in tab.locator("#tiny-bars details").first.text_content()
    assert tab.locator("img:not(.ranks)").count() == 0


def test_exact_names_are_shown_when_asked_for(opened):
    tab = opened()
    article = tab.locator("#tiny-curve")
    exact = article.locator(".exact", has_text="sgd[rank=2]").first
    assert not exact.is_visible()
    article.get_by_role("checkbox", name="Exact names").check()
    assert exact.is_visible()


def test_the_contents_lead_to_every_experiment(opened):
    tab = opened()
    for name in FIGURES:
        tab.locator(f'nav a[href="#{name}"]').click()
        assert tab.evaluate("location.hash") == f"#{name}"
        assert tab.locator(f"#{name} h3").count() == 1


def test_average_ranks_are_shown_as_a_picture_with_its_text(opened):
    picture = opened().locator("#tiny-sweep img.ranks")
    assert picture.evaluate("one => one.decode().then(() => one.naturalWidth)") > 100
    assert RANKS.text in picture.get_attribute("alt")


def test_a_paper_s_page_draws_its_figures_with_the_script_beside_it(browser, folder, tmp_path):
    page_of_one = (folder / "index.html").read_text(encoding="utf-8")
    start, end = page_of_one.index('<script type="text/plain" id="plotly">'), page_of_one.rindex("</script>")
    beside = f'<script type="text/plain" id="plotly" data-file="{PLOTLY}">'
    (tmp_path / "one.html").write_text(page_of_one[:start] + beside + page_of_one[end:], encoding="utf-8")
    (tmp_path / PLOTLY).write_text(page_of_one[start:end].partition(">")[2], encoding="utf-8")
    with browser.new_context() as context:
        tab = context.new_page()
        said = []
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.goto((tmp_path / "one.html").as_uri())
        draw_all(tab)
        assert all(figure.locator(".trace").count() for figure in tab.locator(".figure").all()) and said == []
        (tmp_path / PLOTLY).unlink()
        tab.reload()
        tab.get_by_text(f"The figures need the file {PLOTLY} beside this page.").first.wait_for()
        assert tab.locator("th button").count() > 10
