"""Epochs that the KRaft controller raises with a change of a partition."""

from dataclasses import replace
from typing import Any

import pytest

from advisor.protocol.rules.election import Registration, kraft_change
from advisor.protocol.rules.versions import rules_for

HEALTHY = Registration(replicas=(1, 2, 3), isr=(1, 2, 3), leader=1, leader_epoch=7)
MOVING = replace(HEALTHY, replicas=(1, 2, 3, 4), adding=(4,), removing=(3,))
"""A reassignment from broker 3 to broker 4."""


@pytest.mark.parametrize(
    ("before", "change", "raised_before_3_6", "raised_since"),
    [
        (HEALTHY, {"isr": (2, 3), "active": {2, 3}}, 1, 1),
        (HEALTHY, {"isr": (1, 2)}, 1, 0),
        (replace(HEALTHY, isr=(1, 2)), {"isr": (1, 2, 3)}, 0, 0),
        (HEALTHY, {"replicas": MOVING.replicas, "adding": (4,), "removing": (3,)}, 0, 0),
        # The added replica is in sync, so the reassignment completes: broker 3 is removed.
        (replace(MOVING, isr=(1, 2)), {"isr": (1, 2, 4)}, 1, 1),
        (replace(MOVING, isr=(1, 2, 4), adding=(), removing=()), {"replicas": (1, 2, 4)}, 1, 1),
    ],
    ids=["new leader", "ISR shrinks", "ISR grows", "replica added", "completed", "removed"],
)
def test_the_leader_epoch_rises_with_leader_and_removed_replica(
    before: Registration, change: dict[str, Any], raised_before_3_6: int, raised_since: int
) -> None:
    """``PartitionChangeBuilder``; a shrinking ISR raised it until 3.5 (KAFKA-15021)."""
    change = {"active": {1, 2, 3, 4}, "min_isr": 2, **change}
    for version, raised in (
        ("3.5", raised_before_3_6),
        ("3.6", raised_since),
        ("4.2", raised_since),
    ):
        after = kraft_change(before, rules=rules_for(version), **change)
        assert after.leader_epoch - before.leader_epoch == raised, version
        assert after.partition_epoch - before.partition_epoch == 1, version


def test_no_change_raises_no_epoch() -> None:
    """The record stays as it is."""
    same = kraft_change(HEALTHY, active={1, 2, 3}, min_isr=2, rules=rules_for("4.2"))
    assert same is HEALTHY
