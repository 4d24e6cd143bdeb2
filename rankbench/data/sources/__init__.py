"""Real data sets, one file each: where the data comes from, its licence, how it is read."""
