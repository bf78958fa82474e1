"""The truncation rule: states with the largest harm first, until the rest is below the share."""

import numpy as np
import pytest

from advisor import Config, load_model
from advisor.reliability.chain import ctmc, state_selection
from advisor.reliability.chain.state_selection import (
    Moves,
    NominalRates,
    _most_harmful,
    _Search,
    truncated_flux,
)
from advisor.reliability.chain.truncation_error import truncation_error
from advisor.reliability.statespace.state_graph import graph, shared_constants
from advisor.reliability.workload import Workload
from merging import all_apart, whole
from replica_sets import measure_set, measured, parameters, solution

LOAD = Workload(partitions=1, records_per_second=100.0, record_bytes=512)
KEPT = ("broker.crash", "broker.restart", "broker.destroyed", "rack.destroyed")


def question(card, pattern, **settings):
    """Configuration, card, constants, fault environment and nominal rates."""
    config = Config(kafka_version="4.2", replication_factor=len(pattern), **settings)
    model = load_model(card)
    numbers = parameters(config, model, LOAD, len(pattern))
    nominal = NominalRates(numbers.nominal_rates_per_hour, numbers.nominal_failover_hours)
    return config, model, numbers.constants, numbers.environment(pattern), nominal


@pytest.mark.parametrize(
    ("card", "pattern", "settings"),
    [
        ("three_az_cloud", (0, 1, 2), {"min_insync_replicas": 1}),
        ("three_az_cloud", (0, 1, 2), {"min_insync_replicas": 2}),
        ("two_az", (0, 0, 1), {"min_insync_replicas": 2, "acks": 1}),
        ("bare_metal_racks", (0, 1, 2), {"unclean_leader_election_enable": True}),
        ("three_az_cloud", (0, 0, 1, 2), {"min_insync_replicas": 2}),
        ("three_az_cloud", (0, 0, 1, 1, 2), {"min_insync_replicas": 3}),
    ],
)
def test_the_search_stops_once_the_rest_is_below_the_share(card, pattern, settings):
    """The rest does no more harm than is stated; half the states would not do."""
    _, _, constants, environment, guide = question(card, pattern, **settings)
    search = _Search(graph(shared_constants(constants, environment), environment), guide, constants)
    kept_moves = search.kept().moves
    half = kept_moves.kept[: len(kept_moves.kept) // 2]

    def harm(kept_moves):
        return search._harm(kept_moves, *state_selection.truncated_states(kept_moves)).shares

    assert kept_moves.kept[0] == 0
    assert len(set(kept_moves.kept.tolist())) == len(kept_moves.kept)
    assert harm(kept_moves).sum(axis=0).max() <= 1.0
    less = Moves.of(search._graph, half, constants).among(search._graph, half)
    assert harm(less).sum(axis=0).max() > 1.0


def test_the_stated_error_is_the_flux_times_the_cost():
    """What a truncated chain states is within the rule's share: four times, for nominal rates."""
    config, model, constants, environment, guide = question(
        "three_az_cloud", (0, 1, 2), min_insync_replicas=2
    )
    structure = ctmc.structure(constants, environment, guide)
    found = measured(solution(structure, config, model, LOAD, 3), config, model)
    for name, share in zip(
        ("loss_events_per_year", "write_unavailability", "read_unavailability"),
        state_selection._SHARE_OF_FEW[[0, 2, 3]],
        strict=True,
    ):
        assert 0.0 < found.errors[name] <= 4.0 * share * sum(found.causes[name].values())


def test_flux_into_truncated_states_is_that_of_the_whole_chain():
    """Entries into the truncated states are what leaves the kept ones, by detailed counting."""
    # 0 -> 1 -> 0 or out: one truncated state from 1, another from 0.
    source, target = np.array([0, 0, 1, 1]), np.array([1, -1, 0, -1])
    rate, place = np.array([2.0, 0.5, 3.0, 1.0]), np.array([1, 0])
    visits, entered = truncated_flux(source, target, rate, place, (2, 2))
    assert visits == pytest.approx([1.0, 2.0 / 4.0])
    assert entered == pytest.approx([0.5, 0.5])


@pytest.mark.filterwarnings("error")
def test_harm_is_added_largest_first():
    """All but the stated rest; the measures share one order; nothing where little is missing."""
    harm = np.array([[0.0, 1e-6], [3.0, 0.0], [0.2, 50.0], [0.1, 0.2]])
    assert _most_harmful(harm).tolist() == [1, 2]
    assert _most_harmful(np.full((4, 2), 0.25)).tolist() == []
    assert _most_harmful(np.full((5, 2), 0.25)).tolist() == [0, 1, 2]


@pytest.mark.filterwarnings("error")
def test_without_a_bound_on_the_cost_there_is_none_on_the_error():
    """Failures outrun repairs: drift promises nothing."""
    _, _, constants, environment, guide = question(
        "three_az_cloud", (0, 1, 2), min_insync_replicas=2
    )
    structure = ctmc.structure(constants, environment, guide)
    often = {name: 1.0 for name, _ in guide.rates}
    rate = np.ones(len(structure.rate))
    pi = np.ones(structure.states)
    assert truncation_error(structure, often, rate, pi, 1.0, 0.0).tolist()[4] == np.inf


@pytest.fixture
def card():
    known = load_model("bare_metal_racks")
    gone = {f"{name}.per_year": 0.0 for name in known.mechanisms if name not in KEPT}
    return known.with_values(gone)


@pytest.mark.parametrize("elr", [False, True])
def test_bounds_hold_where_a_restart_makes_an_empty_replica_lead(card, elr):
    """Two are down, one copies: a restart of the leader loses all, by an unclean election."""
    config = Config(
        kafka_version="4.2",
        replication_factor=4,
        min_insync_replicas=2,
        eligible_leader_replicas=elr,
        unclean_leader_election_enable=True,
    )
    kept = measure_set((0, 1, 2, 3), config, card, LOAD, 4)
    with all_apart():
        apart, _, states = whole((0, 1, 2, 3), config, card, LOAD)
    assert kept.states < states / 2
    for name, bound in kept.errors.items():
        if name in apart:
            assert abs(sum(kept.causes[name].values()) - apart[name]) <= bound, name
