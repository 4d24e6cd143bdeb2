"""A test kit for solvers and metrics: each check is a function from a subject to a finding; own tests use it too."""
