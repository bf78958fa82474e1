"""Rare losses: sampling cycles instead of years, with failures made likelier than they are.

A cycle begins with a failure that strikes a healthy cluster and ends when all is healthy again; it
carries a weight, so that the means are those of the cluster as it is. Open first: ``kernel.py``;
``pilot.py`` finds the bias; ``memory.py`` has the arrays.
"""
