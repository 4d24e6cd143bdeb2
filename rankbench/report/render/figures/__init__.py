"""Figures: from results to panels of lines (series), and from these to matplotlib (plots)."""
