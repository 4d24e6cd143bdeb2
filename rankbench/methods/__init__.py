"""Numerical methods that solvers are built from: they know of no solver."""
