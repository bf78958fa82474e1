"""Chains are shared by Kafka versions whose rules for a quiescent partition are the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations, permutations, product

import pytest

from advisor.protocol.rules.controller import Policy
from advisor.protocol.rules.partition_registration import NO_LEADER, Registration
from advisor.protocol.rules.versions import rules_for
from advisor.reliability.partition.controller_policy import ControllerDecisions, decisive_rules

SLOTS = (0, 1, 2)
KINDS = [
    *[(version, "zookeeper", False) for version in ("0.8.0", "0.11", "2.1", "2.8", "3.6", "3.9")],
    *[(version, "kraft", False) for version in ("2.8", "3.0", "3.6", "3.7", "3.9", "4.0", "4.4")],
    *[(version, "kraft", True) for version in ("4.0", "4.1", "4.2", "4.4")],
]


def subsets(slots):
    return list(chain.from_iterable(combinations(slots, n) for n in range(len(slots) + 1)))


def registrations(rules):
    """Every registration of three replicas that a controller with these rules may hold."""
    orders = subsets(SLOTS)
    if rules.elect_in_isr_order:
        orders = [order for isr in orders for order in permutations(isr)]
    for isr in orders:
        others = [slot for slot in SLOTS if slot not in isr]
        for leader in (*isr, NO_LEADER):
            kept = subsets(others) if rules.eligible_leader_replicas else [()]
            for elr in kept:
                lasts = [(), *((slot,) for slot in SLOTS)] if not isr and not elr else [()]
                for last in lasts if rules.eligible_leader_replicas else [()]:
                    yield Registration(SLOTS, isr, leader, elr, last)


def decisions(rules, min_isr, unclean):
    """What the controller decides of every registration, as the chain keeps it."""
    decided = ControllerDecisions(Policy(min_isr, unclean, rules))
    for now, active in product(registrations(rules), map(frozenset, subsets(SLOTS))):
        for slot in SLOTS:
            if slot in active:
                for lost_records in (False, True):
                    yield decided.quiet(decided.broker_back(now, slot, active, lost_records))
            else:
                yield decided.quiet(decided.broker_gone(now, slot, active))
                yield decided.quiet(decided.broker_stopping(now, slot, active))
        if now.leader in active:
            yield decided.quiet(decided.isr_proposed(now, tuple(sorted(active)), active))


@pytest.mark.parametrize(("version", "mode", "elr"), KINDS)
def test_flags_that_are_left_out_change_no_decision(version: str, mode: str, elr: bool) -> None:
    """Every registration, event and live broker, with the version's rules and without the rest."""
    rules = rules_for(version, mode, elr)
    for min_isr, unclean in product((1, 2), (False, True)):
        with_all = list(decisions(rules, min_isr, unclean))
        assert with_all == list(decisions(decisive_rules(rules), min_isr, unclean))


@pytest.mark.parametrize(
    ("flag", "version", "mode"),
    [
        ("eligible_leader_replicas", "4.2", "kraft"),
        ("last_known_leader_must_be_active", "4.2", "kraft"),
        ("mode", "3.9", "zookeeper"),
        ("elect_in_isr_order", "0.8.0", "zookeeper"),
    ],
)
def test_every_flag_that_is_kept_decides_something(flag: str, version: str, mode: str) -> None:
    """Changing it alone changes some decision."""
    rules = rules_for(version, mode)
    other = "kraft" if flag == "mode" else not getattr(rules, flag)
    changed = replace(rules, **{flag: other})
    decided = [
        [decisions_of(each, now) for now in registrations(rules)] for each in (rules, changed)
    ]
    assert decided[0] != decided[1]


def decisions_of(rules, now):
    """Decisions about one registration when a broker fails or returns."""
    decided = ControllerDecisions(Policy(2, False, rules))
    found = []
    for active in map(frozenset, subsets(SLOTS)):
        for slot in SLOTS:
            known = decided.broker_back(now, slot, active, True) if slot in active else None
            gone = known or decided.broker_gone(now, slot, active - {slot})
            found.append(decided.quiet(gone))
    return found


def test_versions_with_the_same_rules_share_a_chain() -> None:
    """ZooKeeper from 2.1 to 3.9; KRaft without ELR; ELR before and since KAFKA-19522."""
    kept = [decisive_rules(rules_for(*kind)) for kind in KINDS[1:]]
    assert len(set(kept)) == 4
