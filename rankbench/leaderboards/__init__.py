"""Leaderboards: a score, an interval and a rank for each item, from comparisons or rankings by judges.

`votes` holds what judges said, `sources` reads it; `fits` finds scores, `uncertainty` their intervals, `ranks` what
follows for ranks, `by_judge` how judges agree, `proposing` what to ask next; `leaderboard` puts it together.
"""
