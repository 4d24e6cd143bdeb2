"""Brain activations: reported peaks and the terms of abstracts, and from both the ranking of terms in each voxel.

What Gunasekar et al. (2016, section 6) rank is the affinity of a term with a voxel, the product of a
study-by-term and a voxel-by-study matrix. They bring the activations onto the standard brain, drop what
is not grey matter and go from 2 mm to voxels of 10 mm, of which 1,231 are left; the matrix they get is
dense, with very few ties.

Here the voxels are cubes of 10 mm, laid out from the corner of the 2 mm MNI152 template as nilearn does;
peaks beyond them are left out. A study counts once in a voxel, however many of its peaks lie there: the
tables of one article repeat peaks (12 % of all rows), and Neurosynth too marks voxels as active or not.
It is active in a voxel if a peak lies within a radius of it. With Neurosynth's own 6 mm 98 % of the
affinities are positive and hardly any tied, as the paper has it; with 0 mm, which is the voxel of the peak
alone, 72 % are (release 6 with NeuroQuery's counts). Zeros are entries like any other, of terms that no
study of the voxel uses.

**The mask is a stand-in.** The paper's 1,231 grey voxels are not published. Their place take the 1,231
voxels in which the most studies report a peak, since peaks are reported in grey matter. Held against the
grey-matter map of the ICBM152 template, 95 % of these voxels are at least a fifth grey, but only 74 % are
among the 1,231 greyest: most of the others lie at the base of the brain and in the cerebellum, which
studies report less.
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

from rankbench.arrays import sealed
from rankbench.contract import Flags, Floats, Ints
from rankbench.data.building import numbered
from rankbench.data.files import File, Files
from rankbench.data.origins import Held, Tell
from rankbench.data.publications import Publication
from rankbench.data.tables import Ids, Watched, lines, to_the_last_bit
from rankbench.data.views import Ratings
from rankbench.errors import UserError

VOXELS = 1_231  # Gunasekar et al.
SIDE = 10  # millimetres
_CORNER = np.array([-90, -126, -72])  # of the template: x, y, z of the first voxel's centre, in millimetres
_SHAPE = (19, 22, 19)
_LARGEST = np.iinfo(np.int64).max
_DAMAGED = (ValueError, TypeError, KeyError, EOFError, OSError, RuntimeError, BadZipFile, zlib.error)

# From MNI to Talairach (Lancaster et al., Human Brain Mapping 28, 2007), as fitted to SPM's normalisation: the
# one that Neurosynth inverts.
_SCALE = np.array([[0.9254, 0.0024, -0.0118], [-0.0048, 0.9316, -0.0871], [0.0152, 0.0883, 0.8924]])
_SHIFT = np.array([-1.0207, -1.7667, 4.0926])


@dataclass(frozen=True)
class Peaks:
    """Reported peaks of activation: the study (PubMed id) and the place of each, in millimetres."""

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
    """What the studies are about: a row per study, a column per term or topic."""

    names: Ids
    matrix: scipy.sparse.csr_array

    def take(self, columns: Ints) -> "Terms":
        """Some of the terms."""
        return Terms(self.names[columns], scipy.sparse.csr_array(self.matrix[:, columns]))

    def used(self, least: int) -> "Terms":
        """The terms that at least so many studies use."""
        kept = np.flatnonzero(np.bincount(self.matrix.indices, minlength=len(self.names)) >= least)
        if len(kept) == 0:
            raise UserError(f"least={least}: no term is used by so many studies")
        return self.take(kept)


@dataclass(frozen=True)
class Joint:
    """An origin of the publications that a data set with these settings needs together."""

    spec: str  # the data set's name with those settings
    size: str
    licence: str
    home: str
    parts: tuple[Publication, ...]

    @property
    def name(self) -> str:
        """The name of the first publication, whose folder is the data set's own."""
        return self.parts[0].name

    def files(self) -> Files:
        """What lies in the folders of all of them; an error if something needed does not."""
        if command := self.missing():
            raise UserError(f"{self.spec} is not at hand, or not all of it: {command}")
        return Files(self.name, tuple(path for part in self.parts for path in part.files().paths))

    def missing(self) -> str | None:
        """The command that gets what is missing, None where nothing is."""
        return f"rankbench data fetch {self.spec}" if any(part.missing() for part in self.parts) else None

    def held(self) -> list[Held]:
        """Every file in their folders."""
        return [held for part in self.parts for held in part.held()]

    def fetch(self, tell: Tell) -> None:
        """Download what is not at hand."""
        for part in self.parts:
            part.fetch(tell)


# ---- files ----


def table(file: File, kinds: Mapping[str, Callable[[str], Any]]) -> dict[str, list[Any]]:
    """These columns of a tab-separated file with a header; every row must be as long as the header."""
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
    """A whole number of 64 bits."""
    try:
        number = int(text)
    except ValueError:
        raise ValueError("is no whole number") from None
    if abs(number) > _LARGEST:
        raise ValueError("does not fit into 64 bits")
    return number


def millimetres(text: str) -> float:
    """A finite number."""
    try:
        number = float(text)
    except ValueError:
        raise ValueError("is no number") from None
    if not math.isfinite(number):
        raise ValueError("is not finite")
    return number


def read_studies(file: File, kinds: Mapping[str, Callable[[str], Any]], published: int) -> dict[str, list[Any]]:
    """The columns of a metadata file, which lists each study's `id` once."""
    found = table(file, kinds)
    agree(file, "studies", len(found["id"]), published)
    if len(set(found["id"])) < published:
        raise UserError(f"{file} lists study {mode(found['id'])} more than once: get the file again")
    return found


def read_peaks(file: File, study_ids: Ints, published: int) -> Peaks:
    """All peaks of a file as they were reported; each must belong to a known study."""
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
    """The study-by-term matrix of an npz file of SciPy's, with so many entries; pickles are refused."""
    content = file.read()
    try:
        found = scipy.sparse.load_npz(io.BytesIO(content))
        if found.format not in ("csr", "csc"):
            raise ValueError(f"format {found.format}")
        found.check_format(full_check=True)
    except _DAMAGED as error:
        raise UserError(f"{file} is cut, damaged or no sparse matrix ({error}): get the file again") from error
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
    """Where each study stands among the ids, -1 where it does not."""
    order = np.argsort(study_ids)
    found = order[np.minimum(np.searchsorted(study_ids, studies, sorter=order), len(order) - 1)]
    return np.where(study_ids[found] == studies, found, -1)


def agree(file: File, what: str, found: int, published: int) -> None:
    """Raise an error unless a file holds as many as were published."""
    if found != published:
        raise UserError(
            f"{file} holds {found:,} {what} where {published:,} were published: it is cut or of another edition"
        )


def _decoded(file: File) -> Iterator[str]:
    """The lines of a file with their ends; one that is not UTF-8 is an error that names it."""
    for number, line in enumerate(io.BytesIO(file.read()), start=1):
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            raise UserError(f"{file}, line {number}: not utf-8 (byte {error.object[error.start]:#04x})") from None


def _fast_peaks(file: File) -> Peaks | None:
    """What pandas' C reader finds, None where it finds fault."""
    import pandas  # noqa: PLC0415  slow to import, and needed once: what is parsed is cached

    kinds: dict[str, type] = {"id": np.int64, "x": np.float64, "y": np.float64, "z": np.float64}
    try:
        with file.open() as stream:
            watched, exactly = Watched(stream), to_the_last_bit(pandas.__version__)
            frame = pandas.read_csv(io.BufferedReader(watched), sep="\t", dtype=kinds, na_filter=False, **exactly)
    except (ValueError, OverflowError):
        return None
    if not (isinstance(frame.index, pandas.RangeIndex) and set(kinds) <= set(frame.columns)):
        return None  # rows longer than the header: pandas shifts them
    if watched.zeros or frame["id"].dtype != np.int64:
        return None  # which pandas before 3.1 reads as something else
    peaks = Peaks(*(frame[name].to_numpy() for name in kinds))
    return peaks if np.isfinite(peaks.places()).all() else None


def _careful_peaks(file: File) -> Peaks:
    """The same, slowly, so that what is wrong can be named with its line."""
    found = table(file, {"id": whole, "x": millimetres, "y": millimetres, "z": millimetres})
    x, y, z = (np.array(found[axis], dtype=np.float64) for axis in "xyz")
    return Peaks(np.array(found["id"], dtype=np.int64), x, y, z)


# ---- from peaks and terms to a ranking ----


def to_mni(peaks: Peaks, talairach: Flags) -> Peaks:
    """The peaks with those marked as Talairach's brought into MNI space."""
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
    """The voxels in which the most studies have a peak, ascending: the stand-in for a grey-matter mask."""
    reported = activations(peaks, numbered(peaks.study)[0], radius=0)
    studies = np.diff(reported.indptr)
    if (found := np.count_nonzero(studies)) < voxels:
        raise UserError(f"voxels={voxels}: only {found} hold a peak")
    return np.sort(np.argsort(-studies, kind="stable")[:voxels])


def activations(peaks: Peaks, study_ids: Ints, radius: float) -> scipy.sparse.csr_array:
    """A row per voxel, a column per study: 1 where one of its peaks lies within `radius` mm of the voxel.

    Peaks of other studies are left out. A voxel is a cube; a radius of 0 marks the one that holds the
    peak, and up to the side of a cube no voxel beyond the next can be reached.
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
    marks.data[:] = 1.0  # however many peaks
    return marks


def ranking(
    peaks: Peaks, study_ids: Ints, terms: Terms, voxels: int, radius: float, zeros: bool, features: Terms | None = None
) -> Ratings:
    """Each voxel's affinities with the terms, summed over the studies that have both; a voxel is called x y z.

    The voxels are chosen by all peaks, whether or not the terms of their studies are known. `features` is
    a row per term.
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
    """Which of the places lie within `radius` of a voxel that is on the grid."""
    gaps = np.abs(places - _CORNER - SIDE * voxels) - SIDE / 2
    np.maximum(gaps, 0.0, out=gaps)
    return (np.einsum("ij,ij->i", gaps, gaps) <= radius**2) & ((voxels >= 0) & (voxels < _SHAPE)).all(axis=1)
