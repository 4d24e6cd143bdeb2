"""Kernels behind `rankbench.models`: scores of fitted models, and kernel matrices of items."""
