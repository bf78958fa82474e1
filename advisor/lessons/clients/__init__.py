"""Kafka's clients as pure state machines: the Java producer, the 0.8 producer, the consumer.

In: a `Config` (or `ConsumerRules`) and a script of broker responses or crashes. Out: which records
are acknowledged, failed, lost, duplicated or reordered. ``producer`` is the Java producer,
``scripted_broker`` the leader it talks to, ``delivery`` runs both and reports the outcome of every
record. Open ``delivery`` first for producers, ``consumer`` for consumers.
"""
