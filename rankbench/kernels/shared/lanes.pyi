"""The number of lanes: rows of factors are padded with zeros to a multiple of it; lanes.pxd has the loops."""

LANES: int
SINGLE_LANES: int
