"""Reads the state of a running cluster from outside and decides when it is quiescent.

In: a `RealCluster`. Out: a `Snapshot`, converted to a protocol `State`. `controller_state` reads
partition registrations, `snapshot` combines them with logs and high watermarks, `quiescence` waits
until nothing is pending.
"""
