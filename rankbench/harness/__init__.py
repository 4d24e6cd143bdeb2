"""The harness: it plans an experiment's cells, runs and times each in its own process, and stores the results."""
