"""One event at a time: diverging logs, retries, and what a leader that is new or back decides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.protocol.log.replica_log import EMPTY, Run, append
from advisor.protocol.simulation import events, scheduler
from advisor.protocol.simulation.state import (
    LEADER,
    with_partition,
)
from simulation_lab import Lab, follower_state, kinds


def with_another_history(lab: Lab, broker: int, count: int) -> None:
    """Give a follower records of an epoch that its leader has never heard of."""
    log = append(EMPTY, [Run(7, 900, count)], with_epochs=True)
    lab.put(lab.at(broker)._replace(log=log, hw=0))


@pytest.mark.parametrize("count", [3, 4])
def test_a_last_epoch_above_the_leaders_is_out_of_range(count):
    """``Partition.readRecords``: it copies nothing, its offset is not recorded, it leaves the ISR.

    ``fetchOffsetAndTruncate``: its log is not longer than the leader's, so it keeps it and fetches
    again.
    """
    lab = Lab("3.9")
    lab.produce(4, acks=1)
    with_another_history(lab, 2, count)
    before, known = lab.at(2), follower_state(lab, 2)
    assert lab.fetch(2) == ()
    assert (lab.at(2), follower_state(lab, 2)) == (before, known)
    lab.settle()
    assert lab.at(2) == before._replace(hw=lab.at(2).hw)
    lab.do(events.Advance(2 * lab.settings.lag_ms))
    lab.settle()
    assert lab.partition.registration.isr == (1, 3)


def test_out_of_range_with_a_longer_log_truncates_to_the_leaders_end():
    """``fetchOffsetAndTruncate``: of five records in an unknown epoch two stay, as the leader's."""
    lab = Lab("3.9")
    lab.produce(2, acks=1)
    with_another_history(lab, 2, count=5)
    (effect,) = lab.fetch(2)
    assert (effect.before, effect.after) == (5, 2)
    assert lab.at(2).log.leo == 2


@pytest.mark.parametrize(("version", "truncating"), [("3.9", False), ("2.6", True)])
def test_a_lost_response_truncates_nothing(version, truncating):
    """A diverging follower, or one that asks for an epoch's end, learns nothing from it."""
    lab = Lab(version, mode="zookeeper")
    lab.produce(2, acks=1)
    with_another_history(lab, 2, count=5)
    lab.put(lab.at(2)._replace(truncating=truncating))
    before = lab.partition
    assert lab.do(events.Fetch(0, 2, answered=False)) == ()
    assert lab.partition == before
    lab.fetch(2)
    assert lab.at(2).log.leo == (0 if truncating else 2)


def test_before_truncation_on_fetch_an_unknown_epoch_goes_unnoticed():
    """2.6 checks epochs before the first fetch only; a fetch carries no last fetched epoch."""
    lab = Lab("2.6", mode="zookeeper")
    lab.produce(4, acks=1)
    with_another_history(lab, 2, count=3)
    lab.fetch(2)
    assert lab.at(2).log.leo == 4


@pytest.mark.parametrize(("version", "truncates"), [("2.0.0", False), ("2.1", True)])
def test_a_new_epoch_of_the_same_leader_truncates_since_2_0_1(version, truncates):
    """L04, KAFKA-7164: the leader restarted with a shorter log, and its follower must notice."""
    lab = Lab(version, mode="zookeeper")
    lab.produce(4, acks=1)
    lab.fetch(2), lab.fetch(2)
    leader = lab.at(1)
    short = leader.log._replace(
        runs=(leader.log.runs[0]._replace(length=2),), leo=2, flushed=0, checkpoint=0
    )
    lab.put(leader._replace(log=short, hw=0))
    record = lab.partition.registration
    lab.state = with_partition(
        lab.state, 0, lab.partition._replace(registration=replace(record, leader_epoch=1))
    )
    lab.do(events.ApplyMetadata(0, 1), events.ApplyMetadata(0, 2))
    assert lab.at(2).truncating is truncates


@pytest.mark.parametrize(
    ("version", "mode", "waits"),
    [
        ("0.10.1", "zookeeper", False),
        ("0.10.2", "zookeeper", True),
        ("3.2", "kraft", True),
        ("3.9", "kraft", False),
    ],
)
def test_the_high_watermark_waits_for_recently_caught_up_followers(version, mode, waits):
    """KAFKA-4485 (0.10.2): a follower outside the ISR for less than the lag time delays it.

    Since 3.3 it does not if fenced (KIP-841).
    """
    lab = Lab(version, mode=mode, min_isr=1)
    lab.produce()
    lab.fetch(2), lab.fetch(2)
    lab.do(events.Kill(3), events.Advance(lab.settings.session_timeout_ms), events.Expire(3))
    leader = lab.at(1)
    epoch = lab.partition.registration.leader_epoch
    lab.put(leader._replace(isr=(1, 2), leader_epoch=epoch))
    just_now = tuple(f._replace(caught_up_ms=lab.state.now_ms) for f in leader.followers)
    lab.put(lab.at(1)._replace(followers=just_now))
    lab.do(events.Recheck(0, 1))
    assert (lab.at(1).hw == 0) is waits
    lab.do(events.Advance(lab.settings.lag_ms), events.Recheck(0, 1))
    assert (lab.at(1).hw == 0) is waits
    lab.do(events.Advance(1), events.Recheck(0, 1))
    assert lab.at(1).hw == 1


def test_acks_all_waits_for_a_dead_follower_until_its_session_expires():
    """The controller removes it after 6 s under ZooKeeper before 2.5."""
    lab = Lab("2.4", mode="zookeeper", min_isr=1)
    lab.do(events.Kill(3))
    lab.produce()
    lab.state, effects = scheduler.run_for(lab.state, lab.settings, 5_999)
    assert kinds(effects) == []
    lab.state, effects = scheduler.run_for(lab.state, lab.settings, 1)
    assert kinds(effects) == ["Acked"]


def test_a_restart_begins_with_the_checkpointed_high_watermark():
    """A killed broker restarts with the high watermark of its last checkpoint."""
    lab = Lab("3.9")
    lab.produce(3)
    lab.settle()
    lab.do(events.Advance(5_000))
    lab.produce(2)
    lab.settle()
    lab.do(events.Kill(1))
    assert (lab.at(1).hw, lab.at(1).log.leo) == (3, 5)


def test_an_idempotent_retry_is_not_appended_twice():
    """The leader recognises the batch."""
    lab = Lab("3.9")
    twice = events.Produce("t", 0, 1, 0, 3, "all", True)
    lab.do(twice, twice)
    assert lab.at(1).log.leo == 3
    lab.do(twice._replace(idempotent=False))
    assert lab.at(1).log.leo == 6


def test_a_retry_of_committed_records_is_acknowledged_at_once():
    """No high watermark moves for it, so nothing else would answer it."""
    lab = Lab("3.9")
    batch = events.Produce("t", 0, 1, 0, 3, "all", True)
    lab.do(batch)
    lab.settle()
    assert kinds(lab.do(batch)) == ["Acked"]
    assert lab.at(1).waiting == ()


@pytest.mark.parametrize(
    ("version", "unclean", "effect"),
    [
        ("0.10.2", False, "Halted"),
        ("0.10.2", True, "Truncated"),
        ("0.8.1", False, "Truncated"),
        ("0.11", False, "Truncated"),
    ],
)
def test_a_follower_ahead_of_its_leader_halts_or_truncates(version, unclean, effect):
    """Before 0.11 a broker halts where unclean elections can be disabled and are (0.8.2)."""
    lab = Lab(version, mode="zookeeper", min_isr=1)
    lab.state = with_partition(lab.state, 0, lab.partition._replace(unclean=unclean))
    lab.produce(2, acks=1)
    log = append(EMPTY, [Run(0, 0, 5)], with_epochs=lab.settings.with_epochs)
    lab.put(lab.at(2)._replace(log=log, hw=0, truncating=False))
    assert kinds(lab.fetch(2)) == [effect]


def test_the_sweep_for_unclean_elections_is_due_only_where_it_elects():
    """KRaft's periodic sweep: with a leaderless partition that has unclean elections enabled."""
    lab = Lab("3.9")
    assert scheduler.next_sweep_ms(lab.state, lab.settings) is None
    leaderless = replace(lab.partition.registration, leader=-1)
    lab.state = with_partition(lab.state, 0, lab.partition._replace(registration=leaderless))
    assert scheduler.next_sweep_ms(lab.state, lab.settings) is None
    lab.state = with_partition(lab.state, 0, lab.partition._replace(unclean=True))
    assert scheduler.next_sweep_ms(lab.state, lab.settings) > lab.state.now_ms
    old = Lab("3.9", mode="zookeeper")
    assert scheduler.next_sweep_ms(lab.state, old.settings) is None


def test_unknown_partitions_and_brokers_are_key_errors():
    """Readable messages are the scenario language's task, not the simulation's."""
    lab = Lab("3.9")
    with pytest.raises(KeyError):
        lab.do(events.Kill(9))
    with pytest.raises(KeyError):
        lab.do(events.Produce("u", 0, 1, 0, 1, "all"))


def test_states_are_hashable_and_steps_do_not_change_their_argument():
    """The exhaustive search relies on it."""
    lab = Lab("3.9")
    before, copy = lab.state, hash(lab.state)
    lab.produce(5)
    lab.settle()
    assert hash(before) == copy
    assert lab.state != before
    assert len({before, lab.state, before}) == 2


def test_leaders_apply_metadata_before_followers():
    """The order of a run is fixed: controller, leaders, followers, ISR, fetches, timers."""
    lab = Lab("3.9")
    lab.do(events.Kill(1), events.Advance(9_000), events.Expire(1))
    assert list(scheduler.enabled(lab.state, lab.settings))[:2] == [
        events.ApplyMetadata(0, 2),
        events.ApplyMetadata(0, 3),
    ]
    assert lab.at(2).role != LEADER
