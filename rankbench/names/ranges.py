"""The ranges of settings that several solvers have, so that the same value is allowed or refused by all of them alike.

Inside these ranges the solvers compute without overflow on data of ordinary size. They are far wider than what is of
use, and always finite: a weight of infinity, or one so small that its inverse overflows, makes every score NaN.
"""

from typing import Annotated, Literal

from rankbench.arrays.npz import LARGEST
from rankbench.names.checking import AddedLater, Limits

Weight = Annotated[float, Limits(low=1e-12, high=1e12)]  # of a penalty or a loss: lam, C
Margin = Annotated[float, Limits(low=0, high=1e12)]  # an error that costs nothing
Width = Annotated[float, Limits(low=1e-12, high=1e12)]  # the distance at which a kernel function falls
StepSize = Annotated[float, Limits(low=1e-12, high=10)]  # of gradient descent
Decay = Annotated[float, Limits(low=0, high=1e6)]  # of a step size, per update
Tolerance = Annotated[float, Limits(low=0, high=1)]  # a share of the objective; with 0 the solver does not end
PositiveTolerance = Annotated[float, Limits(low=1e-16, high=1)]  # for solvers whose steps end at the tolerance

Share = Annotated[float, Limits(above=0, high=1)]  # of the largest penalty that leaves anything of the model

Rank = Annotated[int, Limits(low=1, high=10_000)]  # the length of users' and items' vectors
Count = Annotated[int, Limits(low=1, high=1_000_000)]  # of passes, iterations, draws or places
Degree = Annotated[int, Limits(low=1, high=100)]  # of a polynomial
Least = Annotated[float, Limits(low=-LARGEST, high=LARGEST)] | None  # a rating; those below it are left out
Partitions = Annotated[int, Limits(low=1, high=4096), AddedLater()]  # parts of the users, on one or several machines
Precision = Annotated[Literal["double", "single"], AddedLater()]  # of users' and items' vectors in training
