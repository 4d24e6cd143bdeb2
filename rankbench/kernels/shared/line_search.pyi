"""The numbers that line searches share: what part of the promised decrease is enough, and what rounding hides."""

SUFFICIENT_DECREASE: float
HIDDEN_CHANGE: float
