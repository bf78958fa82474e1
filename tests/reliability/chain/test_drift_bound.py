"""What a chain leaves out: the bounds hold against whole chains and exact rationals."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import conditions
from advisor.protocol.rules.config import Config
from advisor.reliability.case import possible_mechanisms
from advisor.reliability.chain import ctmc, drift_bound, truncation_error
from advisor.reliability.failures import transition_rates
from advisor.reliability.failures.failure_model import FailureModel, load_model
from advisor.reliability.failures.fault_processes import FaultEnvironment
from advisor.reliability.failures.mechanisms import table
from advisor.reliability.measures import records_lost, solved_chain
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.election_risk import PENDING_COPIES
from advisor.reliability.solver import regenerative
from advisor.reliability.statespace.flush_window import FlushWindowLosses
from advisor.reliability.workload import Workload
from cards import BROKERS_AND_RACKS, LIMPING_AND_SEVERAL, RARE, only
from replica_sets import measure_set, measured, parameters, solution

LOAD = Workload(partitions=1, records_per_second=100.0, record_bytes=512)
FEW = FailureModel.from_dict(
    {
        "broker": {
            "crash": {"per_year": 20.0, "minutes": 30.0},
            "destroyed": {"per_year": 2.0, "hours": 30.0},
        },
        "rack": {"network": {"per_year": 3.0, "minutes": 100.0}},
        "copy": {"bytes_per_second": 5e6},
    }
)
POWER = FailureModel.from_dict(
    {
        "broker": {
            "power": {"per_year": 0.2, "minutes": 10.0},
            "destroyed": {"per_year": 0.002, "hours": 2.0},
        },
        "rack": {"power": {"per_year": 0.05, "minutes": 180.0}},
        "flush": {"seconds": 35.0},
        "copy": {"bytes_per_second": 5e7},
    }
)
CARDS = {"few": FEW, "power": POWER}
MEASURES = (
    "loss_events_per_year",
    "acked_records_lost_per_year",
    "write_unavailability",
    "read_unavailability",
    "records_refused_per_year",
    "write_stalled",
)


def totals(found: solved_chain.SetMeasures) -> dict[str, float]:
    return {name: sum(found.causes[name].values()) for name in MEASURES}


def whole(pattern, config, card):
    constants = parameters(config, card, LOAD, len(pattern)).constants
    structure = ctmc.whole_structure(
        constants, FaultEnvironment(pattern, possible_mechanisms(card))
    )
    return measured(solution(structure, config, card, LOAD, len(pattern)), config, card)


@pytest.mark.parametrize(
    ("card", "pattern", "min_isr", "acks", "unclean"),
    [
        # Two replicas with every mechanism, three with some.
        ("three_az_cloud", (0, 1), 2, "all", False),
        ("two_az", (0, 0), 1, "all", True),
        (only("three_az_cloud", BROKERS_AND_RACKS, RARE), (0, 1, 2), 1, "all", False),
        (only("three_az_cloud", BROKERS_AND_RACKS, RARE), (0, 1, 2), 2, "all", False),
        (only("three_az_cloud", LIMPING_AND_SEVERAL, RARE), (0, 1, 2), 1, "all", True),
        (only("bare_metal_racks", LIMPING_AND_SEVERAL, RARE), (0, 1, 2), 2, "all", False),
        (only("bare_metal_racks", BROKERS_AND_RACKS, RARE), (0, 0, 1), 1, 1, False),
        (only("single_rack", BROKERS_AND_RACKS, RARE[:2]), (0, 0, 0), 2, "all", False),
        ("few", (0, 0, 1, 2), 2, "all", False),
        ("few", (0, 0, 1, 1), 3, "all", False),
        # Nearly all that is missing is power that goes early in a left-out state.
        ("power", (0, 0, 1, 1), 2, "all", False),
    ],
)
def test_the_whole_chain_lies_within_the_bounds(card, pattern, min_isr, acks, unclean):
    """Every measure of the kept states is off by no more than it says, and not merely by luck."""
    model = card if isinstance(card, FailureModel) else CARDS.get(card) or load_model(card)
    config = Config(
        kafka_version="4.2",
        replication_factor=len(pattern),
        min_insync_replicas=min_isr,
        acks=acks,
        unclean_leader_election_enable=unclean,
    )
    kept = measure_set(pattern, config, model, LOAD, len(pattern))
    full = whole(pattern, config, model)
    assert kept.states < full.states
    assert kept.truncated_entries_per_year > 0
    assert full.truncated_entries_per_year == 0
    for name, value in totals(full).items():
        assert abs(totals(kept)[name] - value) <= kept.errors[name], name
    off = abs(kept.losses[0].first.probability - full.losses[0].first.probability)
    assert off <= kept.errors["loss_events_per_year"]


def cut(structure: ctmc.Structure, kept: int) -> ctmc.Structure:
    """The chain of the first states alone; ways to the others lead back to the healthy one."""
    from_kept = structure.source < kept
    target = structure.target[from_kept]
    out = target >= kept
    left, place = np.unique(target[out], return_inverse=True)
    effects = structure.effects[from_kept] | np.where(out, Effect.TRUNCATED, 0)
    every = np.concatenate([np.arange(kept), left])
    losses = np.flatnonzero(structure.flush_window.state < kept)
    state, rate, end = (column[losses] for column in structure.flush_window[:3])
    return replace(
        structure,
        states=kept,
        source=structure.source[from_kept],
        target=np.where(out, 0, target),
        rate=structure.rate[from_kept],
        weight=structure.weight[from_kept],
        effects=effects,
        gap_map=structure.gap_map[from_kept],
        writable=structure.writable[:kept],
        readable=structure.readable[:kept],
        partition=structure.partition[:kept],
        growing=structure.growing[:kept],
        gaps=structure.gaps[:kept],
        in_sync=structure.in_sync[:kept],
        attribution={name: share[:kept] for name, share in structure.attribution.items()},
        truncated_target=place,
        flush_window=FlushWindowLosses(state, rate, end, structure.flush_window.odds),
        stops_writes=(
            structure.writable[structure.source[from_kept]] & ~structure.writable[target]
        )[out],
        waits=structure.waits[every],
        election_risks=structure.election_risks[every],
    )


@pytest.mark.parametrize(
    ("card", "pattern", "min_isr", "elr"),
    [
        ("few", (0, 0, 1, 1, 2), 1, True),
        ("few", (0, 0, 1, 1, 2), 3, False),
        ("few", (0, 1, 2, 3, 4), 3, True),
        ("few", (0, 0, 1, 1, 2, 2), 2, False),
        ("three_az_cloud", (0, 0, 1, 2), 2, False),
    ],
)
def test_large_whole_chains_lie_within_the_bounds(card, pattern, min_isr, elr):
    """Five and six replicas with few mechanisms, four with more: some twenty thousand states on."""
    model = FEW if card == "few" else only(card, BROKERS_AND_RACKS[:4], RARE)
    config = Config(
        kafka_version="4.2",
        replication_factor=len(pattern),
        min_insync_replicas=min_isr,
        eligible_leader_replicas=elr,
    )
    kept = measure_set(pattern, config, model, LOAD, len(pattern))
    full = whole(pattern, config, model)
    assert full.states > 15_000 > kept.states
    for name, value in totals(full).items():
        assert abs(totals(kept)[name] - value) <= kept.errors[name], name


@pytest.mark.parametrize(
    ("name", "draw", "pattern", "min_isr", "elr"),
    [
        # Here a bound that knew how many brokers suffer what, but not which, was too small.
        ("three_az_cloud", 2, (0, 1, 2), 2, True),
        ("three_az_cloud", 7, (0, 1, 2), 3, True),
        ("two_az", 3, (0, 0, 1), 2, True),
        ("bare_metal_racks", 5, (0, 0, 1), 2, False),
    ],
)
def test_bounds_hold_for_cards_drawn_from_the_ranges(name, draw, pattern, min_isr, elr):
    """Outages of other lengths, side by side, are other groups: no draw is off by more."""
    *_, card = only(name, BROKERS_AND_RACKS, RARE).draws(draw + 1, seed=0)
    config = Config(
        kafka_version="4.2",
        replication_factor=3,
        min_insync_replicas=min_isr,
        eligible_leader_replicas=elr,
    )
    kept = measure_set(pattern, config, card, LOAD, 3)
    exact = totals(whole(pattern, config, card))
    for measure, value in exact.items():
        assert abs(totals(kept)[measure] - value) <= kept.errors[measure], measure


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_bounds_hold_wherever_a_chain_is_cut(share):
    """Cut off after any number of states, what is missing stays below the bound."""
    config = Config(kafka_version="4.2", replication_factor=3, min_insync_replicas=2)
    constants = parameters(config, FEW, LOAD, 3).constants
    full = ctmc.whole_structure(constants, FaultEnvironment((0, 1, 2), possible_mechanisms(FEW)))
    part = cut(full, int(full.states * share))
    found = measured(solution(part, config, FEW, LOAD, 3), config, FEW)
    exact = measured(solution(full, config, FEW, LOAD, 3), config, FEW)
    for name, value in totals(exact).items():
        assert abs(totals(found)[name] - value) <= found.errors[name], name
    assert totals(found)["loss_events_per_year"] < totals(exact)["loss_events_per_year"]


@pytest.mark.parametrize(("crash_hours", "gone_hours"), [(0.5, 30.0), (4.0, 4.0)])
def test_one_broker_alone_misses_all_that_is_stated(crash_hours, gone_hours):
    """RF 1, cut to the healthy state: the bound is what is missing, but for its own precision.

    A broker that is down because it crashed may also be destroyed, which the bound knows too.
    """
    config = Config(kafka_version="4.2", replication_factor=1)
    card = FailureModel.from_dict(
        {
            "broker": {
                "crash": {"per_year": 3.0, "minutes": 60.0 * crash_hours},
                "destroyed": {"per_year": 2.0, "hours": gone_hours},
            },
        }
    )
    full = ctmc.whole_structure(
        parameters(config, card, LOAD, 1).constants,
        FaultEnvironment((0,), possible_mechanisms(card)),
    )
    found = measured(solution(cut(full, 1), config, card, LOAD, 1), config, card)
    missing = (3.0 * crash_hours + 2.0 * gone_hours) / 8760.0
    for measure in ("write_unavailability", "read_unavailability"):
        assert totals(found)[measure] == 0.0
        assert missing <= found.errors[measure] <= 1.03 * missing


def test_power_that_goes_early_where_the_chain_ends_is_in_the_bound():
    """With the healthy state alone nothing is lost; the bound knows what early power takes."""
    config = Config(kafka_version="4.2", replication_factor=2, min_insync_replicas=2)
    card = FailureModel.from_dict(
        {"broker": {"power": {"per_year": 3.0, "minutes": 10.0}}, "flush": {"seconds": 35.0}}
    )
    constants = parameters(config, card, LOAD, 2).constants
    full = ctmc.whole_structure(constants, FaultEnvironment((0, 1), possible_mechanisms(card)))
    exact = totals(measured(solution(full, config, card, LOAD, 2), config, card))
    found = measured(solution(cut(full, 1), config, card, LOAD, 2), config, card)
    assert totals(found)["loss_events_per_year"] == 0.0
    bound = found.errors["loss_events_per_year"]
    # Any replica's power counts in it, that of the one that is down too.
    assert 0.0 < exact["loss_events_per_year"] <= bound <= 2.1 * exact["loss_events_per_year"]


def rational_hours(structure: ctmc.Structure, rate_of: dict[str, Fraction]) -> list[Fraction]:
    """Mean hours until all is well from each state but the healthy one, by exact elimination."""
    size = structure.states - 1
    table = [[Fraction(0)] * (size + 1) for _ in range(size)]
    for source, target, rate, weight in zip(
        structure.source, structure.target, structure.rate, structure.weight, strict=True
    ):
        if source == 0 or source == target:
            continue
        flow = rate_of[structure.rate_names[rate]] * int(weight)
        table[source - 1][source - 1] += flow
        if target:
            table[source - 1][target - 1] -= flow
    for row in table:
        row[size] = Fraction(1)
    for pivot in range(size):
        head = table[pivot][pivot]
        table[pivot] = [value / head for value in table[pivot]]
        for row in range(size):
            factor = table[row][pivot]
            if row != pivot and factor:
                table[row] = [
                    value - factor * own
                    for value, own in zip(table[row], table[pivot], strict=True)
                ]
    return [row[size] for row in table]


def test_no_state_takes_longer_than_drift_allows():
    """Two replicas, exact rationals: the mean time until all is well is below the drift's bound."""
    card = FailureModel.from_dict(
        {
            "broker": {
                "crash": {"per_year": 87.6, "minutes": 60.0},
                "destroyed": {"per_year": 8.76, "hours": 10.0},
            }
        }
    )
    config = Config(kafka_version="4.2", replication_factor=2, min_insync_replicas=1)
    constants = parameters(config, card, LOAD, 2).constants
    environment = FaultEnvironment((0, 1), possible_mechanisms(card))
    structure = ctmc.whole_structure(constants, environment)
    exact = {
        "broker.crash": Fraction(1, 100),
        "broker.destroyed": Fraction(1, 1000),
        "repair broker.crash": Fraction(1),
        "repair broker.destroyed": Fraction(1, 10),
    }
    hours = rational_hours(structure, exact)
    names = transition_rates.names(environment.mechanisms, 2, constants.copying)
    drift = drift_bound.drift({name: float(exact[name]) for name in names}, (0, 1))
    allowed, _ = drift.until_well(structure.waits, structure.election_risks[:, PENDING_COPIES])
    assert all(float(mean) <= most for mean, most in zip(hours, allowed[1:], strict=True))
    found = regenerative.RegenerativeCycles(
        solution(structure, config, card, LOAD, 2).generator
    ).backward(np.ones(structure.states))
    assert found[1:] == pytest.approx([float(mean) for mean in hours], rel=1e-12)


def test_nothing_left_out_misses_nothing():
    """A whole chain has no way out, so that only rounding and an inversion are left as errors."""
    config = Config(kafka_version="4.2", replication_factor=3, min_insync_replicas=2)
    found = whole((0, 1, 2), config, FEW)
    for name, value in totals(found).items():
        share = records_lost.ACCURACY if name == "acked_records_lost_per_year" else 0.0
        if name == "loss_events_per_year":
            # Some of them are in gaps.
            assert 2e-12 * value < found.errors[name] < records_lost.ACCURACY * value
            continue
        assert found.errors[name] == pytest.approx((1e-12 + share) * value, rel=1e-9)


def test_failures_that_outrun_repairs_have_no_bound():
    """Where brokers fail faster than they are repaired, drift promises nothing."""
    rates_per_hour = {"broker.crash": 1.0, "repair broker.crash": 1.0}
    drift = drift_bound.drift(rates_per_hour, (0, 1))
    waits = np.zeros((1, table().waits), dtype=np.int64)
    waits[0, conditions.CRASHED] = 1
    assert drift.until_well(waits, np.zeros(1))[0] == [np.inf]


def test_bounds_ask_only_for_what_is_truncated():
    """Nothing is missing where no state is truncated, whatever the rates."""
    config = Config(replication_factor=1)
    card = FailureModel.from_dict({"broker": {"crash": {"per_year": 1.0, "minutes": 1.0}}})
    structure = ctmc.whole_structure(
        parameters(config, card, LOAD, 1).constants,
        FaultEnvironment((0,), possible_mechanisms(card)),
    )
    rate = np.ones(len(structure.rate))
    pi = np.ones(structure.states)
    found = truncation_error.truncation_error(structure, {}, rate, pi, 1.0, 1.0)
    assert found.tolist() == [0] * 5
