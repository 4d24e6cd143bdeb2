"""The width of a lane: rows of factors are padded with zeros to a multiple of it; loops stand in lanes.pxd."""

LANES: int
