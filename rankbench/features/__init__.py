"""Item features, dense or sparse, and kernel functions of them."""
