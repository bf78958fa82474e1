"""Replication schemes besides Kafka's ISR, the KRaft quorum, and reads from followers.

In: a scheme (synchronous, asynchronous, majority, ISR), replicas and crashes, or voters and zones.
Out: what is lost, readable and writable; the replicas needed for f failures; what a controller
quorum tolerates; when a record is readable at each replica. ``comparison`` sets the schemes side by
side, ``kraft_quorum`` and ``follower_fetching`` stand alone. Open ``rules`` first.
"""
