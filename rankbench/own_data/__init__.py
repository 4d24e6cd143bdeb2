"""A user's own data: what is in it, an experiment that suits it, the file of that experiment, and an audit."""

REPETITIONS = 3  # the fewest that tell solvers apart, and not only models
