"""Kernels behind `rankbench.methods`: what several solvers share."""
