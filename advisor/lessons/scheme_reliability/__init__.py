"""Other replication schemes under the same faults: synchronous, majority quorum, asynchronous.

In: a result of `evaluate`. Out: a `SchemeRow` for Kafka and each scheme, with the same measures.
Open `comparison` first, which solves the CTMC of one replica set with the solver, log gaps and
flush window of Kafka's chain; `quorum_rules` acknowledges and elects, `state_space` explores.
"""
