"""What it takes to tell brokers of new leaders: a queue of nodes, or requests in batches."""

import pytest

from advisor.lessons.zookeeper.watch_election import changed_by_broker, queue_load, rpc_load
from advisor.protocol.rules.assignment import assign


def placed(partitions: int, brokers: int) -> dict[int, list[int]]:
    """Partitions with three replicas, as the textbook assigns them."""
    return assign(dict.fromkeys(range(brokers)), partitions, 3, algorithm="modulo")


@pytest.mark.parametrize("partitions", [10, 100, 1000])
def test_batches_do_not_grow_with_partitions_and_a_queue_does(partitions: int) -> None:
    """Ten brokers: the requests of a queue grow with the partitions, those in batches do not."""
    load = queue_load(placed(partitions, 10), 0)
    # Broker 0 has a replica of 3 in 10 partitions; two live replicas of each are told.
    told = 3 * partitions // 10 * 2
    assert load.writes == 2 * told
    assert load.requests == 3 * told + 4
    # New leaders: brokers 1 and 2. ISRs: 8, 9 and 1. Each batch tells the metadata to 9 brokers.
    assert rpc_load(placed(partitions, 10), 0).requests == (2 + 9) + (3 + 9)


def test_only_brokers_with_a_replica_of_what_changed_are_told() -> None:
    """A broker without a partition of the dead one gets no notice; each partition is named once."""
    notices = changed_by_broker(placed(100, 10), 0)
    assert sorted(notices) == [1, 2, 8, 9]
    assert sum(map(len, notices.values())) == 60
    assert all(len(set(partitions)) == len(partitions) for partitions in notices.values())


def test_a_broker_without_partitions_dies_unnoticed() -> None:
    """Nothing changes, so neither way sends anything."""
    alone = {0: [0, 1]}
    assert rpc_load(alone, 7).requests == 0
    assert queue_load(alone, 7).requests == 0
