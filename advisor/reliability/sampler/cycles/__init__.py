"""Rare losses: sampling cycles instead of years, with failures made likelier than they are.

A cycle begins with a failure that strikes a healthy cluster and ends when all is healthy again.
In: a `Plan` with a `Bias`, and blocks. Out: rows as those of years. Every cycle carries a weight,
so that the means are those of the cluster as it is.

Open first: ``kernel.py``, the compiled cycles; ``next_failure_kernel.py``, which failure is forced;
``block.py`` runs a block; ``pilot.py`` finds the bias; ``memory.py`` has the arrays.
"""
