"""Neurosynth (Yarkoni et al., Nature Methods 2011): brain voxels rank the terms of the studies that activate them."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import scipy.sparse

from rankbench.core.contract import Ints
from rankbench.core.errors import UserError
from rankbench.data.files import Files
from rankbench.data.origins import Download
from rankbench.data.parsed import FromFiles
from rankbench.data.publications import Publication
from rankbench.data.sources import brain, neuroquery
from rankbench.data.sources.brain import Joint, Peaks, Terms
from rankbench.data.tables.fields import Ids
from rankbench.data.views import Ratings
from rankbench.names import Limits, show


@dataclass(frozen=True)
class Release:
    """The published counts of one release, and how many of its studies and terms NeuroQuery has, too."""

    when: str
    peaks: int
    studies: int
    terms: int
    common_studies: int
    common_terms: int


_RELEASES = {
    6: Release("July 2015", 413_429, 11_406, 3_169, 7_145, 2_873),
    7: Release("July 2018", 507_891, 14_371, 3_228, 8_682, 2_927),
}
_SPACES = {"MNI", "TAL", "UNKNOWN"}
_REPOSITORY = "https://github.com/neurosynth/neurosynth-data"
_COMMIT = "209c33cd009d0b069398a802198b41b9c488b9b7"
_SUBSTITUTE = ("156521", "abstract")  # NeuroQuery's vocabulary with the most of Neurosynth's terms
_HASHES = {  # of the files of each release, by the ends of their names; none is published for release 6's tf-idf
    6: {
        "coordinates.tsv.gz": "7eeb64ebdf9411c9a04cd6d851fa63c568197e92578780e25408459d17c4e572",
        "metadata.tsv.gz": "76e086f9c89abd35df63d2b0ea9538d1784a5b0c9eb7794203e8130274df947b",
        "vocab-terms_vocabulary.txt": "fd0ed3c1359a685e629f8f442112fe4eab23f746da2fd08399dc4b938b2b0dd2",
        "vocab-LDA50_vocabulary.txt": "6ad6100c276d74c77bb7b56e87a4ddfd393daddcb3c23a60dfb06c7b6d6ecd09",
        "vocab-LDA100_vocabulary.txt": "d57b63c5e462931540ec2559345330f2444597adfe545e226edd3e2d7e24672f",
        "vocab-LDA50_source-abstract_type-weight_features.npz": (
            "ea548fbdcf2317fc2766a7e70c3fed4d536ec8701b2d76a7c672302f2a5f5ab2"
        ),
        "vocab-LDA100_source-abstract_type-weight_features.npz": (
            "99459eb3e2c048e7e50cd8d49ec3e4000819f4849f6f2266f2d86a4a7714f70d"
        ),
    },
    7: {
        "coordinates.tsv.gz": "17135be3e08a0ab045896c77217e8463086543a0817d52a6a88c8e32c1161616",
        "metadata.tsv.gz": "8acde7de2a14ee2a12b406e50a8805e83288b0bc78924ddb36879d496dfb757b",
        "vocab-terms_vocabulary.txt": "71c1858c5eb1bcc79854198bbca234569731efdc382c6205a9e46495379614af",
        "vocab-terms_source-abstract_type-tfidf_features.npz": (
            "1b3359eebcbc8557340583788b3855031ea21361e87c265cb8fc540d9b6c4edd"
        ),
        "vocab-LDA50_vocabulary.txt": "57a5fba4d3ee97cfcbf73a13d0631a1d9709a53c5a1fdf6d173f04ac8bb8f302",
        "vocab-LDA50_source-abstract_type-weight_features.npz": (
            "dff7606079404b8496be4baca35c0d261e91d4ac6ff5c5595e1ef519e598a571"
        ),
    },
}


@dataclass(frozen=True)
class Studies:
    """The articles, in the order of the rows of every term and topic matrix."""

    ids: Ints  # PubMed ids
    spaces: Ids  # MNI, TAL or UNKNOWN: the space of the coordinates, as detected by Neurosynth


@dataclass(frozen=True)
class Neurosynth(FromFiles):
    """1,231 brain voxels rank Neurosynth's terms by how much the studies that activate them use the term.

    The data of Gunasekar et al. (2016, Figure 1), who report 3,169 terms, like release 6, and 11,362 articles, 44
    fewer than release 6. `rankbench.data.sources.brain` defines a voxel's affinities, and says that the choice of
    voxels is a substitute for the paper's. Coordinates in Talairach space are converted to MNI space, as Neurosynth
    does; coordinates of unknown space are assumed to be MNI.

    `terms=neuroquery` is a substitution, and every result with it must say so: instead of the published tf-idf
    matrix it uses NeuroQuery's counts of the same terms in the same studies' abstracts, as far as available,
    weighted by scikit-learn's tf-idf. These are 7,145 of the 11,406 studies and 2,873 of the 3,169 terms (in
    release 7: 8,682 of 14,371 and 2,927 of 3,228). Terms that fewer than `least` studies use are left out, for
    example terms of the substitution that no common abstract uses.

    `features` describes a term by the topics of the studies that use it: the published topic weights of these
    studies, averaged with the term's weights.
    """

    terms: Literal["neurosynth", "neuroquery"] = "neurosynth"
    release: Annotated[int, Limits(low=6, high=7)] = 6
    voxels: Annotated[int, Limits(low=1)] = brain.VOXELS
    radius: Annotated[float, Limits(low=0, high=brain.SIDE)] = 6.0
    least: Annotated[int, Limits(low=1)] = 1
    zeros: bool = True
    features: Literal["none", "lda50", "lda100"] = "none"
    version: ClassVar[int] = 1

    @property
    def origin(self) -> Joint:
        """The origin: the files that these settings need, with NeuroQuery's counts if they are substituted."""
        own = publication(self.release, self.terms == "neurosynth", self._topics())
        chosen = {"terms": self.terms, "release": self.release, "features": self.features}
        spec = show(own.name, {key: value for key, value in chosen.items() if value != getattr(Neurosynth, key)})
        counts, size = _RELEASES[self.release], f"{self.voxels:,} users (voxels)"
        if self.terms == "neurosynth":
            return Joint(spec, f"{size}, {counts.terms:,} items (terms), {own.size}", own.licence, own.home, (own,))
        other = neuroquery.publication(*_SUBSTITUTE)
        size += f", at most {counts.common_terms:,} items (terms), {own.size}; {_substitution(self.release)}"
        licence = f"{own.licence}; NeuroQuery's counts: {other.licence}"
        home = f"{own.home}; terms substituted by {other.home}"
        return Joint(spec, size, licence, home, (own, other))

    def _parse(self, files: Files) -> Ratings:
        """The affinity of every voxel with every term; with `zeros=false` only positive affinities."""
        about = studies(files, self.release)
        if self.terms == "neuroquery":
            rows, counts = substitute(files, self.release)
            used = brain.tfidf(counts.used(self.least))
        else:
            rows, used = np.arange(len(about.ids)), tfidf(files, self.release).used(self.least)
        known = peaks(files, self.release)
        features = None
        if number := self._topics():
            features = term_topics(used, topics(files, self.release, number), rows)
        return brain.ranking(known, about.ids[rows], used, self.voxels, self.radius, self.zeros, features)

    def _topics(self) -> int | None:
        return None if self.features == "none" else int(self.features.removeprefix("lda"))


def publication(release: int, tfidf: bool = True, topics: int | None = None) -> Publication:
    """The origin of a release's files: peaks, studies and vocabulary, and optionally term and topic weights."""
    counts = _RELEASES[release]
    ends = ["coordinates.tsv.gz", "metadata.tsv.gz", "vocab-terms_vocabulary.txt"]
    ends += ["vocab-terms_source-abstract_type-tfidf_features.npz"] if tfidf else []
    if topics:
        ends += [f"vocab-LDA{topics}_vocabulary.txt", f"vocab-LDA{topics}_source-abstract_type-weight_features.npz"]
    hashes = {_name(known, end): sha256 for known, of in _HASHES.items() for end, sha256 in of.items()}
    names = [_name(release, end) for end in ends]
    return Publication(
        name="neurosynth",
        size=f"{counts.studies:,} studies, {counts.peaks:,} peaks",
        licence="Open Database License 1.0: name the source, share what is derived under the same terms",
        home=f"Neurosynth release {release} ({counts.when}), {_REPOSITORY}",
        needs=tuple((name,) for name in names),
        downloads=tuple(Download(name, _addresses(name), hashes.get(name)) for name in names),
        hashes=hashes,
    )


def studies(files: Files, release: int = 6) -> Studies:
    """The articles of a release."""
    file = files.find(_name(release, "metadata.tsv.gz"))
    found = brain.read_studies(file, {"id": brain.whole, "space": str}, _RELEASES[release].studies)
    if strange := set(found["space"]) - _SPACES:
        raise UserError(f"{file} names the space {min(strange)!r}: known are {', '.join(sorted(_SPACES))}")
    return Studies(np.array(found["id"], np.int64), np.array(found["space"], np.str_))


def peaks(files: Files, release: int = 6, mni: bool = True) -> Peaks:
    """The peaks of a release, in MNI space or as reported."""
    about = studies(files, release)
    file = files.find(_name(release, "coordinates.tsv.gz"))
    reported = brain.read_peaks(file, about.ids, _RELEASES[release].peaks)
    talairach = about.spaces[brain.rows_of(about.ids, reported.study)] == "TAL"
    return brain.to_mni(reported, talairach) if mni else reported


def vocabulary(files: Files, release: int = 6) -> Ids:
    """The terms of a release: words and pairs of words in the abstracts."""
    return brain.read_names(files.find(_name(release, "vocab-terms_vocabulary.txt")), _RELEASES[release].terms)


def tfidf(files: Files, release: int = 6) -> Terms:
    """The published weight of each term in each study's abstract."""
    names = vocabulary(files, release)
    file = files.find(_name(release, "vocab-terms_source-abstract_type-tfidf_features.npz"))
    return Terms(names, brain.read_matrix(file, (_RELEASES[release].studies, len(names)), None))


def topics(files: Files, release: int = 6, number: int = 50) -> Terms:
    """The weights of 50 or 100 topics (LDA) in each study's abstract, which sum to one."""
    names = brain.read_names(files.find(_name(release, f"vocab-LDA{number}_vocabulary.txt")), number)
    file = files.find(_name(release, f"vocab-LDA{number}_source-abstract_type-weight_features.npz"))
    rows = _RELEASES[release].studies
    return Terms(names, brain.read_matrix(file, (rows, number), rows * number))


def substitute(files: Files, release: int = 6) -> tuple[Ints, Terms]:
    """The studies that Neurosynth and NeuroQuery share (as row numbers), and NeuroQuery's counts of common terms."""
    own, theirs = studies(files, release).ids, neuroquery.study_ids(files)
    counts = neuroquery.counts(files, *_SUBSTITUTE)
    their_rows = brain.rows_of(theirs, own)
    rows = np.flatnonzero(their_rows >= 0)
    columns = {term: column for column, term in enumerate(counts.names.tolist())}
    terms = [term for term in vocabulary(files, release).tolist() if term in columns]
    published = _RELEASES[release]
    if (len(rows), len(terms)) != (published.common_studies, published.common_terms):
        raise UserError(
            f"Neurosynth and NeuroQuery share {len(rows):,} studies and {len(terms):,} terms where "
            f"{published.common_studies:,} and {published.common_terms:,} are expected: get the files of both again"
        )
    matrix = scipy.sparse.csr_array(counts.matrix[their_rows[rows]])
    return rows, Terms(counts.names, matrix).take(np.array([columns[term] for term in terms]))


def term_topics(terms: Terms, found: Terms, rows: Ints) -> Terms:
    """A row per term: the topic weights of the studies in `rows`, averaged with the term's weights."""
    weights = scipy.sparse.csr_array(terms.matrix.T)
    means = (weights @ found.matrix[rows]).toarray() / weights.sum(axis=1)[:, None]
    names = np.array([f"topic:{name}" for name in found.names], dtype=np.str_)
    return Terms(names, scipy.sparse.csr_array(means))


def _substitution(release: int) -> str:
    """The label of results with substituted terms."""
    counts = _RELEASES[release]
    return (
        "SUBSTITUTION: NeuroQuery's abstract counts stand in for Neurosynth's tf-idf "
        f"({counts.common_studies:,} of {counts.studies:,} studies, {counts.common_terms:,} of {counts.terms:,} terms)"
    )


def _name(release: int, end: str) -> str:
    return f"data-neurosynth_version-{release}_{end}"


def _addresses(name: str) -> tuple[str, ...]:
    """The addresses of a file: first at a fixed commit, then in the newest version."""
    raw = "https://raw.githubusercontent.com/neurosynth/neurosynth-data"
    return (f"{raw}/{_COMMIT}/{name}", f"{raw}/HEAD/{name}")
