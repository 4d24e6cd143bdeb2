"""Models in files, without pickle: all kinds of models, their writing and their checked reading."""

from pathlib import Path

from rankbench.arrays.npz import Array, Arrays, pack, read_npz, unpack, write_npz
from rankbench.core.contract import Model, Scattered
from rankbench.core.errors import UserError
from rankbench.models.baselines import HashedScores, ItemScores
from rankbench.models.factors import BlendedFactors, Factors, FeatureFactors
from rankbench.models.item_weights import ItemWeights
from rankbench.models.kernel_expansions import KernelExpansion, KernelScores
from rankbench.models.of_features import Stumps, UserWeights

MODELS: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        ItemScores,
        Factors,
        BlendedFactors,
        FeatureFactors,
        UserWeights,
        KernelScores,
        KernelExpansion,
        Stumps,
        HashedScores,
        ItemWeights,
    )
}
FEATURES: dict[str, str] = {  # the models that score any item by its features, and the field that has these
    "FeatureFactors": "features",
    "UserWeights": "features",
    "KernelExpansion": "features",
    "Stumps": "item_features",
}


def save(model: Model, path: str | Path, **beside: Array) -> None:
    """Write a model to an npz file, with the arrays `beside` it: plain arrays, no pickle.

    A model whose users' vectors are in other processes is gathered first.
    """
    model = model.gathered() if isinstance(model, Scattered) else model
    write_npz(Path(path), pack(model) | beside)


def load(path: str | Path) -> Model:
    """Read the model in a file that `save` wrote; all indices in the file are checked before any is used.

    `rankbench.load` also reads the ids beside it.
    """
    return unpacked(path, arrays_in(path))


def arrays_in(path: str | Path) -> Arrays:
    """All arrays in the file of a model."""
    try:
        return read_npz(Path(path))
    except OSError as error:
        raise UserError(f"cannot read the model {path}: {error.strerror}") from None


def unpacked(path: str | Path, arrays: Arrays) -> Model:
    """The model in these arrays of a file, checked."""
    try:
        model = unpack(arrays, MODELS)
    except (KeyError, TypeError):
        raise UserError(f"{path} holds no rankbench model") from None
    except UserError as error:
        raise unsound(path, error) from None
    try:
        model.validate()
    except UserError as error:
        raise unsound(path, error) from None
    loaded: Model = model
    return loaded


def unsound(path: str | Path, error: UserError) -> UserError:
    """The error about the content of a file of a model, with the file as its subject."""
    return UserError(str(error), subject=f"{path} holds an invalid model", remedy="save the model again")
