"""Dual coordinate descent for the two halves of AltSVM; indptr is int64, better and worse are int32."""

from typing import Any

import numpy as np
import numpy.typing as npt

from rankbench.contract import Floats, Ints

Records = npt.NDArray[np.void]
Duals = npt.NDArray[np.float32]

def records_of(
    indptr: Ints, better: Ints, worse: Ints, user_order: Ints, groups: Ints, tasks: Ints, n_tasks: int
) -> tuple[Records, Ints]: ...
def items_pass(
    ridge: float,
    upper: float,
    records: Records,
    starts: Ints,
    rounds: Ints,
    users: Floats,
    items: Floats,
    seed: int,
    atomic: bool,
    threads: int,
) -> None: ...
def items_from_duals(
    records: Records, starts: Ints, rounds: Ints, users: Floats, items: Floats, threads: int
) -> Floats: ...
def scale_exponent(linear: float, square: float, size: float, ridge: float, upper: float) -> int: ...
def users_pass(
    ridge: float,
    upper: float,
    indptr: Ints,
    better: Ints,
    worse: Ints,
    duals: Duals,
    users: Floats,
    items: Floats,
    passes: int,
    seed: int,
    threads: int,
) -> None: ...
def drawn_items_pass(
    ridge: float, upper: float, records: Records, users: Floats, items: Floats, rng: np.random.Generator
) -> None: ...
def drawn_users_pass(
    ridge: float,
    upper: float,
    records: Records,
    duals: Duals,
    users: Floats,
    items: Floats,
    rng: np.random.Generator,
) -> None: ...
def sums(duals: Any) -> tuple[float, float]: ...
