"""Fast solvers for learning to rank from preferences, and a harness that gets the papers' numbers again."""
