"""Which requests between brokers are blocked while some lag or limp."""

import pytest

from advisor.kafka_lab.nodes.cluster import blocked_requests

BROKERS = (1, 2, 3)
NONE: frozenset[int] = frozenset()


@pytest.mark.parametrize(
    ("lagging", "limping", "blocked"),
    [
        ({}, {}, set()),
        # It cannot fetch; others fetch from it.
        ({2: NONE}, {}, {(2, 1), (2, 3)}),
        # Nor can others fetch from it.
        ({}, {2: NONE}, {(2, 1), (2, 3), (1, 2), (3, 2)}),
        # The ZooKeeper controller 1 still sends it its decisions, and gets its ISR changes.
        ({}, {2: frozenset({1})}, {(2, 3), (3, 2)}),
        # Two faults of one broker: what either blocks.
        ({2: frozenset({1})}, {2: NONE}, {(2, 1), (2, 3), (1, 2), (3, 2)}),
        # Two brokers; what one of them blocks does not end with the other.
        ({1: NONE}, {3: frozenset({1})}, {(1, 2), (1, 3), (3, 2), (2, 3)}),
    ],
)
def test_blocked_requests(lagging, limping, blocked):
    """Requests of lagging and limping brokers, and requests to limping ones."""
    assert blocked_requests(BROKERS, lagging, limping) == blocked
