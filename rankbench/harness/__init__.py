"""The harness: from an experiment to cells, to timed and isolated runs, to result files."""
