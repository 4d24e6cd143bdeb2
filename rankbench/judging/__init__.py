"""Numbers of other tools: the conventions by which they evaluate a run, and which of them gives a published number."""
