"""From an experiment to its plan: the cells that can run here, their splits, searches and warm starts."""
