"""The audit: every topic of a described cluster, with its own settings and replicas.

In: a cluster with topics, a failure model, a load, goals. Out: an `Audit`, worst topic first, with
findings and the copysets of the placement. Open `audit.py` first.
"""
