"""The output of `rankbench status`: an experiment's stored runs and machines, and results that belong to no run."""

from collections import Counter
from collections.abc import Iterator

from rankbench.records.plans import Plan
from rankbench.records.store import Store, Stored, file_name
from rankbench.report.study import drawn

_MEGABYTE = 1e6


def described(store: Store, name: str) -> Iterator[str]:
    """Lines for one experiment: its size, each run, the results that belong to no run, and each machine."""
    results = {result.name: result for result in store.summaries()}
    size = sum(result.bytes for result in results.values()) / _MEGABYTE
    yield f"{name}: {len(results)} results, {size:.1f} MB"
    known: set[str] = set()
    for plan in store.plans():
        names = {file_name(cell) for cell in plan.everything}
        yield f"  {_run(plan)}: {_ended([results[one] for one in names if one in results], len(names))}"
        known |= names
    loose = [result for one, result in results.items() if one not in known]
    if loose:
        seeds = ", ".join(str(seed) for seed in sorted({result.seed for result in loose}))
        yield f"  of no recorded run (other definitions, selections or versions; seed {seeds}): {len(loose)} results"
    for who, count in Counter(map(_maker, results.values())).items():
        yield f"  made on {who}: {count} results"
    for who, count in Counter(map(_maker, store.summaries(beside=True))).items():
        yield f"  measured too on {who}: {count} results, kept beside"
    if aside := store.set_aside():
        yield f"  set aside because they could not be read: {', '.join(aside[:5])}{' ...' if len(aside) > 5 else ''}"


def _maker(result: Stored) -> str:
    """The machine and the commit that made a result, with the digits by which `--machine` knows them."""
    known = [f"machine {result.fingerprint}"] if result.fingerprint else []
    known += [f"commit {result.commit}"] if result.commit else []
    return result.machine + (f" ({', '.join(known)})" if known else "")


def _run(plan: Plan) -> str:
    """A run's profile, seed and date, and the command that prints its table."""
    how = f"{plan.experiment.source or plan.experiment.name} --{plan.profile} --seed {plan.seed}"
    what = " --what variance" if plan.held else ""
    run = f"{plan.profile} profile, seed {plan.seed}{drawn(plan)}"
    return f"{run}, last run {plan.made[:16]} (rankbench table {how}{what})"


def _ended(results: list[Stored], planned: int) -> str:
    """How many of the planned cells are stored, and how they ended."""
    counts = Counter(result.status for result in results)
    ended = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    return f"{len(results)} of {planned} cells are stored" + (f": {ended}" if ended else "")
