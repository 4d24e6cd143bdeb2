"""What several solvers share, and what stands behind one: mathematics that knows no solver."""
