"""The codes of the losses that kernels know; their formulas stand in losses.pxd."""
