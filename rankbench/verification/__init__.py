"""Verification: whether stored results are what their experiment gives, as far as another run can tell."""
