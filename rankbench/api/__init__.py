"""The functions that people call from Python: they take names, records, tables and splits, and say what is wrong."""
