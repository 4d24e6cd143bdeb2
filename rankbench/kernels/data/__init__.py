"""Kernels behind `rankbench.data`: pairs that ratings imply, and the drawing of splits."""
