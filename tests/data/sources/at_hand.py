"""Helpers for tests of data sources: writing files where a source looks for them, and finding real data."""

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from rankbench.core.errors import UserError

REAL = os.environ.get("RANKBENCH_DATA")  # asked for before a test names a folder of its own


def needs(*names):
    """Skip a test where these real files are not at hand."""
    absent = [name for name in names if not (REAL and Path(REAL, name).is_file())]
    return pytest.mark.skipif(bool(absent), reason=f"RANKBENCH_DATA names no folder with {', '.join(absent)}")


def put(name, files):
    """Write files, text or bytes, into the folder of a data set; returns the folder."""
    folder = Path(os.environ["RANKBENCH_DATA"], name)
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def zipped(files):
    """An archive as bytes."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return whole.getvalue()


def view_of(source):
    """What a source yields."""
    return source.view(np.random.default_rng(0))


def refusal(source):
    """The one line that says why a source cannot be read."""
    with pytest.raises(UserError) as error:
        view_of(source)
    assert "\n" not in str(error.value)
    return str(error.value)


def triples(view):
    """The rows of a view by published ids."""
    columns = view.user_ids[view.users], view.item_ids[view.items], view.values
    return list(zip(*(column.tolist() for column in columns), strict=True))


def words(view, item):
    """The names of an item's features."""
    row = view.item_features[[int(np.flatnonzero(view.item_ids == item)[0])]]
    row = row.toarray() if hasattr(row, "toarray") else row
    return view.feature_names[np.flatnonzero(row[0])].tolist()


def lines(rows, separator=",", header=""):
    """Rows as text."""
    return header + "".join(separator.join(map(str, row)) + "\n" for row in rows)
