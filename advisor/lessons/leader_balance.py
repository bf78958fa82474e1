"""How many partitions each broker leads, before and after brokers fail.

An assignment balances leaders while all brokers are up. It also decides who takes over from a dead
broker: with ``i mod n, (i + j) mod n`` one neighbour takes all of it, with Kafka's shifted
followers several share it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from advisor.protocol.rules import controller
from advisor.protocol.rules.controller import Policy
from advisor.protocol.rules.partition_registration import NO_LEADER, Registration
from advisor.protocol.rules.versions import NEWEST_KNOWN, rules_for

_POLICY = Policy(min_isr=1, unclean=False, rules=rules_for(NEWEST_KNOWN))


def leaders_by_broker(
    assignment: Mapping[int, Sequence[int]], dead: Collection[int] = ()
) -> dict[int, int]:
    """Count the partitions that each broker leads after some brokers died, one after the other.

    >>> leaders_by_broker({0: [1, 2], 1: [2, 3], 2: [3, 1]}, dead=[1])
    {1: 0, 2: 2, 3: 1}
    """
    brokers = sorted({broker for replicas in assignment.values() for broker in replicas})
    counts = dict.fromkeys(brokers, 0)
    for replicas in assignment.values():
        record = Registration(tuple(replicas), tuple(replicas), replicas[0])
        live = set(brokers)
        for broker in dead:
            live.discard(broker)
            record = controller.broker_gone(record, broker, frozenset(live), _POLICY)
        if record.leader != NO_LEADER:
            counts[record.leader] += 1
    return counts
