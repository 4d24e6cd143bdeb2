"""What a run shows at its end: its table, the lines under it, and its score.

They are kept in the results folder until something that they are made of changes:

    OUT/<experiment>/shown/<profile>-<seed>.json
"""

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from rankbench.core.regular import content
from rankbench.records.store import Store, name_of_plan, write_text
from rankbench.records.studies import Study
from rankbench.report import pieces
from rankbench.report.analysis.verdicts import Score, score_of
from rankbench.report.render.tables import Sheet, sheet, strength_notes, timing_notes, verdict_notes

FOLDER = "shown"
_LARGEST = 64 << 20  # bytes of a file


@dataclass(frozen=True)
class Shown:
    """The table of a study, the lines under it, and how its numbers compare with the published ones."""

    sheet: Sheet
    lines: tuple[str, ...]
    score: Score | None


@dataclass(frozen=True)
class _Kept:
    """What was shown, its own digest, and that of what it was made of."""

    made_of: str
    digest: str
    shown: Shown


def shown(store: Store, study: Study) -> Shown:
    """What is shown of a run whose results are in this store."""
    if store.plan_like(study.plan) != study.plan:  # another run has planned more, so its plan is the one that is kept
        return _made(study)
    made_of, path = _made_of(store, study), store.folder / FOLDER / f"{name_of_plan(study.plan)}.json"
    if found := _kept(path, made_of):
        return found
    made = _made(study)
    with suppress(OSError):  # it is shown nevertheless
        path.parent.mkdir(exist_ok=True)
        write_text(path, msgspec.json.encode(_Kept(made_of, _digest(made), made)).decode())
    return made


def _made(study: Study) -> Shown:
    lines = (*verdict_notes(study), *strength_notes(study), *timing_notes(study))
    return Shown(sheet(study), lines, score_of(study))


def _made_of(store: Store, study: Study) -> str:
    """The digest of what is stored, and of which results this study has read of it."""
    read = sorted(f"{key} {result.finished}" for key, result in study.by_key.items())
    return pieces.digest(store, study.plan, *read)


def _kept(path: Path, made_of: str) -> Shown | None:
    """What is kept, or None if something has changed: what it was made of, or the file itself."""
    try:
        kept = msgspec.json.decode(content(path, _LARGEST), type=_Kept)
    except (OSError, ValueError):
        return None
    return kept.shown if kept.made_of == made_of and kept.digest == _digest(kept.shown) else None


def _digest(found: Shown) -> str:
    return hashlib.sha256(msgspec.json.encode(found, order="sorted")).hexdigest()
