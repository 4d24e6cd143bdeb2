"""NeuroQuery (Dockès et al., eLife 2020): brain voxels rank the terms of the studies that report activity in them."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from rankbench.core.contract import Ints
from rankbench.data.files import Files
from rankbench.data.origins import Download
from rankbench.data.parsed import FromFiles
from rankbench.data.publications import Publication
from rankbench.data.sources import brain
from rankbench.data.sources.brain import Joint, Peaks, Terms
from rankbench.data.views import Ratings
from rankbench.names import Limits, show

_STUDIES = 13_459
_PEAKS = 469_260
_FILE = "data-neuroquery_version-1"
_COORDINATES, _METADATA = f"{_FILE}_coordinates.tsv.gz", f"{_FILE}_metadata.tsv.gz"
_TERMS = {"7547": 7_547, "156521": 156_521}
_ENTRIES = {
    ("7547", "abstract"): 712_311,
    ("7547", "keywords"): 59_413,
    ("7547", "title"): 86_276,
    ("156521", "abstract"): 1_328_235,
}
_REPOSITORY = "https://github.com/neuroquery/neuroquery_data"
_COMMIT = "4580f86267fb7c14ac1f601e298cbed898d79f2d"  # NiMARE downloads from this commit
_HASHES = {
    _COORDINATES: "b97cf50346dc8a6f78b3c02c8a19680679d7dbdf35f760a1032e46c2cad3666c",
    _METADATA: "d84d2c7b2e2ca1692381419833fde043fb42d279014104c3c957feeeece140ea",
    f"{_FILE}_vocab-neuroquery156521_source-abstract_type-count_features.npz": (
        "1afb653a7c638377dae3ac9785e0e7ba04d62d89ecbd4c2b2dee8514365138c8"
    ),
    f"{_FILE}_vocab-neuroquery156521_vocabulary.txt": (
        "54a768ac2cd266f38a3010a20fd8b10abb107677776c8bda7060c8f9a4517793"
    ),
    f"{_FILE}_vocab-neuroquery7547_source-abstract_type-count_features.npz": (
        "79c38b2515a316b711eef1ef1737ba57ce720d79d8506b7a08da6639418cf60a"
    ),
    f"{_FILE}_vocab-neuroquery7547_source-keywords_type-count_features.npz": (
        "01c51de4b0f58194725c0c160e529c1c59cd812b83e51a693924be824f0e9c1b"
    ),
    f"{_FILE}_vocab-neuroquery7547_source-title_type-count_features.npz": (
        "c8243762f0f4c705c7ec60246c25e36785f0ea555dc914f85ede08a623afec74"
    ),
    f"{_FILE}_vocab-neuroquery7547_vocabulary.txt": "ae4a13380451797735d3df142fb8b4b3792056fbf79471454aa40e12bec7717b",
}


@dataclass(frozen=True)
class NeuroQuery(FromFiles):
    """1,231 brain voxels rank the terms of 13,459 articles by how much the articles that activate them use the term.

    The data has the same shape as `neurosynth`, from NeuroQuery's own peaks and counts.
    `rankbench.data.sources.brain` defines a voxel's affinities, and says that the choice of voxels is a substitute
    for the paper's. Coordinates are used as reported: NeuroQuery does not say which of them are in Talairach
    space. Terms that fewer than `least` articles use are left out; 14 is Gunasekar et al.'s one in a thousand. With
    `weights=counts` most affinities are tied; with tf-idf weights ties are rare.
    """

    vocabulary: Literal["7547", "156521"] = "7547"
    source: Literal["abstract", "keywords", "title"] = "abstract"
    weights: Literal["tfidf", "counts"] = "tfidf"
    voxels: Annotated[int, Limits(low=1)] = brain.VOXELS
    radius: Annotated[float, Limits(low=0, high=brain.SIDE)] = 6.0
    least: Annotated[int, Limits(low=1)] = 14
    zeros: bool = True
    version: ClassVar[int] = 1

    @property
    def origin(self) -> Joint:
        """The origin: the files that these settings need."""
        part = publication(self.vocabulary, self.source)
        chosen = {"vocabulary": self.vocabulary, "source": self.source}
        named = {key: value for key, value in chosen.items() if value != getattr(NeuroQuery, key)}
        size = f"{self.voxels:,} users (voxels), at most {_TERMS[self.vocabulary]:,} items (terms), {part.size}"
        return Joint(show(part.name, named), size, part.licence, part.home, (part,))

    def _parse(self, files: Files) -> Ratings:
        """The affinity of every voxel with every term; with `zeros=false` only positive affinities."""
        terms = counts(files, self.vocabulary, self.source).used(self.least)
        if self.weights == "tfidf":
            terms = brain.tfidf(terms)
        return brain.ranking(peaks(files), study_ids(files), terms, self.voxels, self.radius, self.zeros)


def publication(vocabulary: str, source: str) -> Publication:
    """The origin of the files with all peaks and the counts of one vocabulary in one part of the articles."""
    names = (_COORDINATES, _METADATA, _vocabulary(vocabulary), _counts(vocabulary, source))
    return Publication(
        name="neuroquery",
        size=f"{_STUDIES:,} studies, {_PEAKS:,} peaks",
        licence="BSD 3-Clause",
        home=f"NeuroQuery (Dockès et al. 2020), {_REPOSITORY}",
        needs=tuple((name,) for name in names),
        downloads=tuple(Download(name, _addresses(name), _HASHES.get(name)) for name in names),
        hashes=_HASHES,
    )


def study_ids(files: Files) -> Ints:
    """The PubMed ids of the 13,459 articles, in the order of the rows of every term matrix."""
    return np.array(brain.read_studies(files.find(_METADATA), {"id": brain.whole}, _STUDIES)["id"], np.int64)


def peaks(files: Files) -> Peaks:
    """The 469,260 peaks as they were reported."""
    return brain.read_peaks(files.find(_COORDINATES), study_ids(files), _PEAKS)


def counts(files: Files, vocabulary: str = "7547", source: str = "abstract") -> Terms:
    """How often each term occurs in each article's abstract, keywords or title."""
    names = brain.read_names(files.find(_vocabulary(vocabulary)), _TERMS[vocabulary])
    file, filled = files.find(_counts(vocabulary, source)), _ENTRIES.get((vocabulary, source))
    return Terms(names, brain.read_matrix(file, (_STUDIES, len(names)), filled))


def _vocabulary(vocabulary: str) -> str:
    return f"{_FILE}_vocab-neuroquery{vocabulary}_vocabulary.txt"


def _counts(vocabulary: str, source: str) -> str:
    return f"{_FILE}_vocab-neuroquery{vocabulary}_source-{source}_type-count_features.npz"


def _addresses(name: str) -> tuple[str, ...]:
    """The addresses of a file: first at a fixed commit, then in the newest version."""
    return tuple(f"{_REPOSITORY}/raw/{revision}/data/{name}" for revision in (_COMMIT, "HEAD"))
