"""A user's own data: what is in it, an experiment that suits it, the file of that experiment, and an audit."""

REPETITIONS = 5  # so many splits, searches and starts tell solvers apart, and not only models
