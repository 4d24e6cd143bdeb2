"""Where votes come from: tables in files or in memory, PrefLib's files, and data sets by name."""
