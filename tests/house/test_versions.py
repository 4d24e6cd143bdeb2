"""A change of results must raise a `version`; otherwise stored results of the old code would be reused.

pinned_results.json has small results of every solver, metric, split and generator with the version that made them.
`PYTHONPATH=tests python tests/house/test_versions.py` writes it again, and refuses if results changed under the same
version.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data.splits.small import EVERY_SPLIT, by_hand
from helpers import OWN_SOLVERS

from rankbench.arrays.npz import fingerprint, pack
from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Floats, Ints
from rankbench.core.streams import stream
from rankbench.data import DATASETS, load
from rankbench.data.splits import SPLITS, Split, split
from rankbench.data.views import Comparisons, View, offer
from rankbench.metrics import METRICS, mean, metric, per_user, unusable
from rankbench.solvers import SOLVERS

pytestmark = pytest.mark.slow

PINS = Path(__file__).with_name("pinned_results.json")
COMMAND = "PYTHONPATH=tests python tests/house/test_versions.py"
PIN = f"run {COMMAND} to pin"
STEPS = 5  # the start and a few more, or all until the solver ends
PAIRS = 10
USERS = 8

# Another BLAS, compiler or processor moves last bits. Kernels built with fused multiplications and for one processor,
# on four kinds of BLAS, moved these results by 3e-12 of the largest number beside; a change of what is computed moves
# them by far more than this.
TOLERANCE = 1e-6

# The data and how it is cut. Whole numbers (levels, items, who is preferred) are pinned as a hash: logarithms and
# exponentials, whose last bits differ from machine to machine, only decide on which side of a border a draw falls, and
# none falls so near. All other numbers are pinned as means, to the same tolerance as results.
PROBLEMS = {
    "ratings": ("low-rank[users=20,items=30,per_user=20]", "n-per-user[n=12,least=5]"),
    "features": (
        "feature-low-rank[users=12,items=30,features=4,rank=2,per_user=20,noise=0.3]",
        "items-per-task[n=14,test=6]",
    ),
    "comparisons": ("partial-orders[users=20,items=30,per_user=12,density=0.4]", "entries"),
    "featured-comparisons": (
        "feature-low-rank[users=12,items=30,features=4,rank=2,per_user=20,pairs=40,noise=0.3]",
        "entries",
    ),
}

# Under which settings a solver takes another path. Schedules that race have no results to pin, and a kernel matrix
# that is given is used as one that is computed. CofiRank gets few planes: with many, last bits decide how many it
# takes, and so the third digit of its scores.
CASES = {
    "ratings": [
        "altsvm[rank=3]",
        "altsvm[rank=3,loss=hinge,inner=2]",
        "altsvm[rank=3,loss=smooth-hinge]",
        "altsvm[rank=3,schedule=partitioned,groups=4]",
        "altsvm[rank=3,schedule=random]",
        "altsvm[rank=3,partitions=4]",
        "altsvm[rank=3,loss=hinge,inner=2,schedule=random,partitions=3]",
        "bpr[rank=3]",
        "bpr[rank=3,least=3,decay=0.01]",
        "bpr[rank=3,biases=true]",
        "bpr[rank=3,negatives=popular]",
        "bpr[rank=3,biases=true,negatives=warp]",
        "cofirank[rank=3,k=5,planes=4]",
        "cofirank[rank=3,loss=ordinal,planes=4]",
        "cofirank[rank=3,loss=regression,planes=4]",
        "convex-erm",
        "convex-erm[loss=smooth-hinge]",
        "convex-erm[loss=squared-hinge,corrections=0]",
        "ease[lam=3]",
        "ease[lam=3,values=centred]",
        "ease[lam=3,values=ratings,least=3]",
        "ease[lam=3,neighbours=4]",
        "fm[rank=2,features=none]",
        "frsvm[rank=3,features=none]",
        "frsvm[rank=3,features=none,partitions=4]",
        "global",
        "global[loss=logistic]",
        "ials[rank=3]",
        "ials[rank=3,inner=2,power=0.5,least=3]",
        "ials[rank=5,block=2]",
        "item-knn[neighbours=4]",
        "item-knn[neighbours=4,values=centred,shrink=0]",
        "item-knn[neighbours=4,values=ratings,least=3]",
        "slim[lam=3]",
        "slim[l1=0.1,lam=3,values=centred,least=3]",
        "rp3beta[neighbours=4]",
        "rp3beta[neighbours=4,alpha=0.6,beta=0,least=3]",
        "lcr[rank=2,anchors=3]",
        "lcr[rank=2,anchors=0]",
        "mf[rank=3]",
        "mf[rank=3,centre=none]",
        "mf[rank=3,centre=none,biases=2]",
        "mf[rank=3,inner=3,biases=2]",
        "mf[rank=3,biases=0.5,power=1]",
        "popularity",
        "random",
        "rmc[lam=2]",
        "rmc[lam=2,rank=3,eps=0.1]",
        "robirank[rank=3]",
        "robirank[rank=3,among=catalogue]",
        "sgd[rank=3]",
        "sgd[rank=3,loss=logistic,decay=0.01]",
        "sgd[rank=3,schedule=tournament,parts=4]",
        "sgd[rank=3,schedule=nomad,parts=4]",
        "smc[lam=2]",
        "softmax[rank=3]",
        "sqlrank[rank=3]",
        "sqlrank[rank=3,link=identity,unrated=2,batch=7,least=3]",
        "softmax[rank=3,negatives=6,power=0.5,batch=7,least=3]",
        "smc[lam=2,centred=true,rank=3]",
    ],
    "features": [
        "fm[rank=2]",
        "fm[rank=2,loss=squared-hinge]",
        "frsvm[rank=2]",
        "frsvm[rank=2,start=random,newton=2,fallback=mean]",
        "frsvm[rank=2,start=random,newton=2,fallback=mean,partitions=3]",
        "imc[rank=2]",
        "imc[rank=2,centre=none,inner=3]",
        "mprank[form=primal]",
        "mprank[form=dual]",
        "mprank[kernel=gaussian,width=2]",
        "mprank[kernel=polynomial]",
        "mprank[choose=C-per-user]",
        "mprank[choose=C-for-all]",
        "rankboost",
        "rankboost[rounds=validated]",
        "ranksvm-joint",
        "ranksvm-nuclear",
        "ranksvm-separate",
        "ranksvm-var",
        "ranksvm-var[shared=2,private=0.5]",
        "svrank[form=pairs]",
        "svrank[form=residuals]",
        "svrank[kernel=gaussian,width=2]",
        "svrank[kernel=polynomial,form=residuals]",
    ],
    "comparisons": ["global", "rmc[lam=2]", "rmc[lam=2,graphs=as-levels]", "sgd[rank=3]"],
    "featured-comparisons": [
        "fm[rank=2]",
        "frsvm[rank=2]",
        "ranksvm-joint",
        "ranksvm-joint[loss=logistic]",
        "ranksvm-nuclear",
        "ranksvm-nuclear[loss=logistic]",
        "ranksvm-separate",
        "ranksvm-var",
    ],
}

GENERATED = [
    "arena[items=12,judges=9,comparisons=200]",
    "arena[items=12,judges=9,comparisons=200,features=4,side=0.3,length=0.5]",
    "btl[users=20,items=30,comparisons=20]",
    "feature-low-rank[users=12,items=30,features=4,rank=2,per_user=20,noise=0.3]",
    "feature-low-rank[users=12,items=30,features=4,rank=2,per_user=20,pairs=40]",
    "low-rank[users=20,items=30,per_user=20]",
    "low-rank[users=20,items=30,per_user=20,levels=0]",
    "lookalike:book-crossing[ratings=500]",
    "lookalike:hetrec2011-ml-2k[ratings=500,features=true]",
    "lookalike:jester[ratings=500]",
    "lookalike:neurosynth[ratings=10000]",
    "magnitudes[users=20,items=30,features=3,per_user=20]",
    "monotone[users=20,items=30,per_user=20]",
    "monotone[users=20,items=30,per_user=20,levels=5]",
    "partial-orders[users=20,items=30,per_user=12,density=0.4]",
]

OF_FEATURES = ("intra-list-similarity",)  # metrics that need item features

# Other than usual values of what a metric takes.
SETTINGS = {
    "candidates": ["catalogue"],
    "relevant": ["3", "any"],
    "users": ["all", "relevant"],
    "pairs": ["test-train", "both", "train"],
    "average": ["pairs", "users"],
    "n": ["2"],
    "eps": ["0.5"],
    "part": ["train", "gap"],
}

Pins = dict[str, Any]


# ---- what is pinned ----


@cache
def problem(name: str) -> Split:
    """The small data that solvers and metrics are pinned on."""
    data, protocol = PROBLEMS[name]
    return split(load(data), protocol)


def solver_results(name: str) -> Pins:
    """Scores of some held-out pairs after a few steps, for each problem and each settings."""
    return {
        f"{text} on {on}": scores_of(text, problem(on))
        for on, texts in CASES.items()
        for text in texts
        if base(text) == name and not absent(text)
    }


def scores_of(text: str, parts: Split) -> list[float | None]:
    """What the solver of this name says of pairs that are spread over the held-out part."""
    solver, test = SOLVERS.make(text), parts.test
    rows = np.linspace(0, len(test) - 1, PAIRS).astype(int)
    items = test.better if isinstance(test, Comparisons) else test.items
    with one_blas_thread():
        for step in islice(solver.steps(offer(solver, parts.train), stream(0, "pinned")), STEPS):
            model = step.model
        return rounded(model.score(test.users[rows], items[rows]))


def absent(text: str) -> str | None:
    """The command that installs a package which these settings need, where it is not at hand."""
    solver = SOLVERS.make(text)
    return solver.missing() if hasattr(solver, "missing") else None


class Tied:
    """A model by arithmetic, with scores of few values and some that are none."""

    def score(self, users: Ints, items: Ints) -> Floats:
        """Quarters up to 2, NaN for one pair in twenty-nine."""
        users, items = np.asarray(users, np.int64), np.asarray(items, np.int64)
        return np.where((3 * users + items) % 29 == 0, np.nan, (7 * users + 5 * items) % 9 / 4)


def metric_results(name: str) -> Pins:
    """The mean, and the values of the first users, with each of the settings, wherever it can be measured."""
    record = METRICS[name]
    texts = [name, *([f"{name}@3"] if record.cuts else [])]
    texts += [f"{texts[-1]}[{key}={value}]" for key in record.takes for value in SETTINGS[key]]
    return {
        f"{text} on {on}": values_of(text, problem(on))
        for on in (("features",) if name in OF_FEATURES else ("ratings", "comparisons"))
        for text in texts
        if not unusable(metric(text), problem(on).test, problem(on).train)
    }


def values_of(text: str, parts: Split) -> list[float | None]:
    """The mean, then the values of the first users; nothing for who is left out."""
    (values,) = per_user(Tied(), parts.test, [text], train=parts.train).values()
    return rounded([mean(values), *values[:USERS]])


def split_results(name: str) -> Pins:
    """The hash of the parts: data and draws are whole numbers, so that it is the same on every machine."""
    return {text: split(by_hand(), text, seed=3).hash[:16] for text in EVERY_SPLIT if base(text) == name}


def generator_results(name: str) -> Pins:
    """What each view holds."""
    return {text: content(load(text)) for text in GENERATED if base(text) == name}


def content(view: View) -> Pins:
    """A hash of all whole numbers, and of other numbers, whose last bits depend on the machine, three means each."""
    arrays = {key: array for key, array in pack(view).items() if array.dtype.kind in "iuf"}
    broken = [key for key, array in arrays.items() if array.dtype.kind == "f" and (array % 1).any()]
    whole = {key: array for key, array in arrays.items() if key not in broken}
    return {"hash": hash_of(whole)} | {key: means(arrays[key].ravel()) for key in broken}


def hash_of(arrays: dict[str, Any]) -> str:
    """Sixteen digits that any change of any number changes."""
    named = [Named(key, arrays[key].astype(np.float64)) for key in sorted(arrays)]
    return fingerprint(*named)[:16]


@dataclass(frozen=True)
class Named:
    """An array and what it is called."""

    name: str
    numbers: Any


def means(numbers: Floats) -> list[float | None]:
    """The mean of the numbers, of their sizes, and of their products with their places."""
    places = np.arange(1, len(numbers) + 1) / len(numbers)
    return rounded([numbers.mean(), np.abs(numbers).mean(), (places * numbers).mean()])


def rounded(numbers: Iterable[float]) -> list[float | None]:
    """Nine digits of each number, none for NaN."""
    return [None if np.isnan(number) else float(f"{number:.9g}") for number in numbers]


def base(text: str) -> str:
    """The name without settings; of `lookalike:NAME` what stands before the name."""
    name = text.partition("[")[0]
    return name.partition(":")[0] + ":" if ":" in name else name


# ---- how it is compared ----


@dataclass(frozen=True)
class Kind:
    """What has names and versions: how to find all, their results, and the file where a version is raised."""

    names: list[str]
    results: Callable[[str], Pins]
    version: Callable[[str], int]
    file: Callable[[str], str]


def file_of(cls: type) -> str:
    """Where a class stands."""
    return cls.__module__.replace(".", "/") + ".py"


KINDS = {
    "generators": Kind(
        [name for name, place in DATASETS.entries.items() if place.startswith("rankbench.data.synthetic")],
        generator_results,
        lambda name: DATASETS.find(name).version,
        lambda name: file_of(DATASETS.find(name)),
    ),
    "metrics": Kind(
        list(METRICS), metric_results, lambda name: METRICS[name].version, lambda _: "rankbench/metrics/records.py"
    ),
    "solvers": Kind(
        list(OWN_SOLVERS),  # those of other packages change with these
        solver_results,
        lambda name: SOLVERS.find(name).version,
        lambda name: file_of(SOLVERS.find(name)),
    ),
    "splits": Kind(
        [name for name in SPLITS.entries if name != "given"],  # whose parts are those of a user's file
        split_results,
        lambda name: SPLITS.find(name).version,
        lambda name: file_of(SPLITS.find(name)),
    ),
}


def found(kind: str, name: str) -> Pins:
    """The version of today and its results."""
    return {"version": KINDS[kind].version(name), "results": KINDS[kind].results(name)}


@cache
def found_problems() -> Pins:
    """What each problem is and holds."""
    return {
        name: {
            "made by": f"{data}, cut by {protocol}",
            "parts": {part: content(view) for part, view in problem(name).parts.items()},
        }
        for name, (data, protocol) in PROBLEMS.items()
    }


def complaint(name: str, file: str, pinned: Pins | None, today: Pins) -> str | None:
    """What is wrong with one name, in a sentence; None if nothing is."""
    if not today["results"]:
        return f"{name} has nothing that could be pinned: give it settings in tests/house/test_versions.py"
    if pinned is None:
        return f"{name} has no pinned results: {PIN} them"
    if pinned["version"] != today["version"]:
        return (
            f"the version of {name} is {today['version']} and its pinned results are of version {pinned['version']}: "
            f"{PIN} the new results"
        )
    if texts := changed(pinned, today):
        return (
            f"results of {name} changed and its version is still {today['version']}: raise `version` in {file}, "
            f"then {PIN} the new results (changed: {', '.join(texts)})"
        )
    return other_settings(name, pinned["results"], today["results"])


def other_settings(name: str, pinned: Pins, today: Pins) -> str | None:
    """Which settings are not pinned, or pinned and no longer asked for."""
    if unknown := [text for text in today if text not in pinned]:
        return f"{name} has no pinned results of {', '.join(unknown)}: {PIN} them"
    if gone := [text for text in pinned if text not in today and not needs_absent(text)]:
        return f"{name} has pinned results of {', '.join(gone)}, which nobody asks for: {PIN} without them"
    return None


def changed(pinned: Pins, today: Pins) -> list[str]:
    """Whose results are not what they were under the same version."""
    if pinned["version"] != today["version"]:
        return []
    return [
        text
        for text, before in pinned["results"].items()
        if text in today["results"] and not same(before, today["results"][text])
    ]


def needs_absent(text: str) -> bool:
    """Whether pinned scores are of a solver that lacks a package here."""
    solver = text.partition(" on ")[0]
    return base(solver) in SOLVERS.entries and absent(solver) is not None


def same(one: Any, other: Any) -> bool:
    """Equal, and numbers in a list as near each other as machines come."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if not isinstance(one, list) or len(one) != len(other):
        return one == other
    left, right = (np.array(numbers, float) for numbers in (one, other))
    scale = np.nanmax(np.abs(left)) if np.isfinite(left).any() else 0.0
    return np.allclose(left, right, rtol=0, atol=TOLERANCE * scale, equal_nan=True)


# ---- the tests ----


@cache
def read() -> Pins:
    """The file, or nothing where there is none."""
    return json.loads(PINS.read_text()) if PINS.exists() else {}


def unlike(pinned: Pins) -> list[str]:
    """The problems that are no longer what they were."""
    return [name for name, today in found_problems().items() if not same(pinned.get("problems", {}).get(name), today)]


def comparable(pins: Pins | None, pinned: Pins) -> Pins | None:
    """The results without those on problems that changed, which say nothing of whoever solves them."""
    if pins is None:
        return None
    kept = {text: found for text, found in pins["results"].items() if text.rpartition(" on ")[2] not in unlike(pinned)}
    return pins | {"results": kept}


def test_the_problems_are_as_they_were():
    for name in unlike(read()):
        pytest.fail(
            f"the small problem {name!r} is not what it was, so results on it are not compared: where a generator or "
            f"a split changed, raise its version; then {PIN} all results on the problem as it is now",
            pytrace=False,
        )


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, those in KINDS.items() for name in those.names])
def test_results_change_only_with_the_version(kind, name):
    before, today = read().get(kind, {}).get(name), found(kind, name)
    if not (shown := comparable(today, read()))["results"] and today["results"]:
        pytest.skip("all its problems changed")
    if wrong := complaint(name, KINDS[kind].file(name), comparable(before, read()), shown):
        pytest.fail(wrong, pytrace=False)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_pinned_that_is_no_more(kind):
    if gone := read().get(kind, {}).keys() - KINDS[kind].names:
        pytest.fail(f"{', '.join(sorted(gone))}: pinned among the {kind}, and no more: {PIN} without", pytrace=False)


ONE = {"version": 3, "results": {"sgd on ratings": [1.0, None, -2.0]}}


@pytest.mark.parametrize(
    ("pinned", "today", "expected"),
    [
        (ONE, ONE, None),
        (ONE, ONE | {"results": {"sgd on ratings": [1.0 + 1e-7, None, -2.0]}}, None),
        (
            ONE,
            ONE | {"results": {"sgd on ratings": [1.0 + 1e-5, None, -2.0]}},
            "results of sgd changed and its version is still 3: raise `version` in rankbench/solvers/sgd.py, then run "
            "PYTHONPATH=tests python tests/house/test_versions.py to pin the new results (changed: sgd on ratings)",
        ),
        (ONE, ONE | {"results": {"sgd on ratings": [1.0, 0.0, -2.0]}}, "results of sgd changed"),
        (
            ONE,
            ONE | {"version": 4},
            "the version of sgd is 4 and its pinned results are of version 3: run "
            "PYTHONPATH=tests python tests/house/test_versions.py to pin the new results",
        ),
        (None, ONE, "sgd has no pinned results: run PYTHONPATH=tests python tests/house/test_versions.py to pin them"),
        (ONE, ONE | {"results": {}}, "sgd has nothing that could be pinned"),
        (ONE | {"results": {}}, ONE, "sgd has no pinned results of sgd on ratings"),
        (ONE | {"results": ONE["results"] | {"sgd[rank=2] on ratings": [1.0]}}, ONE, "which nobody asks for"),
    ],
)
def test_a_complaint_says_what_to_do(pinned, today, expected):
    told = complaint("sgd", "rankbench/solvers/sgd.py", pinned, today)
    assert told == expected or (expected and told.startswith(expected)) or (told and expected in told)


# ---- the file ----


def text_of(pins: Pins) -> str:
    """JSON with sorted names and each list of numbers on a line."""
    text = json.dumps(pins, indent=1, sort_keys=True)
    return (
        re.sub(
            r"\[\n[^\[\]{}]*\]",
            lambda numbers: " ".join(numbers[0].split()).replace("[ ", "[").replace(" ]", "]"),
            text,
        )
        + "\n"
    )


def main() -> None:
    """Pin today's results, unless some changed under the same version."""
    if lacking := {command for texts in CASES.values() for text in texts if (command := absent(text))}:
        sys.exit(f"some solvers lack a package, and would lose their pinned results: {'; '.join(sorted(lacking))}")
    pinned = read()
    today = {kind: {name: found(kind, name) for name in those.names} for kind, those in KINDS.items()}
    wrong = [
        complaint(name, KINDS[kind].file(name), before, now)
        for kind, those in today.items()
        for name, now in those.items()
        if (before := comparable(pinned.get(kind, {}).get(name), pinned)) and changed(before, now)
    ]
    if wrong:
        sys.exit("\n".join(filter(None, wrong)))
    PINS.write_text(text_of(today | {"problems": found_problems()}))


if __name__ == "__main__":
    main()
