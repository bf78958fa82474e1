"""Effects of one transition, used by the partition's rules and by the CTMC."""

from __future__ import annotations

from enum import IntFlag


class Effect(IntFlag):
    """Bits; code that runs often computes with them as plain integers.

    The order of the bits decides the order of a state's transitions, and so how sums are rounded.
    """

    MEDIA_LOSS = 1
    """The last complete log was destroyed."""
    PAGE_CACHE_LOSS = 2
    """Every broker with the newest records lost power before they were flushed."""
    ELECTION_LOSS = 4
    """The new leader lacks records that another replica holds."""
    LOSS = 8
    """Acknowledged records are lost, by one of the three above."""
    TAIL = 16
    """With acks=1 or 0, the old leader's unreplicated records are dropped: a loss if any exist."""
    TOTAL = 32
    """No record is left in any log."""
    FAILOVER = 64
    """The leader failed: detection and election follow."""
    HANDOVER = 128
    """The leader handed over in a controlled shutdown."""
    UNFLUSHED = 256
    """Gap 0 is new and begins with records that were lost from page caches."""
    TRUNCATED = 512
    """Leads into a state that the truncated chain does not keep."""

    CAUSES = MEDIA_LOSS | PAGE_CACHE_LOSS | ELECTION_LOSS
    LOSSES = CAUSES | LOSS | TAIL
    LEADER_CHANGE = FAILOVER | HANDOVER
