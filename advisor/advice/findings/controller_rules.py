"""Rules about the controllers, KRA313 to KRA317: how many, and in which racks."""

from __future__ import annotations

from advisor.advice.findings.rule import RISK, Rule

_CHANGE_VOTERS = (
    "Under KRaft, kafka-metadata-quorum.sh --bootstrap-server $BS describe --status shows the "
    "voters. With kraft.version 1 (see kafka-features.sh --bootstrap-server $BS describe) its "
    "add-controller and remove-controller change them, one at a time. With 0 do not just edit "
    "controller.quorum.voters: new, empty controllers could outvote the old ones and lose the "
    "metadata. Upgrade kraft.version to 1 first (possible since 4.1)."
)
_NO_ISR_CHANGE = (
    "no leader is elected and no ISR changes. Partitions led from that rack go offline, and "
    "acks=all writes time out on every other partition with an in-sync replica in it"
)

CONTROLLER_RULES = (
    Rule(
        "KRA313",
        RISK,
        "The number of controllers is even",
        "A quorum needs more than half of its controllers. An even number survives no more "
        "failures than one controller fewer would, and has one more that can fail.",
        f"Run three or five controllers. {_CHANGE_VOTERS}",
    ),
    Rule(
        "KRA314",
        RISK,
        "All controllers are in one rack",
        f"When that rack fails, {_NO_ISR_CHANGE} (all, if each rack has one).",
        f"Place the controllers in three racks, one in each. {_CHANGE_VOTERS}",
    ),
    Rule(
        "KRA315",
        RISK,
        "The controllers are in two racks only",
        "One of two racks always holds at least half of the controllers. When it fails, "
        f"{_NO_ISR_CHANGE}, although the other rack is up.",
        "Place a controller in a third rack or site; it needs no broker there. " + _CHANGE_VOTERS,
    ),
    Rule(
        "KRA316",
        RISK,
        "One rack holds too many of the controllers",
        "When that rack fails, the controllers of the others are not a majority: until it is back, "
        f"{_NO_ISR_CHANGE} (all, if each rack has one).",
        "Spread the controllers evenly, so that no rack holds half of them or more. "
        + _CHANGE_VOTERS,
    ),
    Rule(
        "KRA317",
        RISK,
        "There is one controller only",
        "While it is down, no leader is elected and no ISR changes. If its disk is lost, the "
        "cluster cannot be managed: brokers keep copies of the metadata, but restoring them is "
        "manual work.",
        f"Run three controllers, in three racks. {_CHANGE_VOTERS}",
    ),
)
