"""Replication schemes besides Kafka's ISR, paths of writes, and reads from followers.

In: a scheme (synchronous, asynchronous, majority, ISR), replicas and crashes. Out: what is lost,
readable and writable; the replicas needed for f failures; when a record is readable at each
replica. Open ``rules`` first; ``follower_fetching`` and ``write_paths`` stand alone.
"""
