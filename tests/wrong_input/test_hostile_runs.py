"""An experiment all of whose texts would do harm, through every command that shows something of it."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from helpers import MACHINE, SOLVER_HEAD, made_up, rankbench, store_in
from wrong_input.hostile import (
    CONTROL,
    HOSTILE,
    assert_plain_csv,
    assert_plain_latex,
    assert_plain_markdown,
    assert_plain_terminal,
    elements,
)

from rankbench.fitted import Fitted, Seen, save
from rankbench.models import Factors

pytestmark = pytest.mark.slow

WORDS = [text for text in HOSTILE if len(text) < 100 and not any("\ud800" <= letter <= "\udfff" for letter in text)]
LINES = [text for text in WORDS if text.strip() and "\n" not in text]
NAME = "=<img src=x onerror=alert(1)>\x1b[31m](evil) &amp;|`"
DATA = "+<b>\x1bc\x07'|.csv"
OWN = "@x<b>`|.py"
SOLVER = f"{OWN}:Mine"
SPLIT = "n-per-user[n=4,least=3]"
METRIC = "ndcg@5"


def toml(text):
    """A text as TOML writes it."""
    for letter, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
        text = text.replace(letter, escaped)
    return '"' + CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + '"'


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with an experiment, and with results of it that a stranger made."""
    folder = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(0)
    rows = [f"{user},{item},{rng.integers(1, 6)}" for user in range(12) for item in range(10)]
    (folder / DATA).write_text("user,item,rating\n" + "\n".join(rows))
    text = repr("".join(WORDS))
    (folder / OWN).write_text(f"{SOLVER_HEAD}        print({text}, flush=True)\n        raise ValueError({text})\n")
    parts = {
        "title": toml(" ".join(WORDS)),
        "paper": toml("".join(reversed(WORDS))),
        "about": toml("\n\n".join(WORDS)),
        "differences": toml("\n".join(WORDS)),
        "data": f"[{toml(f'csv:{DATA}')}]",
        "splits": f"['{SPLIT}']",
        "solvers": f"['global[lam=10]', 'sgd[rank=2]', {toml(SOLVER)}]",
        "metrics": f"['{METRIC}', 'pairwise-error']",
        "repetitions": "2",
        "budget": "{steps = 2}",
        "published": f"[{{solver = 'global', metric = '{METRIC}', value = 0.5, remark = {toml(' '.join(LINES))}}}]",
    }
    names = {
        "solvers": {"global[lam=10]": LINES[::3], "sgd[rank=2]": LINES[1::3], SOLVER: LINES[2::3]},
        "data": {f"csv:{DATA}": LINES},
        "metrics": {METRIC: LINES},
    }
    body = "".join(f"{key} = {value}\n" for key, value in parts.items())
    for kind, known in names.items():
        body += f"[names.{kind}]\n" + "".join(f"{toml(key)} = {toml(' '.join(said))}\n" for key, said in known.items())
    (folder / f"{NAME}.toml").write_text(body, encoding="utf-8")
    return folder


@pytest.fixture
def command(place, monkeypatch, capfd):
    """Runs a command in the folder; what it printed is plain."""
    monkeypatch.chdir(place)

    def run(*words):
        code = rankbench(monkeypatch, *words)
        out, errors = capfd.readouterr()
        assert_plain_terminal(out + errors)
        return code, out, errors

    return run


def foreign(place):
    """Give the cells of the solver that fails a result of a strange machine, and a strange failure."""
    store = store_in(place / "out", NAME)
    (plan,) = store.plans()
    one, other = (cell for cell in plan.cells if cell.solver.written == SOLVER)
    texts = {
        "cpu": " ".join(WORDS),
        "compiler": "".join(WORDS),
        "git": WORDS[0],
        "kernels": WORDS[1],
        "system": WORDS[2],
    }
    store.save(made_up(one, 0.5, machine=replace(MACHINE, blas=tuple(WORDS), **texts)), {})
    store.save(made_up(other, 0.5, status="failed", reason="\n".join(WORDS), trace="".join(WORDS)), {})


def assert_plain_report(folder):
    """All files of a report are plain."""
    for path in folder.rglob("*.md"):
        assert_plain_markdown(path.read_text(encoding="utf-8"))
    for path in folder.rglob("*.csv"):
        text = path.read_text(encoding="utf-8")
        assert_plain_csv(text, len(next(csv.reader(io.StringIO(text)))))
    for path in folder.rglob("*.tex"):
        assert_plain_latex(path.read_text(encoding="utf-8"))
    for path in folder.rglob("*.html"):
        assert_plain_page(path.read_text(encoding="utf-8"))


def assert_plain_page(html):
    """The page runs nothing of theirs and leads nowhere else."""
    html, ours, _ = html.partition('<script type="text/plain" id="plotly">')
    assert ours and not CONTROL.search(html)
    found = elements(html)
    assert [tag for tag, _ in found].count("img") == 0
    for tag, given in found:
        assert tag not in ("iframe", "svg", "object", "embed", "base"), tag
        assert not any(name.startswith("on") for name in given), given
        assert given.get("href", "#").startswith(("#", "data:,", "index.html")), given


def test_every_command_shows_the_texts_and_does_nothing_that_they_say(command, place):
    code, _, errors = command("run", f"{NAME}.toml", "--out", "out")
    assert code == 1 and "ValueError" in errors, errors
    foreign(place)
    assert command("status", "--out", "out")[0] == 0
    for form in ((), ("--what", "peaks"), ("--latex",)):
        code, out, _ = command("table", f"{NAME}.toml", *form, "--out", "out")
        assert code == 0
        assert_plain_latex(out) if form == ("--latex",) else assert_plain_markdown(out)
    for verb in ("table", "compare"):
        code, out, _ = command(verb, f"{NAME}.toml", "--csv", "--out", "out")
        assert code == 0
        assert_plain_csv(out, out.partition("\n")[0].count(",") + 1)
    assert command("compare", f"{NAME}.toml", "--out", "out")[0] == 0
    assert command("report", "--out", "out")[0] == 0
    assert_plain_report(place / "out" / "report")
    assert command("report", f"{NAME}.toml", "--out", "out", "--to", "drawn")[0] == 0
    code, _, errors = command("archive", f"{NAME}.toml", "--out", "out", "--to", "x.zip")
    assert code == 2 and "cannot be put into an archive" in errors, errors
    assert command("table", "nothing\x1b[31m", "--out", "out")[0] == 2
    assert sorted(path.name for path in place.iterdir()) == sorted([f"{NAME}.toml", DATA, OWN, "out", "drawn"])


def test_an_audit_of_a_file_and_a_check_of_a_solver_show_them_too(command, place):
    code, _, errors = command("check", DATA)
    assert code in (0, 1), errors
    assert command("check", SOLVER)[0] == 1
    for kind in ("solvers", SOLVER):
        assert command("list", kind)[0] == 0


def distinct(texts):
    """These texts as ids."""
    return np.array(list(dict.fromkeys(texts)))


def test_ids_are_recommended_as_cells_that_are_no_formulas(command, place):
    ids = distinct([text for text in WORDS if text] + ["-5", "+0.5", "alice"])
    rng = np.random.default_rng(0)
    seen = Seen(np.zeros(len(ids) + 1, np.int64), np.zeros(0, np.int32), len(ids))
    factors = rng.normal(size=(len(ids), 4))
    save(Fitted(Factors(factors, factors), ids, ids, seen), place / "model.npz")
    _, out, _ = command("recommend", "model.npz", "-k", "1")
    found = assert_plain_csv(out, 4)
    assert [line[0] for line in found[1:]] == [expected(text) for text in ids.tolist()]
    _, out, _ = command("recommend", "model.npz", "-k", "2", "--to", "all.csv")
    assert_plain_csv((place / "all.csv").read_text(encoding="utf-8"), 4)
    _, out, _ = command("recommend", "model.npz", "--user", "=1+1", "-k", "1")
    assert out.splitlines()[1].startswith("'=1+1,1,")
    for name in ("model.npz", "all.csv"):
        (place / name).unlink()


def expected(text):
    """An id as a cell: on one line, and with an apostrophe before what a spreadsheet would take for a formula."""
    if text in ("-5", "+0.5"):
        return text
    plain = CONTROL.sub(code, text.replace("\t", "\\t").replace("\n", "\\n"))
    return f"'{plain}" if plain.lstrip("'").lstrip()[:1] in tuple("=+-@＝＠") and plain[:1] != "" else plain


def code(found):
    """A control character as Python writes it."""
    return ascii(found[0])[1:-1]
