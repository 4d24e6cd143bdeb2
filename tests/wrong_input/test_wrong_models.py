"""Files of models of wrong bytes, and what is no file: one line names the file, and nothing is unpickled."""

import os
import pickle

import numpy as np
import pytest

from rankbench import ItemScores
from rankbench.core.errors import UserError
from rankbench.models import load, save

MODEL = ItemScores(np.arange(4.0))
BYTES = {
    "nothing": b"",
    "cut": lambda content: content[: len(content) // 2],
    "cut at the start": lambda content: content[50:],
    "no archive": b"model",
    "NULs": bytes(4096),
    "a text": b"{}",
    "a wrong byte in a header": lambda content: content.replace(b"NUMPY", b"NUMPX"),
    "a wrong shape in a header": lambda content: content.replace(b"(4,)", b"(9,)"),
    "another type in a header": lambda content: content.replace(b"'<f8'", b"'|O8'"),
    "code in a header": lambda content: content.replace(b"'<f8'", b"exit("),
    "another name inside": lambda content: content.replace(b"scores", b"sc\xff\xfees"),
    "a pickle": pickle.dumps({"kind": "ItemScores"}),
}


def refused(path):
    """The one line about a file."""
    with pytest.raises(UserError) as caught:
        load(path)
    assert path.name in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 600
    return str(caught.value)


@pytest.mark.parametrize("change", BYTES.values(), ids=BYTES)
def test_a_file_of_wrong_bytes_is_named(tmp_path, change):
    path = tmp_path / "model.npz"
    save(MODEL, path)
    path.write_bytes(change if isinstance(change, bytes) else change(path.read_bytes()))
    assert "model.npz holds no" in (found := refused(path)) or "is damaged or not an npz file" in found


def test_an_array_of_objects_is_never_unpickled(tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "bomb"),)

    path = tmp_path / "model.npz"
    np.savez(path.open("wb"), kind=np.array("ItemScores"), scores=np.array([Bomb()], object), allow_pickle=True)
    refused(path)
    assert not (tmp_path / "bomb").exists()


@pytest.mark.parametrize("name", ["missing.npz", "folder", "x" * 300, "a\0b"])
def test_what_is_no_file_is_named(tmp_path, name):
    (tmp_path / "folder").mkdir()
    refused(tmp_path / name)
