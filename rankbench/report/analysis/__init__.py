"""What follows from stored results: evidence, verdicts, comparisons, ranks and costs; numbers in, records out."""
