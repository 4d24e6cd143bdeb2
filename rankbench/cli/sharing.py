"""The commands that join, pass on and use stored results: merge, archive, model and recommend."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankbench.cli import completion
from rankbench.cli.opening import first_complaints, is_archive, results_in, stored_in
from rankbench.cli.options import RESULTS, OfFull, OfSeed, Out, Stored, option
from rankbench.cli.process import FAILED
from rankbench.core.errors import UserError, unknown
from rankbench.core.leftovers import replacing
from rankbench.core.lines import mention, show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TextIO

    import pandas

    from rankbench.fitted import Fitted
    from rankbench.records.merge import Merge
    from rankbench.records.results import Result
    from rankbench.records.store import ResultsFolder

# Each command imports what it needs when it runs, so that --help and completion stay fast.
# ruff: noqa: PLC0415


def merge(
    sources: Annotated[list[Path], typer.Argument(metavar="FROM...", help="Folders of results, or archives.")],
    out: Out = RESULTS,
    dry_run: Annotated[bool, option("--dry-run", None, "Say what would be copied, and write nothing.")] = False,
) -> None:
    """Join the results of several machines in one folder. Exit code 1 if numbers contradict each other.

    Nothing is overwritten: a result that contradicts the folder's is named and left out, and another machine's times
    of a cell are kept beside the folder's own.

    Example: rankbench merge laptop server.zip --out all
    """
    from rankbench.records.cells import file_of_cell
    from rankbench.records.merge import carry_out, check_apart, survey
    from rankbench.report import manifest

    check_apart(out, sources)
    told: list[str] = []
    complain = first_complaints()

    def warn(text: str) -> None:
        told.append(text)
        complain(text)

    known = [(str(source), _readable(source, warn)) for source in sources]
    merges = survey(results_in(out, untouched=True, warn=warn), known, warn)
    for one in merges:
        if not dry_run:
            carry_out(results_in(out), one, warn)
            copied = {file_of_cell(copy.name) for copy in one.copies}
            for plan in one.plans:
                manifest.renew(results_in(out).store(one.name), plan, copied)
        show(_summary(one, dry_run))
        for conflict in one.conflicts:
            show(f"conflict: {conflict.file}: {conflict.what} is {conflict.kept} in {out}, {conflict.other} in "
                 f"{conflict.source}")  # fmt: skip
    clashes = len({conflict.file for one in merges for conflict in one.conflicts})
    show(f"{out}: {clashes} conflicts, {len(told)} files left out" + (" (dry run: nothing written)" if dry_run else ""))
    if clashes or told:
        raise typer.Exit(FAILED)


def _readable(source: Path, warn: "Callable[[str], None]") -> "ResultsFolder":
    """The results in a source, which stay as they are; an error if there are none."""
    results = stored_in(source, untouched=True, warn=warn)
    if not source.exists() or not results.names():
        raise UserError(f"{source} holds no results: name folders with results, or archives")
    return results


def _summary(merge: "Merge", dry_run: bool) -> str:
    """One line about what was copied of an experiment, or would be."""
    done = "would be " if dry_run else ""
    parts = [f"{merge.count('new', 'instead')} results {done}added"]
    if beside := merge.count("beside"):
        parts.append(f"{beside} measurements {done}kept beside those of other machines or times")
    if instead := merge.count("instead"):
        parts.append(f"{instead} of them in place of results that did not end well, which {done or 'are '}kept beside")
    parts.append(f"{merge.present} there already")
    return f"{merge.name}: {', '.join(parts)}"


def archive(
    name: Annotated[str, typer.Argument(metavar="EXPERIMENT", autocompletion=completion.stored)],
    to: Annotated[Path | None, option("--to", "FILE", "The new file; by default EXPERIMENT.zip.")] = None,
    licence: Annotated[str, option("--licence", "TEXT", "The licence of the results, in words or as an address.")] = "",
    sign: Annotated[Path | None, option("--sign", "KEY", "Sign it with this SSH key, by ssh-keygen.")] = None,
    seed: OfSeed = None,
    full: OfFull = None,
    out: Out = RESULTS,
) -> None:
    """Write a run into one file: plan, splits by name and hash, results, versions, the page and RO-Crate metadata.

    Most verbs take the file in place of a folder: rankbench table FILE, verify FILE, compare FILE FILE.

    Example: rankbench archive park2015-table1 --to park.zip
    """
    from rankbench.cli.looking import stored_study
    from rankbench.records.archive import METADATA, SIGNATURE, write
    from rankbench.report.crate import NO_LICENCE, files_of, there
    from rankbench.report.study import like
    from rankbench.verification.signing import signed

    if is_archive(name):
        raise UserError(f"{name} is an archive already: name an experiment")
    study = stored_study(out, name, seed, full)
    store = results_in(out).store(study.name)
    plan = like(store.plans(), study.plan)
    assert plan is not None, "its study was read from it"
    path = to or Path(f"{study.name}.zip")
    files = files_of(store, plan, study, licence or NO_LICENCE)
    if sign is not None:
        metadata = files[METADATA]
        assert isinstance(metadata, bytes), "they were just made"
        files[SIGNATURE] = signed(metadata, sign)
    write(path, files)
    have, total = there(plan, store)
    show(f"{path}: {have} of {total} results of {study.name} ({study.profile} profile, seed {study.seed}), "
         f"{len(files)} files, {path.stat().st_size / 1e6:.1f} MB")  # fmt: skip


def model(
    what: Annotated[
        str,
        typer.Argument(
            metavar="KEY|EXPERIMENT",
            help="Digits of a cell's key, as in its file's name; or with --best.",
            autocompletion=completion.stored,
        ),
    ],
    to: Annotated[Path | None, option("--to", "FILE", "The new file; by default SOLVER-KEY.npz.")] = None,
    best: Annotated[bool, typer.Option("--best", help="The best solver of an experiment, or of an archive.")] = False,
    metric: Annotated[
        str, option("--metric", "METRIC", "Best by this metric, instead of the first.", completion.metrics)
    ] = "",
    data: Annotated[str, option("-d/--data", "DATA", "Only on this data set.", completion.data_sets)] = "",
    split: Annotated[str, option("--split", "SPLIT", "Only on this split.", completion.splits)] = "",
    solver: Annotated[str, option("-s/--solver", "SOLVER", "Only of this solver.", completion.solvers)] = "",
    anyway: Annotated[bool, typer.Option("--anyway", help="Write a model too that is not the stored one.")] = False,
    out: Stored = RESULTS,
) -> None:
    """Train the model of a stored cell again, check that it has the same bytes, and save it with the data's own ids.

    `rankbench.load` and `rankbench recommend` read it. With --best, it is the first repetition of the solver with the
    best mean.

    Example: rankbench model park2015-table1 --best -d low-rank --to best.npz
    """
    from rankbench.execution.retraining import remade
    from rankbench.fitted import save
    from rankbench.records.cells import file_name

    asked = {"data": data, "split": split, "solver": solver}
    if not best and (metric or any(asked.values())):
        raise UserError("--metric, -d, --split and -s choose among the cells of an experiment: give --best with them")
    result = _best(out, what, metric, asked) if best else _of_key(out, what)
    path = to or Path(file_name(result.cell).replace(".json", ".npz"))
    _refuse_existing(path)
    made = remade(result)
    if made.difference and not anyway:
        problem = f"the model of {result.cell.label} is not the stored one: {made.difference}"
        raise UserError(problem, remedy="nothing was written (--anyway writes it)")
    try:
        save(made.model, path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; choose another file with --to") from None
    check = f"not the stored model: {made.difference}" if made.difference else f"SHA-256 {result.model[:12]}, as stored"
    ids = "with the data's own ids" if made.has_ids else "users and items are numbered from 0, as the data has no ids"
    part = f"trained on the training part, {made.rows:,} rows"
    show(f"{path}: {result.cell.label}; {part}; {check}; {ids}")


def recommend(
    path: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that rankbench model or rankbench.save wrote.")],
    user: Annotated[list[str] | None, option("--user", "ID", "Only for this user. Repeatable.")] = None,
    k: Annotated[int, option("-k", "N", "How many items for each user.")] = 10,
    item: Annotated[list[str] | None, option("--item", "ID", "Only from these items. Repeatable.")] = None,
    seen: Annotated[bool, typer.Option("--seen", help="Also items that the user has in the training part.")] = False,
    ratings: Annotated[
        str, option("--ratings", "FILE", "For the users of this table, from their ratings in it.", completion.data_sets)
    ] = "",
    everyone: Annotated[bool, typer.Option("--all", help="For all users, as is usual where none is named.")] = False,
    why: Annotated[int, option("--why", "N", "Add what speaks for each item: N rows of because,contribution.")] = 0,
    to: Annotated[Path | None, option("--to", "FILE", "A new file, .csv or .parquet, instead of the terminal.")] = None,
    threads: Annotated[int, option("--threads", "N", "Threads that score.")] = 1,
) -> None:
    """Print the best items for some users, or for all, as CSV: user,place,item,score, with the data's own ids.

    With --ratings the users are those of another table, who need not be in the training part: the model's items stay as
    they are, and what a user rated in the table is not recommended.

    Example: rankbench recommend best.npz --user alice -k 5

    Example: rankbench recommend best.npz --all --to everyone.parquet --threads 2

    Example: rankbench recommend best.npz --user alice -k 5 --why 3

    Example: rankbench recommend best.npz --ratings new.csv -k 5
    """
    from rankbench.api.loading import load as load_data
    from rankbench.fitted import load, unserved

    if to and to.suffix not in (".csv", ".parquet"):
        raise UserError(f"{to} is no name of a table's file", remedy="end it in .parquet or .csv")
    if everyone and user:
        raise UserError("--all and --user name different users", remedy="give one of them")
    if why < 0:
        raise UserError(f"--why={why} is out of range: must be at least 1")
    model = load(path)
    if ratings:
        model = model.fold_in(load_data(ratings), threads=threads)
    users = None if user is None else model.users.of_texts(user)
    items = None if item is None else model.items.of_texts(item)
    served: list[Any] = []
    blocks = _noting(model.recommend_in_blocks(users, k, items=items, seen=seen, threads=threads), served)
    if why:
        blocks = (_with_reasons(model, block, why) for block in blocks)
    if to is None:
        _write_csv(blocks, sys.stdout)
    else:
        _refuse_existing(to)
        show(f"{to}: {_write(blocks, to):,} {'rows' if why else 'recommendations'}")
    if said := unserved.told(model, users, items, seen, served):
        mention(f"{path}: {said}")
    if model.seen is not None and not seen and not ratings:  # else the user has told what to leave out
        known = f"{len(model.seen.items):,} pairs of a user and an item"
        mention(f"{path}: trained on {known}, which are left out (--seen recommends them too)")


def _noting(blocks: "Iterator[pandas.DataFrame]", served: list[Any]) -> "Iterator[pandas.DataFrame]":
    """The same recommendations, while the users who get any are noted in the list."""
    for block in blocks:
        served += block["user"].unique().tolist()
        yield block


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise UserError(f"{path} exists already: choose another file with --to, or remove it first")


def _write(blocks: "Iterator[pandas.DataFrame]", path: Path) -> int:
    """Write tables that follow each other to a file of the kind that its name says; returns the number of rows."""
    try:
        with replacing(path) as partial:
            if path.suffix == ".parquet":
                return _write_parquet(blocks, partial)
            with partial.open("w", encoding="utf-8", newline="") as file:
                return _write_csv(blocks, file)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; choose another file with --to") from None


def _with_reasons(model: "Fitted", block: "pandas.DataFrame", k: int) -> "pandas.DataFrame":
    """Recommendations with what speaks most for each, in as many rows as there are reasons."""
    from pandas import concat

    found = [model.why(user, own["item"].tolist(), k) for user, own in block.groupby("user", sort=False)]
    if not found:
        return block.assign(because="", contribution=0.0)
    return block.merge(concat(found, ignore_index=True), on=["user", "item"], how="left")


def _write_csv(blocks: "Iterator[pandas.DataFrame]", file: "TextIO") -> int:
    """Write tables that follow each other as one CSV with a header; returns the number of rows."""
    from rankbench.core.texts import csv_frame

    rows = 0
    for number, block in enumerate(blocks):
        csv_frame(block).to_csv(file, index=False, header=number == 0, lineterminator="\n")
        rows += len(block)
    return rows


def _write_parquet(blocks: "Iterator[pandas.DataFrame]", path: Path) -> int:
    """Write tables that follow each other as one Parquet file; returns the number of rows."""
    from itertools import chain

    from pandas import DataFrame

    try:
        from pyarrow import Schema, Table
        from pyarrow.parquet import ParquetWriter
    except ImportError:
        raise UserError("writing Parquet needs pyarrow", remedy='pip install "rankbench[parquet]"') from None
    filled = (block for block in blocks if len(block))
    first = next(filled, DataFrame(columns=["user", "place", "item", "score"]))
    schema, rows = Schema.from_pandas(first, preserve_index=False), 0
    with ParquetWriter(path, schema) as writer:
        for block in chain([first], filled):
            writer.write_table(Table.from_pandas(block, schema=schema, preserve_index=False))
            rows += len(block)
    return rows


def _of_key(out: Path, digits: str) -> "Result":
    """The result whose key starts with these digits."""
    from rankbench.execution.retraining import FEWEST, by_key

    if not re.fullmatch(r"[0-9a-f]{1,64}", digits):
        raise UserError(f"{digits!r} is no key: give the digits of a cell's key, or an experiment with --best")
    if len(digits) < FEWEST:
        raise UserError(f"the key {digits!r} is too short: give at least {FEWEST} digits")
    return by_key(stored_in(out), digits)


def _best(out: Path, name: str, metric: str, asked: "Mapping[str, str]") -> "Result":
    """The result that is meant by `--best`; `asked` has the data set, the split and the solver, or empty texts."""
    from rankbench.cli.looking import stored_study
    from rankbench.execution.retraining import best_of

    study = stored_study(out, name, None, None)
    measures = {measure.label: measure for measure in study.measures}
    if metric and metric not in measures:
        raise unknown(f"metric of {study.name}", metric, measures)
    found = list(study.groups)
    for kind, text in asked.items():
        known = {group: getattr(group, kind) for group in found}
        found = [group for group, of in known.items() if text in ("", of.written, *of.names)]
        if not found:
            raise unknown(f"{kind} of {study.name}", text, {of.written for of in known.values()})
    remedies = {"data": "choose one with -d", "split": "choose one with --split"}
    return best_of(found, measures[metric or study.measures[0].label], remedies)
