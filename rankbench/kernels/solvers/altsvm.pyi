"""Dual coordinate descent for the two halves of AltSVM: users one by one, items round by round."""

import numpy as np

from rankbench.contract import Float32s, Floats, Int32s, Int64s, Records

def records_of(
    indptr: Int64s, better: Int32s, worse: Int32s, user_order: Int32s, groups: Int32s, tasks: Int32s, n_tasks: int
) -> None: ...
def items_pass(
    ridge: float,
    upper: float,
    records: Records,
    starts: Int64s,
    rounds: Int64s,
    users: Floats,
    items: Floats,
    seed: int,
    atomic: bool,
    threads: int,
) -> None: ...
def items_from_duals(
    records: Records, starts: Int64s, rounds: Int64s, users: Floats, items: Floats, threads: int
) -> None: ...
def scale_exponent(linear: float, square: float, size: float, ridge: float, upper: float) -> None: ...
def users_pass(
    ridge: float,
    upper: float,
    indptr: Int64s,
    better: Int32s,
    worse: Int32s,
    duals: Float32s,
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
    duals: Float32s,
    users: Floats,
    items: Floats,
    rng: np.random.Generator,
) -> None: ...
def sums(duals: Float32s) -> None: ...
