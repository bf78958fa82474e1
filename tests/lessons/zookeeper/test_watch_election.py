"""Leader election by watches, its three problems, and the controller in comparison."""

from __future__ import annotations

import pytest

from advisor.lessons.zookeeper import locks
from advisor.lessons.zookeeper.service import Elapse, Expire, Heartbeat
from advisor.lessons.zookeeper.watch_election import (
    Comparison,
    Load,
    compare,
    controller_scheme,
    leaders,
    run_controller,
    split_brain_ms,
    watch_scheme,
)
from advisor.protocol.rules.assignment import assign
from advisor.protocol.rules.versions import default


def placed(partitions, replication_factor, brokers):
    rows = assign(dict.fromkeys(range(brokers)), partitions, replication_factor, "modulo")
    return {partition: tuple(replicas) for partition, replicas in rows.items()}


SMALL = [
    (partitions, replication_factor, brokers)
    for brokers in (2, 3, 4)
    for replication_factor in range(1, brokers + 1)
    for partitions in (1, 2, 3, 4, 5, 7)
    if partitions + replication_factor > brokers
]


def closed_form(partitions, replication_factor, brokers):
    """Loads by hand: broker 0 leads some partitions and follows in others.

    Without a controller, each follower of a partition that it led is notified, tries to create the
    node and, except for one, sets the watch again. A controller reads the list of brokers and
    writes each partition once; a new one reads every partition, and writes those led twice.
    """
    followers = replication_factor - 1
    led = len(range(0, partitions, brokers))
    followed = sum(len(range(brokers - j, partitions, brokers)) for j in range(1, followers + 1))
    woken, lost = led * followers, led if followers else 0
    plain = Load(
        partitions * followers, woken, followers if led else 0, woken, woken - lost, woken - lost, 0
    )
    writes, others = led + followed, brokers - 1
    alive = Load(brokers, 1, 1, 0, 0, 1, writes)
    died = Load(brokers, others, others, others, others - 1, others + partitions, writes + lost)
    return Comparison(plain, alive, died)


@pytest.mark.parametrize(("partitions", "replication_factor", "brokers"), SMALL)
def test_loads_are_those_counted_by_hand(partitions, replication_factor, brokers):
    """Watches, notifications, creates, reads and writes, for every small cluster."""
    load = compare(partitions, replication_factor, brokers)
    expected = closed_form(partitions, replication_factor, brokers)
    assert load.every_follower_watches == expected.every_follower_watches
    assert load.controller_died == expected.controller_died
    if brokers > 2:
        assert load.controller == expected.controller


def test_three_problems_in_numbers():
    """A thousand partitions, RF 3, ten brokers: one failure under either scheme."""
    load = compare(1_000, 3, 10)
    assert isinstance(load, Comparison)
    plain, controlled = load.every_follower_watches, load.controller
    assert (plain.watches, controlled.watches) == (2_000, 10)
    assert (plain.notifications, controlled.notifications) == (200, 1)
    assert (plain.creates, plain.refused_creates) == (200, 100)
    assert (controlled.creates, controlled.reads, controlled.writes) == (0, 1, 300)
    died = load.controller_died
    assert (died.notifications, died.creates, died.reads, died.writes) == (9, 9, 1_009, 400)


def test_watches_of_the_plain_scheme_grow_with_partitions_and_the_controller_s_do_not():
    """Ten times the partitions: ten times the watches, or the same with a controller."""
    few, many = compare(300, 3, 6), compare(3_000, 3, 6)
    assert many.every_follower_watches.watches == 10 * few.every_follower_watches.watches
    assert many.controller.watches == few.controller.watches


def test_split_brain_lasts_until_the_old_leader_reads_its_messages():
    """The broker is disconnected from ZooKeeper, not from its clients: it keeps leading."""
    world = watch_scheme(placed(3, 3, 3))
    assert leaders(world, 0) == (0,)
    world, _ = locks.step(world, Expire(1))
    while world.inboxes.get(2):
        world, _ = locks.step(world, locks.Deliver(2))
    assert leaders(world, 0) == (0, 1)
    world, _ = locks.settle(world)
    assert leaders(world, 0) == (1,)


@pytest.mark.parametrize("version", ["2.4.0", "3.9"])
@pytest.mark.parametrize("isolated", [3_000, 9_000, 9_500, 21_000, 40_000, 90_000])
def test_split_brain_lasts_as_long_as_the_isolation(version, isolated):
    """Steps of half a second; the old leader reads its messages only after it reconnects."""
    timeout = default("zookeeper_session_timeout_ms", version)
    world = watch_scheme(placed(1, 2, 2), timeout)
    both = 0
    for now in range(0, isolated, 500):
        world, _ = locks.step(world, Elapse(0 if now == 0 else 500))
        while world.inboxes[2]:
            world, _ = locks.step(world, locks.Deliver(2))
        world, _ = locks.step(world, Heartbeat(2))
        both += 500 * (leaders(world, 0) == (0, 1))
    world, _ = locks.settle(world)
    assert both == split_brain_ms(isolated, timeout)
    assert leaders(world, 0) == ((1,) if both else (0,))


def test_split_brain_cannot_pass_the_controller_s_epoch():
    """The new leader's epoch is higher, so followers and controller fence the old leader."""
    cluster = controller_scheme(placed(3, 3, 3))
    world, _ = locks.step(cluster.world, Expire(2))
    world, _ = locks.settle(world)
    after, _ = run_controller(type(cluster)(world, cluster.registrations), 1, took_over=False)
    before, now = cluster.registrations[1], after.registrations[1]
    assert (before.leader, now.leader) == (1, 2)
    assert now.leader_epoch > before.leader_epoch


def test_followers_do_not_all_see_the_same_leader_at_once():
    """Watches fire in order for each client, but clients read them at different times."""
    world = watch_scheme(placed(1, 3, 3))
    world, _ = locks.step(world, Expire(1))
    world, _ = locks.step(world, locks.Deliver(2))
    beliefs = {session: world.contenders[session, "/election/0"].belief for session in (2, 3)}
    assert beliefs == {2: locks.ACQUIRING, 3: locks.WAITING}


def test_every_partition_has_one_leader_after_the_herd():
    """Each partition of the dead broker is led by exactly one of its followers."""
    rows = placed(12, 3, 4)
    world, _ = locks.step(watch_scheme(rows), Expire(1))
    world, _ = locks.settle(world)
    for partition, replicas in rows.items():
        (leader,) = leaders(world, partition)
        assert leader in replicas
        assert leader != 0


def test_both_schemes_leave_a_single_replica_without_a_leader():
    """RF 1: there is no follower to elect."""
    rows = placed(4, 1, 4)
    world, _ = locks.step(watch_scheme(rows), Expire(1))
    world, _ = locks.settle(world)
    assert leaders(world, 0) == ()
    cluster = controller_scheme(rows)
    world, _ = locks.step(cluster.world, Expire(2))
    after, _ = run_controller(type(cluster)(world, cluster.registrations), 1, took_over=False)
    assert after.registrations[1].leader == -1
    assert after.registrations[1].isr == (1,)
