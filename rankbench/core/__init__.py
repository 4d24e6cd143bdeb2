"""The ground floor: the contract of solvers and models, errors, random streams, BLAS, and the operating system."""
