"""Files of models that are damaged in every way that we know: one line names the file, and no index is followed."""

import os
import pickle

import numpy as np
import pytest
import scipy.sparse

from rankbench import Factors, FeatureFactors, ItemScores, KernelExpansion, KernelScores, Stumps, UserWeights
from rankbench.core.errors import UserError
from rankbench.models import BlendedFactors, load, save

INTS = np.int32
USERS, ITEMS = np.ones((3, 2)), np.ones((4, 2))
SPARSE = scipy.sparse.csr_array(np.eye(4))
MODELS = {
    "items": ItemScores(np.arange(4.0)),
    "factors": Factors(USERS, ITEMS),
    "blend": BlendedFactors(USERS, ITEMS, USERS, ITEMS),
    "feature factors": FeatureFactors(USERS, np.ones((4, 2)), SPARSE),
    "weights": UserWeights(SPARSE, np.ones((3, 4)), np.zeros(3)),
    "kernel": KernelScores(
        np.eye(4), np.arange(4, dtype=INTS), np.array([0, 1, 2, 2]), np.array([0, 3], INTS), np.ones(2), np.zeros(3)
    ),
    "expansion": KernelExpansion(
        np.eye(4), "gaussian", 1.0, 2, np.array([0, 1, 2, 2]), np.array([0, 3]), np.ones(2), np.zeros(3)
    ),
    "stumps": Stumps(
        np.eye(4), np.zeros(3, INTS), np.zeros((1, 2), INTS), np.zeros((1, 2)), np.ones((1, 2)), np.zeros(1)
    ),
}
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


def put(name, value):
    return lambda arrays: arrays.update({name: np.asarray(value)})


def drop(name):
    return lambda arrays: arrays.pop(name)


ARRAYS = {
    "no kind": ("items", drop("kind")),
    "an unknown kind": ("items", put("kind", "Mine")),
    "a kind that is a number": ("items", put("kind", 3)),
    "a kind of two names": ("items", put("kind", ["ItemScores", "Factors"])),
    "the kind of another": ("items", put("kind", "Factors")),
    "no scores": ("items", drop("scores")),
    "a single score": ("items", put("scores", 1.0)),
    "scores in a table": ("items", put("scores", np.ones((2, 2)))),
    "scores of words": ("items", put("scores", ["a", "b"])),
    "complex scores": ("items", put("scores", np.ones(4, complex))),
    "no users": ("factors", drop("users")),
    "factors of another rank": ("factors", put("items", np.ones((4, 3)))),
    "factors in a row": ("factors", put("users", np.ones(3))),
    "weights of another number of users": ("blend", put("user_weights", np.ones((2, 2)))),
    "weights of another number of models": ("blend", put("item_weights", np.ones((4, 5)))),
    "a basis of other features": ("feature factors", put("basis", np.ones((5, 2)))),
    "a column beyond": ("feature factors", put("features.indices", np.array([0, 1, 2, 9]))),
    "a negative column": ("feature factors", put("features.indices", np.array([0, 1, 2, -1]))),
    "pointers that fall": ("feature factors", put("features.indptr", np.array([0, 3, 2, 3, 4]))),
    "pointers of fractions": ("feature factors", put("features.indptr", np.array([0, 0.5, 2, 3, 4]))),
    "a shape of one number": ("feature factors", put("features.shape", np.array([4]))),
    "a huge shape": ("feature factors", put("features.shape", np.array([2**62, 2**62]))),
    "a negative shape": ("feature factors", put("features.shape", np.array([-4, 4]))),
    "no columns": ("feature factors", drop("features.indices")),
    "weights of other features": ("weights", put("weights", np.ones((3, 7)))),
    "offsets of other users": ("weights", put("offsets", np.zeros(9))),
    "a row of the kernel beyond": ("kernel", put("rows", np.array([0, 1, 2, 9], INTS))),
    "a negative row of the kernel": ("kernel", put("rows", np.array([0, 1, 2, -1], INTS))),
    "a rated item beyond": ("kernel", put("rated", np.array([0, 9], INTS))),
    "a kernel that is no square": ("kernel", put("gram", np.ones((4, 3)))),
    "pointers beyond the entries": ("kernel", put("indptr", np.array([0, 1, 2, 9]))),
    "wide ids": ("kernel", put("rated", np.array([0, 3], np.int64))),
    "an unknown kernel": ("expansion", put("kernel", "x")),
    "a width of 0": ("expansion", put("width", 0.0)),
    "a width that is nan": ("expansion", put("width", np.nan)),
    "a width of words": ("expansion", put("width", "wide")),
    "a degree of 0": ("expansion", put("degree", 0)),
    "an item beyond": ("expansion", put("items", np.array([0, 9]))),
    "coefficients too few": ("expansion", put("coefficients", np.ones(1))),
    "a feature beyond": ("stumps", put("features", np.full((1, 2), 9, INTS))),
    "a row of stumps beyond": ("stumps", put("rows", np.full(3, 9, INTS))),
    "cuts of another shape": ("stumps", put("cuts", np.ones((1, 3)))),
    "no offsets": ("stumps", drop("offsets")),
}


def refused(path):
    """The one line about a file."""
    with pytest.raises(UserError) as caught:
        load(path)
    assert path.name in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 600
    return str(caught.value)


@pytest.mark.parametrize("model", MODELS)
def test_the_models_below_are_right_before_they_are_damaged(tmp_path, model):
    save(MODELS[model], tmp_path / "model.npz")
    assert type(load(tmp_path / "model.npz")) is type(MODELS[model])


@pytest.mark.parametrize("change", BYTES.values(), ids=BYTES)
def test_a_file_of_wrong_bytes_is_named(tmp_path, change):
    path = tmp_path / "model.npz"
    save(MODELS["items"], path)
    path.write_bytes(change if isinstance(change, bytes) else change(path.read_bytes()))
    assert "model.npz holds no" in (found := refused(path)) or "is damaged or not an npz file" in found


@pytest.mark.parametrize(("model", "change"), ARRAYS.values(), ids=ARRAYS)
def test_a_model_with_wrong_arrays_is_named(tmp_path, model, change):
    path = tmp_path / "model.npz"
    save(MODELS[model], path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    change(arrays)
    np.savez(path.open("wb"), **arrays)
    found = refused(path)
    assert "model.npz holds no rankbench model" in found or "model.npz holds an invalid model: " in found


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
