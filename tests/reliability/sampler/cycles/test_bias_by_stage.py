"""Where the pilot is unsure, what is forced next depends on how many replicas a set lacks."""

from dataclasses import replace

import pytest

from advisor import Cluster, Config, FailureModel, Workload, evaluate
from advisor.reliability.results.sampled import Sampled
from advisor.reliability.sampler.block_cutting import cut_into_blocks
from advisor.reliability.sampler.cycles import pilot
from advisor.reliability.sampler.cycles.block import run_block
from advisor.reliability.sampler.estimators import merge
from advisor.reliability.sampler.plan import Bias, Plan
from advisor.reliability.sampler.plan_reader import plan_for
from sampled_runs import FAR, QUIET, TRIO, card, off_by

ONE = replace(QUIET, partitions=1)
# Most losses of three or more replicas need destroyed brokers, and then one short outage.
OUTAGES = card(
    broker_destroyed={"per_year": 0.05, "hours": 24.0, "shape": 0.5},
    broker_crash={"per_year": 1.0, "minutes": 5.0},
    broker_restart={"per_year": 12.0, "minutes": 8.0},
    broker_power={"per_year": 0.4, "minutes": 30.0},
    flush={"seconds": 35.0},
)


def merged(
    plan: Plan, cycles: int, config: Config, model: FailureModel, load: Workload, cluster: Cluster
) -> Sampled:
    """Sample about so many cycles here."""
    assert plan.bias is not None
    years = round(cycles / (plan.strikes_per_year * plan.bias.overlaps))
    blocks = cut_into_blocks(plan, years, seed=3)
    rows = [run_block(plan, block) for block in blocks]
    return merge(rows, blocks, plan, config=config, model=model, load=load, cluster=cluster)


def staged(bias: Bias, replicas: int) -> Bias:
    """The same bias for each stage but the last, where likely and unlikely kinds change places."""
    last = []
    for row in bias.following:
        happening = [chance for chance in row if chance > 0.0]
        last.append(tuple(happening.pop() if chance > 0.0 else 0.0 for chance in row))
    return replace(bias, following=bias.following * (replicas - 1) + tuple(last))


def test_its_cycles_have_the_means_of_the_cluster_as_it_is() -> None:
    """A bias that differs by stage changes the variance, not the mean."""
    three = Cluster.uniform(3)
    plan = plan_for(three, TRIO, OUTAGES, ONE)
    bias = staged(pilot.find_bias(plan, 3).bias, 3)
    assert bias.by_stage
    found = merged(replace(plan, bias=bias), 60_000, TRIO, OUTAGES, ONE, three)
    exact = evaluate(three, TRIO, OUTAGES, ONE)
    for measure in ("loss_events_per_year", "acked_records_lost_per_year", "write_unavailability"):
        estimate = found.estimate(measure)
        assert estimate.seen, measure
        assert abs(off_by(estimate, getattr(exact, measure))) < FAR, measure


def test_an_unsure_pilot_learns_by_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four replicas two are destroyed and then one loses power: before that it seldom does."""
    monkeypatch.setattr(pilot, "_RUNS", pilot._RUNS[:2])
    monkeypatch.setattr(pilot, "_MOST_STEPS", 1_000_000)
    config, six = Config(replication_factor=4, min_insync_replicas=3), Cluster.uniform(6, 6)
    plan = plan_for(six, config, OUTAGES, ONE)
    bias = pilot.find_bias(plan, 0).bias
    assert bias.by_stage
    assert bias.finds_losses
    kinds = [kind.full_name for kind in plan.table.kinds]
    destroyed, power = kinds.index("broker.destroyed"), kinds.index("broker.power")
    one, two, three = (bias.following[i * len(kinds) + destroyed] for i in (1, 2, 3))
    assert two[power] > 1.5 * one[power]
    assert three[destroyed] > 1.5 * two[destroyed]
    found = merged(replace(plan, bias=bias), 30_000, config, OUTAGES, ONE, six)
    exact = evaluate(six, config, OUTAGES, ONE).loss_probability_per_year
    assert abs(off_by(found.loss_probability_per_year, exact)) < FAR
    assert found.weights is not None
    assert found.weights.effective > 50.0


def test_where_no_loss_was_seen_there_are_no_stages() -> None:
    """Where nothing is ever lost, a pilot by stage would only take time."""
    crashes = card(broker_crash={"per_year": 1.0, "minutes": 5.0})
    plan = plan_for(Cluster.uniform(3), TRIO, crashes, ONE)
    runs: list[int] = []
    assert not pilot.find_bias(plan, 0, runs.append).bias.by_stage
    assert len(runs) == len(pilot._RUNS)
