"""Draws of a card, measured together: as each card by itself, on the same states, within errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import advisor
from advisor.reliability.case import Case
from advisor.reliability.chain import ctmc
from advisor.reliability.common_cause.outage_class import Kind
from advisor.reliability.common_cause.set_losses import SetLosses
from advisor.reliability.measures.draws import (
    OF_PRODUCERS,
    TOO_ROUGH,
    TRUNCATED,
    measure_draws,
    measured_together,
    summed,
    summed_errors,
)
from advisor.reliability.measures.first_losses import (
    FirstLosses,
    compute_first_losses,
    first_losses_of_many,
)
from advisor.reliability.measures.replica_set import as_if_acknowledged, nominal, solve
from advisor.reliability.measures.solved_chain import SolvedChain
from advisor.reliability.solver.generator import EXACT, ROUGH

Measures = tuple[dict[str, float], dict[str, float]]
# What is computed of each draw.
DRAWN = (
    "loss_events_per_year",
    "acked_records_lost_per_year",
    "write_unavailability",
    "read_unavailability",
    "loss_probability_per_year",
    "mean_years_to_loss",
)
CLUSTER = advisor.Cluster.uniform(6, racks=3)
CARD = advisor.load_model("three_az_cloud")
LOAD = advisor.Workload(partitions=6)


def config(**settings: object) -> advisor.Config:
    """RF 3 and min ISR 2, unless other settings are given."""
    return advisor.Config(**{"replication_factor": 3, "min_insync_replicas": 2, **settings})


@pytest.mark.parametrize(
    ("card", "settings"),
    [
        ("three_az_cloud", {}),
        ("bare_metal_racks", {"replication_factor": 2, "min_insync_replicas": 1, "acks": 1}),
        ("two_az", {"replication_factor": 2, "min_insync_replicas": 1, "acks": 0}),
    ],
)
def test_a_draw_is_what_its_card_gives(card: str, settings: dict[str, object]) -> None:
    """Each measure of four draws, evaluated again one by one and, for one, in full."""
    model = advisor.load_model(card)
    result = advisor.evaluate(CLUSTER, config(**settings), model, LOAD)
    cards = [*model.draws(4, seed=3)]
    drawn = result.reevaluate.draws(cards)
    for number, other in enumerate(cards):
        again = result.reevaluate(other)
        full = advisor.evaluate(CLUSTER, config(**settings), other, LOAD) if number < 1 else again
        for name in (*DRAWN, "records_refused_per_year"):
            value = drawn.values[name][number]
            assert value == pytest.approx(getattr(again, name), rel=2e-3, abs=0.0), name
            within = TOO_ROUGH * getattr(full, name)
            assert abs(value - getattr(full, name)) <= within or full is again, name


def exactly(case: Case, card: advisor.FailureModel) -> Case:
    """The question about a card, on the states of the case, to all digits."""
    drawn = case.roughly(card)
    return replace(drawn, chain=replace(drawn.chain, precision=EXACT))


def one_by_one(case: Case, card: advisor.FailureModel, first_losses: FirstLosses) -> Measures:
    """The measures of one draw, its chains solved by themselves to all digits."""
    drawn = exactly(case, card)
    chain, sets = as_if_acknowledged(drawn.chain), {}
    for pattern in drawn.patterns:
        space = ctmc.structure(chain.constants, chain.environment(pattern), nominal(chain))
        asked = drawn.timeouts, drawn.stalls, drawn.partitions_together
        sets[pattern] = SolvedChain(space.condensed, chain).measures(*asked, upper=False)
    first, _ = first_losses(drawn, sets)
    counts = {pattern: members.partitions for pattern, members in drawn.patterns.items()}
    values, errors = summed(sets, counts), summed_errors(sets, counts)
    lost = values["acked_records_lost_per_year"]
    values["loss_probability_per_year"] = min(first.probability, lost)
    values["mean_years_to_loss"] = first.mean_years
    return values, errors


@pytest.mark.parametrize("first_losses", [compute_first_losses, first_losses_of_many])
@pytest.mark.parametrize(
    ("name", "settings", "load"),
    [
        ("three_az_cloud", {}, {"partitions": 12}),
        ("three_az_cloud", {"min_insync_replicas": 1}, {"partitions": 5, "retention_hours": 4}),
        ("three_az_cloud", {"unclean_leader_election_enable": True}, {}),
        ("bare_metal_racks", {"replication_factor": 2, "min_insync_replicas": 1}, {}),
        ("single_rack", {"replication_factor": 2, "min_insync_replicas": 2}, {"partitions": 3}),
        ("two_az", {"replication_factor": 1, "min_insync_replicas": 1}, {"partitions": 9}),
        ("two_az", {"replication_factor": 2, "min_insync_replicas": 1, "acks": 1}, {}),
    ],
)
def test_draws_solved_together_are_those_solved_one_by_one(
    name: str, settings: dict[str, object], load: dict[str, Any], first_losses: FirstLosses
) -> None:
    """All digits of all measures agree: elimination, gaps, shared losses and error bounds."""
    model = advisor.load_model(name)
    case = Case.read(CLUSTER, config(**settings), model, advisor.Workload(**load))
    cards = [*model.draws(3, seed=8)]
    cases = [exactly(case, card) for card in cards]
    drawn = measured_together(case, cases, (), first_losses, producers=True)
    for number, card in enumerate(cards):
        values, errors = one_by_one(case, card, first_losses)
        for measure in (*DRAWN, *OF_PRODUCERS):
            found = drawn.values[measure][number]
            assert found == pytest.approx(values[measure], rel=1e-9, abs=0.0), measure
        for measure in errors:
            found = drawn.errors[measure][number]
            assert found == pytest.approx(errors[measure], rel=1e-9, abs=1e-300), measure


def test_draws_with_slow_repairs_are_as_accurate_as_draws_are() -> None:
    """Where a year is too short to forget its start, losses have the digits of a single draw."""
    model = advisor.load_model("single_rack")
    case = Case.read(CLUSTER, config(replication_factor=2, min_insync_replicas=1), model, LOAD)
    cards = [model.with_values({"broker.destroyed.hours": hours}) for hours in (24.0, 700.0, 3e3)]
    drawn = measured_together(
        case, [case.roughly(card) for card in cards], (), compute_first_losses
    )
    for number, card in enumerate(cards):
        values, _ = one_by_one(case, card, compute_first_losses)
        for measure in DRAWN:
            found = drawn.values[measure][number]
            assert found == pytest.approx(values[measure], rel=ROUGH, abs=0.0), measure


def test_a_number_that_is_0_in_some_draws_is_solved_with_the_others() -> None:
    """Draws in which less can happen than in the first are combined one by one."""
    case = Case.read(CLUSTER, config(), CARD, LOAD)
    never = CARD.with_values({"cluster.wiped.per_year": 0.0})
    drawn = measure_draws(case, [CARD, never], compute_first_losses)
    alone = [measure_draws(case, [card], compute_first_losses) for card in (CARD, never)]
    for name in DRAWN:
        each = [one.values[name][0] for one in alone]
        assert drawn.values[name].tolist() == pytest.approx(each, rel=1e-9), name
    assert drawn.values["mean_years_to_loss"][1] > 2 * drawn.values["mean_years_to_loss"][0]


def test_what_is_missing_of_a_far_draw_is_added() -> None:
    """Of draws far from the card no more than a fiftieth is missing, on one set of states."""
    case = Case.read(CLUSTER, config(), CARD, LOAD)
    cards = [*CARD.draws(64, seed=0)]
    drawn = measure_draws(case, cards, compute_first_losses)
    near = solve(next(iter(case.patterns)), case.chain).chain.states
    assert set(drawn.states.tolist()) == {near, drawn.states.max()}
    assert 0 < (drawn.states > near).sum() < 16
    assert near < drawn.states.max() < 3 * near
    for name in TRUNCATED:
        assert (drawn.errors[name] <= TOO_ROUGH * drawn.values[name]).all()


def by_kind(losses: SetLosses) -> dict[Kind, float]:
    """What other sets may share, a year."""
    return dict(zip(losses.shared.kinds, losses.shared.per_year[:, 0].tolist(), strict=True))


def test_a_condensed_chain_has_the_measures_of_the_whole() -> None:
    """Nine tenths of all transitions only start the chain anew, and are summed up by state."""
    case = Case.read(CLUSTER, config(), CARD, LOAD)
    condensed = solve(next(iter(case.patterns)), case.chain)
    whole = SolvedChain(condensed.chain.whole, case.chain)
    assert len(condensed.chain.source) < 0.25 * len(whole.chain.source)
    asked = case.timeouts, case.stalls, 2.0
    one, other = condensed.measures(*asked), whole.measures(*asked)
    assert one.states == other.states
    for name, causes in other.causes.items():
        assert one.causes[name] == pytest.approx(causes, rel=1e-9)
        assert one.errors[name] == pytest.approx(other.errors[name], rel=1e-9)
    for mine, its in zip(one.losses, other.losses, strict=True):
        assert mine.first.mean_hours == pytest.approx(its.first.mean_hours, rel=1e-9)
        assert by_kind(mine) == pytest.approx(by_kind(its), rel=1e-9)
        assert {k: v[0] for k, v in mine.visits.items()} == pytest.approx(
            {k: v[0] for k, v in its.visits.items()}, rel=1e-9
        )
        assert mine.struck.keys() == its.struck.keys()
        for mechanism, picked in its.picked.items():
            assert mine.picked[mechanism].chances == pytest.approx(picked.chances, rel=1e-9)


def test_no_rate_is_dropped_from_a_condensed_chain() -> None:
    """Every state is left as often, and each name of a rate is among what is summed up or not."""
    case = Case.read(CLUSTER, config(), CARD, LOAD)
    condensed = solve(next(iter(case.patterns)), case.chain)
    chain, whole = condensed.chain, condensed.chain.whole
    assert chain.restarts is not None
    size = whole.states, len(whole.rate_names)
    every = np.zeros(size)
    np.add.at(every, (whole.source, whole.rate), whole.weight)
    parts = chain.restarts.toarray()
    np.add.at(parts, (chain.source, chain.rate), chain.weight)
    np.testing.assert_allclose(parts, every, rtol=1e-12)
    fewer = chain.restarts.copy()
    fewer.data[0] = 0.0
    off = SolvedChain(replace(chain, restarts=fewer), case.chain)
    assert abs(off.pi - condensed.pi).max() > 0.0
