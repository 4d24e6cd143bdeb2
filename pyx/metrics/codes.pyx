"""The codes of the metrics that kernels compute."""
