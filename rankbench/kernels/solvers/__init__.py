"""Kernels of one solver each."""
