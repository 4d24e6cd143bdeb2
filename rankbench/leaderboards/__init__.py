"""Leaderboards: a score, an interval and a rank for each item, from comparisons or rankings by judges.

`votes` holds what judges said, `reading` reads it from files and tables; `pairs` and `likelihoods` have the models'
formulas, `fitting` finds the scores, `uncertainty` their intervals, `ranks` what follows for ranks; `classical` has
scores that are no maximum of a likelihood, such as Elo's; `leaderboard` puts it together for a reader.
"""
