"""The compiled kernels: arrays in, arrays out; sources in pyx/."""
