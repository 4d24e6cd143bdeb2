"""The commands for data sets: where the files are, downloading, importing, verifying and exporting them."""

from pathlib import Path
from typing import Annotated

import typer

from rankbench.cli import completion
from rankbench.cli.options import Seed, option
from rankbench.cli.process import FAILED
from rankbench.core.errors import UserError
from rankbench.core.lines import show

# Each command imports what it needs when it runs, so that --help and completion stay fast.
# ruff: noqa: PLC0415

app = typer.Typer(
    help="Find, download, import, verify and export data sets.\n\nExample: rankbench data fetch insteval",
    rich_markup_mode=None,
)


@app.command()
def where(
    name: Annotated[str | None, typer.Argument(metavar="[DATA]", autocompletion=completion.data_sets)] = None,
) -> None:
    """Print the folders in which rankbench looks for data, or the files of one data set.

    Example: rankbench data where ml-1m
    """
    from rankbench.cli.describe import data_folders, locations

    show(locations(name) if name else data_folders())


@app.command()
def fetch(name: Annotated[str, typer.Argument(metavar="DATA", autocompletion=completion.data_sets)]) -> None:
    """Download a data set and check it, or say how to get it by hand.

    Example: rankbench data fetch ml-100k
    """
    from rankbench.cli.describe import counted
    from rankbench.cli.printer import downloads
    from rankbench.data import DATASETS

    with downloads() as tell:
        DATASETS.make(name).origin.fetch(tell)
    show(counted(name))


@app.command("import")
def import_copy(
    name: Annotated[str, typer.Argument(metavar="DATA", autocompletion=completion.data_sets)],
    path: Annotated[Path, typer.Argument(metavar="PATH", help="An archive, a file or a folder of files.")],
) -> None:
    """Import a copy of a data set that you already have.

    Example: rankbench data import netflix nf_prize_dataset.tar.gz
    """
    from rankbench.cli.describe import counted
    from rankbench.data import DATASETS
    from rankbench.data.files import folders
    from rankbench.data.importing import take
    from rankbench.names import parse

    base, told = parse(name).name, []
    folder = take(base, DATASETS.make(name).origin, path, lambda: told.append(counted(name)))
    show("\n".join([*told, f"kept in {folder}"]))
    if (own := folders(base)[0]) != folder and own.is_dir():
        show(f"note: files in {own} are read before those in the cache")


@app.command()
def verify(
    name: Annotated[str | None, typer.Argument(metavar="[DATA]", autocompletion=completion.data_sets)] = None,
) -> None:
    """Compare the SHA-256 of data files with the published ones.

    Example: rankbench data verify
    """
    from rankbench.cli.describe import verified
    from rankbench.data import DATASETS

    if name:
        DATASETS.make(name)
    lines, good = verified([name] if name else DATASETS.whole_names())
    show("\n".join(lines))
    if not good:
        raise typer.Exit(FAILED)


@app.command()
def export(
    data: Annotated[str, typer.Argument(metavar="DATA", autocompletion=completion.data_sets)],
    split: Annotated[str, typer.Argument(metavar="SPLIT", autocompletion=completion.splits)],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="A new folder.")],
    seed: Seed = 0,
    repetition: Annotated[int, option("--repetition", "N", "Counted from 0.")] = 0,
) -> None:
    """Write a split as CSV files, with the published ids and the split's hash.

    Example: rankbench data export ml-100k given-folds --repetition 2 --to fold3
    """
    from rankbench.data import DATASETS
    from rankbench.data.export import export as write_out
    from rankbench.data.splits import SPLITS
    from rankbench.planning.materials import Materials
    from rankbench.records.cells import Place

    if repetition < 0:
        raise UserError(f"--repetition {repetition} is out of range: must be at least 0")
    parts = Materials(seed).split(Place(DATASETS.resolve(data), SPLITS.resolve(split), repetition))
    record = write_out(parts, to, data=data, split=split, seed=seed, repetition=repetition)
    sizes = ", ".join(f"{part} {about['rows']} rows" for part, about in record["parts"].items())
    show(f"{to}: {sizes}; hash {parts.hash}")
