"""The pages of solvers, splits and metrics are complete, agree with the code, and their examples run."""

import doctest
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rankbench import UserError
from rankbench.cli.describe import settings_in
from rankbench.data.splits import SPLITS
from rankbench.metrics import METRICS
from rankbench.solvers import SOLVERS

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [*sorted((DOCS / "solvers").glob("*.md")), *sorted((DOCS / "metrics").glob("*.md")), DOCS / "splits.md"]
SOLVER_PAGES = [page for page in PAGES if page.parent.name == "solvers" and page.stem != "index"]
SECTIONS = [
    "Formula",
    "How it is solved",
    "Cost",
    "Certificate",
    "Example",
    "When not to use it",
    "References",
]


def module(name):
    """A module of the documentation's extension."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "_ext" / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found  # dataclasses look their module up
    spec.loader.exec_module(found)
    return found


facts, figures = module("record_facts"), module("record_figures")


def title(page):
    return f"{page.parent.name}/{page.stem}"


def directives(folder, name):
    """The directives of this name in the pages of a folder: each with its argument and its content."""
    texts = [page.read_text() for page in PAGES if page.parent.name == folder]
    return [
        found for text in texts for found in re.findall(rf"^```\{{{name}\}} ?([^\n]*)\n(.*?)^```$", text, re.M | re.S)
    ]


def formulas(text):
    """The formulas of a page, code left out: those in the text, and those on lines of their own."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)
    own = re.findall(r"\$\$(.*?)\$\$", text, re.S)
    return own, re.findall(r"\$([^$]+)\$", re.sub(r"\$\$.*?\$\$", "", text, flags=re.S))


def test_every_solver_has_its_page_and_stands_in_one_table():
    assert sorted(name for name, _ in directives("solvers", "solver")) == sorted(SOLVERS.entries)
    listed = [name for _, content in directives("solvers", "solvers") for name in content.split()]
    assert sorted(listed) == sorted(SOLVERS.entries)


def test_every_metric_has_its_section_and_stands_in_one_table():
    assert sorted(name for name, _ in directives("metrics", "metric")) == sorted(METRICS)
    listed = [name for _, content in directives("metrics", "metrics") for name in content.split()]
    assert sorted(listed) == sorted(METRICS)


def test_every_split_has_its_section_and_is_linked_by_its_name():
    found = directives("docs", "split")
    assert sorted(name for name, _ in found) == SPLITS.names()
    for name, content in found:
        assert f"(split-{name})=\n### {name}\n" in (DOCS / "splits.md").read_text()
        assert re.findall(r"^(\w+): \S+", content, re.M) == [one.name for one in settings_in(SPLITS.find(name))]
        assert facts.split_text(name, dict(re.findall(r"^(\w+): (.+)$", content, re.M)))


@pytest.mark.parametrize("page", SOLVER_PAGES, ids=title)
def test_the_page_of_a_solver_has_its_sections_each_with_something_in_it(page):
    parts = re.split(r"^## (.+)\n", page.read_text(), flags=re.M)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert [name for name in parts[1::2] if name in SECTIONS] == SECTIONS
    assert formulas(sections["Formula"])[0], "no formula"
    assert ">>> import rankbench" in sections["Example"]
    assert all(len(sections[name].split()) >= 4 for name in SECTIONS)
    assert re.search(r"<solver-[a-z-]+>", sections["When not to use it"]), "it names no other solver"
    assert re.search(r"^- .*\b(19|20)\d\d\b|^- None", sections["References"], re.M | re.S)


@pytest.mark.parametrize("name", METRICS)
def test_the_section_of_a_metric_has_a_formula_and_an_example_by_hand(name):
    (text,) = [page.read_text() for page in PAGES if f"```{{metric}} {name}\n" in page.read_text()]
    section = text.partition(f"(metric-{name})=\n## {name}\n")[2].partition("\n(metric-")[0]
    own, _ = formulas(section)
    assert own and "By hand:" in section
    assert re.search(rf'>>> .*"{name}[@\["]', section), "the example does not evaluate it"


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_the_links_of_a_page_lead_to_what_has_a_page(page):
    for kind, name in re.findall(r"<(solver|metric|split)-([a-z0-9-]+)>", page.read_text()):
        assert name in {"solver": SOLVERS.entries, "metric": METRICS, "split": SPLITS.entries}[kind]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=title)
def test_the_examples_of_a_page_give_what_it_says(page):
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
    assert all(block.startswith(">>> ") for block in blocks), "an example shows what it prints"
    examples = "\n".join(blocks)
    test = doctest.DocTestParser().get_doctest(examples, {}, page.name, str(page), 0)
    failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(test)
    assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_the_formulas_of_a_page_become_mathml(page):
    converter = pytest.importorskip("latex2mathml.converter")
    for formula in [text for kind in formulas(page.read_text()) for text in kind]:
        made = ElementTree.fromstring(converter.convert(formula))  # a stray & is no XML
        assert "\\" not in "".join(made.itertext()), f"{formula}: a command is left"


@pytest.mark.parametrize(("name", "content"), directives("solvers", "solver"))
def test_a_page_gives_the_meaning_of_every_setting(name, content):
    given = re.findall(r"^(\w+): \S+", content, re.M)
    assert given == [setting.name for setting in settings_in(SOLVERS.find(name))]
    text = facts.solver_text(name, dict.fromkeys(given, "what it means"))
    assert text.count("| what it means |") == len(given)
    assert "| Learns from |" in text and "| Determinism |" in text


def test_a_page_with_a_wrong_setting_is_refused():
    with pytest.raises(UserError, match="the page of ease must give one meaning for each setting: see lamb, least"):
        facts.solver_text("ease", {"lam": "weight", "values": "what counts", "lamb": "a slip"})


def test_the_facts_of_a_solver_are_those_of_the_code():
    told = dict(facts.facts_of("sgd"))
    assert told["Learns from"] == "comparisons"
    assert told["Determinism"].endswith("; `schedule=hogwild`: racy: other bits in each run with more than one thread")
    assert told["Needs"].startswith("`schedule=nomad`: `pip install")
    assert told["Duality gap"] == "steps have none"
    assert told["Items without a training row"] == "have no score (NaN)"
    assert "`schedule=tournament`" in told["Bound on the speed-up by threads"]


@pytest.mark.parametrize(
    ("name", "fact", "said"),
    [
        ("global", "Duality gap", "each step has one"),
        ("ranksvm-joint", "Items without a training row", "are scored"),
        ("frsvm", "Item features", "needed; `features=none`: not used"),
        ("ranksvm-separate", "Users without a training row", "tie: all have one score"),
        ("popularity", "Objective", "steps have none"),
        ("implicit-als", "Needs", '`pip install "rankbench[peers]"`'),
    ],
)
def test_a_fact_is_what_the_solver_declares_or_shows(name, fact, said):
    assert dict(facts.facts_of(name))[fact] == said


def test_the_settings_of_a_solver_are_told_with_their_ranges():
    found = {setting.name: setting for setting in settings_in(SOLVERS.find("sgd"))}
    assert (found["rank"].kind, found["rank"].default, found["rank"].limits) == ("whole number", "10", "1 to 10000")
    assert (found["loss"].kind, found["loss"].limits) == ("one of", "squared-hinge, logistic, smooth-hinge, hinge")
    least = {setting.name: setting for setting in settings_in(SOLVERS.find("bpr"))}["least"]
    assert (least.kind, least.default) == ("number or none", "none")
    share = {setting.name: setting for setting in settings_in(SOLVERS.find("rmc"))}["share"]
    assert share.limits == "at most 1 and above 0"


def test_the_table_of_solvers_has_the_first_words_of_each_page():
    line = facts.solvers_text(["global"]).splitlines()[2]
    assert line.startswith("| {ref}`global <solver-global>` | One score for each item, the same for all users, fitted")
    assert line.endswith(" | comparisons; exact |")


def test_the_text_of_a_metric_is_that_of_its_record():
    text = facts.metric_text("precision")
    assert METRICS["precision"].formula in text and "| Range | 0 to 1; higher is better |" in text
    assert r"`relevant=4\|NUMBER\|any`" in text


def test_a_figure_has_a_line_for_each_solver_over_steps_or_values(tmp_path):
    data = "low-rank[users=30,items=40,per_user=20]"
    curve = figures.Plan(data, "n-per-user[n=10]", "objective", ("mf[rank=2]", "mf[rank=3]"), steps=4)
    lines = curve.lines()
    assert [line.x for line in lines] == [(0, 1, 2, 3, 4)] * 2
    assert list(lines[0].y) == sorted(lines[0].y, reverse=True)  # no step raises it
    sweep = figures.Plan(data, "n-per-user[n=10]", "recall@{}", ("popularity",), x="k", values=(1.0, 10.0))
    (line,) = sweep.lines()
    assert line.x == (1.0, 10.0) and line.y[0] < line.y[1]
    figures.draw(curve, lines, tmp_path / "one.svg")
    figures.draw(curve, lines, tmp_path / "two.svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert figures.told(sweep, [line]).startswith("recall@k by k, on low-rank")


def test_a_figure_of_a_gap_needs_a_solver_that_has_one():
    plan = figures.Plan("low-rank[users=30,items=40,per_user=20]", "n-per-user[n=10]", "gap", ("mf",), steps=1)
    with pytest.raises(UserError, match="a step has no gap"):
        plan.lines()


@pytest.mark.slow
def test_the_extension_builds_a_page_with_its_table_and_figure(tmp_path):
    pytest.importorskip("myst_parser")
    (tmp_path / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(DOCS / '_ext')!r})\nextensions = ['myst_parser', 'records']\n"
        "myst_enable_extensions = ['dollarmath']\n"
    )
    page = (DOCS / "solvers" / "global.md").read_text().partition("## When not")[0]
    (tmp_path / "index.md").write_text(page)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", tmp_path, tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = (tmp_path / "out" / "index.html").read_text()
    assert "weight of the penalty" in made and "1e-12 to 1e+12" in made
    assert re.search(r'<img alt="gap by step, on btl.*?" src="_images/index-\d+.svg"', made, re.S)
