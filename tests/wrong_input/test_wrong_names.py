"""Names, settings, options and experiment files that are wrong in every way that we know: one line names the text."""

import pytest
from helpers import TUNE_TOML, tiny_toml

SOLVERS = {
    "sdg": "did you mean 'sgd'? (rankbench list solvers)",
    "SGD": "unknown solver 'SGD'",
    "sgd[": "cannot read 'sgd['",
    "sgd[rank=2][lam=1]": "cannot read",
    "sgd[rnak=2]": "did you mean 'rank'?",
    "sgd[rank=two]": "rank=two is not of type int",
    "sgd[rank=1e3]": "rank=1e3 is not of type int",
    "sgd[rank=0]": "rank=0 is out of range: must be at least 1",
    "sgd[rank=nan]": "rank=nan is not of type int",
    f"sgd[rank={'9' * 5000}]": "is not of type int",
    "sgd[lam=nan]": "lam=nan is out of range",
    "sgd[lam=1;rank=2]": "is not of type float",
    "sgd[loss=logstic]": "did you mean 'logistic'?",
    "frsvm[start=nowhere]": "start",
    "svrank[kernel=x]": "kernel",
    "": "cannot read ''",
    "nowhere.py:Mine": "no file 'nowhere.py'",
    "nowhere.py:": "no file 'nowhere.py'",
    "broken.py:Mine": "cannot import broken.py: SyntaxError",
    "raising.py:Mine": "cannot import raising.py: ZeroDivisionError",
    "leaving.py:Mine": "cannot import leaving.py: SystemExit: 3",
    "empty.py:Mine": "empty.py defines no class, so there is no solver 'Mine' in it",
    "empty.py": "write empty.py:NAME, where NAME is the solver's class",
    "plain.py:Mine": "is not a dataclass",
    "plain.py:value": "plain.py:value",
    "poor.py:Mine": "has no learns_from",
    "binary.py:Mine": "cannot import binary.py",
    "folder.py:Mine": "no file 'folder.py'",
    "a\0b": "unknown solver",
    "\x1b[31msgd": "cannot read",
    "日本": "unknown solver '日本'",
    "x" * 100_000: "unknown solver",
}
DATA = {
    "low-rnk": "did you mean 'low-rank'?",
    "low-rank[users=0]": "users=0 is out of range",
    "low-rank[users=-5]": "users=-5 is out of range",
    "low-rank[users=many]": "users=many is not of type int",
    "low-rank[user=5]": "did you mean 'users'?",
    "low-rank[users=5": "cannot read",
    "btl[items=1]": "btl",
    "lookalike:": "lookalike:",
    "lookalike:ml-2m": "did you mean 'lookalike:ml-20m'?",
    "lookalike:ml-20m[share=0]": "share=0 is out of range",
    "jester[parts=some]": "parts",
    "csv": "needs an argument after the colon: use csv:PATH",
    "csv:": "needs an argument after the colon",
    "csv: ": "needs an argument after the colon",
    "csv:missing.csv": "no file 'missing.csv': check the path",
    "csv:.": "no file '.': check the path",
    "csv:/": "no file '/'",
    "csv:/dev/null": "no file '/dev/null'",
    "csv:/dev/zero": "no file '/dev/zero'",
    "csv:~nobody-here/x.csv": "no file '~nobody-here/x.csv'",
    "csv:" + "x" * 5000: "no file 'xxx",
    "csv:a\0b.csv": "no file 'a\\x00b.csv'",
    "csv:good.csv[path=x]": "path is already given after the colon",
    "csv:good.csv[sep=ab]": "sep=ab cannot separate fields",
    "csv:good.csv[sep=a]": "sep=a cannot separate fields",
    "csv:good.csv[sep=.]": "sep=. cannot separate fields",
    "csv:good.csv[separator=dot]": "value of separator: 'dot'",
    "csv:good.csv[sep=;,separator=comma]": "say the same thing",
    "csv:good.csv[header=maybe]": "value of header: 'maybe'",
    "csv:good.csv[ids=hex]": "value of ids: 'hex'",
    "csv:good.csv[repeats=first]": "value of repeats: 'first'",
    "csv:good.csv[low=5,high=1]": "low=5 must be below high=1",
    "csv:good.csv[low=x]": "low=x is not of type float",
    "csv:good.csv[low=nan]": "low=nan is no rating; give a number, or leave it out",
    "csv:good.csv[high=nan]": "high=nan is no rating",
    "csv:good.csv[high=4]": "rating 4.5 is out of range: must be at most 4",
    "csv:good.csv[user=who]": "user=who: no column of 'user', 'item', 'rating'",
    "csv:good.csv[user=9]": "user=9: no column",
    "csv:good.csv[user=0]": "user=0: no column",
    "csv:good.csv[user=item,item=item]": "must be different columns",
    "csv:good.csv[rating=user]": "no column for the user",
    "csv:good.csv[users=user]": "did you mean 'user'?",
    "csv:good.csv[features=missing.csv]": "no file 'missing.csv'",
    "pairs:missing.csv": "no file 'missing.csv'",
    "pairs:good.csv": "the header 'user', 'item', 'rating'",
    "pairs:good.csv[item=item]": "unknown setting of pairs:good.csv: 'item'",
    "netflix": "netflix is not at hand",
    "nowhere.py:Mine": "no file 'nowhere.py'",
    "poor.py:Mine": "poor.py:Mine",
}
OPTIONS = {
    "-r 0": "--repetitions=0 is out of range",
    "-r -1": "--repetitions=-1 is out of range",
    "-r 1000000000": "--repetitions=1000000000 is out of range: must be at least 1 and at most 10000",
    "-r many": "'-r' / '--repetitions'",
    "-r 1.5": "'-r' / '--repetitions'",
    f"-r {'9' * 5000}": "--repetitions",
    "-r": "'-r'",
    "--seed -1": "--seed=-1 is out of range",
    "--seed x": "'--seed'",
    "--seed 1e3": "'--seed'",
    "-j 0": "-j 0 is out of range",
    "-j 1025": "-j 1025 is out of range: must be at least 1 and at most 1024",
    "-j x": "'-j' / '--jobs'",
    "--threads 0": "--threads=0 is out of range",
    "--threads 1025": "--threads=1025 is out of range: must be at least 1 and at most 1024",
    "--threads x": "'--threads'",
    "--timeout 10": "write it like 30s, 10m, 2h, or none",
    "--timeout 0s": "write it like 30s, 10m, 2h",
    "--timeout -5s": "write it like 30s, 10m, 2h",
    "--timeout 5d": "write it like 30s, 10m, 2h",
    "--timeout ５s": "write it like 30s, 10m, 2h",
    f"--timeout {'9' * 500}h": "write it like 30s, 10m, 2h",
    "--memory lots": "write it like 500M, 8G, or none",
    "--memory 0G": "write it like 500M, 8G",
    f"--memory {'9' * 500}G": "write it like 500M, 8G",
    "--memory 5T": "write it like 500M, 8G",
    "--trials 0": "--trials=0 is out of range",
    "--trials 10001": "--trials=10001 is out of range: must be at least 1 and at most 10000",
    "--trials 3": "none of tiny.toml tunes anything",
    "--sed 3": "--seed",
    "--wait": "give it together with --join",
    "--join --dry-run": "--dry-run runs nothing",
    "--full=yes": "--full",
    "--nonsense": "--nonsense",
}
TOML = {
    "full = 3": ({"full": "3"}, "[full] must be a table"),
    "figure.by = 3": ({"figure": "{kind = 'sweep', by = 3}"}, "[figure]: by must be a list"),
    "figure.by = [[]]": ({"figure": "{kind = 'sweep', by = [[]]}"}, "[figure]: by must be a list"),
    "figure = 3": ({"figure": "3"}, "[figure] must be a table"),
    "figure.kind = curv": ({"figure": '{kind = "curv"}'}, "'curv'; did you mean 'curve'?"),
    "figure.metric = 3": ({"figure": "{metric = 3}"}, "tiny.toml: unknown metric '3'"),
    "figure.kind = 3": ({"figure": "{kind = 3}"}, "kind"),
    "figure.x = 3": ({"figure": "{x = 3}"}, "[figure]: x must be a text"),
    "figure.curves = 3": ({"figure": "{kind = 'sweep', curves = 3}"}, "[[figure.curves]]"),
    "a curve of words": ({"figure": "{kind = 'sweep', curves = [{name='a', x=['b'], y=[1]}]}"}, "list of numbers"),
    "a curve without y": ({"figure": "{kind = 'sweep', curves = [{name='a', x=[1]}]}"}, "'y'"),
    "a curve by number": ({"figure": "{kind = 'sweep', curves = [{name=3, x=[1], y=[1]}]}"}, "name must be a text"),
    "a part by number": (
        {"figure": "{kind='sweep', curves=[{name='a', x=[1], y=[1], part=3}]}"},
        "part must be a text",
    ),
    "title = 3": ({"title": "3"}, "title must be a text"),
    "title = []": ({"title": "[]"}, "title must be a text"),
    "about = true": ({"about": "true"}, "about must be a text"),
    "paper = a date": ({"paper": "2020-01-01"}, "paper must be a text"),
    "data = a table": ({"data": "{a = 1}"}, "data must be a list of names"),
    "data = [3]": ({"data": "[3]"}, "data must be a list of names"),
    "data = [[]]": ({"data": "[[]]"}, "data must be a list of names"),
    "splits = []": ({"splits": "[]"}, "splits must be a list of names"),
    "an unknown split": ({"splits": '["entires"]'}, "did you mean 'entries'?"),
    "a split out of range": ({"splits": '["entries[test=2]"]'}, "test=2 is out of range"),
    "a split that asks for too much": ({"splits": '["n-per-user[n=500]"]'}, "n-per-user[n=500"),
    "solvers = []": ({"solvers": "[]"}, "tiny.toml: solvers must be a list of names that is not empty"),
    "solvers = text": ({"solvers": '"sgd"'}, "solvers must be a list of names"),
    "metrics = [3]": ({"metrics": "[3]"}, "metrics must be a list of names"),
    "an unknown metric": ({"metrics": '["ndgc@10"]'}, "tiny.toml: unknown metric 'ndgc'; did you mean 'ndcg'?"),
    "a metric at 0": ({"metrics": '["ndcg@0"]'}, "ndcg@0"),
    "a metric at x": ({"metrics": '["ndcg@x"]'}, "ndcg@x"),
    "a metric cut off": ({"metrics": '["ndcg@"]'}, "ndcg@"),
    "repetitions = 0": ({"repetitions": "0"}, "repetitions=0 is out of range"),
    "repetitions = inf": ({"repetitions": "inf"}, "repetitions=inf is not of type int"),
    "repetitions = 1.5": ({"repetitions": "1.5"}, "repetitions=1.5 is not of type int"),
    "repetitions = true": ({"repetitions": "true"}, "repetitions=True is not of type int"),
    "repetitions = []": ({"repetitions": "[]"}, "repetitions=[] is not of type int"),
    "repetitions = huge": ({"repetitions": "10001"}, "is out of range: must be at least 1 and at most 10000"),
    "every = 0": ({"every": "0"}, "every=0 is out of range"),
    "every = {}": ({"every": "{}"}, "every={} is not of type int"),
    "objective = 3": ({"objective": "3"}, "objective=3 is not of type bool"),
    "objective = []": ({"objective": "[]"}, "objective=[] is not of type bool"),
    "threads = 3": ({"threads": "3"}, "threads must be a list of numbers"),
    "threads = [0]": ({"threads": "[0]"}, "threads must be a list of numbers"),
    "threads = [2000]": ({"threads": "[2000]"}, "threads=2000 is out of range"),
    "threads = [[1]]": ({"threads": "[[1]]"}, "threads must be a list of numbers"),
    "budget = []": ({"budget": "[]"}, "[budget] must be a table"),
    "budget.setps": ({"budget": "{setps = 3}"}, "tiny.toml: [budget] 'setps'; did you mean 'steps'?"),
    "budget.steps = -1": (
        {"budget": "{steps = -1}"},
        "[budget]: steps=-1 is out of range: must be at least 0",
    ),
    "budget.steps = {}": ({"budget": "{steps = {}}"}, "steps={} is not of type int"),
    "budget.steps = huge": ({"budget": "{steps = 1000001}"}, "must be at least 0 and at most 1000000"),
    "budget.seconds = nan": ({"budget": "{seconds = nan}"}, "seconds=nan is out of range"),
    "budget.seconds = 0": ({"budget": "{seconds = 0}"}, "seconds=0 is out of range"),
    "budget.tolerance = text": ({"budget": "{tolerance = 'x'}"}, "tolerance=x is not of type float"),
    "published = 3": ({"published": "3"}, "published must be tables"),
    "published = [3]": ({"published": "[3]"}, "published must be tables"),
    "published.solver = 3": ({"published": "[{solver=3, metric='ndcg@5', value=1}]"}, "solver must be a text"),
    "published.data = 3": ({"published": "[{solver='a', metric='ndcg@5', value=1, data=3}]"}, "data must be a text"),
    "published.value = text": ({"published": "[{solver='a', metric='ndcg@5', value='x'}]"}, "value=x is not of type"),
    "published.metric = []": ({"published": "[{solver='a', metric=[1], value=1}]"}, "cannot read '[1]'"),
    "published without value": ({"published": "[{solver='a', metric='ndcg@5'}]"}, "'value'"),
    "tune = []": ({"tune": "[]"}, "[tune] must be a table"),
    "tune.space.x = 3": ({"tune": "{space = {sgd = 3}}"}, "space must hold a table for each solver"),
    "a list of lists": (
        {"tune": "{space = {global = {lam = [[1]]}, sgd = {}}}", "solvers": "['global', 'sgd']"},
        "lam",
    ),
    "tune.trials = huge": ({"tune": TUNE_TOML.replace("trials = 3", "trials = 99999999")}, "trials=99999999 is out"),
    "tune.method = 3": ({"tune": TUNE_TOML.replace("{trials", "{method = 3, trials")}, "value of method: '3'"),
    "tune.validation = 3": ({"tune": TUNE_TOML.replace("{trials", "{validation = 3, trials")}, "unknown split '3'"),
    "tune.per = 3": ({"tune": TUNE_TOML.replace("{trials", "{per = 3, trials")}, "value of per: '3'"),
    "full.data = 3": ({"full": "{data = 3}"}, "data must be a list of names"),
    "full.full": ({"full": "{full = {}}"}, "'full'"),
    "an unknown key": ({"titel": "3"}, "did you mean 'title'?"),
    "a missing key": ({"about": ""}, "missing key 'about'"),
    "too deep": ({"data": "[" * 100_000}, "nested too deeply"),
    "deep tables": ({"x": "{a=" * 50_000}, "nested too deeply"),
    "too many digits": ({"every": "9" * 5000}, "tiny.toml: "),
}
WHOLE = {
    "latin-1": ("title = 'größe'".encode("latin-1"), "tiny.toml: not UTF-8 (byte 0xf6)"),
    "utf-16": ("title = 'x'".encode("utf-16"), "tiny.toml: not UTF-8"),
    "nothing": (b"", "tiny.toml: missing key"),
    "NUL": (b"title = 'x\0'", "tiny.toml: "),
    "no TOML": (b"{'title': 3}", "tiny.toml: "),
    "JSON": (b'{"title": "x"}', "tiny.toml: "),
    "a key twice": (b"title = 'x'\ntitle = 'y'\n", "tiny.toml: "),
    "half a text": (b"title = 'x", "tiny.toml: "),
    "binary": (bytes(range(256)), "tiny.toml: "),
}
TUNE = "tune sgd -d low-rank --space lam=1..2"
COMMANDS = {
    "run nowhere.toml": "no experiment file 'nowhere.toml'",
    "run folder.toml": "no experiment file 'folder.toml'",
    "run park2015-table1 --trials 3": "--trials=3: park2015-table1 tunes on a grid",
    "run parkzhang2014-choices --trials 3": "--trials=3: none of parkzhang2014-choices tunes anything",
    "run park2015-table1 --rerun fialed": "--rerun fialed: unknown kind of results to run again",
    "run park2015-tabel1": "did you mean 'park2015-table1'? (rankbench list experiments)",
    "run tiny.toml nowhere": "unknown experiment 'nowhere'",
    "run good.csv": "no experiment file, which ends with .toml; for a file of ratings or pairs: rankbench on good.csv",
    "run .": "'.' is a folder, not an experiment; name an experiment file, or",
    "check .": "'.' is a folder; name the file of ratings or pairs in it",
    "check nowhere.py:Mine": "no file 'nowhere.py'",
    "check sdg": "did you mean 'sgd'?",
    "check ndcg@10": "ndcg@10 is a metric of rankbench, which its own tests check; rankbench check takes",
    "check sgd --pdb --profile": "--profile and --pdb exclude each other: choose one",
    "check sgd --timeout 5": "--timeout '5' cannot be read",
    "check frsvm --profile -d low-rank": "frsvm needs item features, the data has none",
    "check sgd --profile -d nowhere.csv": "no file 'nowhere.csv'; check the path",
    "check plain.py": "'plain.py' names a file but no class in it; write plain.py:NAME, where NAME is the solver",
    "on plain.py": "'plain.py' is a file of Python, not of data; a data set in it is plain.py:CLASS",
    "rnu": "'run'",
    "list solver": "did you mean 'solvers'?",
    "list a b": "b",
    "list sdg": "did you mean 'sgd'?",
    "list nowhere.py:Mine": "no file 'nowhere.py'",
    "data": "command",
    "data where sdg": "unknown data set 'sdg'",
    "data fetch sdg": "unknown data set 'sdg'",
    "data fetch netflix": "netflix cannot be downloaded",
    "data fetch csv:missing.csv": "no file 'missing.csv'",
    "data import netflix missing.zip": "no file or folder 'missing.zip'",
    "data import btl good.csv": "btl needs no import",
    "data import csv:good.csv good.csv": "csv:good.csv needs no import",
    "data import ml-1m good.csv": "does not complete ml-1m",
    "data import ml-1m folder.toml": "is empty",
    "data verify sdg": "unknown data set 'sdg'",
    "data export low-rank entires --to out": "did you mean 'entries'?",
    "data export low-rank entries --to out --repetition -1": "--repetition -1 is out of range",
    "data export low-rank entries": "--to",
    "data export csv:missing.csv entries --to out": "missing.csv",
    "data export low-rank entries --to out --seed -1": "--seed=-1 is out of range: must be at least 0",
    "check good.csv --seed -1": "--seed=-1 is out of range: must be at least 0",
    "on good.csv --seed -1": "--seed=-1 is out of range: must be at least 0",
    f"{TUNE} --seed -1": "--seed=-1 is out of range: must be at least 0",
    "tune sgd": "'-d' / '--data'",
    f"{TUNE} --method halvin": "did you mean 'halving'",
    f"{TUNE} --method grid": "a grid needs a number of points",
    f"{TUNE} --draws sobl": "did you mean 'sobol'",
    f"{TUNE} --metric kendal": "did you mean 'kendall'?",
    f"{TUNE} --split entires": "did you mean 'entries'?",
    f"{TUNE} --validation x": "unknown split 'x'",
    f"{TUNE} --trials 0": "--trials=0 is out of range",
    f"{TUNE} --steps -1": "--steps=-1 is out of range",
    "tune sgd -d low-rank --space lma=1..2": "'lma'; did you mean 'lam'?",
    "tune sgd -d low-rank --space rank=0..2": "sgd: rank=0 is out of range: must be at least 1",
    "tune sgd[rank=2] -d low-rank --space rank=1|2": "nothing to tune: give the values to try",
    "tune mprank -d low-rank --space C=1..2": "mprank needs item features, the data has none",
    "tune sgd -d low-rank": "nothing to tune: give the values to try, like --space lam=0.01..1:log",
    "tune sgd -d low-rank --space lam": "write it like lam=1..1000:log or rank=5|10|20",
    f"{TUNE} --steps 1000001": "must be at least 0 and at most 1000000",
    "tune sgd -d csv:missing.csv --space lam=1..2": "missing.csv",
    "verify nowhere --sample 0": "--sample 0 is out of range",
    "verify nowhere": "no results under results",
    "table . --out none": "is a folder, not an experiment; a folder of results is given by --out",
    "table tiny --csv --latex": "exclude each other",
    "table tiny --what peeks": "unknown part of a table 'peeks'; did you mean 'peaks'?",
    "table tiny --what by-trials --csv": "--what by-trials has no CSV: --what trials --csv has",
    "table tiny --what trials --out empty": "no results under empty",
    "report tiny --out empty": "no results under empty",
    "report --columns 1": "are for the figures of one experiment: name it",
    "table nowhere": "no results under results",
    "compare nowhere": "no results under results",
    "compare a b c": "'a' is no folder and no archive",
    "compare a b": "to look for it as a commit",
    "report nowhere": "no results under results",
    "report": "no results under results",
    "status": "no results under results",
    "on many.csv -s sdg": "did you mean 'sgd'? (rankbench list solvers)",
    "on many.csv --metric ndgc@10": "did you mean 'ndcg'?",
    "on many.csv --split n-per-usr": "did you mean 'n-per-user'?",
    "on many.csv --split n-per-user[n=500]": "lower n",
    "on many.csv --time 5": "--time '5' cannot be read: write it like 30s, 10m, 2h, or none",
    "on many.csv --trials 0": "--trials=0 is out of range: must be at least 1",
    "on many.csv -r 0": "--repetitions=0 is out of range: must be at least 1",
    "on .": "is a folder; name the file of ratings or pairs in it",
    "on good.csv --margin 0": "--margin=0 is out of range: must be above 0",
    "run tiny.toml --redraw moon": "--redraw moon: ",
    "recommend model.npz --to all.txt": "all.txt is no name of a table's file; end it in .parquet or .csv",
    "recommend model.npz --all --user a": "--all and --user name different users; give one of them",
    "recommend model.npz --why -1": "--why=-1 is out of range: must be at least 1",
    "judge one.run two.run --truth good.csv --metric map --published 0.5": "--published is a number of one run",
    "rank votes.csv --to board.xlsx": "--to board.xlsx has no ending of a leaderboard; known: ",
    "status --out good.csv": "good.csv is damaged or no archive",
    "run tiny.toml --out good.csv": "cannot write to good.csv",
}


@pytest.fixture
def answer(cli, monkeypatch, here):
    """What the command line says of these arguments, in a folder with some files."""
    monkeypatch.setenv("RANKBENCH_CACHE", str(here / "cache"))
    monkeypatch.setenv("RANKBENCH_DATA", str(here / "data"))
    tiny_toml(here)
    (here / "good.csv").write_text("user,item,rating\n1,10,4.5\n1,20,3\n7,10,1\n")
    (here / "many.csv").write_text("".join(f"{user},{item},{item % 5}\n" for user in range(9) for item in range(12)))
    (here / "votes.csv").write_text("winner,loser\na,b\nb,a\n")
    (here / "folder.toml").mkdir()
    (here / "folder.py").mkdir()
    (here / "broken.py").write_text("class Mine(\n")
    (here / "raising.py").write_text("1 / 0\n")
    (here / "leaving.py").write_text("raise SystemExit(3)\n")
    (here / "empty.py").write_text("")
    (here / "plain.py").write_text("value = 3\nclass Mine: pass\n")
    (here / "poor.py").write_text(
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Mine: x: int = 1\n"
    )
    (here / "binary.py").write_bytes(bytes(range(256)))
    there = {*here.iterdir(), here / "cache"}
    yield cli.refuses
    assert there >= set(here.iterdir())  # what is refused leaves nothing


def short(names):
    return [repr(name)[:40] for name in names]


@pytest.mark.parametrize(("name", "fragment"), SOLVERS.items(), ids=short(SOLVERS))
def test_a_wrong_solver_is_one_line_that_shows_it(answer, name, fragment):
    assert fragment in answer("run", "tiny.toml", "-s", name, "--dry-run")


@pytest.mark.parametrize(("name", "fragment"), DATA.items(), ids=short(DATA))
def test_a_wrong_data_set_is_one_line_that_shows_it(answer, name, fragment):
    assert fragment in answer("run", "tiny.toml", "-d", name, "--dry-run")


@pytest.mark.parametrize(("words", "fragment"), OPTIONS.items(), ids=short(OPTIONS))
def test_a_wrong_option_is_one_line_that_shows_it(answer, words, fragment):
    assert fragment in answer("run", "tiny.toml", *words.split())


@pytest.mark.parametrize(("changes", "fragment"), TOML.values(), ids=TOML)
def test_a_wrong_experiment_is_one_line_that_shows_the_key(answer, tmp_path, changes, fragment):
    tiny_toml(tmp_path, **changes)
    assert fragment in answer("run", "tiny.toml", "--dry-run", *(["--full"] if "full" in changes else []))


@pytest.mark.parametrize(("content", "fragment"), WHOLE.values(), ids=WHOLE)
def test_a_file_that_is_no_experiment_is_one_line_that_names_it(answer, tmp_path, content, fragment):
    (tmp_path / "tiny.toml").write_bytes(content)
    assert fragment in answer("run", "tiny.toml", "--dry-run")


@pytest.mark.parametrize(("words", "fragment"), COMMANDS.items(), ids=short(COMMANDS))
def test_a_wrong_command_is_one_line_that_shows_it(answer, words, fragment):
    assert fragment in answer(*words.split())
