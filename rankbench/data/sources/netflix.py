"""The Netflix Prize ratings (2006), read from a user's own copy; Netflix has withdrawn the download."""

import io
import re
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, ClassVar, NoReturn

import numpy as np
import scipy.sparse

from rankbench.arrays.npz import sealed
from rankbench.core.contract import Ints
from rankbench.core.errors import UserError
from rankbench.data.building import Counts, expect
from rankbench.data.files import File, Files
from rankbench.data.parsed import FromFiles
from rankbench.data.publications import Publication
from rankbench.data.views import Ratings

_COUNTS = Counts(100_480_507, 480_189, 17_770)
_LAST_CUSTOMER = 2_649_429
_BLOCK = 1 << 25  # bytes to parse at a time
_HEADER = re.compile(rb"\d{1,9}:")
_TARS = ("training_set.tar", "training_set.tar.gz", "nf_prize_dataset.tar.gz")
_COMBINED = tuple(f"combined_data_{number}.txt" for number in range(1, 5))
_NEWLINE, _COLON, _COMMA = b"\n:,"


@dataclass(frozen=True)
class Netflix(FromFiles):
    """480,189 customers, 17,770 movies, 100,480,507 ratings from 1 to 5.

    The first available form is read: the folder training_set with a file mv_*.txt per movie, the archive
    training_set.tar, the archive nf_prize_dataset.tar.gz around it, or Kaggle's combined_data_1.txt to
    combined_data_4.txt. In all of them a line `MOVIE:` is followed by the movie's lines `CUSTOMER,RATING,DATE`.
    """

    version: ClassVar[int] = 1
    origin: ClassVar[Publication] = Publication(
        name="netflix",
        size=str(_COUNTS),
        licence="Netflix Prize: research only, no redistribution",
        home="Netflix, https://www.netflixprize.com (withdrawn in 2010)",
        needs=(("mv_0017770.txt", *_TARS, _COMBINED[-1]),),
        how="Netflix has withdrawn it: take nf_prize_dataset.tar.gz, its training_set, or Kaggle's combined_data_*.txt",
    )

    def _parse(self, files: Files) -> Ratings:
        every = (segment for block in _blocks(_pieces(files)) for segment in _segments(block))
        view = _view(*_by_customer(sorted(every, key=lambda segment: segment.movie)))
        expect(view, _COUNTS, "netflix")
        return view


@dataclass(frozen=True)
class _Piece:
    """Whole lines of a file; `movie` is the movie of the first line, or 0 if the first line is a header."""

    file: str
    line: int  # the number of the first line
    movie: int
    content: bytes


@dataclass(frozen=True)
class _Segment:
    """Ratings of one movie on consecutive lines."""

    movie: int
    file: str
    line: int  # line number of the first rating
    customers: Ints
    ratings: Ints


# ---- from files to pieces ----


def _pieces(files: Files) -> Iterator[_Piece]:
    """All pieces of the first form of the data that is available."""
    if loose := {file.path.name: file for file in reversed(files.matching("mv_*.txt"))}:  # the first of equal names
        return (_Piece(str(loose[name]), 1, 0, loose[name].read()) for name in sorted(loose))
    if tars := [name for name in _TARS if files.has(name)]:
        return _from_tar(files.find(tars[0]))
    return (piece for name in _COMBINED for piece in _in_parts(files.find(name)))


def _from_tar(file: File) -> Iterator[_Piece]:
    """The movies' files in an archive, which may be inside another archive; nothing is unpacked to disk."""
    with file.open() as stream:
        try:
            yield from _members(stream, str(file))
        except tarfile.TarError as error:
            raise UserError(f"{file} is cut or damaged ({error}): get the file again") from error


def _members(stream: IO[bytes], name: str) -> Iterator[_Piece]:
    """The movies' files in a tar stream, read once from beginning to end."""
    with tarfile.open(fileobj=stream, mode="r|", bufsize=1 << 20) as archive:
        for member in archive:
            content = archive.extractfile(member)
            last = member.name.rsplit("/", 1)[-1]
            if content is not None and last == _TARS[0]:
                yield from _members(content, f"{name}/{last}")
            elif content is not None and re.fullmatch(r"mv_\d+\.txt", last):
                yield _Piece(f"{name}/{last}", 1, 0, content.read())


def _in_parts(file: File) -> Iterator[_Piece]:
    """The pieces of a long file, each with whole lines."""
    line, movie = 1, 0
    with file.open() as stream:
        while content := stream.read(_BLOCK) + stream.readline():
            piece = _Piece(str(file), line, movie, content)
            yield piece
            line += content.count(b"\n")
            movie = _last_movie(piece)


def _last_movie(piece: _Piece) -> int:
    """The movie of the last line of a piece."""
    colon = piece.content.rfind(b":")
    if colon < 0:
        return piece.movie
    header = piece.content[piece.content.rfind(b"\n", 0, colon) + 1 : colon + 1]
    return int(header[:-1]) if _HEADER.fullmatch(header) else _diagnose([piece])


def _blocks(pieces: Iterator[_Piece]) -> Iterator[list[_Piece]]:
    """Lists of pieces with at least `_BLOCK` bytes together, because parsing few bytes at a time is slow."""
    block: list[_Piece] = []
    size = 0
    for piece in pieces:
        block.append(piece)
        size += len(piece.content)
        if size >= _BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


# ---- from pieces to numbers ----


def _segments(block: list[_Piece]) -> Iterator[_Segment]:
    """The ratings of a block movie by movie, with every line checked.

    Header lines are blanked, so that pandas parses the whole block at once; the movie of each row is then found by
    counting lines.
    """
    contents = [piece.content.rstrip(b"\r\n") + b"\n" for piece in block]
    text = np.frombuffer(bytearray(b"".join(contents)), np.uint8)
    ends = np.flatnonzero(text == _NEWLINE)
    first_lines = np.searchsorted(ends, np.cumsum([0] + [len(content) for content in contents[:-1]]))
    headers = np.searchsorted(ends, np.flatnonzero(text == _COLON))  # the lines with a colon
    movies = {line: _blank(text, ends, line) or _diagnose(block) for line in headers.tolist()}
    customers, ratings = _numbers(text, len(ends) - len(headers), block)
    borders = np.union1d(headers, first_lines)
    above = np.searchsorted(headers, borders)  # number of header lines before each border
    numbers = np.searchsorted(first_lines, borders, side="right") - 1
    ends_at = np.append(borders[1:], len(ends))
    for line, after, skipped, number in np.stack([borders, ends_at, above, numbers], axis=1).tolist():
        piece, header = block[number], int(line in movies)
        movie = movies.get(line, piece.movie) or _diagnose(block)
        rows = slice(line - skipped, after - skipped - header)
        at = piece.line + line - int(first_lines[number]) + header
        yield _Segment(movie, piece.file, at, customers[rows], ratings[rows])


def _blank(text: np.ndarray[Any, Any], ends: Ints, line: int) -> int:
    """The movie of a header line, or 0 if it is not a valid header; the line is overwritten with line ends."""
    start, end = (int(ends[line - 1]) + 1 if line else 0), int(ends[line])
    header = text[start:end].tobytes().rstrip(b"\r")
    text[start:end] = _NEWLINE
    return int(header[:-1]) if _HEADER.fullmatch(header) else 0


def _numbers(text: np.ndarray[Any, Any], n_rows: int, block: Sequence[_Piece]) -> tuple[Ints, Ints]:
    """The customers and ratings of a block without its headers."""
    import pandas  # noqa: PLC0415  slow to import, and rarely needed because parsed data is cached

    if n_rows == 0:
        return np.empty(0, np.int32), np.empty(0, np.int8)
    try:
        frame = pandas.read_csv(
            io.BytesIO(text.data),
            header=None,
            usecols=[0, 1],
            dtype=np.int64,  # pandas before 3.1 silently truncates numbers that do not fit a smaller type
            na_filter=False,
            engine="c",
        )
    except (ValueError, OverflowError):  # includes pandas' own errors
        _diagnose(block)
    customers, ratings = frame[0].to_numpy(), frame[1].to_numpy()
    fits = len(frame) == n_rows and np.count_nonzero(text == _COMMA) == 2 * n_rows
    if not (fits and 1 <= customers.min() and customers.max() <= _LAST_CUSTOMER):
        _diagnose(block)
    if not (ratings.min() >= 1 and ratings.max() <= 5) or not text.all():  # a zero byte ends a field silently
        _diagnose(block)
    return customers.astype(np.int32), ratings.astype(np.int8)


def _diagnose(block: Sequence[_Piece]) -> NoReturn:
    """Raise an error about the first wrong line of a block."""
    for piece in block:
        if not piece.content.strip():
            raise UserError(f"{piece.file} is empty: get the file again")
        has_movie = piece.movie > 0
        for number, line in enumerate(io.BytesIO(piece.content), start=piece.line):
            text = line.rstrip(b"\r\n")
            if reason := _wrong(text, has_movie):
                raise UserError(f"{piece.file}, line {number}: {text[:60].decode('latin-1')!r} {reason}")
            has_movie = True
    named = f"{block[0].file} to {block[-1].file} cannot be read"  # pragma: no cover: the wrong line was named above
    raise UserError(named)  # pragma: no cover: the wrong line was named above


def _wrong(text: bytes, has_movie: bool) -> str | None:
    """Why a line is neither `MOVIE:` nor `CUSTOMER,RATING,DATE` below one."""
    if _HEADER.fullmatch(text) and int(text[:-1]) > 0:
        return None
    fields = text.split(b",")
    if not has_movie or len(fields) != 3 or b":" in text:
        return f"is not {'CUSTOMER,RATING,DATE' if has_movie else 'MOVIE:'}"
    if not (fields[0].isdigit() and 1 <= int(fields[0]) <= _LAST_CUSTOMER):
        return f"is out of range: customers are numbered from 1 to {_LAST_CUSTOMER:,}"
    if fields[1] not in (b"1", b"2", b"3", b"4", b"5"):
        return "is out of range: ratings are from 1 to 5"
    return None


# ---- from numbers to the view ----


def _by_customer(segments: list[_Segment]) -> tuple[scipy.sparse.csr_array, Ints]:
    """A sparse matrix with a row per customer and a column per rated movie, and the movies.

    The segments, sorted by movie, are a matrix in CSC format; converting it to CSR takes linear time and keeps each
    customer's movies sorted.
    """
    movies, columns = np.unique([segment.movie for segment in segments], return_inverse=True)
    sizes = np.bincount(columns, [len(segment.ratings) for segment in segments], len(movies))
    by_movie = scipy.sparse.csc_array(
        (
            np.concatenate([segment.ratings for segment in segments]),
            np.concatenate([segment.customers for segment in segments]),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),  # with int64 all indices would become int64
        ),
        shape=(_LAST_CUSTOMER + 1, len(movies)),
    )
    by_customer = by_movie.tocsr()
    _check_once(by_customer, movies, segments)
    return by_customer, movies


def _view(by_customer: scipy.sparse.csr_array, movies: Ints) -> Ratings:
    """The view of a matrix without its empty rows."""
    customers = np.flatnonzero(np.diff(by_customer.indptr))
    return Ratings(
        np.append(by_customer.indptr[customers], by_customer.nnz),
        sealed(by_customer.indices),
        sealed(by_customer.data),
        len(movies),
        user_ids=customers,
        item_ids=movies,
    )


def _check_once(by_customer: scipy.sparse.csr_array, movies: Ints, segments: list[_Segment]) -> None:
    """Raise an error if a customer rates a movie twice."""
    same = by_customer.indices[1:] == by_customer.indices[:-1]
    borders = by_customer.indptr[1:-1] - 1
    same[borders[(borders >= 0) & (borders < len(same))]] = False
    if not same.any():
        return
    row = int(np.argmax(same))
    customer = int(np.searchsorted(by_customer.indptr, row, side="right")) - 1
    movie = movies[by_customer.indices[row]]
    first, second = [
        (segment.file, segment.line + int(index))
        for segment in segments
        if segment.movie == movie
        for index in np.flatnonzero(segment.customers == customer)
    ][:2]
    raise UserError(
        f"{second[0]}, line {second[1]}: customer {customer} rates movie {movie} "
        f"on line {first[1]} of {first[0]} already: keep one of the two rows"
    )
