"""Importance sampling: cycles with likelier failures have the means of the cluster as it is."""

import math
from dataclasses import replace

import numpy as np
import pytest

from advisor import Cluster, Config, FailureModel, Workload, evaluate, load_model
from advisor.reliability.patching import without_cluster_wide
from advisor.reliability.results.sampled import Sampled
from advisor.reliability.sampler.block import run_block
from advisor.reliability.sampler.cycles.pilot import _Knowledge, find_bias
from advisor.reliability.sampler.estimators import merge
from advisor.reliability.sampler.plan import Plan, cut_into_blocks
from advisor.reliability.sampler.plan_reader import plan_for
from sampled_runs import FAR, QUIET, TRIO, card, off_by

RARE = ("loss_events_per_year", "acked_records_lost_per_year")
OFTEN = ("write_unavailability", "read_unavailability", "records_refused_per_year")
ZONES = Cluster.uniform(brokers=6, racks=3)
DESTROYED = card(broker_destroyed={"per_year": 0.2, "hours": 12.0})


def biased(cluster: Cluster, config: Config, model: FailureModel, load: Workload) -> Plan:
    """A plan with the bias that its pilot finds."""
    plan = plan_for(cluster, config, model, load)
    return replace(plan, bias=find_bias(plan, 3).bias)


def sampled(
    cluster: Cluster, config: Config, model: FailureModel, load: Workload, years: int
) -> Sampled:
    """Sample cycles here."""
    plan = biased(cluster, config, model, load)
    blocks = cut_into_blocks(plan, years, seed=3)
    rows = [run_block(plan, block) for block in blocks]
    return merge(rows, blocks, plan, config=config, model=model, load=load, cluster=cluster)


@pytest.mark.parametrize(
    ("replicas", "min_isr", "acks", "name"),
    [
        (2, 1, "all", "single_rack"),
        (3, 2, "all", "three_az_cloud"),
        (3, 1, 1, "bare_metal_racks"),
        (4, 2, "all", "two_az"),
    ],
)
def test_all_measures_agree_with_the_exact_answer(
    replicas: int, min_isr: int, acks: str | int, name: str
) -> None:
    """With every mechanism of a card, rare and frequent measures lie within four errors."""
    config = Config(replication_factor=replicas, min_insync_replicas=min_isr, acks=acks)
    model = without_cluster_wide(load_model(name))
    exact = evaluate(ZONES, config, model, QUIET)
    found = sampled(ZONES, config, model, QUIET, 30_000)
    for measure in (*RARE, *OFTEN):
        truth, estimate = getattr(exact, measure), found.estimate(measure)
        if truth > 0.0:
            assert estimate.seen, measure
            assert abs(off_by(estimate, truth)) < FAR, measure


@pytest.mark.parametrize(("replicas", "name"), [(3, "single_rack"), (4, "bare_metal_racks")])
def test_replicas_in_racks_of_their_own(replicas: int, name: str) -> None:
    """The pilot sees how a set is lost whose replicas have no rack in common."""
    config = Config(replication_factor=replicas, min_insync_replicas=replicas - 1)
    model, load = without_cluster_wide(load_model(name)), replace(QUIET, partitions=1)
    six = Cluster.uniform(6, 6)
    exact = evaluate(six, config, model, load).loss_probability_per_year
    plan = biased(six, config, model, load)
    assert plan.bias is not None
    assert plan.bias.finds_losses
    years = round(100_000 / (plan.strikes_per_year * plan.bias.overlaps))
    found = sampled(six, config, model, load, years).loss_probability_per_year
    assert abs(off_by(found, exact)) < FAR
    assert found.low < exact < found.high
    assert found.high < 3.0 * found.low


def test_what_no_loss_followed_is_followed_as_losses_are() -> None:
    """A rare failure that leads to losses is likely after a frequent one that led to none yet."""
    natural = np.array([0.9, 0.0999, 0.0001])
    following = np.array([natural, natural, natural])
    bias = _Knowledge(natural, natural, following, after_any=np.array([0.0, 0.0, 1.0])).bias
    assert bias.following[0][2] > 0.35
    assert all(math.isclose(sum(row), 1.0) for row in bias.following)


def test_a_loss_of_eleven_nines_gets_a_number() -> None:
    """What a million years as they come would not see is known to a few percent from few cycles."""
    rare = card(broker_destroyed={"per_year": 0.01, "hours": 12.0})
    load = replace(QUIET, partitions=1)
    three = Cluster.uniform(3)
    exact = evaluate(three, TRIO, rare, load).loss_probability_per_year
    found = sampled(three, TRIO, rare, load, 10**12)
    estimate = found.loss_probability_per_year
    assert exact < 1e-11
    assert (estimate.high - estimate.low) / estimate.value < 0.1
    assert abs(off_by(estimate, exact)) < FAR
    assert found.weights is not None
    assert found.weights.effective > 1000
    assert found.weights.largest_share < 0.01


def test_years_in_which_nothing_overlaps_are_skipped() -> None:
    """A year costs as many cycles as it has overlapping outages, whatever fails alone."""
    plan = biased(Cluster.uniform(3), TRIO, DESTROYED, replace(QUIET, partitions=1))
    assert plan.bias is not None
    # What strikes the broker that is out already is drawn, too.
    assert plan.bias.overlaps == pytest.approx(3 * 0.2 * 12.0 / 8760.0, rel=0.1)
    row = run_block(plan, cut_into_blocks(plan, 32 * 10**6, seed=3)[0])
    assert row.years == 10**6
    assert row.cycles[0] < 1e-2 * plan.strikes_per_year * row.years


def test_a_block_depends_on_plan_seed_and_number_alone() -> None:
    """Blocks run again, in another order, give the same numbers; another seed gives others."""
    plan = biased(ZONES, TRIO, load_model("three_az_cloud"), QUIET)
    blocks = cut_into_blocks(plan, 320, seed=5)[:3]
    first = [run_block(plan, block) for block in blocks]
    again = [run_block(plan, block) for block in reversed(blocks)]
    assert first == again[::-1]
    other = run_block(plan, replace(blocks[0], seed=6))
    assert other.causes != first[0].causes


def test_weights_average_to_one() -> None:
    """Hours between failures, and outages of one broker, are as often as the card says."""
    crash = card(broker_crash={"per_year": 12.0, "minutes": 30.0})
    config = Config(replication_factor=1, min_insync_replicas=1)
    load = replace(QUIET, partitions=1)
    found = sampled(Cluster.uniform(1, racks=None), config, crash, load, 10**7)
    away = 12.0 * 0.5 / 8760.0
    truth = away / (1.0 + away)
    assert math.isclose(found.write_unavailability.value, truth, rel_tol=0.05)
    assert found.write_unavailability.low < truth < found.write_unavailability.high


def test_outages_that_spread_and_logs_that_do_not_return_are_biased_apart() -> None:
    """A power outage of a rack that spreads loses unflushed records; the racks' logs return.

    Were both chances biased together, few losses would have most of the weight.
    """
    spreading = card(
        rack_power={"per_year": 0.05, "minutes": 464.0, "spreads": 0.001, "not_returning": 0.0023},
        broker_destroyed={"per_year": 1e-6, "hours": 2.0},
        broker_restart={"per_year": 12.0, "minutes": 8.0},
        flush={"seconds": 35.0},
    )
    config, load = Config(replication_factor=4, min_insync_replicas=3), replace(QUIET, partitions=1)
    cluster = Cluster.uniform(brokers=6, racks=6)
    exact = evaluate(cluster, config, spreading, load).loss_probability_per_year
    found = sampled(cluster, config, spreading, load, 400_000)
    assert found.weights is not None
    assert found.weights.effective > 60.0
    assert found.loss_probability_per_year.low < exact < found.loss_probability_per_year.high


def test_power_fails_before_the_last_writes_are_on_disk() -> None:
    """Two crashes stop the writes; power lost within 35 s of that loses some of them."""
    model = card(
        broker_crash={"per_year": 1.0, "minutes": 30.0},
        broker_power={"per_year": 0.4, "minutes": 30.0},
        broker_destroyed={"per_year": 0.01, "hours": 2.0},
        flush={"seconds": 35.0},
    )
    three, load = Cluster.uniform(3), replace(QUIET, partitions=1)
    exact = evaluate(three, TRIO, model, load).loss_probability_per_year
    found = sampled(three, TRIO, model, load, 2 * 10**7)
    assert found.weights is not None
    assert found.weights.effective > 70.0
    assert found.loss_probability_per_year.low < exact < found.loss_probability_per_year.high


@pytest.mark.parametrize("name", ["single_rack", "three_az_cloud"])
def test_a_bias_is_finite_after_outages_that_end_together(name: str) -> None:
    """Brokers of one outage come back at the same moment; no failure can come in between."""
    plan = plan_for(
        ZONES,
        Config(replication_factor=3, min_insync_replicas=2),
        without_cluster_wide(load_model(name)),
        replace(QUIET, partitions=1),
    )
    for seed in (2, 6, 7):
        bias = find_bias(plan, seed).bias
        assert np.isfinite([bias.beginning, *bias.following]).all()
        assert bias.overlaps > 0.0
        assert bias.finds_losses
