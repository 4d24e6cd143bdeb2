"""The codes of the losses in kernels; losses.pxd has their formulas."""

from enum import IntEnum

class Loss(IntEnum):
    SQUARED_HINGE = 0
    HINGE = 1
    LOGISTIC = 2
    SMOOTH_HINGE = 3
