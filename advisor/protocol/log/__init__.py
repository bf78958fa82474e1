"""Replica logs: records, leader epochs, what is flushed, and where a follower truncates.

In: records, offsets, a leader's and a follower's log. Out: new logs (all values are immutable) and
truncation offsets. Start with ``replica_log.py``; ``leader_epoch_cache.py`` is its epoch cache and
``truncation.py`` the follower protocol of each Kafka generation (high watermark, KIP-101, KIP-279).
"""
