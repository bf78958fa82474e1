"""The recommendation: which settings meet the goals, why, and how to get there.

In: a cluster, a failure model, a load, goals. Out: a `Recommendation` with the ranked candidates,
the reasons, an example of a loss, and the migration plan. Open `recommendation.py` first.
"""
