"""What is stored of a run: records, their JSON, files of results, claims, merging and archives."""
