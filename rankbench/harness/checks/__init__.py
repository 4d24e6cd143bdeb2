"""A test kit for solvers: each check is a function from a subject to a finding; the package's own tests use it too."""
