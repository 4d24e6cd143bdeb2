"""The report: tables, figures and one page, out of stored results; nothing here trains."""
