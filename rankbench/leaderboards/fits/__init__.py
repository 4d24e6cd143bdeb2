"""Scores: likelihoods of comparisons and of rankings with their minima, and scores from the table of wins."""
