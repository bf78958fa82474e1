"""What notebooks teach about replication and no answer of the advisor needs.

In: settings, scripts of faults, or a result of `evaluate`. Out: what ZooKeeper's locks and watches
cost (`zookeeper`), what the public TLA+ specification allows (`specification`), what producers and
consumers lose or repeat (`clients`), other replication schemes as rules (`schemes`) and under the
same failures (`scheme_reliability`), how leaders spread after a death (`leader_balance`). Nothing
in the package imports this room.
"""
