"""Rare losses where times are not exponential: years whose paths split where they get worse.

Where more replicas of a set are out than before, a path splits into retrials with a forced failure;
each carries a weight, so that the means are those of the cluster as it is. Open first:
``kernel.py``; ``pilot.py`` finds how many retrials; ``memory.py`` has the arrays.
"""
