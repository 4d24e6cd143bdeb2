"""What README and docs/ say is so: their examples run, their lists are complete, and their links lead somewhere."""

import doctest
import inspect
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, fields
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
import typer.main
from helpers import rankbench

import rankbench as package
from rankbench import Ratings
from rankbench.cli.app import app
from rankbench.data import DATASETS
from rankbench.models import MODELS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
OTHERS = {"solvers", "metrics"}  # test_docs_records.py has these
MADE = {"examples", "reference"}  # by Sphinx
PAGES = [ROOT / "README.md"] + [
    path for path in sorted(DOCS.rglob("*.md")) if path.relative_to(DOCS).parts[0] not in OTHERS | MADE
]
BLOCK = re.compile(r"(?:^<!-- ([^\n]*) -->\n)?^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language, its text, and what the comment above it says."""

    language: str
    text: str
    mark: str

    @property
    def file(self) -> str:
        """The file that it is the text of; empty if of none."""
        return self.mark.removeprefix("file: ") if self.mark.startswith("file: ") else ""

    @property
    def runs(self) -> bool:
        """Whether the tests run it."""
        return not self.file and (self.language == "python" or self.mark == "run")

    @property
    def commands(self) -> list[list[str]]:
        """The calls of rankbench in it, as words."""
        lines = [shlex.split(line, comments=True) for line in self.text.replace("\\\n", " ").splitlines()]
        return [words[1:] for words in lines if words[:1] == ["rankbench"]]


def blocks(path: Path) -> list[Block]:
    """The fenced blocks of a page, without Sphinx's directives and what only shows output."""
    found = [Block(language.strip(), text, mark or "") for mark, language, text in BLOCK.findall(path.read_text())]
    return [one for one in found if not one.language.startswith("{") and (one.language != "text" or one.mark)]


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


RUN = [path for path in PAGES if any(one.runs for one in blocks(path))]


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_every_block_runs_or_says_why_not(path):
    for one in blocks(path):
        assert one.runs or one.file or re.match(r"printed$|shown: \w+( \S+){2,}", one.mark), one.text
        assert one.language in ("python", "sh", "toml", "text"), one.language


def check_printed(shown: str, printed: str) -> None:
    """Compare what a page says is printed with what was; a table may have a column of seconds behind the others."""
    starts = [line.removesuffix(" |").rstrip() for line in shown.splitlines()]
    assert [start for start in starts if not any(line.startswith(start) for line in printed.splitlines())] == []


def run_session(text: str, space: dict[str, object]) -> None:
    """Run what a Python session shows, and compare what it prints; its names stay for later blocks."""
    session = doctest.DocTestParser().get_doctest(text, space, "session", None, 0)
    found: list[str] = []
    doctest.DocTestRunner().run(session, out=found.append, clear_globs=False)
    space |= session.globs
    assert not found, "".join(found)


def test_a_session_that_shows_something_else_is_seen():
    run_session(">>> 1 + 1\n2\n", {})
    with pytest.raises(AssertionError, match="Expected"):
        run_session(">>> 1 + 1\n3\n", {})


@pytest.mark.slow
@pytest.mark.parametrize("path", RUN, ids=named)
def test_the_examples_of_a_page_run(path, here, monkeypatch, capsys):
    monkeypatch.syspath_prepend(here)
    before = set(sys.modules)
    space: dict[str, object] = {"__name__": "example"}
    for one in blocks(path):
        if one.file:
            (here / one.file).write_text(one.text)
        elif one.text.startswith(">>> "):
            run_session(one.text, space)
        elif one.runs and one.language == "python":
            exec(compile(one.text, named(path), "exec"), space)
        elif one.mark == "printed":
            check_printed(one.text, capsys.readouterr().out)
        elif one.runs:
            assert len(one.commands) == len(one.text.strip().splitlines())
            for words in one.commands:
                assert rankbench(monkeypatch, *words) == 0, capsys.readouterr()
    for name in set(sys.modules) - before:
        if (here / f"{name}.py").exists():
            monkeypatch.delitem(sys.modules, name)


def leaf(words: list[str]):
    """The command that these words call, and the words behind its name."""
    command = typer.main.get_command(app)
    while hasattr(command, "commands"):
        command, words = command.commands[words[0]], words[1:]
    return command, words


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_commands_that_are_only_shown_exist_with_their_options(path):
    for one in blocks(path):
        for words in one.commands:
            command, rest = leaf(words)
            command.make_context(words[0], rest, resilient_parsing=False)


TEXTS = [*PAGES, *(ROOT / "rankbench" / "experiments").glob("*.toml"), *(DOCS / "solvers").glob("*.md")]


@pytest.mark.parametrize("path", TEXTS, ids=named)
def test_verbs_and_options_in_a_sentence_exist(path):
    for text in re.findall(r"`rankbench\s+([a-z][^`]*)`", path.read_text()):
        command, _ = leaf(text.replace("\\|", " ").split())  # of verbs in a table the first
        options = re.findall(r"(?<!\S)--?[a-z][\w-]*", text)
        assert set(options) <= {name for one in command.params for name in (*one.opts, *one.secondary_opts)}, text


def test_an_option_that_does_not_exist_is_seen():
    command, rest = leaf(["run", "all", "--nonsense"])
    with pytest.raises(Exception, match="nonsense"):
        command.make_context("run", rest)


RIDDLES = ("without a word", "ran away", "of no paper", "drawn among", "cannot be told", "vouches", "by nobody")


def test_people_read_no_phrase_that_has_to_be_guessed():
    """Phrases that readers had to read twice, each replaced by the field's own words."""
    files = [*ROOT.glob("*.md"), *(ROOT / "reports").glob("*.md")]
    for room, kind in ((DOCS, "*.md"), (ROOT / "rankbench", "*.py"), (ROOT / "rankbench", "*.toml")):
        files += [path for path in room.rglob(kind) if MADE.isdisjoint(path.parts)]
    found = [(path.name, one) for path in files for one in RIDDLES if one in path.read_text("utf-8").lower()]
    assert len(files) > 500 and not found, found


def test_every_command_is_in_the_table_and_no_other():
    text = (DOCS / "commands.md").read_text()
    listed = set(re.findall(r"^\| `rankbench (\w+)", text, re.MULTILINE))
    assert listed == set(typer.main.get_command(app).commands)


def test_each_command_has_a_page_with_all_of_its_options():
    pytest.importorskip("sphinx")
    spec = spec_from_file_location("command_line", DOCS / "_ext" / "command_line.py")
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    for verb, command in made.VERBS.items():
        text, below = made.page(verb), dict(made.commands(command, verb)) if hasattr(command, "commands") else {}
        assert re.findall(r"^#+ rankbench (.+)$", text, re.MULTILINE) == [verb, *below]
        options = [name for one in (command, *below.values()) for option in one.params for name in option.opts]
        assert all(f"`{name}`" in text for name in options if name.startswith("-") and name != "--help")


def test_every_data_set_is_in_the_table():
    rows = [line for line in (DOCS / "data.md").read_text().splitlines() if line.startswith("| `")]
    told = {re.split(r"[:\[]", name)[0] for row in rows for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])}
    assert told == {name.partition(":")[0] for name in DATASETS.entries}


def test_every_kind_of_model_is_on_the_page_of_files_with_its_arrays():
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \|", (DOCS / "model-files.md").read_text(), re.MULTILINE)
    listed = {kind: re.findall(r"`(\w+)`", arrays) for kind, arrays in rows if kind in MODELS}
    assert listed == {kind: [field.name for field in fields(cls)] for kind, cls in MODELS.items()}


def test_every_public_name_is_in_the_reference():
    text = (DOCS / "api.md").read_text()
    listed = re.findall(r"^   ([A-Za-z]\w*)$", text, re.MULTILINE)
    assert sorted(listed) == sorted(package.__all__)


FUNCTIONS = [getattr(package, name) for name in package.__all__ if inspect.isfunction(getattr(package, name))]
METHODS = [package.Fitted.recommend, package.Fitted.rank, package.Fitted.with_items]


def documented(text: str, section: str) -> str:
    """The text of a section of a docstring in NumPy's form."""
    found = re.search(rf"^{section}\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", inspect.cleandoc(text), re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


@pytest.mark.parametrize("function", [*FUNCTIONS, *METHODS], ids=lambda function: function.__qualname__)
def test_every_function_documents_its_parameters_and_what_it_returns(function):
    told = re.findall(r"^(\*{0,2}\w[\w, ]*?)(?: : .+)?$", documented(function.__doc__, "Parameters"), re.MULTILINE)
    names = [one.lstrip("*") for group in told for one in group.split(", ")]
    assert sorted(names) == sorted(set(inspect.signature(function).parameters) - {"self"})
    assert bool(documented(function.__doc__, "Returns")) == (inspect.signature(function).return_annotation is not None)


def test_every_report_has_its_page():
    reports = {path.name for path in (ROOT / "reports").glob("*.md")} - {"README.md"}
    assert {path.name for path in (DOCS / "papers").glob("*.md")} - {"index.md"} == reports


def test_the_solver_is_short_and_computes_what_it_says():
    (text,) = (one.text for one in blocks(DOCS / "howto" / "your-solver.md") if one.file)
    assert len(text.strip().splitlines()) <= 25
    space: dict[str, object] = {"__name__": "popularity"}
    exec(text, space)
    train = Ratings.from_triples([0, 1, 1], [0, 0, 1], [2.0, 4.0, 3.0], 2, 3)
    (step,) = space["Popularity"](shrinkage=1.0).steps(train, np.random.default_rng(0))
    assert step.model.scores == pytest.approx([3.0, 3.0, 3.0])


@pytest.mark.slow
def test_the_solver_runs_by_the_command_beside_it(here, monkeypatch, capsys):
    found = blocks(DOCS / "howto" / "your-solver.md")
    (here / found[0].file).write_text(found[0].text)
    ((verb, *words),) = found[1].commands
    options = ["-d", "low-rank[per_user=130]", "-r", "1", "--no-report", "-q"]  # generated, to be at hand everywhere
    assert rankbench(monkeypatch, verb, *words, *options) == 0
    printed = capsys.readouterr().out
    assert "popularity.py:Popularity[shrinkage=10]" in printed and "sgd[rank=10" in printed


@pytest.mark.slow
def test_the_model_of_readme_ranks(capsys):
    (text,) = (one.text for one in blocks(ROOT / "README.md") if one.runs)
    exec(text, {})
    error = float(re.search(r"'pairwise-error': ([\d.]+)", capsys.readouterr().out)[1])
    assert error < 0.2


def test_the_answer_that_readme_shows_is_the_one_of_start():
    (shown,) = (one.text for one in blocks(ROOT / "README.md") if one.language == "text")
    printed = (DOCS / "start.md").read_text().splitlines()
    assert shown.splitlines() == [line for line in printed if line in shown.splitlines()]


def test_the_counts_of_published_numbers_are_those_of_the_reports():
    script = ROOT / ".ci" / "write_from_reports.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def links():
    """The script that checks links, as a module."""
    spec = spec_from_file_location("check_links", ROOT / ".ci" / "check_links.py")
    found = module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_the_links_of_the_repositorys_markdown_lead_somewhere(links):
    assert not list(links.of_markdown(ROOT))


PAGE = '<h1 id="one">1</h1><a href="{link}">x</a><img src="there.png" alt="">'


@pytest.mark.parametrize("link", ["other.html#two", "#one", "https://example.org/x", "there.png", "index.html"])
def test_a_link_that_leads_somewhere_is_let_pass(links, tmp_path, link):
    (tmp_path / "index.html").write_text(PAGE.format(link=link))
    (tmp_path / "other.html").write_text('<h2 id="two">2</h2>')
    (tmp_path / "there.png").touch()
    assert not list(links.of_site(tmp_path))


@pytest.mark.parametrize(
    ("link", "said"),
    [("gone.html", "is not there"), ("#three", "no such anchor"), ("other.html#one", "no such anchor")],
)
def test_a_broken_link_is_seen(links, tmp_path, link, said):
    (tmp_path / "index.html").write_text(PAGE.format(link=link))
    (tmp_path / "other.html").write_text('<h2 id="two">2</h2>')
    (tmp_path / "there.png").touch()
    (found,) = links.of_site(tmp_path)
    assert link in found and said in found


def test_what_a_page_loads_from_elsewhere_is_seen(links, tmp_path):
    (tmp_path / "index.html").write_text('<script src="https://cdn.example.org/x.js"></script>')
    (found,) = links.of_site(tmp_path)
    assert "loads https://cdn.example.org/x.js" in found


def test_a_broken_link_of_markdown_is_seen(links, tmp_path):
    (tmp_path / "README.md").write_text("# A title\n\n[a](#a-title) [b](gone.md) [c](#nothing) `[d](code.md)`\n")
    assert [text.partition(": ")[2] for text in links.of_markdown(tmp_path)] == [
        "gone.md is not there",
        "#nothing has no such anchor",
    ]


def test_the_index_of_the_reports_leads_to_a_section_of_each_experiment():
    reports = ROOT / "reports"
    index = re.findall(r"\]\((\w+\.md)#([\w-]+)\)", (reports / "README.md").read_text())
    assert len(index) > 40
    for page, experiment in index:
        assert f"\n## {experiment}\n" in (reports / page).read_text()
