"""Write the report: a page per paper, tables as CSV and LaTeX, figures as PDF and PNG, one HTML page."""

import shutil
from pathlib import Path

from rankbench.errors import UserError
from rankbench.harness.store import Store, write_text
from rankbench.report.basis import bases, draw_basis
from rankbench.report.tables import Study, definitions, described, notes, rows, sheet, to_csv, to_latex, to_markdown
from rankbench.report.trials import trial_sheet, trials, trials_to_csv


def studies(out: Path) -> list[Study]:
    """Everything stored under an output folder, in alphabetical order."""
    found = [study(out, path.parent.name) for path in sorted(out.glob("*/plan.json"))]
    return [one for one in found if one is not None]


def study(out: Path, name: str) -> Study | None:
    """What is stored of one experiment, None where nothing is."""
    store = Store(out, name)
    record = store.read_plan()
    if record is None:
        return None
    return Study(name, record["definition"], store.results(), record["skips"], store.trials())


def write_report(out: Path, to: Path | None = None, page: bool = True) -> Path:
    """Write the report on all that lies under `out`; returns the file to open first."""
    found = studies(out)
    if not found:
        raise UserError(f"no results under {out}: run some first (rankbench run all --out {out})")
    folder = to or out / "report"
    try:
        return _write(found, folder, page)
    except OSError as error:
        raise UserError(f"cannot write the report to {folder}: {error.strerror}") from None


def _write(found: list[Study], folder: Path, page: bool) -> Path:
    from rankbench.report.figures import draw  # noqa: PLC0415  matplotlib takes its time
    from rankbench.report.series import drawing  # noqa: PLC0415

    for part in ("tables", "figures"):
        shutil.rmtree(folder / part, ignore_errors=True)
        (folder / part).mkdir(parents=True)
    for one in found:
        write_text(folder / "tables" / f"{one.name}.csv", to_csv(rows(one)))
        write_text(folder / "tables" / f"{one.name}.tex", to_latex(sheet(one)))
        if one.trials:
            write_text(folder / "tables" / f"{one.name}-trials.csv", trials_to_csv(trials(one)))
        if drawn := drawing(one):
            draw(drawn, folder / "figures", one.name)
        for number, basis in enumerate(bases(one), 1):
            draw_basis(basis, (), folder / "figures", f"{one.name}-basis-{number}")
    for paper, members in _by_paper(found).items():
        title = f"# {members[0].experiment['paper']}\n\n"
        write_text(folder / f"{paper}.md", title + "\n".join(_markdown(one, folder) for one in members))
    write_text(folder / "README.md", _index(found))
    if not page:
        return folder / "README.md"
    from rankbench.report.page import page as html  # noqa: PLC0415

    write_text(folder / "index.html", html(found))
    return folder / "index.html"


def _by_paper(found: list[Study]) -> dict[str, list[Study]]:
    """The studies by the first word of their names, which is the paper's."""
    papers: dict[str, list[Study]] = {}
    for one in found:
        papers.setdefault(one.name.partition("-")[0], []).append(one)
    return papers


def _index(found: list[Study]) -> str:
    lines = ["# The reproduction as last run", ""]
    for paper, members in _by_paper(found).items():
        lines.append(f"- [{members[0].experiment['paper']}]({paper}.md)")
        lines += [f"  - [{one.experiment['title']}]({paper}.md#{one.name})" for one in members]
    machines = sorted({_machine(result.machine) for one in found for _, result in one.cells if result})
    return "\n".join([*lines, "", "Measured on:", "", *(f"- {name}" for name in machines), ""])


def _machine(machine: dict[str, object]) -> str:
    return f"{machine['cpu']}, {machine['usable_cores']} cores, {machine['compiler']}, Python {machine['python']}"


def _markdown_bases(one: Study) -> list[str]:
    """The basic ranking functions of an experiment, where it has any, as figures."""
    return [
        f"Basic ranking functions of {basis.solver} on {basis.data}:\n\n"
        f"![Basic ranking functions](figures/{one.name}-basis-{number}.png)"
        for number, basis in enumerate(bases(one), 1)
    ]


def _markdown(one: Study, folder: Path) -> str:
    """One experiment's section of its paper's page."""
    figure = f"![{one.experiment['title']}](figures/{one.name}.png)"
    title = f"{one.experiment['title']} ({one.definition['profile']} profile)."
    lines = [f"## {one.name}", title, one.experiment["about"].strip(), *notes(one)]
    if (folder / "figures" / f"{one.name}.png").exists():
        lines.append(figure)
    lines.append(to_markdown(sheet(one)).rstrip())
    lines += _markdown_bases(one)
    lines += [f"Skipped: {described(skip)}." for skip in one.skips]
    lines += definitions(one)
    if one.trials:
        table = to_markdown(trial_sheet(trials(one)))
        lines.append(f"<details><summary>All trials of the tuning ({len(one.trials)})</summary>\n\n{table}\n</details>")
    return "\n\n".join(lines) + "\n"
