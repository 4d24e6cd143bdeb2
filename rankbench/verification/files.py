"""The files of an archive and of a results folder: nothing added or dropped, and all that is derived made again."""

import json
from collections.abc import Iterator
from pathlib import Path

import rankbench
from rankbench.checks.findings import Finding, failed, not_applicable
from rankbench.core import regular
from rankbench.core.leftovers import HELD
from rankbench.core.texts import error_text
from rankbench.records.archive import METADATA, RESULTS, SIGNATURE
from rankbench.records.codec import Unreadable
from rankbench.records.differences import DIGESTS
from rankbench.records.plans import Plan
from rankbench.records.store import Store, has_digest, text_of_plan
from rankbench.records.studies import Study
from rankbench.report.crate import NO_LICENCE, files_of


def of_archive(folder: Path, store: Store, plan: Plan, study: Study) -> Iterator[Finding]:
    """What in an unpacked archive is not what its plan and its results give: page, table, splits, metadata."""
    licence = _about(folder / METADATA).get("license", NO_LICENCE)
    try:
        derived = files_of(store, plan, study, licence)
    except Exception as error:  # changed results may break anything that is made of them
        yield failed("archive", f"its page and its tables cannot be made again: {error_text(error)}", "")
        return
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    for name in sorted(present - {HELD, SIGNATURE}):
        if name not in derived:
            yield failed(name, "it belongs to no cell of the plan", "")
    changed = [name for name, content in derived.items() if not _is(folder / name, content)]
    version = _about(derived[METADATA]).get("version", "")  # what the results say, and not what the archive says
    for name in changed:
        if rankbench.__version__ != version and not name.startswith(RESULTS):
            yield not_applicable(name, f"it was made by rankbench {version}, and this is {rankbench.__version__}")
        else:
            yield failed(name, "it is not what the plan and the results give", "")


def of_plan(store: Store, plan: Plan) -> Iterator[Finding]:
    """Whether a plan lies where its profile, seed and source say, and is written as a plan is."""
    path = store.plan_path(plan)
    if not path.is_file():
        yield failed("plan", "its file has the name of another profile, seed or source", "")
    elif not has_digest(path):
        yield failed("digests", f"the plan has none: {path.name}", "run the experiment again, which writes it")
    elif regular.content(path).decode("utf-8", "replace") != text_of_plan(plan):
        yield failed("plan", f"{path.name} holds more than the plan that is read from it", "")


def of_results(store: Store, plan: Plan) -> Iterator[Finding]:
    """Results that the plan promises and that are not there, or that describe another cell than the plan does."""
    planned = {cell.key: cell for cell in plan.everything}
    lacking: dict[str, list[str]] = {}
    for path in store.measurements():
        try:
            found = store.read(path)
        except Unreadable as error:
            yield failed(path.name, str(error), "run its experiment again")
            continue
        if not has_digest(path):
            lacking.setdefault("content", []).append(path.name)
        cell = planned.get(found.key)
        if cell is not None and cell != found.cell and not cell.place.data.is_own_file:
            yield failed(path.name, "it describes its cell otherwise than the plan does", "")
        elif cell is not None and found.status in ("ok", "diverged"):
            for name in DIGESTS:
                if not getattr(found, name):
                    lacking.setdefault(name, []).append(path.name)
    for name, files in lacking.items():
        said = f"{len(files)} files have none of the {name}, the first: {files[0]}"
        if name == "model":  # that of a user's solver need not be a record of arrays
            yield not_applicable("digests", said)
        else:
            yield failed("digests", said, "run these cells again: a result is stored with all of them")


def without_result(study: Study) -> Iterator[Finding]:
    """How many cells and trials of the plan have no result."""
    missing = [one.cell for one in (*study.entries, *study.trials) if one.result is None and one.status != "failed"]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        yield failed("results", f"there is none of {missing[0].label}{more}", "run the experiment, or accept a part "
                     "with --partial")  # fmt: skip


def _about(metadata: bytes | Path) -> dict[str, str]:
    """The licence and the version in an archive's metadata; empty where they cannot be read."""
    try:
        graph = json.loads(metadata if isinstance(metadata, bytes) else regular.content(metadata))["@graph"]
        return {name: str(node[name]) for node in graph for name in ("license", "version") if node.get("@id") in
                ("./", "#rankbench") and name in node}  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}


def _is(path: Path, content: bytes | Path) -> bool:
    """Whether a file has this content, or is this file."""
    return content == path or (isinstance(content, bytes) and path.is_file() and regular.content(path) == content)
