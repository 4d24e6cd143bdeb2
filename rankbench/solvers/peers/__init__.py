"""Solvers of other packages, each a thin wrapper: their code trains, under the same clock, limits and metrics."""
