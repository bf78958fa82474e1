"""Sets that a group stands for: the same events and totals as when each set is followed."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from advisor import Cluster, Workload, evaluate
from advisor.reliability.sampler import block as blocks
from advisor.reliability.sampler import initial_state
from advisor.reliability.sampler import plan as plans
from advisor.reliability.sampler.block import Row, run_block
from advisor.reliability.sampler.plan import Bias, Block, Plan
from advisor.reliability.sampler.plan_reader import plan_for
from sampled_runs import (
    CONFIGS,
    FAR,
    QUIET,
    TRIO,
    card,
    off_by,
    sample,
    state_without_skipping,
)

# Nothing is destroyed: copies of many sets end one after another, in an order that is drawn.
OFTEN = card(
    broker_crash={"per_year": 40.0, "minutes": 300.0},
    broker_power={"per_year": 20.0, "minutes": 180.0},
    broker_lag={"per_year": 40.0, "minutes": 30.0},
    broker_gray={"per_year": 10.0, "minutes": 120.0, "dies": 0.3},
    broker_restart={"per_year": 20.0, "minutes": 30.0, "overlap": 0.2, "unclean": 0.1},
    rack_network={"per_year": 3.0, "minutes": 120.0, "spreads": 0.2},
    rack_power={"per_year": 2.0, "minutes": 120.0, "spreads": 0.1},
    cluster_crash={"per_year": 1.0, "minutes": 120.0, "brokers": 0.7},
    cluster_power={"per_year": 1.0, "minutes": 120.0},
    cluster_controller={"per_year": 3.0, "minutes": 240.0, "stops": 0.5},
)
"""A card on which outages overlap all the time."""


def both(plan: Plan, years: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Row, Row]:
    """The same block with every set followed, and with groups.

    No outages are skipped: from when they can be depends on what is followed.
    """
    monkeypatch.setattr(blocks, "new_state", state_without_skipping)
    rows = []
    for fewest in (10**9, 0):
        monkeypatch.setattr(plans, "_FEWEST_BY_GROUP", fewest)
        initial_state._first_state.cache_clear()
        rows.append(run_block(plan, Block(11, 0, years)))
    initial_state._first_state.cache_clear()
    return rows[0], rows[1]


def totals(row: Row) -> Any:
    """By page, row and cause; what is drawn at a loss left out: each group draws once."""
    return np.array(row.causes).reshape(2, 7, -1)[:, :-1]


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize(("brokers", "racks", "partitions"), [(4, 2, 30), (6, 3, 40), (9, 9, 200)])
def test_a_group_is_what_its_sets_are(
    name: str, brokers: int, racks: int, partitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that is counted differs by more than rounding, with every kind of outage."""
    cluster, load = (
        Cluster.uniform(brokers, racks),
        Workload(partitions=partitions, records_per_second=1e9),
    )
    each, grouped = both(plan_for(cluster, CONFIGS[name], OFTEN, load), 30, monkeypatch)
    assert each.events > 1_000
    assert each.hours == grouped.hours
    assert each.events == grouped.events
    np.testing.assert_allclose(totals(grouped), totals(each), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(grouped.outages, each.outages, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["RF 3", "any leader"])
def test_so_it_is_in_cycles(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures that are brought about find the same sets, whether groups stand for them or not."""
    load = Workload(partitions=60, records_per_second=1e9)
    plan = plan_for(Cluster.uniform(6, 3), CONFIGS[name], OFTEN, load)
    happens = np.array([kind.per_hour > 0.0 for kind in strikes(plan)])
    even = tuple((happens / happens.sum()).tolist())
    bias = Bias(
        beginning=even,
        following=(even,) * len(even),
        plain=0.2,
        overlaps=1.0,
        finds_losses=True,
        steps=1.0,
        outages=0.0,
    )
    each, grouped = both(replace(plan, bias=bias), 2, monkeypatch)
    assert each.events > 1_000
    assert each.hours == pytest.approx(grouped.hours, rel=1e-12)
    assert each.cycles == pytest.approx(grouped.cycles, rel=1e-9)
    np.testing.assert_allclose(totals(grouped), totals(each), rtol=1e-9, atol=1e-9)


def strikes(plan: Plan) -> Any:
    """What can strike."""
    return initial_state.new_state(plan).strikes.view(np.recarray)


def test_copies_of_a_group_are_each_their_own() -> None:
    """With replaced brokers, samples with groups agree with the exact chain."""
    model = card(
        broker_destroyed={"per_year": 2.0, "hours": 100.0},
        broker_crash={"per_year": 12.0, "minutes": 600.0},
        rack_power={"per_year": 0.5, "minutes": 300.0, "not_returning": 0.3},
    )
    cluster, load = Cluster.uniform(6, 3), replace(QUIET, partitions=60)
    exact = evaluate(cluster, TRIO, model, load)
    found, rows = sample(cluster, TRIO, model, load, years=4_000)
    assert plan_for(cluster, TRIO, model, load).by_groups
    assert sum(row.first_losses for row in rows) > 100
    for measure in ("write_unavailability", "read_unavailability", "loss_events_per_year"):
        assert abs(off_by(getattr(found, measure), getattr(exact, measure))) < FAR, measure
