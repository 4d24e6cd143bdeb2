"""What kernels of every room use: scratch memory, rows of arrays, losses."""
