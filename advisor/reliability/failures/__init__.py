"""Failure models: which mechanisms strike brokers and racks, how often and for how long.

In: a failure-model card (TOML or a dict). Out: a `FailureModel`, the transitions of the brokers of
one replica set, and transition rates by name. Knows nothing of partitions.

Open first: ``mechanisms.py``, the table of all mechanisms; ``mechanism.py`` says what an entry
holds. ``fault_processes.py`` turns entries into transitions, ``transition_rates.py`` gives the
rates of these by name, ``card.py`` and ``failure_model.py`` read the numbers, ``times/`` the
distributions.
"""
