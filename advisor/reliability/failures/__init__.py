"""Failure models: which mechanisms strike brokers and racks, how often and for how long.

Open first ``mechanisms.py``, the table of all mechanisms, and ``mechanism.py``, what an entry
holds. Knows nothing of partitions.
"""
