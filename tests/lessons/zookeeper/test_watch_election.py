"""Leader election by watches, its three problems, and the controller in comparison."""

from __future__ import annotations

import pytest

from advisor.lessons.zookeeper import locks
from advisor.lessons.zookeeper.requests import Elapse, Expire, Heartbeat
from advisor.lessons.zookeeper.watch_election import (
    Comparison,
    compare,
    controller_scheme,
    controller_scheme_load,
    kafka_controller_watches,
    leaders,
    run_controller,
    split_brain_ms,
    watch_scheme,
    watch_scheme_load,
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


@pytest.mark.parametrize(("partitions", "replication_factor", "brokers"), SMALL)
def test_formulas_agree_with_the_simulated_death_of_a_broker(
    partitions, replication_factor, brokers
):
    """Watches, notifications, creates, reads and writes, for every small cluster."""
    rows = placed(partitions, replication_factor, brokers)
    formula = compare(partitions, replication_factor, brokers)
    assert formula.every_follower_watches == watch_scheme_load(rows, 0)
    assert formula.controller_died == controller_scheme_load(rows, 0)
    if brokers > 2:
        # Broker 0 is the controller; by rotation the failure of another broker is equivalent.
        turned = {p: tuple((b + 1) % brokers for b in r) for p, r in rows.items()}
        assert formula.controller == controller_scheme_load(turned, 1)


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


def test_watches_of_the_plain_scheme_grow_with_partitions_and_kafka_s_do_not():
    """Ten times the partitions: ten times the watches, or the same with a controller."""
    few, many = compare(300, 3, 6), compare(3_000, 3, 6)
    assert many.every_follower_watches.watches == 10 * few.every_follower_watches.watches
    assert many.controller.watches == few.controller.watches
    assert kafka_controller_watches(6, 20) == 6 + 5 + 2 + 6 + 20


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
