"""Results are files: one per cell, written under a temporary name and renamed, found again by content.

    OUT/<experiment>/plan.json                 what the last run of the experiment planned
    OUT/<experiment>/cells/<solver>-<key>.json one result; <key> is the cell's content hash
    OUT/<experiment>/cells/<solver>-<key>.npz  each metric's value for each user

Resuming is «the file is there». A file that cannot be read is set aside as .broken and made anew.
"""

import json
import os
import shutil
import tempfile
from dataclasses import asdict, dataclass, replace
from math import isfinite, nan
from pathlib import Path
from typing import Any, Literal

import psutil

from rankbench.arrays import Arrays, read_npz, write_npz
from rankbench.errors import UserError
from rankbench.harness.plan import FORMAT, Cell, Plan

Status = Literal["ok", "failed", "timeout", "memory"]


@dataclass(frozen=True)
class Result:
    """What came of a cell."""

    key: str
    cell: dict[str, Any]
    status: Status
    reason: str | None
    curve: list[dict[str, Any]]  # a checkpoint each: step, seconds, metrics, perhaps objective
    metrics: dict[str, float]  # at the last checkpoint
    left_out: dict[str, int]  # users that a metric does not count
    unscored: float | None  # share of held-out pairs the model gave NaN
    seconds: float | None  # inside the solver
    wall: float  # the whole cell, evaluation and process included
    peak_mb: float | None
    contended: bool  # ran beside others: its seconds mean little
    machine: dict[str, Any]
    fingerprint: str
    finished: str
    trace: str | None = None  # of a failure
    stopped: str | None = None  # what ended the training: the budget or the solver
    basis: list[dict[str, Any]] | None = None  # the strongest features of basic ranking functions, where it has them


class Store:
    """The results of one experiment under an output folder."""

    def __init__(self, out: Path, experiment: str) -> None:
        self.folder = out / experiment
        self._cells = self.folder / "cells"

    def open(self) -> None:
        """Make the folders, or say in one line why that cannot be."""
        try:
            self._cells.mkdir(parents=True, exist_ok=True)
            probe = self._cells / ".writable"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise UserError(
                f"cannot write to {self.folder}: {error.strerror}; choose another folder with --out"
            ) from None

    def workshop(self) -> "tempfile.TemporaryDirectory[str]":
        """A folder for what a run needs only while it lasts; what a killed run left behind goes first."""
        for left in self.folder.glob(".work-*"):
            if not psutil.pid_exists(int(left.name.split("-")[1])):
                shutil.rmtree(left, ignore_errors=True)
        return tempfile.TemporaryDirectory(prefix=f".work-{os.getpid()}-", dir=self.folder)

    def path(self, cell: Cell) -> Path:
        """Where a cell's result lies or will lie."""
        name = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in cell.solver)
        return self._cells / f"{name}-{cell.key[:16]}.json"

    def load(self, cell: Cell) -> Result | None:
        """The stored result of a cell, None where there is none that can be read."""
        path = self.path(cell)
        result = self._read(path)
        if result is not None and result.key != cell.key:
            return None
        return result

    def save(self, cell: Cell, result: Result, per_user: Arrays) -> None:
        """Write a result; the JSON file comes last, for it is what says that the cell is done."""
        path = self.path(cell)
        if per_user:
            write_npz(path.with_suffix(".npz"), per_user)
        write_text(path, json.dumps(_nan_to_null(asdict(result)), indent=1, allow_nan=False))

    def per_user(self, cell: Cell) -> Arrays:
        """Each metric's value for each user."""
        return read_npz(self.path(cell).with_suffix(".npz"))

    def write_plan(self, plan: Plan) -> None:
        """Record what belongs to the experiment; cells of earlier runs of the same definition stay in it."""
        record = plan_record(plan)
        earlier = self.read_plan()
        if earlier and earlier["definition"] == record["definition"]:
            record["cells"] = {**earlier["cells"], **record["cells"]}
            record["trials"] = {**earlier["trials"], **record["trials"]}
            record["skips"] = _still_true(earlier["skips"], record)
        write_text(self.folder / "plan.json", json.dumps(record, indent=1))

    def read_plan(self) -> dict[str, Any] | None:
        """What `write_plan` recorded, None where nothing was."""
        try:
            record = json.loads((self.folder / "plan.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return record if isinstance(record, dict) and record.get("format") == FORMAT else None

    def results(self) -> list[tuple[dict[str, Any], Result | None]]:
        """Every planned cell with its result, None where it is still to come."""
        return self._recorded("cells")

    def trials(self) -> list[tuple[dict[str, Any], Result | None]]:
        """Every planned trial with its result, None where it is still to come."""
        return self._recorded("trials")

    def _recorded(self, part: str) -> list[tuple[dict[str, Any], Result | None]]:
        entries = (self.read_plan() or {part: {}})[part].values()
        return [(entry, self._result_of(entry)) for entry in entries]

    def _result_of(self, entry: dict[str, Any]) -> Result | None:
        """What came of a planned cell; where no trial of it ended well, their failure is its own."""
        result = self._read(self._cells / entry["file"]) if entry["file"] else None
        if result and entry["failure"]:
            return replace(result, status="failed", reason=entry["failure"], curve=[], metrics={})
        return result

    def _read(self, path: Path) -> Result | None:
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            for point in (record, *record["curve"]):
                point["metrics"] = {label: nan if value is None else value for label, value in point["metrics"].items()}
            return Result(**record)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, TypeError, KeyError, AttributeError):
            path.replace(path.with_suffix(".json.broken"))
            return None


def plan_record(plan: Plan) -> dict[str, Any]:
    """A plan as plain JSON: the report needs nothing else to know what the results mean."""
    experiment = json.loads(json.dumps(asdict(plan.experiment)))
    profile = "full" if plan.selection.full else "quick"
    waiting = {search.cell.seat: _entry(search.cell, None) for search in plan.searches}
    decided = {cell.seat: _entry(cell, cell) for cell in plan.cells}
    failed = {lost.cell.seat: _entry(lost.cell, lost.trial, lost.reason) for lost in plan.failures}
    return {
        "format": FORMAT,
        "definition": {"experiment": experiment, "profile": profile, "seed": plan.selection.seed},
        "cells": waiting | decided | failed,  # in the order of the searches, whatever came of them
        "trials": {trial.seat: _entry(trial, trial) for trial in plan.trials},
        "skips": [asdict(skip) for skip in plan.skips],
    }


def _entry(cell: Cell, stored: Cell | None, failure: str = "") -> dict[str, Any]:
    """A cell as the plan records it: all about it, its key, and whose file tells what came of it."""
    file = Store(Path(), "").path(stored).name if stored else None
    return {**asdict(cell), "shown": cell.shown, "key": cell.key, "file": file, "failure": failure}


def _nan_to_null(value: Any) -> Any:
    """The same with null for every number that is none: strict JSON has no NaN and no infinity."""
    if isinstance(value, dict):
        return {key: _nan_to_null(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_nan_to_null(entry) for entry in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _still_true(earlier: list[dict[str, Any]], record: dict[str, Any]) -> list[dict[str, Any]]:
    """All skips but those of data that has arrived since."""
    present = {cell["data"].partition("[")[0] for cell in record["cells"].values()}
    kept = [skip for skip in earlier if skip["solver"] or skip["data"].partition("[")[0] not in present]
    return [*record["skips"], *(skip for skip in kept if skip not in record["skips"])]
