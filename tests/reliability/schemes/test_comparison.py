"""Other schemes: against k-of-n, against Kafka where both agree, and in closed forms."""

import math
import tomllib
from collections.abc import Mapping

import numpy as np
import pytest
from scipy import sparse

import advisor
import conditions
from advisor.catalog import model_path
from advisor.errors import NotComputedError
from advisor.protocol.rules.config import Config
from advisor.reliability.case import Case, possible_mechanisms
from advisor.reliability.chain.ctmc import whole_structure
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel, load_model
from advisor.reliability.failures.fault_processes import Setting
from advisor.reliability.failures.transition_rates import Sizes, rate_per_hour
from advisor.reliability.measures import replica_set
from advisor.reliability.measures.empty_leader import losses_by_start
from advisor.reliability.partition.reduced_state import EMPTY
from advisor.reliability.results.units import MEASURES
from advisor.reliability.schemes.comparison import (
    SchemeRow,
    chains_that_matter,
    compare_schemes,
    rows_beside,
    scheme_intervals,
    scheme_row,
)
from advisor.reliability.schemes.quorum_rules import Quorums, settle
from advisor.reliability.schemes.state_space import explored
from advisor.reliability.solver.generator import ROUGH, Generator
from advisor.reliability.solver.regenerative import stationary
from advisor.reliability.workload import Workload
from replica_sets import parameters, solution

CLUSTER = advisor.Cluster.uniform(brokers=3, racks=3)
CRASHES = FailureModel.from_dict({"broker": {"crash": {"per_year": 50, "minutes": 600}}})
CLOUD = load_model("three_az_cloud")
PATTERN, BROKERS = (0, 1, 2), 6
SIZES = Sizes(BROKERS, racks=3)
DESTROYED = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 50, "hours": 12}}})


def with_operator(name: str, hours: float) -> FailureModel:
    """Return a card that ships, with an operator who elects after so many hours on average."""
    with model_path(name).open("rb") as file:
        return FailureModel.from_dict({**tomllib.load(file), "operator": {"hours": hours}})


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
    for measure in set(MEASURES) - {"read_unavailability"}:
        same = pytest.approx(getattr(result, measure), rel=off)
        assert getattr(found[name], measure) == same


@pytest.mark.parametrize("operator", [None, {"hours": 4}])
def test_waiting_for_the_last_known_leader_costs_writes_that_a_majority_takes(
    operator: dict[str, float] | None,
) -> None:
    """Destroyed disks, min ISR 2: Kafka writes less than a majority; longest if nobody elects."""
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


def test_kafkas_row_holds_the_figures_of_its_own_table() -> None:
    """Every measure of the first row, and its interval, equals the result's exactly."""
    config = Config(replication_factor=3, min_insync_replicas=2, acks="all")
    cluster = advisor.Cluster.uniform(brokers=6, racks=3)
    result = evaluate(cluster, config, CLOUD, Workload(partitions=12))
    row = rows_beside(result)[0]
    assert row == compare_schemes(cluster, config, CLOUD, Workload(partitions=12))[0]
    intervals = scheme_intervals(row, result)
    for measure in MEASURES:
        assert getattr(row, measure) == getattr(result, measure)
        assert intervals[measure] == result.interval(measure)


@pytest.mark.parametrize("name", ["majority", "asynchronous"])
def test_draws_are_solved_to_a_thousandth_on_the_states_that_matter(name: str) -> None:
    """A few draws of a card with what strikes brokers and racks, on these states and on all."""
    far = [n for n in CLOUD.mechanisms if n.startswith("cluster.") and n != "cluster.power"]
    model = CLOUD.with_values({f"{mechanism}.per_year": 0.0 for mechanism in far})
    case = Case.read(CLUSTER, Config(replication_factor=3, min_insync_replicas=2), model)
    chains = chains_that_matter(name, case.roughly(model))
    (chain,) = chains.values()
    assert len(chain.keys) < 1000
    for draw in model.draws(3, seed=0):
        whole, part = (scheme_row(name, case.roughly(draw), each) for each in (None, chains))
        for measure in MEASURES:
            assert getattr(part, measure) == pytest.approx(getattr(whole, measure), rel=1e-3)


def test_intervals_of_all_rows_come_from_the_same_draws() -> None:
    """Where a scheme and Kafka agree, so do their intervals, within the rough solver's precision.

    Destroyed disks only, with a range; the synchronous scheme and min ISR 3. The logarithm of
    every draw may be off by ROUGH on each side, so the centre of the log-normal by as much, and its
    half width by twice that.
    """
    ranged = {"value": 50, "low": 10, "high": 90}
    model = FailureModel.from_dict({"broker": {"destroyed": {"per_year": ranged, "hours": 12}}})
    config = Config(replication_factor=3, min_insync_replicas=3, acks="all")
    result = evaluate(CLUSTER, config, model)
    row = next(row for row in rows_beside(result) if row.name == "synchronous")
    intervals = scheme_intervals(row, result)
    for measure in (
        "loss_probability_per_year",
        "mean_years_to_loss",
        "acked_records_lost_per_year",
        "write_unavailability",
        "records_refused_per_year",
    ):
        low, high = intervals[measure]
        assert low < getattr(row, measure) < high
        assert (low, high) == pytest.approx(result.interval(measure), rel=6 * ROUGH)
    exact = scheme_intervals(row, evaluate(CLUSTER, config, DESTROYED))
    assert exact["mean_years_to_loss"] == (row.mean_years_to_loss,) * 2


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
    """Rare tails and rare faults: acks=1 loses twice as often, and both rows say why.

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
    assert "asynchronous" in kafka.note
    assert "acks=1" in other.note
    assert not any(row.note for row in found.values() if row not in (kafka, other))


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


def losing_moves(scheme: Quorums, model: FailureModel) -> dict[bool, list[float]]:
    """Return loss events a year of each transition, largest first, by whether it is a repair."""
    config, load = Config(replication_factor=3), Workload()
    found = explored(scheme, Setting(PATTERN, possible_mechanisms(model)).without_controller)
    per_hour = [rate_per_hour(name, config, model, load, SIZES) for name in found.rate_names]
    rate = np.array(per_hour)[found.rate] * found.weight
    moves = found.source != found.target
    size = (len(found.keys), len(found.keys))
    where = (found.source[moves], found.target[moves])
    flow = Generator(sparse.csr_array((rate[moves], where), shape=size), np.zeros(len(found.keys)))
    events = stationary(flow)[found.source] * rate * found.losses * 8760
    return by_end(events, np.array(found.rate_names)[found.rate])


def losing_moves_of_kafka(min_isr: int, model: FailureModel) -> dict[bool, list[float]]:
    """Return the same for Kafka's untruncated chain."""
    config, load = Config(replication_factor=3, min_insync_replicas=min_isr, acks="all"), Workload()
    setup, setting = (
        parameters(config, model, load, BROKERS).constants,
        Setting(PATTERN, possible_mechanisms(model)),
    )
    whole = whole_structure(setup, setting)
    found = solution(whole, config, model, load, BROKERS)
    return by_end(found.flux * found.chances.events * 8760, np.array(whole.rate_names)[whole.rate])


def by_end(events: np.ndarray, names: np.ndarray) -> dict[bool, list[float]]:
    """Split events by whether a transition is a repair."""
    ends = np.char.startswith(names, "repair ")
    return {end: sorted(events[ends == end].tolist(), reverse=True) for end in (False, True)}


def test_an_empty_last_known_leader_is_what_kafka_loses_beyond_a_synchronous_scheme() -> None:
    """Min ISR = RF = 3: over 20 times the losses, and all of the difference on repairs.

    Unclean restarts empty the ELR; the last known leader then leads (KIP-966), replaced and empty,
    while the others hold every record. A synchronous scheme waits for a complete replica. Losses
    triggered by failures agree term by term, except for sequences with one more failure: their
    share is the probability of another failure during the longest outage.
    """
    kafka = losing_moves_of_kafka(3, CLOUD)
    synchronous = losing_moves(Quorums.of("synchronous", 3), CLOUD)
    assert sum(kafka[True]) + sum(kafka[False]) > 20 * sum(synchronous[False])
    assert sum(synchronous[True]) == 0
    unclean = ("broker.crash", "broker.power", "broker.destroyed", "rack.network", "rack.power")
    one_more = 3 * sum(map(CLOUD.rate_per_hour, unclean)) * max(map(CLOUD.repair_hours, unclean))
    assert one_more < 0.01
    assert sum(kafka[False]) == pytest.approx(sum(synchronous[False]), rel=one_more)
    assert kafka[False][:4] == pytest.approx(synchronous[False][:4], rel=one_more)


def by_replacement_time(model: FailureModel) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Losses at starts and at failures, RF 3, min ISR 2: replaced within 1, 4 and 32 hours."""
    config = Config(replication_factor=3, min_insync_replicas=2, acks="all")
    found = [
        losses_by_start(
            PATTERN,
            parameters(
                config,
                model.with_values({"broker.destroyed.hours": hours}),
                Workload(),
                BROKERS,
            ),
        )
        for hours in (1.0, 4.0, 32.0)
    ]
    starts, failures = zip(*found, strict=True)
    return starts, failures


def test_a_quicker_replacement_loses_more_where_an_operator_elects_a_log_that_is_left() -> None:
    """The sooner an empty last known leader starts, the likelier it leads before one with a log.

    An operator elects within an hour. Losses triggered by failures grow with the replacement time,
    since fewer copies are left meanwhile.
    """
    starts, failures = by_replacement_time(with_operator("three_az_cloud", hours=1.0))
    assert starts[0] > starts[1] > starts[2] > 0
    assert failures[0] < failures[1] < failures[2]


def test_a_slower_replacement_loses_more_where_nobody_elects_a_log_that_is_left() -> None:
    """Kafka itself waits for the empty last known leader, however long: it always leads.

    So nothing is gained by waiting, and more fails meanwhile. An operator, however slow, saves
    some of these logs.
    """
    starts, failures = by_replacement_time(CLOUD)
    assert starts[0] < starts[1] < starts[2]
    assert failures[0] < failures[1] < failures[2]
    slowly, _ = by_replacement_time(with_operator("three_az_cloud", hours=100.0))
    assert all(saved < lost for saved, lost in zip(slowly, starts, strict=True))


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


def test_a_broker_that_starts_while_none_is_empty_counts_as_a_failure() -> None:
    """Unclean, crashes only: who is back first leads and drops the rest, but no disk is empty."""
    config = Config(
        replication_factor=2, min_insync_replicas=1, unclean_leader_election_enable=True
    )
    numbers = parameters(config, CRASHES, Workload(), BROKERS)
    found = replica_set.solve((0, 1), numbers)
    names = np.array(found.chain.rate_names)[found.chain.rate]
    by_return = found.flux[np.char.startswith(names, "repair ")]
    events = found.chances.events[np.char.startswith(names, "repair ")]
    losses = losses_by_start((0, 1), numbers)
    assert losses.starts == 0.0
    assert losses.failures == pytest.approx(float(by_return @ events) * 8760.0, rel=1e-12)
    assert losses.failures > 0.0


def test_the_two_parts_are_all_losses_and_need_elr() -> None:
    """They add up to the result; without ELR or with unclean elections there is no share."""
    cluster = advisor.Cluster.uniform(brokers=6, racks=3)
    config = Config(replication_factor=3, min_insync_replicas=2, acks="all")
    result = evaluate(cluster, config, CLOUD)
    parts = losses_by_start(PATTERN, parameters(config, CLOUD, result.load, BROKERS))
    assert sum(parts) == pytest.approx(result.loss_events_per_year, rel=1e-12)
    assert result.empty_leader_share() == pytest.approx(parts.starts / sum(parts), rel=1e-12)
    for changed in (
        config.changed(eligible_leader_replicas=False),
        config.changed(unclean_leader_election_enable=True),
        config.changed(replication_factor=1, min_insync_replicas=1),
    ):
        assert evaluate(cluster, changed, CLOUD).empty_leader_share() is None
    assert evaluate(cluster, config, CRASHES).empty_leader_share() is None
