"""What can be said of stored results without trusting them: of files, plan, each result, and cells run again."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import comb
from pathlib import Path

from rankbench.checks.findings import Finding, failed
from rankbench.core.errors import UserError
from rankbench.execution.run import Conditions, Tell
from rankbench.planning.materials import Materials
from rankbench.records.cells import file_name, file_of_cell
from rankbench.records.codec import Unreadable
from rankbench.records.merge import Measurement
from rankbench.records.plans import Plan
from rankbench.records.results import Result
from rankbench.records.store import ResultsFolder, Store, values_of
from rankbench.records.studies import Study
from rankbench.report import manifest
from rankbench.report.study import like
from rankbench.verification.cells import Check, checked, run_again, sampled, verifiable
from rankbench.verification.consistency import contradictions
from rankbench.verification.files import of_archive, of_plan, of_results, without_result
from rankbench.verification.plans import planned_again, without_part
from rankbench.verification.signing import of_signature

NOT_VERIFIED = "times, memory, load, dates, machines, imports, tracebacks and licence, which no other run repeats"
_SURE = 0.95


@dataclass(frozen=True)
class Verification:
    """What was found of the stored results of one experiment."""

    name: str
    checks: tuple[Check, ...]  # of the cells that were run again
    of: int  # cells and trials with a result, from which these were drawn
    draw: int  # the seed of the sample
    findings: tuple[Finding, ...]  # of the files, the plan, and each result by itself

    @property
    def good(self) -> bool:
        """Whether nothing was found that differs, contradicts or is missing."""
        explained = self.count("same") + self.count("close") == len(self.checks)
        return explained and not any(one.bad for one in self.findings)

    def count(self, verdict: str) -> int:
        """How many of the cells that were run again have this verdict."""
        return sum(check.verdict == verdict for check in self.checks)

    @property
    def lines(self) -> Iterator[str]:
        """What was found: a line for each difference, what is not verified, and at the end what came out the same."""
        yield from (f"differs: {one.line}" for one in self.findings if one.bad)
        yield from (f"verified: {one.line}" for one in self.findings if one.outcome == "passed")
        yield from (check.line for check in self.checks if check.verdict != "same")
        yield from (f"not verified: {one.line}" for one in self.findings if one.outcome == "not applicable")
        yield f"not verified: {NOT_VERIFIED}"
        if len(self.checks) < self.of:
            yield f"sample {self.draw}: {len(self.checks)} of {self.of} cells and trials, {self._promise}"
        close = f", {count} close" if (count := self.count("close")) else ""
        yield f"{self.name}: {self.count('same')} of {len(self.checks)} cells came out the same to the last byte{close}"

    @property
    def _promise(self) -> str:
        """How many changed results the sample is sure to show."""
        return f"which show {self.noticed} changed results in 95 of 100 samples (--all runs all)"

    @property
    def noticed(self) -> int:
        """How many changed results the sample would show with a probability of at least .95."""
        return next(changed for changed in range(self.of + 1) if self._missed(changed) <= 1 - _SURE)

    def _missed(self, changed: int) -> float:
        """The probability that none of so many changed results is in the sample."""
        return comb(self.of - changed, len(self.checks)) / comb(self.of, len(self.checks))

    @property
    def as_json(self) -> str:
        """The same as a JSON text."""
        cells = [
            {"cell": check.cell.label, "key": check.cell.key, "verdict": check.verdict,
             "differing": list(check.differing), "why": check.why}
            for check in self.checks
        ]  # fmt: skip
        found = [{"name": one.name, "verified": one.outcome != "not applicable", "seen": one.seen}
                 for one in self.findings]  # fmt: skip
        whole = {"experiment": self.name, "good": self.good, "cells": cells, "of": self.of, "draw": self.draw,
                 "findings": found, "not verified": NOT_VERIFIED}  # fmt: skip
        return json.dumps(whole, indent=1)


@dataclass(frozen=True)
class StudyFiles:
    """Where the results of one run are kept; `archive` is the folder of its unpacked archive, if they came in one."""

    study: Study
    store: Store
    plan: Plan
    archive: Path | None = None
    signers: Path | None = None  # a file of those who may have signed the archive

    @classmethod
    def of(cls, study: Study, in_archive: bool = False, signers: Path | None = None) -> "StudyFiles":
        """Where a study was read from."""
        folder = Path(study.cells).parent
        store = ResultsFolder(folder.parent, lambda problem: None, untouched=True).store(folder.name)
        plan = like(store.plans(), study.plan)
        assert plan is not None, "the study was read from it"
        return cls(study, store, plan, folder.parent.parent if in_archive else None, signers)

    @property
    def findings(self) -> Iterator[Finding]:
        """What is wrong with the files, and with each result by itself."""
        yield from manifest.findings(self.store, self.plan)
        yield from of_plan(self.store, self.plan)
        yield from of_results(self.store, self.plan)
        if self.archive is not None:
            yield from of_signature(self.archive, self.signers)
            yield from of_archive(self.archive, self.store, self.plan, self.study)
        for entry in (*self.study.entries, *self.study.trials):
            if entry.result is not None:
                yield from _of_result(self.study, entry.result)
        yield from _of_beside(self.store, self.study)


@dataclass(frozen=True)
class Extent:
    """How much is verified: so many cells and trials, drawn with this seed, or all for None."""

    number: int | None = None
    draw: int = 0
    partial: bool = False  # accept a part of the experiment, or one with other settings than those of its file


def verify(kept: StudyFiles, extent: Extent, afresh: ResultsFolder, conditions: Conditions, tell: Tell) -> Verification:
    """Check the files, the plan and each result, and run a sample of the cells and trials again in an empty folder."""
    study = kept.study
    if not verifiable(study):
        raise UserError(f"no cell of {study.name} has ended, so there is nothing to verify")
    planned = planned_again(study, Materials(study.seed, afresh.store(study.name).scratch))
    left_out = (*planned.left_out, *without_result(study))
    findings = (*kept.findings, *planned.findings, *(without_part(left_out) if extent.partial else left_out))
    here = [planned.cells[cell.key] for cell in verifiable(study) if cell.key in planned.cells]  # not what a file says
    if not here and not study.is_judged:
        findings = (*findings, failed("cells", "none with a result can be run again here", ""))
    cells = sampled(here, extent.number, extent.draw)
    checks = run_again(study, cells, planned.searches, afresh, conditions, tell)
    return Verification(study.name, tuple(checks), len(here), extent.draw, findings)


def _of_result(study: Study, result: Result) -> Iterator[Finding]:
    """What in a stored result contradicts itself."""
    try:
        found: Sequence[str] = list(contradictions(result, values_of(Path(study.cells), result.cell)))
    except UserError as error:
        found = [str(error)]
    for one in found:
        yield failed(result.cell.label, one, "")


def _of_beside(store: Store, study: Study) -> Iterator[Finding]:
    """What the measurements beside results, of other machines or times, have otherwise than these, or contradict."""
    own = {file_name(result.cell): result for entry in (*study.entries, *study.trials) if (result := entry.result)}
    for path in store.beside():
        if (result := own.get(file_of_cell(path.name))) is None:
            continue
        with suppress(Unreadable):  # which is found of all files
            kept, beside = Measurement(store.path(result.cell), result), Measurement(path, store.read(path))
            for problem in _beside(kept, beside):
                yield failed(path.name, problem, "")


def _beside(kept: Measurement, beside: Measurement) -> Iterator[str]:
    """What is wrong with a measurement beside a cell's result."""
    try:
        if beside.arrays.exists() or not beside.counts:
            yield from contradictions(beside.result, beside.values() if beside.counts else {})
        if kept.counts and beside.counts:
            check = checked(kept.result, beside.result, kept.values(), beside.values())
            if check.verdict == "differs":
                yield f"it has another {', '.join(check.differing)} than the cell's result: {check.why}"
    except UserError as error:
        yield str(error)
