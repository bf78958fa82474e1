"""Other schemes: against k-of-n, against Kafka where both agree, and in closed forms."""

import math
from collections.abc import Mapping

import pytest

import advisor
import conditions
from advisor.errors import NotComputedError
from advisor.lessons.scheme_reliability.comparison import (
    SchemeRow,
    compare_schemes,
    rows_beside,
)
from advisor.lessons.scheme_reliability.quorum_rules import Quorums, settle
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel, load_model
from advisor.reliability.failures.transition_rates import Sizes
from advisor.reliability.partition.log_levels import EMPTY
from advisor.reliability.workload import Workload

CLUSTER = advisor.Cluster.uniform(brokers=3, racks=3)
CRASHES = FailureModel.from_dict({"broker": {"crash": {"per_year": 50, "minutes": 600}}})
CLOUD = load_model("three_az_cloud")
PATTERN, BROKERS = (0, 1, 2), 6
SIZES = Sizes(BROKERS, racks=3)
DESTROYED = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 50, "hours": 12}}})


def rows(
    model: FailureModel, replicas: int = 3, load: Workload | None = None
) -> Mapping[str, SchemeRow]:
    config = Config(replication_factor=replicas, min_insync_replicas=1, acks="all")
    return {row.name: row for row in compare_schemes(CLUSTER, config, model, load)}


def test_unavailability_is_k_of_n() -> None:
    """Independent broker crashes: 3-of-3, 2-of-3 and 1-of-3 availability are binomial.

    Detection and election take no time in this card, so that nothing else stops writes. The solver
    does not subtract, so all digits agree.
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


def test_a_crash_loses_only_unreplicated_tails() -> None:
    """A crash keeps the log: only the asynchronous scheme loses, a tail per failed leader."""
    found = rows(CRASHES)
    assert found["synchronous"].loss_events_per_year == 0
    assert found["majority"].loss_events_per_year == 0
    assert found["asynchronous"].loss_events_per_year > 0


# An operator elects at once what is left, as a majority does: 0.036 seconds are nearly no time.
AT_ONCE = {"hours": 1e-5}
DECIDED = FailureModel.from_dict(
    {"broker": {"destroyed": {"per_year": 50, "hours": 12}}, "operator": AT_ONCE}
)


@pytest.mark.parametrize(
    ("name", "min_isr", "model", "off"),
    [
        ("synchronous", 3, DESTROYED, 1e-12),
        # The budget of the producers holds 3e4 of the shortest stays, and so do exponents.
        ("majority", 2, DECIDED, 1e-11),
    ],
)
@pytest.mark.parametrize(("brokers", "partitions"), [(3, 1), (6, 12)])
def test_where_only_logs_are_lost_a_scheme_is_an_isr_of_its_quorum(
    name: str, min_isr: int, model: FailureModel, off: float, brokers: int, partitions: int
) -> None:
    """With destroyed disks only, losses and refusals are those of Kafka with that min ISR.

    Two implementations that share only the fault processes; also over many replica sets. Reads are
    excluded: a majority stops them with the writes, and Kafka does not. A majority goes on with
    any two that are up; Kafka waits for the last known leader unless an operator elects.
    """
    config = Config(replication_factor=3, min_insync_replicas=min_isr, acks="all")
    cluster = advisor.Cluster.uniform(brokers=brokers, racks=3)
    result = evaluate(cluster, config, model, Workload(partitions=partitions))
    found = {row.name: row for row in rows_beside(result)}
    assert result.loss_probability_per_year < 1
    for measure in vars(found[name]).keys() - {"name", "read_unavailability"}:
        same = pytest.approx(getattr(result, measure), rel=off)
        assert getattr(found[name], measure) == same


@pytest.mark.parametrize("operator", [None, {"hours": 4}])
def test_waiting_for_the_last_known_leader_costs_writes_that_a_majority_takes(
    operator: dict[str, float] | None,
) -> None:
    """Destroyed disks, min ISR 2: Kafka refuses more writes than a majority, most unattended."""
    card = {"broker": {"destroyed": {"per_year": 50, "hours": 12}}}
    if operator:
        card["operator"] = operator
    config = Config(replication_factor=3, min_insync_replicas=2, acks="all")
    cluster = advisor.Cluster.uniform(brokers=3, racks=3)
    result = evaluate(cluster, config, FailureModel.from_dict(card))
    majority = next(row for row in rows_beside(result) if row.name == "majority")
    waited = result.write_unavailability / majority.write_unavailability - 1.0
    never = evaluate(cluster, config, DESTROYED).write_unavailability
    assert waited > 1e-3
    assert (
        never == result.write_unavailability
        if operator is None
        else (never > result.write_unavailability)
    )


def test_losing_all_logs_is_a_birth_and_death_chain() -> None:
    """Two replicas: both are destroyed at a rate with a closed form.

    Writes need both, so a lost log stays lost until both are back: a cycle 2 -> 1 -> 0 -> 1' -> 2
    in which 1' can fall back. The stationary flow from 1 to 0 is the loss rate.
    """
    rate, repair = 50 / 8760, 1 / 12
    # Stationary weights relative to state 2: states 1, 0 and 1'.
    one = 2 * rate / (rate + repair)
    unwritten = rate * one / repair
    none = (rate * one + rate * unwritten) / (2 * repair)
    loss = one * rate / (1 + one + none + unwritten) * 8760
    # Balance of state 2: outflow 2 * rate equals inflow from 1 and 1'.
    assert repair * (one + unwritten) == pytest.approx(2 * rate, rel=1e-12)
    # A log that is destroyed again before a first record comes is no loss: a few in 10^10.
    assert rows(DESTROYED, replicas=2)["synchronous"].loss_events_per_year == pytest.approx(
        loss, rel=1e-9
    )


def test_a_tail_is_lost_when_its_leader_fails() -> None:
    """Asynchronous: crashes of a leader with another replica up, times the probability of a tail.

    Stale replicas that return first lose records too. A workload without replication delay shows
    those losses alone; the difference is the tails.
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


def test_kafka_drops_two_tails_where_the_asynchronous_scheme_drops_one() -> None:
    """Rare tails and rare faults: acks=1 loses twice as often.

    A tail exists with probability ``some``. A stale leader loses in both schemes, but that needs a
    second broker to fail in the fraction of time ``down``.
    """
    model = FailureModel.from_dict({"broker": {"crash": {"per_year": 1, "minutes": 0.01}}})
    load = Workload(records_per_second=0.01, replication_delay_ms=5)
    some, down = 0.01 * 0.005, 3 * 0.01 / 60 / 8760
    config = Config(replication_factor=3, min_insync_replicas=1, acks=1)
    found = {row.name: row for row in compare_schemes(CLUSTER, config, model, load)}
    kafka, other = found["isr"], found["asynchronous"]
    # Besides tails: certain losses by a second fault, at most a fraction `down` of all faults.
    off = 2 * some + 2 * down / some
    for measure in ("loss_events_per_year", "loss_probability_per_year"):
        assert getattr(kafka, measure) == pytest.approx(2 * getattr(other, measure), rel=off)
    assert kafka.mean_years_to_loss == pytest.approx(other.mean_years_to_loss / 2, rel=off)
    assert off < 0.01


def test_every_partition_on_the_same_brokers_has_a_tail_of_its_own() -> None:
    """Twelve partitions on one replica set: a leader failure has 24 chances to drop a tail.

    Each of 24 leader changes drops a tail or not: 1 - (1 - some)^24 for each crash of the leader.
    Crashes are over at once, so that nothing else is lost.
    """
    model = FailureModel.from_dict({"broker": {"crash": {"per_year": 1, "minutes": 0.01}}})
    config = Config(replication_factor=3, min_insync_replicas=2, acks=1)
    load = Workload(partitions=12, records_per_second=12.0, replication_delay_ms=5)
    result = evaluate(CLUSTER, config, model, load, placement=((1, 2, 3),) * 12)
    rate = -math.expm1(-24 * 0.005)
    down = 3 * 0.01 / 60 / 8760
    assert 1 / result.mean_years_to_loss == pytest.approx(rate, rel=10 * down)
    assert result.loss_probability_per_year == pytest.approx(-math.expm1(-rate), rel=10 * down)
    assert result.bounds[0] < result.loss_probability_per_year < result.bounds[1]


def test_an_asynchronous_leader_may_be_any_replica_and_drops_one_tail() -> None:
    """Twelve partitions on three brokers: each is led by the crashed broker with probability 1/3.

    So 1 - (1 - some / 3)^12 of the crashes lose records.
    """
    model = FailureModel.from_dict({"broker": {"crash": {"per_year": 1, "minutes": 0.01}}})
    load = Workload(partitions=12, records_per_second=12.0 * 20, replication_delay_ms=5)
    some = -math.expm1(-20 * 0.005)
    rate = 3 * (1 - (1 - some / 3) ** 12)
    row = rows(model, load=load)["asynchronous"]
    down = 3 * 0.01 / 60 / 8760
    assert 1 / row.mean_years_to_loss == pytest.approx(rate, rel=10 * down)


def test_only_a_flushed_majority_survives_rack_power_failures() -> None:
    """Racks lose power: a majority loses what its page caches held, a flushed one loses nothing."""
    model = FailureModel.from_dict(
        {"rack": {"power": {"per_year": 2, "minutes": 60}}, "flush": {"seconds": 30}}
    )
    found = rows(model)
    assert found["majority"].loss_events_per_year > 0
    assert found["flushed majority"].loss_events_per_year == 0


def test_an_empty_replica_has_no_vote() -> None:
    """Two of three destroyed: no majority, although a replaced, empty broker runs."""
    majority, waiting = (
        Quorums.of("majority", 3),
        (conditions.WELL, conditions.WELL, conditions.GONE),
    )
    view = settle(majority, waiting, (0, EMPTY, EMPTY))
    assert not view.readable
    assert settle(majority, waiting, (0, 0, EMPTY)).writable


def test_a_stale_majority_loses_newer_records() -> None:
    """The longest log of a majority leads; records that only a failed broker holds are lost."""
    majority, one_down = (
        Quorums.of("majority", 3),
        (conditions.CRASHED, conditions.WELL, conditions.WELL),
    )
    assert settle(majority, one_down, (0, 1, 1)).lost
    assert not settle(majority, one_down, (0, 0, 1)).lost
    synchronous = Quorums.of("synchronous", 3)
    assert not settle(synchronous, one_down, (0, 1, 1)).readable


def test_shared_racks_count_as_one() -> None:
    """Six brokers in two racks, three replicas: a rack with two of them stops a majority."""
    model = FailureModel.from_dict({"rack": {"network": {"per_year": 10, "minutes": 60}}})
    cluster = advisor.Cluster.uniform(
        brokers=6, racks=2, controllers={101: "x", 102: "y", 103: "z"}
    )
    config = Config(replication_factor=3, min_insync_replicas=1, acks="all")
    found = {row.name: row for row in compare_schemes(cluster, config, model)}
    down = (10 / 8760) / (10 / 8760 + 1)
    # The rack with two of the three replicas decides.
    assert found["majority"].write_unavailability == pytest.approx(down, rel=1e-12)
    assert found["synchronous"].write_unavailability == pytest.approx(
        1 - (1 - down) ** 2, rel=1e-12
    )


def test_too_many_replicas_are_refused() -> None:
    """Four replicas: the error says how many are possible."""
    cluster = advisor.Cluster.uniform(brokers=4)
    with pytest.raises(NotComputedError, match="up to 3 replicas"):
        compare_schemes(cluster, Config(replication_factor=4, min_insync_replicas=2), CRASHES)


def test_where_nothing_fails_no_scheme_loses_or_stops() -> None:
    """A card whose only rate is 0: each scheme has a row, all zeros, and no loss ever."""
    nothing = FailureModel.from_dict({"broker": {"crash": {"per_year": 0.0, "minutes": 10.0}}})
    found = compare_schemes(advisor.Cluster.uniform(3), Config(replication_factor=3), nothing)
    for row in found:
        numbers = vars(row) | {"name": 0.0}
        assert numbers.pop("mean_years_to_loss") == math.inf
        assert set(numbers.values()) == {0.0}


@pytest.mark.parametrize("per_second", [1e-8, 1e-5, 1e-2])
def test_no_scheme_loses_more_often_than_it_loses_records(per_second: float) -> None:
    """With few records a loss event counts only if it loses one, under every scheme."""
    load = Workload(partitions=12, records_per_second=per_second)
    config = Config(replication_factor=3, min_insync_replicas=2)
    cluster = advisor.Cluster.uniform(brokers=6, racks=3)
    found = compare_schemes(cluster, config, CLOUD, load)
    for row in found:
        most = row.acked_records_lost_per_year * (1.0 + 1e-12)
        assert 0.0 < row.loss_events_per_year <= most
        assert 0.0 < row.loss_probability_per_year <= most


def test_kafkas_row_holds_the_figures_of_its_own_table() -> None:
    """Every measure of the first row equals the result's exactly."""
    config = Config(replication_factor=3, min_insync_replicas=2, acks="all")
    cluster = advisor.Cluster.uniform(brokers=6, racks=3)
    result = evaluate(cluster, config, CLOUD, Workload(partitions=12))
    row = rows_beside(result)[0]
    assert row == compare_schemes(cluster, config, CLOUD, Workload(partitions=12))[0]
    for measure in vars(row).keys() - {"name"}:
        assert getattr(row, measure) == getattr(result, measure)
