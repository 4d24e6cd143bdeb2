"""Real data sets, one module each: where the data comes from, its licence, and how it is read."""
