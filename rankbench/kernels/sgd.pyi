"""Pairwise stochastic gradient descent on factors; indptr is int64, better and worse are int32."""

import numpy as np

from rankbench.contract import Floats, Ints

def serial_pass(
    loss: int,
    indptr: Ints,
    better: Ints,
    worse: Ints,
    users: Floats,
    items: Floats,
    user_shrink: Floats,
    item_shrink: Floats,
    step: float,
    decay: float,
    updates: float,
    rng: np.random.Generator,
) -> None: ...
def rounds_pass(
    loss: int,
    round_starts: Ints,
    tasks: Ints,
    task_starts: Ints,
    row_users: Ints,
    better: Ints,
    worse: Ints,
    users: Floats,
    items: Floats,
    user_shrink: Floats,
    item_shrink: Floats,
    step: float,
    decay: float,
    updates: Floats,
    seed: int,
    threads: int,
) -> None: ...
def hogwild_pass(
    loss: int,
    user_order: Ints,
    updates: Floats,
    indptr: Ints,
    better: Ints,
    worse: Ints,
    users: Floats,
    items: Floats,
    user_shrink: Floats,
    item_shrink: Floats,
    step: float,
    decay: float,
    seed: int,
    threads: int,
) -> None: ...
