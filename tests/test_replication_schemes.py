"""Other schemes under the same faults: held to k of n, to Kafka where they are alike, to reason."""

import math
from collections.abc import Mapping

import pytest

import advisor
from advisor.errors import NotComputedError
from advisor.protocol.config import Config
from advisor.reliability import faults
from advisor.reliability.evaluate import evaluate
from advisor.reliability.model import FailureModel
from advisor.reliability.reduction import EMPTY
from advisor.reliability.schemes import Quorums, SchemeRow, compare_schemes, settle
from advisor.reliability.workload import Workload

CLUSTER = advisor.Cluster.uniform(brokers=3, racks=3)
CRASHES = FailureModel.from_dict({"broker": {"crash": {"per_year": 50, "minutes": 600}}})
DESTROYED = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 50, "hours": 12}}})


def rows(
    model: FailureModel, replicas: int = 3, load: Workload | None = None
) -> Mapping[str, SchemeRow]:
    config = Config(replication_factor=replicas, min_insync_replicas=1, acks="all")
    return {row.name: row for row in compare_schemes(CLUSTER, config, model, load)}


def test_unavailability_is_k_of_n() -> None:
    """Brokers that crash alone: all of three, two of three and one of three, as the binomial says.

    No detection and no election in this card, so that nothing else stops writes. Both ways round
    in the fifteenth digit, from a solver that only adds.
    """
    rate, repair = 50 / 8760, 1 / 10
    down = rate / (rate + repair)
    two_of_three = 3 * down**2 * (1 - down) + down**3
    found = rows(CRASHES)
    assert found["synchronous"].write_unavailability == pytest.approx(
        1 - (1 - down) ** 3, rel=1e-13
    )
    assert found["synchronous"].read_unavailability == pytest.approx(down**3, rel=1e-12)
    for name in ("majority", "flushed majority"):
        assert found[name].write_unavailability == pytest.approx(two_of_three, rel=1e-13)
        assert found[name].read_unavailability == pytest.approx(two_of_three, rel=1e-13)
    assert found["asynchronous"].write_unavailability == pytest.approx(down**3, rel=1e-12)


def test_a_clean_crash_loses_nothing_where_everyone_waits() -> None:
    """A crash keeps the log: only the scheme that waits for nobody loses, a tail a leader gone."""
    found = rows(CRASHES)
    assert found["synchronous"].loss_events_per_year == 0
    assert found["majority"].loss_events_per_year == 0
    assert found["asynchronous"].loss_events_per_year > 0


@pytest.mark.parametrize(("name", "min_isr"), [("synchronous", 3), ("majority", 2)])
def test_where_only_logs_are_lost_a_scheme_is_an_isr_of_its_quorum(name: str, min_isr: int) -> None:
    """With destroyed disks alone, losses and refusals are those of Kafka with that min ISR.

    Two programs that share only the faults: Kafka's own rules with their chain, and quorums.
    """
    config = Config(replication_factor=3, min_insync_replicas=min_isr, acks="all")
    kafka = evaluate(CLUSTER, config, DESTROYED)
    row = rows(DESTROYED)[name]
    assert row.loss_events_per_year == pytest.approx(kafka.loss_events_per_year, rel=1e-12)
    assert row.write_unavailability == pytest.approx(kafka.write_unavailability, rel=1e-12)


def test_losing_all_logs_is_a_birth_and_death_chain() -> None:
    """Two replicas: both are destroyed at the rate that two lines of algebra give.

    Writes need both, so a log that is lost stays lost until both are back: a cycle 2 -> 1 -> 0 ->
    1' -> 2 in which 1' can fall back. Its stationary flow from 1 to 0 is the loss rate.
    """
    rate, repair = 50 / 8760, 1 / 12
    # Weights relative to "two written": one, none, one unwritten.
    one = 2 * rate / (rate + repair)
    unwritten = rate * one / repair
    none = (rate * one + rate * unwritten) / (2 * repair)
    loss = one * rate / (1 + one + none + unwritten) * 8760
    # Balance of "two written": what leaves, 2 rate, returns from one and from one unwritten.
    assert repair * (one + unwritten) == pytest.approx(2 * rate, rel=1e-12)
    assert rows(DESTROYED, replicas=2)["synchronous"].loss_events_per_year == pytest.approx(
        loss, rel=1e-12
    )


def test_a_tail_is_lost_when_its_leader_goes() -> None:
    """Asynchronous: crashes of a leader with somebody left to lead, times the chance of a tail.

    Stale replicas that come back first lose too, tail or not; a load whose followers are never
    behind shows those alone, and the difference is the tails.
    """
    down = 50 / 8760 / (50 / 8760 + 1 / 10)
    two_or_more = (1 - down) ** 3 + 3 * down * (1 - down) ** 2
    found = [
        rows(CRASHES, load=Workload(records_per_second=10, replication_delay_ms=delay_ms))
        for delay_ms in (5, 0)
    ]
    with_tails, without = (one["asynchronous"].loss_events_per_year for one in found)
    expected = 50 * two_or_more * -math.expm1(-10 * 0.005)
    assert with_tails - without == pytest.approx(expected, rel=1e-11)
    assert without > 0


def test_the_page_cache_is_what_a_majority_must_flush() -> None:
    """Racks that lose power: a majority that does not flush loses, one that does loses nothing."""
    model = FailureModel.from_dict(
        {"rack": {"power": {"per_year": 2, "minutes": 60}}, "flush": {"seconds": 30}}
    )
    found = rows(model)
    assert found["majority"].loss_events_per_year > 0
    assert found["flushed majority"].loss_events_per_year == 0


def test_an_empty_replica_has_no_vote() -> None:
    """Two of three destroyed: no majority leads, though a replaced and empty broker is there."""
    majority, waiting = Quorums.of("majority", 3), (faults.WELL, faults.WELL, faults.GONE)
    view = settle(majority, waiting, (0, EMPTY, EMPTY), copying=True)
    assert not view.readable
    assert settle(majority, waiting, (0, 0, EMPTY), copying=True).writable


def test_a_stale_majority_loses_what_it_does_not_know() -> None:
    """The longest log of a majority that answers leads; what only one that is down has is gone."""
    majority, one_down = Quorums.of("majority", 3), (faults.CRASHED, faults.WELL, faults.WELL)
    assert settle(majority, one_down, (0, 1, 1), copying=True).lost
    assert not settle(majority, one_down, (0, 0, 1), copying=True).lost
    synchronous = Quorums.of("synchronous", 3)
    assert not settle(synchronous, one_down, (0, 1, 1), copying=True).readable


def test_shared_racks_count_as_one() -> None:
    """Six brokers in two racks, three replicas: a rack with two of them stops a majority."""
    model = FailureModel.from_dict({"rack": {"network": {"per_year": 10, "minutes": 60}}})
    cluster = advisor.Cluster.uniform(brokers=6, racks=2)
    config = Config(replication_factor=3, min_insync_replicas=1, acks="all")
    found = {row.name: row for row in compare_schemes(cluster, config, model)}
    down = (10 / 8760) / (10 / 8760 + 1)
    # The rack with two of the three replicas decides, whatever the other does.
    assert found["majority"].write_unavailability == pytest.approx(down, rel=1e-12)
    assert found["synchronous"].write_unavailability == pytest.approx(
        1 - (1 - down) ** 2, rel=1e-12
    )


def test_more_replicas_than_can_be_gone_through_are_refused() -> None:
    """Four replicas are an error that says how many are possible."""
    cluster = advisor.Cluster.uniform(brokers=4)
    with pytest.raises(NotComputedError, match="up to 3 replicas"):
        compare_schemes(cluster, Config(replication_factor=4, min_insync_replicas=2), CRASHES)
