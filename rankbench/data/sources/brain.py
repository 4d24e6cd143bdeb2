"""Brain data: reported peaks of activation and the terms of abstracts become a ranking of terms for each voxel.

Gunasekar et al. (2016, section 6) rank the affinity of a term with a voxel, the product of a study-by-term
and a voxel-by-study matrix. They map the activations to the standard brain, keep only grey matter and go
from 2 mm to 10 mm voxels, of which 1,231 remain; their matrix is dense, with very few ties.

Here the voxels are cubes of 10 mm, laid out from the corner of the 2 mm MNI152 template as in nilearn; peaks
outside the grid are left out. A study counts once in a voxel, even with several peaks there, because the tables of
an article repeat peaks (12 % of all rows) and Neurosynth marks voxels as active or not, too. A study is active
in a voxel if it has a peak within a radius of the voxel. With Neurosynth's radius of 6 mm, 98 % of the affinities
are positive and few are tied, as in the paper; with 0 mm, where a study is active only in the voxels of its peaks,
72 % are positive (release 6 with NeuroQuery's counts). A zero affinity is an entry like any other: it means that no
study of the voxel uses the term.

**The mask is a substitute.** The paper's 1,231 grey voxels are not published. Instead the 1,231 voxels in which the
most studies report a peak are used, because peaks are reported in grey matter. By the grey-matter map of the
ICBM152 template, 95 % of these voxels are at least a fifth grey, but only 74 % are among the 1,231 greyest; the
missing ones are mostly at the base of the brain and in the cerebellum, where studies report fewer peaks.
"""

import csv
import io
import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from statistics import mode
from typing import Any
from zipfile import BadZipFile

import numpy as np
import scipy.sparse

from rankbench.arrays.npz import sealed
from rankbench.core.contract import Flags, Floats, Ints
from rankbench.core.errors import UserError
from rankbench.data.building import numbered
from rankbench.data.files import File, Files
from rankbench.data.origins import Held, Tell
from rankbench.data.publications import Publication
from rankbench.data.tables import lines
from rankbench.data.tables.fields import Ids
from rankbench.data.tables.parsing import to_the_last_bit
from rankbench.data.tables.watched import Watched
from rankbench.data.views import Ratings

VOXELS = 1_231  # Gunasekar et al.
SIDE = 10  # millimetres
_CORNER = np.array([-90, -126, -72])  # corner of the template: x, y, z of the first voxel's centre in millimetres
_SHAPE = (19, 22, 19)
_LARGEST = np.iinfo(np.int64).max
_DAMAGED = (ValueError, TypeError, KeyError, EOFError, OSError, RuntimeError, BadZipFile, zlib.error)

# The transform from MNI to Talairach (Lancaster et al., Human Brain Mapping 28, 2007) for SPM's normalisation.
# Neurosynth inverts the same transform.
_SCALE = np.array([[0.9254, 0.0024, -0.0118], [-0.0048, 0.9316, -0.0871], [0.0152, 0.0883, 0.8924]])
_SHIFT = np.array([-1.0207, -1.7667, 4.0926])


@dataclass(frozen=True)
class Peaks:
    """Reported peaks of activation: the study (PubMed id) and the coordinates of each, in millimetres."""

    study: Ints
    x: Floats
    y: Floats
    z: Floats

    def __len__(self) -> int:
        return len(self.study)

    def places(self) -> Floats:
        """A row of x, y, z for each peak."""
        return np.column_stack([self.x, self.y, self.z])


@dataclass(frozen=True)
class Terms:
    """The weights of terms or topics in studies: a row per study, a column per term or topic."""

    names: Ids
    matrix: scipy.sparse.csr_array

    def take(self, columns: Ints) -> "Terms":
        """The terms in these columns."""
        return Terms(self.names[columns], scipy.sparse.csr_array(self.matrix[:, columns]))

    def used(self, least: int) -> "Terms":
        """The terms that at least `least` studies use."""
        kept = np.flatnonzero(np.bincount(self.matrix.indices, minlength=len(self.names)) >= least)
        if len(kept) == 0:
            raise UserError(f"least={least}: no term is used by that many studies")
        return self.take(kept)


@dataclass(frozen=True)
class Joint:
    """The origin of a data set that needs the files of several publications."""

    spec: str  # the data set's name with settings
    size: str
    licence: str
    home: str
    parts: tuple[Publication, ...]

    @property
    def name(self) -> str:
        """The name of the first publication, which is the name of the data set."""
        return self.parts[0].name

    def files(self) -> Files:
        """The files of all publications; an error if a required file is missing."""
        if command := self.missing():
            raise UserError(f"{self.spec} is not at hand, or not complete: {command}")
        return Files(self.name, tuple(path for part in self.parts for path in part.files().paths))

    def missing(self) -> str | None:
        """The command that gets missing files, or None if none is missing."""
        return f"rankbench data fetch {self.spec}" if any(part.missing() for part in self.parts) else None

    def held(self) -> list[Held]:
        """All files of all publications."""
        return [held for part in self.parts for held in part.held()]

    def fetch(self, tell: Tell) -> None:
        """Download missing files."""
        for part in self.parts:
            part.fetch(tell)


# ---- files ----


def table(file: File, kinds: Mapping[str, Callable[[str], Any]]) -> dict[str, list[Any]]:
    """These columns of a tab-separated file with a header; every row must have as many fields as the header."""
    reader = csv.reader(_decoded(file), delimiter="\t")
    found: dict[str, list[Any]] = {name: [] for name in kinds}
    try:
        header = next(reader, [])
        if absent := [name for name in kinds if name not in header]:
            raise UserError(f"{file}, line 1: no column {absent[0]!r} among {', '.join(header) or 'none'}")
        wanted = [(found[name], name, header.index(name), kind) for name, kind in kinds.items()]
        for fields in filter(None, reader):
            if len(fields) != len(header):
                raise UserError(f"{file}, line {reader.line_num}: {len(fields)} fields where {len(header)} are needed")
            for column, name, index, kind in wanted:
                try:
                    column.append(kind(fields[index]))
                except ValueError as error:
                    where = f"{file}, line {reader.line_num}"
                    raise UserError(f"{where}: {name} {fields[index]!r} {error}") from None
    except csv.Error as error:
        raise UserError(f"{file}, line {reader.line_num}: {error}") from error
    return found


def whole(text: str) -> int:
    """The 64-bit integer in a text."""
    try:
        number = int(text)
    except ValueError:
        raise ValueError("is no whole number") from None
    if abs(number) > _LARGEST:
        raise ValueError("does not fit into 64 bits")
    return number


def millimetres(text: str) -> float:
    """The finite number in a text."""
    try:
        number = float(text)
    except ValueError:
        raise ValueError("is no number") from None
    if not math.isfinite(number):
        raise ValueError("is not finite")
    return number


def read_studies(file: File, kinds: Mapping[str, Callable[[str], Any]], published: int) -> dict[str, list[Any]]:
    """The columns of a metadata file; each study's `id` must occur once."""
    found = table(file, kinds)
    agree(file, "studies", len(found["id"]), published)
    if len(set(found["id"])) < published:
        raise UserError(f"{file} lists study {mode(found['id'])} more than once: get the file again")
    return found


def read_peaks(file: File, study_ids: Ints, published: int) -> Peaks:
    """All peaks in a file, as reported; each must belong to a known study."""
    peaks = _fast_peaks(file) or _careful_peaks(file)
    agree(file, "peaks", len(peaks), published)
    strange = rows_of(study_ids, peaks.study) < 0
    if strange.any():
        study = peaks.study[strange][0]
        raise UserError(f"{file} holds peaks of study {study}, which the metadata does not list: get both again")
    return peaks


def read_names(file: File, published: int) -> Ids:
    """The lines of a vocabulary."""
    names = np.array([text for _, text in lines(file)], dtype=np.str_)
    agree(file, "terms", len(names), published)
    return names


def read_matrix(file: File, shape: tuple[int, int], filled: int | None) -> scipy.sparse.csr_array:
    """The study-by-term matrix in SciPy's npz format, checked for shape and entries; pickles are refused."""
    content = file.read()
    try:
        found = scipy.sparse.load_npz(io.BytesIO(content))
        if found.format not in ("csr", "csc"):
            raise ValueError(f"format {found.format}")
        found.check_format(full_check=True)
    except _DAMAGED as error:
        raise UserError(f"{file} is cut, damaged or not a sparse matrix ({error}): get the file again") from error
    if found.shape != shape:
        raise UserError(f"{file} is {found.shape} where {shape} was published: the files are of different editions")
    if filled is not None:
        agree(file, "entries", found.nnz, filled)
    if not (np.isfinite(found.data) & (found.data >= 0)).all():
        raise UserError(f"{file} holds weights that are negative or not finite: get the file again")
    matrix = scipy.sparse.csr_array(found.tocsr())
    matrix.sum_duplicates()
    return matrix


def rows_of(study_ids: Ints, studies: Ints) -> Ints:
    """The row of each study among the ids, or -1 if it is not among them."""
    order = np.argsort(study_ids)
    found = order[np.minimum(np.searchsorted(study_ids, studies, sorter=order), len(order) - 1)]
    return np.where(study_ids[found] == studies, found, -1)


def agree(file: File, what: str, found: int, published: int) -> None:
    """Raise an error unless a file has the published number of studies, peaks, terms or entries."""
    if found != published:
        raise UserError(
            f"{file} holds {found:,} {what} where {published:,} were published: it is cut or of another edition"
        )


def _decoded(file: File) -> Iterator[str]:
    """The lines of a file with line ends; a line that is not UTF-8 is an error that names it."""
    for number, line in enumerate(io.BytesIO(file.read()), start=1):
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            raise UserError(f"{file}, line {number}: not utf-8 (byte {error.object[error.start]:#04x})") from None


def _fast_peaks(file: File) -> Peaks | None:
    """The peaks as read by pandas' C parser, or None if something is wrong."""
    import pandas  # noqa: PLC0415  slow to import, and rarely needed because parsed data is cached

    kinds: dict[str, type] = {"id": np.int64, "x": np.float64, "y": np.float64, "z": np.float64}
    try:
        with file.open() as stream:
            watched, exactly = Watched(stream), to_the_last_bit(pandas.__version__)
            frame = pandas.read_csv(io.BufferedReader(watched), sep="\t", dtype=kinds, na_filter=False, **exactly)
    except (ValueError, OverflowError):
        return None
    if not (isinstance(frame.index, pandas.RangeIndex) and set(kinds) <= set(frame.columns)):
        return None  # pandas shifts rows that are longer than the header
    if watched.zeros or frame["id"].dtype != np.int64:
        return None  # pragma: no cover: only pandas before 3.1 misreads zero bytes and large ids
    peaks = Peaks(*(frame[name].to_numpy() for name in kinds))
    return peaks if np.isfinite(peaks.places()).all() else None


def _careful_peaks(file: File) -> Peaks:
    """The peaks as read by a slow parser, which names the line of an error."""
    found = table(file, {"id": whole, "x": millimetres, "y": millimetres, "z": millimetres})
    x, y, z = (np.array(found[axis], dtype=np.float64) for axis in "xyz")
    return Peaks(np.array(found["id"], dtype=np.int64), x, y, z)


# ---- from peaks and terms to a ranking ----


def to_mni(peaks: Peaks, talairach: Flags) -> Peaks:
    """The peaks in MNI space; the marked ones are converted from Talairach space."""
    places = peaks.places()
    places[talairach] = np.linalg.solve(_SCALE, (places[talairach] - _SHIFT).T).T
    return Peaks(peaks.study, *places.T)


def tfidf(terms: Terms) -> Terms:
    """Counts weighted as scikit-learn does: (ln((1 + n) / (1 + df)) + 1) tf, each study scaled to length 1."""
    counts = terms.matrix
    studies, size = counts.shape
    users = np.bincount(counts.indices, minlength=size)
    weights = counts.data * (np.log((1 + studies) / (1 + users)) + 1)[counts.indices]
    rows = np.repeat(np.arange(studies), np.diff(counts.indptr))
    lengths = np.sqrt(np.bincount(rows, weights=weights**2, minlength=studies))
    weighted = scipy.sparse.csr_array((weights / lengths[rows], counts.indices, counts.indptr), shape=counts.shape)
    return Terms(terms.names, weighted)


def busiest(peaks: Peaks, voxels: int) -> Ints:
    """The voxels in which the most studies have a peak, ascending: a substitute for a grey-matter mask."""
    reported = activations(peaks, numbered(peaks.study)[0], radius=0)
    studies = np.diff(reported.indptr)
    if (found := np.count_nonzero(studies)) < voxels:
        raise UserError(f"voxels={voxels}: only {found} voxels have a peak")
    return np.sort(np.argsort(-studies, kind="stable")[:voxels])


def activations(peaks: Peaks, study_ids: Ints, radius: float) -> scipy.sparse.csr_array:
    """A sparse voxel-by-study matrix: 1 if a peak of the study is within `radius` mm of the voxel.

    Peaks of studies that are not in `study_ids` are left out. A voxel is a cube; with radius 0 only the voxel that
    contains the peak is active. The radius is at most the side of a cube, so only neighbouring voxels can be near.
    """
    studies = rows_of(study_ids, peaks.study)
    places, studies = peaks.places()[studies >= 0], studies[studies >= 0]
    own = np.floor((places - _CORNER) / SIDE + 0.5).astype(np.int32)
    voxels, active = [], []
    for step in product((-1, 0, 1), repeat=3) if radius > 0 else [(0, 0, 0)]:
        near = _within(places, own + np.array(step, np.int32), radius if any(step) else np.inf)
        voxels.append(np.ravel_multi_index(tuple((own[near] + step).T), _SHAPE))
        active.append(studies[near])
    pairs = (np.concatenate(voxels), np.concatenate(active))
    shape = (math.prod(_SHAPE), len(study_ids))
    marks = scipy.sparse.coo_array((np.ones(len(pairs[0])), pairs), shape=shape).tocsr()
    marks.data[:] = 1.0  # not the number of peaks
    return marks


def ranking(
    peaks: Peaks, study_ids: Ints, terms: Terms, voxels: int, radius: float, zeros: bool, features: Terms | None = None
) -> Ratings:
    """Each voxel's affinities with the terms, summed over the studies that are active in it; a voxel's id is `x y z`.

    All peaks are used to choose the voxels, also those of studies without known terms. `features` has a row per
    term.
    """
    chosen = busiest(peaks, voxels)
    affinity = scipy.sparse.csr_array(activations(peaks, study_ids, radius)[chosen] @ terms.matrix)
    affinity.sort_indices()
    indptr, items, values = affinity.indptr, affinity.indices, affinity.data
    if zeros:
        indptr = np.arange(voxels + 1, dtype=np.int64) * len(terms.names)
        items, values = np.tile(np.arange(len(terms.names)), voxels), affinity.toarray().ravel()
    return Ratings(
        indptr,
        sealed(items),
        sealed(values),
        len(terms.names),
        features.matrix.toarray() if features else None,
        feature_names=features.names if features else None,
        user_ids=names_of(chosen),
        item_ids=terms.names,
    )


def names_of(voxels: Ints) -> Ids:
    """The centres of voxels as text: `-40 -26 58`, in millimetres."""
    centres = np.column_stack(np.unravel_index(voxels, _SHAPE)) * SIDE + _CORNER
    return np.array([" ".join(map(str, centre)) for centre in centres.tolist()], dtype=np.str_)


def _within(places: Floats, voxels: Ints, radius: float) -> Any:
    """Whether each place is within `radius` of its voxel, and the voxel is on the grid."""
    gaps = np.abs(places - _CORNER - SIDE * voxels) - SIDE / 2
    np.maximum(gaps, 0.0, out=gaps)
    return (np.einsum("ij,ij->i", gaps, gaps) <= radius**2) & ((voxels >= 0) & (voxels < _SHAPE)).all(axis=1)
