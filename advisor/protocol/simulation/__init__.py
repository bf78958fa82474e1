"""A simulated Kafka cluster: immutable state, events, and the step from one state to the next.

In: a `State`, an event, `Settings` (version, timeouts). Out: the next state and the effects that
clients and operators see. It is the reference for the reduced models: logs, offsets, epochs,
timers. Start with ``step.py`` (one event), then ``scheduler.py`` (which event comes next, in
virtual time) and ``cluster.py`` (`Simulation`: a cluster and its producers); ``faults.py`` has what
breaks and is repaired; ``state.py`` and ``events.py`` are the data, ``invariants.py`` the safety
checks.
"""
