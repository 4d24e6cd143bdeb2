"""Running the cells of a plan in isolated processes, on this machine or on a cluster."""
