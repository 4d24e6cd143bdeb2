"""Kernels behind `rankbench.metrics`: ranking metrics of each user."""
