"""The exact answer against sampled years, over a grid of configurations, cards and clusters.

Every comparison is a z-score: sampled minus exact in standard errors of the sample. If both sides
are right, those of one measure are draws from the standard normal distribution, each from a seed
of its own. With some 350 of them, one beyond 4 has a chance of 2 %.
"""

import math
from collections import defaultdict

import pytest
from scipy import stats

from advisor import Cluster, Config, Workload, evaluate, load_model, simulate
from advisor.reliability import measure_table
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.sampled import Sampled
from advisor.reliability.sampler.plan_reader import plan_for
from agreement_of_samples import Deviation, deviations, table
from configuration_grid import Case, grid
from sampled_runs import FAR

# About half a CPU second each.
EVENTS = 8e6
# Each of some twenty statements about all z-scores may fail once in ten thousand right runs.
UNLIKELY = 1e-4

Compared = list[tuple[str, Deviation]]


def run(case: Case, seed: int) -> tuple[Reliability, Sampled]:
    """Compute and sample one case, for as many years as hold so many events."""
    plan = plan_for(case.cluster, case.config, case.model, case.load)
    years = max(1000, int(EVENTS / 2.0 / plan.strikes_per_year))
    question = (case.cluster, case.config, case.model, case.load)
    asked = {"years": years, "seed": seed, "engine": "local", "method": "crude"}
    return evaluate(*question), simulate(*question, **asked)


@pytest.fixture(scope="module")
def compared() -> Compared:
    """Compare every case of the grid."""
    return [
        (case.name, found)
        for seed, case in enumerate(grid(), start=1001)
        for found in deviations(*run(case, seed))
    ]


def by_measure(compared: Compared) -> dict[str, list[float]]:
    """Return the z-scores of each measure."""
    scores: dict[str, list[float]] = defaultdict(list)
    for _, found in compared:
        scores[found.measure].append(found.z)
    return scores


def test_the_grid_is_wide() -> None:
    """At least 60 cases: all shipped cards, RF 1 to 3, every acks, min ISR, unclean, ELR, racks."""
    cases = list(grid())
    assert len(cases) >= 60
    assert len({case.name for case in cases}) == len(cases)
    configs = [case.config for case in cases]
    assert {c.replication_factor for c in configs} == {1, 2, 3}
    assert {c.acks for c in configs} == {"all", 1, 0}
    assert {c.min_insync_replicas for c in configs} == {1, 2, 3}
    assert {c.unclean_leader_election_enable for c in configs} == {True, False}
    assert {c.eligible_leader_replicas for c in configs} == {True, False}
    assert {len(case.cluster.racks) for case in cases} == {1, 2, 3}


def test_no_score_is_far_off(compared: Compared) -> None:
    """No measure of any case is more than four standard errors from what was computed."""
    far = [row for row in compared if abs(row[1].z) > FAR]
    assert not far, "\n" + table(compared)


def test_every_measure_is_compared(compared: Compared) -> None:
    """Each measure is compared often enough to show a drift, and losses of three replicas too."""
    scores = by_measure(compared)
    assert set(scores) == set(measure_table.names())
    assert min(map(len, scores.values())) >= 12, {name: len(z) for name, z in scores.items()}
    triples = [d for name, d in compared if "replication_factor=3" in name]
    assert sum(d.measure == "loss_events_per_year" for d in triples) >= 6


@pytest.mark.parametrize("measure", measure_table.names())
def test_no_measure_drifts(compared: Compared, measure: str) -> None:
    """The mean of a measure's z-scores is within four standard errors of nought."""
    scores = by_measure(compared)[measure]
    assert abs(math.fsum(scores)) / math.sqrt(len(scores)) < FAR, "\n" + table(compared)


@pytest.mark.parametrize("measure", measure_table.names())
def test_no_measure_scatters_wrongly(compared: Compared, measure: str) -> None:
    """The squares of a measure's z-scores add up as chi-square has it; the scores are normal."""
    scores = by_measure(compared)[measure]
    squares = stats.chi2(len(scores))
    total = math.fsum(z * z for z in scores)
    assert UNLIKELY < squares.cdf(total) < 1.0 - UNLIKELY, "\n" + table(compared)
    assert stats.kstest(scores, "norm").pvalue > UNLIKELY, "\n" + table(compared)


CASE = Case(
    "one replica",
    Cluster.uniform(1, 1),
    Config(replication_factor=1),
    load_model("bare_metal_racks"),
    Workload(records_per_second=1.0, retention_hours=1.0),
)


def test_a_wrong_rate_is_seen() -> None:
    """A card whose hosts die half as often again is distinguished from the one that was sampled.

    With n losses and half of them or more due to that, a quarter more is sqrt(n) / 4 errors off.
    """
    exact, sampled = run(CASE, seed=3)
    assert exact.causes["loss_events_per_year"]["broker.power"] > 0.5 * (exact.loss_events_per_year)
    assert math.sqrt(sampled.years / exact.mean_years_to_loss) / 4.0 > 2.0 * FAR
    rate = 1.5 * CASE.model["broker.power.per_year"]
    wrong = evaluate(
        CASE.cluster,
        CASE.config,
        CASE.model.with_values({"broker.power.per_year": rate}),
        CASE.load,
    )
    scores = {d.measure: d.z for d in deviations(wrong, sampled)}
    assert scores["loss_events_per_year"] < -FAR
    assert scores["loss_probability_per_year"] < -FAR
    assert scores["mean_years_to_loss"] > FAR


def test_too_few_events_are_not_compared() -> None:
    """What a sample cannot have seen a hundred times is left out, whatever it saw."""
    exact = evaluate(*CASE[1:])
    sampled = simulate(*CASE[1:], years=120, seed=1, engine="local")
    # Once in 1.7 years: 72 losses.
    assert 50 < 120 / exact.mean_years_to_loss < 100
    assert not {d.measure for d in deviations(exact, sampled)} & set(measure_table.names()[:4])


def test_the_table_puts_the_farthest_first() -> None:
    """One line a comparison, sorted by distance, with the name of the case."""
    near = Deviation("write_unavailability", 1.0, 1.01, 400.0, 0.5)
    far = Deviation("loss_events_per_year", 2.0, 1.5, 300.0, -3.0)
    lines = table([("this", near), ("that", far)]).splitlines()
    assert lines[1].split()[0] == "-3.00"
    assert lines[1].endswith("loss_events_per_year, that")
    assert lines[2].endswith("write_unavailability, this")
