"""What left-out states are worth at most: held against every state of whole chains."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import conditions
from advisor import Cluster, evaluate
from advisor.protocol.rules.config import Config
from advisor.reliability.case import possible_mechanisms
from advisor.reliability.chain import ctmc, drift_bound
from advisor.reliability.chain.loss_bound import (
    Limits,
    LossPreconditions,
    loss_preconditions,
    strikes_per_hour,
)
from advisor.reliability.failures.failure_model import load_model
from advisor.reliability.failures.fault_processes import FaultEnvironment
from advisor.reliability.failures.mechanisms import table
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.election_risk import (
    COLUMNS,
    EMPTY_ELECTABLE,
    OFFLINE,
    OFFLINE_EMPTY_ELECTABLE,
    SAFE,
)
from advisor.reliability.solver.generator import Generator
from advisor.reliability.solver.regenerative import RegenerativeCycles
from advisor.reliability.workload import Workload
from cards import only
from replica_sets import parameters
from sampled_runs import card as failures

LOAD = Workload(partitions=1, records_per_second=100.0, record_bytes=512)


# For three replicas; of all mechanisms, the chain of all states takes 20 GB.
BROKERS = "broker.crash broker.power broker.destroyed broker.lag"
LIMPING = f"{BROKERS} broker.gray rack.power cluster.crash"
CONTROLLER = "broker.crash broker.power broker.destroyed cluster.controller"
NO_ELR = {"eligible_leader_replicas": False, "min_insync_replicas": 1}
RACKS_GO_ALONE = ["rack.power.spreads", "rack.power.not_returning"]


def everything(card, pattern, kept=None, **settings):
    """The whole chain with the rates of a card, per hour; of some mechanisms only."""
    config = Config(kafka_version="4.2", replication_factor=len(pattern), **settings)
    model = only(card, kept.split(), RACKS_GO_ALONE) if kept else load_model(card)
    constants = parameters(config, model, LOAD, len(pattern)).constants
    environment = FaultEnvironment(pattern, possible_mechanisms(model))
    structure = ctmc.whole_structure(constants, environment)
    found = dict(parameters(config, model, LOAD, len(pattern)).rates_per_hour)
    return structure, found


def worth(structure, found):
    """Losses, total losses, events and hours until all is well, from every state."""
    rate = np.array([found[name] for name in structure.rate_names])[structure.rate]
    rate = rate * structure.weight
    moves = structure.source != structure.target
    where = (structure.source[moves], structure.target[moves])
    size = (structure.states, structure.states)
    generator = Generator(
        sparse.csr_array((rate[moves], where), shape=size), np.zeros(structure.states)
    )
    # A tail holds a record at least: that is the dearest it can be.
    losses = structure.with_effect(Effect.LOSS) + 2.0 * structure.with_effect(Effect.TAIL)
    gains = [losses, structure.with_effect(Effect.TOTAL), moves]
    per_hour = [np.bincount(structure.source, rate * gain, structure.states) for gain in gains]
    return (
        RegenerativeCycles(generator)
        .backward(np.stack([*per_hour, np.ones(structure.states)], axis=1))
        .T
    )


@pytest.mark.parametrize(
    ("card", "kept", "pattern", "settings"),
    [
        ("three_az_cloud", None, (0, 1), {"min_insync_replicas": 1}),
        ("three_az_cloud", None, (0, 1), {"min_insync_replicas": 2, "acks": 1}),
        ("bare_metal_racks", None, (0, 0), {"min_insync_replicas": 1}),
        ("bare_metal_racks", None, (0, 1), {"min_insync_replicas": 2}),
        ("single_rack", None, (0, 0), {"unclean_leader_election_enable": True}),
        ("two_az", LIMPING, (0, 0, 1), {"min_insync_replicas": 2}),
        ("two_az", CONTROLLER, (0, 1, 2), {"min_insync_replicas": 2}),
        ("two_az", LIMPING, (0, 1, 2), NO_ELR),
        ("two_az", CONTROLLER, (0, 0, 1), NO_ELR),
    ],
)
def test_no_state_is_worth_more_than_its_limit(card, kept, pattern, settings):
    """All four, from each state of a whole chain, solved to all digits."""
    structure, found = everything(card, pattern, kept, **settings)
    limits = Limits(found, pattern, structure.constants)
    most = limits.until_well(structure.waits, structure.election_risks)
    losses, totals, events, hours = worth(structure, found)
    rounding = 1.0 + 1e-12
    assert np.all(losses[1:] <= most.losses[1:] * rounding)
    assert np.all(totals[1:] <= most.totals[1:] * rounding)
    assert np.all(events[1:] <= most.events[1:] * rounding)
    assert np.all(hours[1:] <= most.hours[1:] * rounding)
    assert losses.max() > 0.0


@pytest.mark.parametrize("least", [1, 2])
@pytest.mark.parametrize(("card", "voters"), [("two_az", (1, 2)), ("bare_metal_racks", (2, 1))])
def test_racks_that_take_the_quorum_are_in_the_limit(card, voters, least):
    """Without the controller that goes with a rack, stale members stay in the ISR."""
    kept = "broker.crash broker.power broker.destroyed rack.network rack.power"
    model = only(card, kept.split(), [*RACKS_GO_ALONE, "rack.network.spreads"])
    config = Config(kafka_version="4.2", replication_factor=2, min_insync_replicas=least)
    numbers = parameters(config, model, LOAD, 2, racks=2, voter_racks=2)
    environment = FaultEnvironment((0, 1), possible_mechanisms(model), voters)
    structure = ctmc.whole_structure(numbers.constants, environment)
    found = dict(numbers.rates_per_hour)
    limits = Limits(found, (0, 1), structure.constants, voters=True)
    most = limits.until_well(structure.waits, structure.election_risks)
    losses, totals, _, _ = worth(structure, found)
    assert np.all(losses[1:] <= most.losses[1:])
    assert np.all(totals[1:] <= most.totals[1:])


RATES = {
    "broker.crash": 1e-3,
    "broker.lag": 1.0,
    "broker.power": 2e-3,
    "broker.destroyed": 1e-4,
    "rack.power": 3e-3,
    "rack.destroyed": 1e-5,
    "cluster.power 0 of 2": 5.0,
    "cluster.power 0 of 3": 4e-3,
    "cluster.power 1 of 3": 2e-5,
    "repair broker.crash": 1.0,
    "repair broker.lag": 10.0,
    "copy": 0.5,
}


@pytest.mark.parametrize(
    ("least", "dark"), [(1, 3 * 2e-3 + 2 * 3e-3 + 4e-3), (2, 2 * 3e-3 + 4e-3), (3, 4e-3)]
)
def test_what_a_loss_needs_is_counted_at_every_site(least, dark):
    """Three replicas in two racks: sites times rates; power where it takes the ISR."""
    config = Config(replication_factor=3, min_insync_replicas=least)
    constants = parameters(config, load_model("three_az_cloud"), LOAD, 3).constants
    drift = drift_bound.drift(RATES, (0, 0, 1))
    found = loss_preconditions(RATES, (0, 0, 1), constants, drift)
    destroyed = 3 * 1e-4 + 2 * 1e-5 + 3 * 2e-5
    assert found.log_destructions_per_hour == pytest.approx(destroyed, rel=1e-12)
    assert found.unflushed_losses_per_hour == pytest.approx(dark, rel=1e-12)
    # Of brokers and racks one has the leader; what strikes all strikes it.
    leader = 1e-3 + 2e-3 + 1e-4 + 3e-3 + 1e-5 + 4e-3 + 3 * 2e-5
    assert found.leader_failures_per_hour == pytest.approx(leader, rel=1e-12)
    # The longest spell for each, and copies that take 3 + 1 + 1/2 + 1/3 times as long as one.
    assert drift.copy_hours / drift.hours[conditions.CRASHED] == pytest.approx(2.0, rel=1e-12)
    longest = 3 * drift.hours[conditions.CRASHED] + drift.copy_hours * (3 + 11 / 6)
    assert found.max_recovery_hours == pytest.approx(longest, rel=1e-12)
    unflushed = loss_preconditions(RATES, (0, 0, 1), replace(constants, page_cache=False), drift)
    assert unflushed.unflushed_losses_per_hour == 0.0


def test_drift_weighs_spells_copies_and_what_failures_bring():
    """Two replicas by hand: the leader's fall may leave both to copy."""
    rates = {
        "broker.crash": 0.01,
        "broker.destroyed": 0.001,
        "broker.lag": 0.02,
        "repair broker.crash": 1.0,
        "repair broker.destroyed": 0.1,
        "repair broker.lag": 4.0,
        "copy": 0.5,
    }
    most = (2.0 + 1.0 + 1.0 / 2.0) / 0.5
    brought = 2 * 0.01 * 1.0 + 2 * 0.001 * (10.0 + 1.0 / 0.5) + 2 * 0.02 * 0.25
    brought += (0.01 + 0.001) * most
    waits = np.zeros((1, table().waits), dtype=np.int64)
    waits[0, conditions.CRASHED] = 1
    hours, events = drift_bound.drift(rates, (0, 1)).until_well(waits, np.array([1.0]))
    assert hours == pytest.approx((1.0 + 1.0 / 0.5) / (1.0 - brought), rel=1e-12)
    # Each failure with the end of its spell; four copies after the leader's, one after a disk's.
    per_hour = 2 * (0.01 + 0.001 + 0.02) * (1 + 1) + (0.01 + 0.001) * 4 + 2 * 0.001
    assert events == pytest.approx(1 + 4 + per_hour * hours, rel=1e-12)
    at_once = drift_bound.drift({k: v for k, v in rates.items() if k != "copy"}, (0, 1))
    assert at_once.until_well(waits, np.array([1.0]))[1] == pytest.approx(
        1 + (2 * (0.01 + 0.001 + 0.02) * 2) * at_once.until_well(waits, np.array([1.0]))[0]
    )


def test_elections_lose_from_the_brink_or_later():
    """Calm: after a destruction; armed: by a fall; on the brink: now; endless in endless hours."""
    needs = LossPreconditions(
        log_destructions_per_hour=1e-3,
        unflushed_losses_per_hour=9.0,
        leader_failures_per_hour=0.1,
        max_recovery_hours=50.0,
    )
    election_risks = np.array([SAFE, OFFLINE, EMPTY_ELECTABLE, OFFLINE_EMPTY_ELECTABLE])
    later = 1e-3 * (1.0 + 0.1 * 50.0)
    none = np.zeros(4)
    found = needs.elections(election_risks, np.full(4, 2.0), none)
    expected = [2 * later, 2 * later, 2 * (later + 0.1), 1 + 2 * (later + 0.1)]
    assert found == pytest.approx(expected)
    assert np.all(np.isinf(needs.elections(election_risks, np.full(4, np.inf), none)))
    never = LossPreconditions(0.0, 9.0, 0.0, np.inf).elections(
        election_risks, np.full(4, np.inf), none
    )
    assert never.tolist() == [0.0, 0.0, 0.0, 1.0]
    # A limping leader that dies is a fall, too.
    dying = needs.elections(election_risks, np.full(4, 2.0), np.full(4, 0.3))
    assert dying - found == pytest.approx([0.0, 0.0, 0.3, 0.3])


def test_failures_that_lose_at_once_are_in_the_limit():
    """A calm state's losses are at most hours times what can lose, for each kind of settings."""
    model = load_model("three_az_cloud")
    waits = np.zeros((1, table().waits), dtype=np.int64)
    waits[0, conditions.CRASHED] = 1
    calm = np.array([[SAFE, *np.zeros(len(COLUMNS) - 1)]])
    settings = {"replication_factor": 3, "min_insync_replicas": 1}
    of = {}
    for acks, unclean in (("all", False), (1, False), ("all", True), (1, True)):
        config = Config(acks=acks, unclean_leader_election_enable=unclean, **settings)
        constants = parameters(config, model, LOAD, 3).constants
        of[acks, unclean] = Limits(RATES, (0, 0, 1), constants).until_well(waits, calm)
        needs = loss_preconditions(RATES, (0, 0, 1), constants, drift_bound.drift(RATES, (0, 0, 1)))
    hours = of["all", False].hours
    gone = (
        hours
        * needs.log_destructions_per_hour
        * (2.0 + needs.leader_failures_per_hour * needs.max_recovery_hours)
    )
    assert of["all", False].losses == pytest.approx(gone + hours * needs.unflushed_losses_per_hour)
    destroyed = hours * needs.log_destructions_per_hour
    assert of[1, False].losses == pytest.approx(
        3.0 * hours * needs.leader_failures_per_hour + destroyed
    )
    assert of["all", False].totals == of[1, False].totals == pytest.approx(gone)
    assert (
        of["all", True].losses
        == of["all", True].totals
        == pytest.approx(2 * hours * needs.leader_failures_per_hour + destroyed)
    )
    assert of[1, True].losses == pytest.approx(
        3 * hours * needs.leader_failures_per_hour + destroyed
    )


@pytest.mark.parametrize("unclean", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        {"min_insync_replicas": 2},
        {"min_insync_replicas": 2, "eligible_leader_replicas": False},
        {"min_insync_replicas": 1, "acks": 1},
    ],
)
@pytest.mark.parametrize(
    ("card", "kept", "pattern"),
    [
        ("three_az_cloud", LIMPING, (0, 1, 2)),
        ("three_az_cloud", CONTROLLER, (0, 1, 2)),
        ("two_az", LIMPING, (0, 0)),
        ("two_az", CONTROLLER, (0, 0)),
    ],
)
def test_nothing_but_a_failure_stops_the_writing(card, kept, pattern, settings, unclean):
    """Returns and finished copies never stop writes; the death of a limping broker may."""
    asked = {**settings, "unclean_leader_election_enable": unclean}
    structure, found = everything(card, pattern, kept, **asked)
    stops = structure.writable[structure.source] & ~structure.writable[structure.target]
    names = {structure.rate_names[number] for number in structure.rate[stops].tolist()}
    assert names
    ends = {name for name in names if name == "copy" or name.startswith("repair ")}
    assert ends <= {"repair broker.gray dies", "repair broker.gray killed"}
    power = strikes_per_hour(found, pattern, power=True)
    at = {"broker.power": len(pattern), "rack.power": len(set(pattern))}
    expected = sum(found.get(name, 0.0) * sites for name, sites in at.items())
    if "broker.gray" in found:
        share = load_model(card)["broker.gray.dies"] * load_model(card)["broker.gray.hard"]
        expected += found["broker.gray"] * len(pattern) * share
    assert power == pytest.approx(expected)
    assert strikes_per_hour(found, pattern) > power


def test_what_may_last_for_ever_has_no_bound_where_changes_of_leader_take_no_time() -> None:
    """Failures outrun repairs: endless changes of leader, each at once, are no time at all."""
    model = failures(
        broker_crash={"per_year": 300.0, "minutes": 600.0},
        broker_power={"per_year": 30.0, "minutes": 300.0},
        broker_lag={"per_year": 300.0, "minutes": 30.0},
        broker_restart={"per_year": 12.0, "minutes": 8.0},
        rack_power={"per_year": 30.0, "minutes": 600.0},
        detection={"seconds": 0.0},
        flush={"seconds": 30.0},
    )
    config = Config(replication_factor=3, min_insync_replicas=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = evaluate(Cluster.uniform(3, 1), config, model, LOAD)
    assert found.truncated_entries_per_year > 0.0
    assert found.error_bounds["write_unavailability"] == math.inf
    assert 0.0 < found.write_unavailability < 1.0
