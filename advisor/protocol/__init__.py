"""Kafka's replication protocol as pure rules over frozen values; standard library only.

In: a configuration, a Kafka version, a cluster state, an event. Out: the next state and its
effects; no clock, randomness or I/O. Rooms: `rules` (what each version decides), `log`,
`simulation` (a cluster, event by event), `scenario` (the command language), `exploration` (search
over faults), `jvm` (hash orders and random numbers).
Start with ``rules/election.py``, then ``simulation/step.py``.
"""
