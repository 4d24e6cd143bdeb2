"""The share of the decrease promised by the slope that a step of a line search must achieve."""

SUFFICIENT_DECREASE: float = SUFFICIENT
