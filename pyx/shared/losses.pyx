"""The codes of the losses in kernels; losses.pxd has their formulas."""
