"""Running cells on the workers of a Dask cluster."""
