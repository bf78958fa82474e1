"""Single decisions of the controller: registrations, reassignments, the last known leader."""

from __future__ import annotations

import pytest

from advisor.protocol.rules import controller, election, reassignment
from advisor.protocol.rules.controller import Policy
from advisor.protocol.rules.partition_registration import NO_LEADER, Registration
from advisor.protocol.rules.versions import rules_for


def policy(version: str, elr: bool | None = None, unclean: bool = False) -> Policy:
    rules = rules_for(version, "kraft", elr)
    return Policy(min_isr=2, unclean=unclean, rules=rules)


WELL = Registration(replicas=(1, 2, 3), isr=(1, 2, 3), leader=1)


@pytest.mark.parametrize(
    ("elr", "unclean_shutdown", "isr"),
    [(True, True, (1, 3)), (True, False, (1, 2, 3)), (False, True, (1, 2, 3))],
)
def test_only_a_controller_with_elr_minds_an_unclean_shutdown(
    elr: bool, unclean_shutdown: bool, isr: tuple[int, ...]
) -> None:
    """KIP-966: broker 2 may have lost records, so it leaves the ISR; else nothing changes."""
    back = controller.broker_back(
        WELL, 2, frozenset({1, 2, 3}), unclean_shutdown, policy("4.1", elr)
    )
    assert back.isr == isr
    assert back.leader == 1


def test_an_unclean_shutdown_empties_isr_and_elr_of_the_broker_alone() -> None:
    """A broker in neither changes nothing; one of the ELR leaves it."""
    eligible = Registration(replicas=(1, 2, 3), isr=(1,), leader=1, elr=(2,))
    with_elr = policy("4.1", True)
    active = frozenset({1, 2, 3})
    assert controller.broker_registered_unclean(eligible, 3, active, with_elr) is eligible
    assert controller.broker_registered_unclean(eligible, 2, active, with_elr).elr == ()
    assert controller.broker_registered_unclean(WELL, 3, active, with_elr).isr == (1, 2)


@pytest.mark.parametrize(
    ("before", "last_known"),
    [
        (WELL, (1,)),
        (Registration((1, 2, 3), (), NO_LEADER, last_known_elr=(2,)), (2,)),
        (Registration((1, 2, 3), (2,), NO_LEADER), ()),
    ],
)
def test_since_4_1_the_leader_that_is_lost_is_the_last_known(
    before: Registration, last_known: tuple[int, ...]
) -> None:
    """KAFKA-19522: stored when the leader is lost, and kept while there is none."""
    rules = rules_for("4.1", "kraft", True)
    assert election._next_last_known(before, (), NO_LEADER, rules) == last_known
    assert election._next_last_known(before, (3,), 3, rules) == ()
    without = rules_for("4.1", "kraft", False)
    assert election._next_last_known(before, (), NO_LEADER, without) == before.last_known_elr


@pytest.mark.parametrize("mode", ["kraft", "zookeeper"])
def test_a_cancelled_reassignment_goes_back_to_the_replicas_before(mode: str) -> None:
    """The ISR loses the replicas that were added; without another it needs an unclean election."""
    rules = rules_for("3.9", mode)
    moving = Registration(
        replicas=(1, 2, 4, 5), isr=(2, 4), leader=4, adding=(4, 5), removing=(1, 2)
    )
    active = frozenset({1, 2, 4, 5})
    back = reassignment.cancel(moving, active, Policy(1, False, rules))
    assert back is not None
    assert (back.replicas, back.isr, back.leader) == ((1, 2), (2,), 2)
    assert (back.adding, back.removing) == ((), ())
    left = Registration(replicas=(1, 2, 4, 5), isr=(4,), leader=4, adding=(4, 5), removing=(1, 2))
    assert reassignment.cancel(left, active, Policy(1, False, rules)) is None
    forced = reassignment.cancel(left, active, Policy(1, True, rules))
    assert forced is not None
    assert (forced.replicas, forced.isr, forced.leader) == ((1, 2), (1,), 1)


@pytest.mark.parametrize(
    ("kind", "active", "leader"),
    [
        (election.ONLINE, {1, 2, 3}, 2),
        (election.PREFERRED, {1, 2, 3}, 1),
        (election.PREFERRED, {2, 3}, 2),
        (election.ONLINE, {1, 3}, 1),
    ],
)
def test_only_a_preferred_election_moves_a_leader_that_is_well(
    kind: str, active: set[int], leader: int
) -> None:
    """An online election keeps the present leader while it is valid."""
    present = Registration(replicas=(1, 2, 3), isr=(1, 2, 3), leader=2)
    rules = rules_for("4.1")
    assert election.choose(present, (1, 2, 3), (), active, kind, rules) == (leader, False)


@pytest.mark.parametrize("mode", ["kraft", "zookeeper"])
def test_a_reassignment_begins_with_its_target_and_what_leaves_behind_it(mode: str) -> None:
    """Added and removed replicas are recorded until the added ones are in sync."""
    begun = reassignment.begin(
        WELL, (5, 2, 4), frozenset({1, 2, 3, 4, 5}), Policy(1, False, rules_for("3.9", mode))
    )
    assert begun.replicas == (5, 2, 4, 1, 3)
    assert (begun.adding, begun.removing) == ((4, 5), (1, 3))
    assert (begun.isr, begun.leader) == ((1, 2, 3), 1)


@pytest.mark.parametrize(
    ("isr", "elr", "leader"), [((), (3,), 3), ((), (2, 3), 2), ((1,), (3,), NO_LEADER)]
)
def test_an_eligible_replica_leads_only_if_the_isr_is_empty(
    isr: tuple[int, ...], elr: tuple[int, ...], leader: int
) -> None:
    """KIP-966: with broker 1 dead, the ELR counts once nobody is in sync."""
    without = Registration(replicas=(1, 2, 3), isr=isr, leader=NO_LEADER, elr=elr)
    rules = rules_for("4.1", "kraft", True)
    chosen = election.choose(without, isr, elr, {2, 3}, election.ONLINE, rules)
    assert chosen == (leader, False)


ZOOKEEPER = Policy(min_isr=1, unclean=False, rules=rules_for("3.9", "zookeeper", False))


def test_before_a_broker_stops_only_a_replica_in_sync_takes_over() -> None:
    """Under ZooKeeper: a live follower outside the ISR never does; the leader then stays."""
    behind = Registration(replicas=(1, 2, 3), isr=(1, 3), leader=1)
    stopping = controller.broker_stopping(behind, 1, frozenset({2, 3}), ZOOKEEPER)
    assert (stopping.leader, stopping.isr) == (3, (3,))
    alone = Registration(replicas=(1, 2, 3), isr=(1,), leader=1)
    assert controller.broker_stopping(alone, 1, frozenset({2, 3}), ZOOKEEPER) is alone


@pytest.mark.parametrize(("order", "last"), [(None, 3), ((3, 2), 2), ((2, 9, 3), 3)])
def test_a_new_zookeeper_controller_keeps_the_last_dead_member_that_it_comes_to(
    order: tuple[int, ...] | None, last: int
) -> None:
    """Dead members leave the ISR by id, or in the order that is given; the last one stays."""
    dead = Registration(replicas=(1, 2, 3), isr=(2, 3), leader=2)
    started = controller.controller_started(dead, frozenset({1}), ZOOKEEPER, order)
    assert (started.leader, started.isr) == (NO_LEADER, (last,))


@pytest.mark.parametrize(("live", "leader"), [({1, 4}, 1), ({4}, 4), (set(), NO_LEADER)])
def test_a_reassignment_under_zookeeper_ends_with_a_leader_that_is_alive(
    live: set[int], leader: int
) -> None:
    """A leader of the target stays unless it is dead; then the next one in sync leads, if any."""
    moving = Registration((1, 4, 3), isr=(1, 3, 4), leader=1, adding=(4,), removing=(3,))
    ended = reassignment.zookeeper_finish(moving, frozenset(live))
    assert (ended.replicas, ended.isr, ended.leader) == ((1, 4), (1, 4), leader)
