"""The codes of the losses that kernels know; their formulas stand in losses.pxd."""

from enum import IntEnum

class Loss(IntEnum):
    SQUARED_HINGE = 0
    HINGE = 1
    LOGISTIC = 2
    SMOOTH_HINGE = 3
