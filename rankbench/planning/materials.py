"""Data sets and splits for a run, made on demand and kept, so that each is loaded or cut once."""

import shutil
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path

import numpy as np

from rankbench import data as data_sets
from rankbench.arrays.array_files import read_arrays, write_arrays
from rankbench.arrays.npz import Arrays, pack
from rankbench.core.errors import MAKE_ROOM, writing_to
from rankbench.core.leftovers import HeldFolder
from rankbench.core.streams import stream
from rankbench.data.splits import Split, cut
from rankbench.data.splits.validation import AppliedAgain, OwnValidation
from rankbench.data.views import View, view_of
from rankbench.names import Named
from rankbench.planning.known_splits import FILE, KnownSplit, KnownSplits
from rankbench.planning.memory import PeakMemory
from rankbench.records.cells import Place
from rankbench.records.results import Peak

KEPT = 256 * 2**20  # bytes of splits to keep in memory; further splits go to the scratch folder


class Materials:
    """The data sets and splits of a run, made on demand.

    A plan needs the hash of every split, and the run needs some splits. A split whose hash is not known is cut for the
    plan. In between splits are kept in memory, up to `KEPT` bytes, and beyond that in the scratch folder; without a
    scratch folder they are cut again.
    """

    def __init__(self, seed: int, scratch: "Callable[[], HeldFolder] | None" = None) -> None:
        self._seed = seed
        self._view: tuple[str, int, View] | None = None  # identity, repetition and data
        self._kept: dict[Place, Split] = {}
        self._size = 0
        self.scratch = scratch
        self.known = KnownSplits(seed)
        self._folder: HeldFolder | None = None
        self._files: dict[Place, Path] = {}
        self._numbers = count()  # of the files
        self._data_peaks: dict[str, Peak] = {}  # by the identity of the data set
        self._split_peaks: dict[Place, Peak] = {}

    def remember(self, folder: Path) -> None:
        """Take what is known of splits from the results of an experiment, and keep there what becomes known."""
        self.known = KnownSplits(self._seed, folder / FILE)

    def about(self, place: Place) -> KnownSplit:
        """What planning needs to know of the split of a place, which is cut unless that is known."""
        found = self.known.get(place)
        if found is None:
            found = KnownSplit.of(self.split(place))
            self.known.add(place, found)
        return found

    def view(self, named: Named, repetition: int = 0) -> View:
        """The data set of this name for a repetition; the one used last is kept in memory."""
        number = repetition if data_sets.drawn_anew(named) else 0
        if self._view is None or self._view[:2] != (named.identity, number):
            memory, self._view = PeakMemory(), None  # the data set before is not needed any more
            self._view = named.identity, number, data_sets.load(named, self._seed, number)
            self._data_peaks[named.identity] = Peak("data", memory.note("data"))
        return self._view[2]

    def split(self, place: Place) -> Split:
        """The split of a place; if the place has a validation split, that split of the training part."""
        if place in self._kept:
            return self._kept[place]
        if place in self._files:
            return read_split(self._files[place])
        found = self._measured_cut(place)
        self._keep(place, found)
        return found

    def peaks(self, place: Place) -> tuple[Peak, ...]:
        """The peak memory of making the data of a place, and of cutting its split, as far as this object did so."""
        found = self._data_peaks.get(place.data.identity), self._split_peaks.get(place)
        return tuple(peak for peak in found if peak)

    def write(self, place: Place, path: Path) -> None:
        """Write a split to a file, from which the cells' processes read it."""
        if place in self._files:
            shutil.move(self._files.pop(place), path)
        else:
            split = self.split(place)
            self.known.check(place, split)
            write_split(path, split)
        self.drop([place])

    def drop(self, places: Iterable[Place]) -> None:
        """Remove these splits from memory and from the scratch folder."""
        for place in places:
            if place in self._kept:
                self._size -= size_of(self._kept.pop(place))
            if place in self._files:
                self._files.pop(place).unlink(missing_ok=True)

    def keep_only(self, places: Iterable[Place]) -> None:
        """Remove all splits except these."""
        wanted = set(places)
        self.drop([place for place in (*self._kept, *self._files) if place not in wanted])

    def _measured_cut(self, place: Place) -> Split:
        """A new cut of a place's split, whose data is made first so that its peak is not counted."""
        if place.validation is None:
            self.view(place.data, place.draw("splits"))
        memory = PeakMemory()
        found = self._cut(place)
        self._split_peaks[place] = Peak("split", memory.note("split"))
        return found

    def _cut(self, place: Place) -> Split:
        if place.validation is None:
            number = place.draw("splits")
            view = self.view(place.data, number)
            return cut(view, place.split, self._seed, number, place.data.written)
        outer = self.split(_whole(place))
        if isinstance(place.validation.record, OwnValidation):
            return place.validation.record.of(outer)
        # a random stream with its own name, different from the one that cut the test part
        seed = int(stream(self._seed, "validation", place.split.identity).integers(2**62))
        named = f"the training part of {place.split.written} of {place.data.written}"
        if isinstance(place.validation.record, AppliedAgain):
            return cut(place.validation.record.source(outer), place.split, seed, place.draw("search"), named)
        return cut(outer.train, place.validation, seed, place.draw("search"), named)

    def _keep(self, place: Place, found: Split) -> None:
        """Keep a split in memory, or in a scratch file if the splits in memory would take more than `KEPT` bytes."""
        size = size_of(found)
        if self._size + size <= KEPT:
            self._kept[place] = found
            self._size += size
        elif self.scratch is not None:
            self._folder = self._folder or self.scratch()
            path = Path(self._folder.name) / f"split-{next(self._numbers)}.arrays"
            with writing_to(path.parent, MAKE_ROOM):
                write_split(path, found)
            self._files[place] = path


def _whole(place: Place) -> Place:
    """The place of the rows from which a trial's validation part is cut."""
    return Place(place.data, place.split, place.draw("splits"))


def packed(split: Split) -> Arrays:
    """All parts of a split as named arrays."""
    parts = (pack(part, f"{name}.") for name, part in split.parts.items())
    return {name: array for arrays in parts for name, array in arrays.items()}


def write_split(path: Path, split: Split) -> None:
    """Write a split to a file."""
    write_arrays(path, packed(split))


def read_split(path: Path) -> Split:
    """The split in a file, which must not be changed afterwards; its large arrays are mapped, and not read."""
    arrays = read_arrays(path)
    parts = {name.removesuffix(".kind") for name in arrays if name.endswith(".kind")}
    return Split(**{part: view_of(arrays, f"{part}.") for part in parts})


def size_of(split: Split) -> int:
    """The bytes that a split's arrays take."""
    return sum(np.asarray(array).nbytes for array in packed(split).values())
