"""The report: tables, figures and an HTML page made from stored results, without any training."""
