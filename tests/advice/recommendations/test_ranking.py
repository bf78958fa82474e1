"""The recommended setting: never dominated, no replica for nothing, no risk in silence."""

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.advice import Goals
from advisor.advice.choice import Choice
from advisor.advice.recommendations import ranking
from advisor.advice.recommendations.search import search
from advisor.cluster import Cluster, load_cluster
from advisor.formatting import significant, time_per_year
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel, load_model
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.sensitivity import draws_below
from advisor.reliability.workload import Workload

LOAD = Workload(partitions=3)
CLUSTERS = (
    Cluster.uniform(brokers=1, racks=1),
    Cluster.uniform(brokers=2, racks=2),
    Cluster.uniform(brokers=3, racks=1),
    Cluster.uniform(brokers=3, racks=3),
    Cluster.uniform(brokers=4, racks=2),
)
CARDS = (
    FailureModel.from_dict({"broker": {"destroyed": {"per_year": 1, "hours": 12}}}),
    FailureModel.from_dict(
        {
            "broker": {
                "crash": {"per_year": 2, "minutes": 5},
                "restart": {"per_year": 12, "minutes": 8},
                "power": {"per_year": 0.2, "minutes": 10},
            },
            "flush": {"seconds": 30},
        }
    ),
    FailureModel.from_dict(
        {
            "broker": {"destroyed": {"per_year": 0.1, "hours": 12}},
            "rack": {"network": {"per_year": 0.5, "minutes": 30}},
            "cluster": {"power": {"per_year": 0.05, "minutes": 60}},
        }
    ),
)
LIMITS = st.one_of(st.none(), st.sampled_from([1e-9, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0]))
COUNTS = st.one_of(st.none(), st.sampled_from([0.0, 1.0, 100.0, 1e4, 1e6]))
GOALS = st.builds(
    Goals,
    loss_probability_per_year=LIMITS,
    write_unavailability=LIMITS,
    read_unavailability=LIMITS,
    records_refused_per_year=COUNTS,
    acked_records_lost_per_year=COUNTS,
    survive=st.sampled_from([None, "rack", "broker"]),
)


@cache
def measured(cluster: int, card: int, config: Config) -> Reliability:
    return evaluate(CLUSTERS[cluster], config, CARDS[card], LOAD)


def searched(cluster: int, card: int, goals: Goals) -> tuple[Choice, ...]:
    def known(_: Cluster, config: Config, *__: object) -> Reliability:
        return measured(cluster, card, config)

    return search(known, CLUSTERS[cluster], CARDS[card], LOAD, goals).choices


def five(choice: Choice) -> tuple[float, ...]:
    """Loss probability, records lost, writes, refused records, and cost, but for rounding."""
    r = choice.reliability
    numbers = (
        r.loss_probability_per_year,
        r.acked_records_lost_per_year,
        r.write_unavailability,
        r.records_refused_per_year,
        r.cost.bytes_stored,
    )
    return tuple(float(f"{number:.9g}") for number in numbers)


def is_as_patient(one: Choice, other: Choice) -> bool:
    waits = [c.config.delivery_timeout_ms or 0 for c in (one, other)]
    return waits[0] <= waits[1]


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(CLUSTERS) - 1), st.integers(0, len(CARDS) - 1), GOALS)
def test_the_recommended_setting_is_never_dominated(cluster: int, card: int, goals: Goals) -> None:
    """No setting compared meets the same goals, costs as much, and is better in any measure."""
    best, *others = searched(cluster, card, goals)
    for other in others:
        meets_as_much = all(other.meets[goal] for goal, met in best.meets.items() if met)
        if meets_as_much and is_as_patient(other, best):
            pairs = list(zip(five(other), five(best), strict=True))
            assert not (all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)), other.name


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(CLUSTERS) - 1), st.integers(0, len(CARDS) - 1), GOALS)
def test_a_risk_is_only_taken_where_nothing_else_will_do(
    cluster: int, card: int, goals: Goals
) -> None:
    """A setting with fewer risks and no more replicas misses a goal, or is dominated."""
    choices = searched(cluster, card, goals)
    best = choices[0]
    if not best.meets_all:
        return
    for other in choices[1:]:
        if len(other.risks) < len(best.risks) and other.meets_all:
            assert any(ranking.dominates(third, other) for third in choices), other.name


def test_one_broker_keeps_acks_all() -> None:
    """With one replica both acks lose alike, but for rounding; acks=1 is a risk."""
    best = searched(0, 1, Goals())[0]
    assert best.config.replication_factor == 1
    assert best.config.acks == "all"


def test_severity_is_a_goal() -> None:
    """With loose goals acks=all keeps what RF 1 would lose; a limit on records excludes RF 1."""
    loose = {"loss_probability_per_year": 1.0, "write_unavailability": 0.01}
    best, *others = searched(3, 0, Goals(**loose))
    alone = next(c for c in others if c.config.replication_factor == 1)
    assert alone.meets_all
    assert best.name == "RF 3, min.insync.replicas 2, acks=all"
    lost = (c.reliability.acked_records_lost_per_year for c in (alone, best))
    assert next(lost) > 1e3 * next(lost)
    limited = searched(3, 0, Goals(acked_records_lost_per_year=1.0, **loose))
    assert not next(c for c in limited if c.config == alone.config).meets_all


RANGES = FailureModel.from_dict(
    {
        "broker": {
            "destroyed": {"per_year": {"value": 1, "low": 0.2, "high": 5}, "hours": 12},
            "crash": {"per_year": 2, "minutes": 5},
        }
    }
)


class AnyInterval(dict[str, tuple[float, float]]):
    """Intervals that are computed already, whatever is asked for."""

    def __missing__(self, key: str) -> tuple[float, float]:
        return (0.0, 1.0)


def lost_by_factor(shares: dict[int, float], draws: dict[int, tuple[float, ...]]) -> object:
    """Return an evaluation whose losses, and their draws, depend on the replication factor alone.

    Everything else is as good as can be with min ISR one below the replicas.
    """

    def made_up(_: Cluster, config: Config, model: FailureModel, __: Workload) -> Reliability:
        factor, least = config.replication_factor or 1, config.min_insync_replicas or 1
        real = measured(3, 0, config.changed(replication_factor=1, min_insync_replicas=1))
        fits = config.acks == "all" and least == max(factor - 1, 1)
        lost = shares.get(factor, 1.0) * (1.0 if fits else 50.0)
        times = draws.get(factor, (1.0, 1.0, 1.0))
        return replace(
            real,
            model=model,
            config=config,
            loss_probability_per_year=lost,
            loss_events_per_year=lost,
            acked_records_lost_per_year=lost,
            write_unavailability=1e-6,
            intervals=AnyInterval(known=(0.0, 1.0)),
            samples={"loss_events_per_year": tuple(lost * each for each in times)},
        )

    return made_up


@pytest.mark.parametrize(
    ("draws", "factor"),
    [
        # The same card is bad for both settings: only their ratio counts, and it is sure.
        ({3: (0.1, 1.0, 10.0), 4: (0.1, 1.0, 10.0)}, 4),
        # The ratio itself may be 1 or less.
        ({3: (0.1, 1.0, 10.0), 4: (0.1, 9.0, 100.0)}, 3),
        ({3: (1.0, 1.0, 1.0), 4: (10.0, 1.0, 0.1)}, 3),
        # Better in 31 of 32 draws is sure, however far the gains lie apart; in 30 it is not.
        ({3: (1.0,) * 32, 4: (20.0,) + (5.0,) * 16 + (1e-4,) * 15}, 4),
        ({3: (1.0,) * 32, 4: (20.0, 20.0) + (5.0,) * 15 + (1e-4,) * 15}, 3),
    ],
)
def test_a_replica_must_pay_on_the_same_draws(
    draws: dict[int, tuple[float, ...]], factor: int
) -> None:
    """RF 4 meets a goal that RF 3 misses; it wins if its gain is beyond the uncertainty."""
    six = Cluster.uniform(brokers=6, racks=None)
    made_up = lost_by_factor({1: 0.9, 2: 0.5, 3: 2e-3, 4: 2e-4, 5: 2e-4}, draws)
    goals = Goals(loss_probability_per_year=1e-3)
    answer = search(made_up, six, RANGES, LOAD, goals)
    assert answer.best.config.replication_factor == factor
    if factor == 3:
        why = " ".join(answer.why)
        assert "RF 4, min.insync.replicas 3, acks=all would meet the goal for lost records" in why
        assert "so the difference is not certain" in why
        assert "stored instead of" in why


def test_no_replicas_for_a_tenth_less() -> None:
    """P = 0.1107 with three replicas and 0.1005 with five, which meets the goal: RF 3 it is."""
    thirty = Cluster.uniform(brokers=30, racks=None)
    made_up = lost_by_factor(
        {1: 1.0, 2: 0.9, 3: 0.1107, 4: 0.12, 5: 0.1005}, {3: (1.0, 1.3, 0.8), 5: (1.0, 1.5, 0.75)}
    )
    answer = search(made_up, thirty, RANGES, LOAD, Goals(loss_probability_per_year=0.105))
    assert answer.best.name == "RF 3, min.insync.replicas 2, acks=all"
    assert not answer.best.meets_all
    assert "No setting is sure to meet every goal; this one misses" in answer.caveats[0]


def test_draws_are_compared_one_by_one() -> None:
    """Min ISR 2 loses less than 1 in each draw of the card, though their intervals overlap."""
    cluster, load = Cluster.uniform(brokers=3, racks=3), Workload(partitions=1)
    two, three = (
        evaluate(
            cluster,
            Config(replication_factor=3, min_insync_replicas=least, acks="all"),
            RANGES,
            load,
        )
        for least in (1, 2)
    )
    measure = "loss_events_per_year"
    assert draws_below(three, two, measure, 1.0) == (32, 32)
    assert two.interval(measure)[0] < three.interval(measure)[1]
    gains = [a / b for a, b in zip(two.samples[measure], three.samples[measure], strict=True)]
    middle = sorted(gains)[15]
    assert draws_below(three, two, measure, middle * 1.001) == (
        sum(gain > middle * 1.001 for gain in gains),
        32,
    )
    assert draws_below(two, three, measure, 1.0) == (0, 32)
    assert draws_below(two, two, measure, 1.0) == (0, 32)
    sure = [evaluate(cluster, result.config, CARDS[0], load) for result in (two, three)]
    assert draws_below(sure[1], sure[0], measure, 1.0) == (1, 1)


TWO_BROKERS = (
    "Topic: requests\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: min.insync.replicas=2\n"
    "\tTopic: requests\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n"
    "\tTopic: requests\tPartition: 1\tLeader: 2\tReplicas: 2,1\tIsr: 2,1\n"
)


def test_a_setting_that_is_better_in_every_draw_is_recommended() -> None:
    """Two zones: RF 2 with min ISR 1 refuses fewer writes than RF 1 in 32 of 32 draws."""
    cluster = load_cluster(TWO_BROKERS).with_racks({1: "a", 2: "b"})
    answer = search(evaluate, cluster, load_model("two_az"), kafka_version="3.9")
    assert answer.best.name == "RF 2, min.insync.replicas 1, acks=all"
    single = next(c for c in answer.choices if c.config.replication_factor == 1)
    goal = "write_unavailability"
    assert ranking.better_draws(answer.best, single, goal) == (32, 32)
    # Also without the fence around a single replica: the draws decide.
    assert ranking.ranked(answer.choices, answer.goals)[0].name == answer.best.name


@pytest.mark.parametrize(
    ("brokers", "replicas", "fewest"),
    [(1, None, 1), (2, None, 2), (3, None, 2), (2, 1, 2), (3, 3, 3), (5, 4, 4), (2, 3, 2)],
)
def test_no_fewer_replicas_than_today_nor_one_of_two_brokers(
    brokers: int, replicas: int | None, fewest: int
) -> None:
    """Fewer replicas would meet the goals: the fewest allowed are recommended, and it is said."""

    def alone_is_best(_: Cluster, config: Config, model: FailureModel, __: Workload) -> Reliability:
        factor = config.replication_factor or 1
        real = measured(3, 0, config.changed(replication_factor=1, min_insync_replicas=1))
        lost = 1e-9 * 10.0**factor
        return replace(
            *(real,),
            **dict.fromkeys(("loss_probability_per_year", "loss_events_per_year"), lost),
            **dict.fromkeys(("acked_records_lost_per_year", "records_refused_per_year"), lost),
            config=config,
            model=model,
            write_unavailability=lost,
        )

    current = None
    if replicas is not None:
        current = Config(replication_factor=replicas, min_insync_replicas=1, acks="all")
    cluster = Cluster.uniform(brokers=brokers, racks=None)
    limit = 1e-9 * 10.0 ** (fewest - 0.5)
    goals = Goals(loss_probability_per_year=limit, write_unavailability=1.0)
    for allow in (False, True):
        answer = search(
            *(alone_is_best, cluster, CARDS[0], LOAD, goals, current),
            allow_lower_durability=allow,
        )
        assert answer.best.config.replication_factor == fewest
        # Fewer are still shown, below all that may be recommended.
        factors = [choice.config.replication_factor or 1 for choice in answer.choices]
        assert min(factors) == 1
        assert [f >= fewest for f in factors] == sorted(
            (f >= fewest for f in factors), reverse=True
        )
        said = f"No setting with {fewest} replicas or more meets every goal; this one misses"
        assert any(caveat.startswith(said) for caveat in answer.caveats) == (fewest > 1)
        words = "no plan takes replicas away, or leaves one where two brokers are."
        assert any(reason.endswith(words) for reason in answer.why) == (fewest > 1)


def test_risks_are_said_first_and_last() -> None:
    """A loss goal alone takes RF 3/3: the verdict says the risk, and so do the findings."""
    lag = {"per_year": 50, "minutes": 60}
    destroyed = {"per_year": 1, "hours": 12}
    card = FailureModel.from_dict({"broker": {"destroyed": destroyed, "lag": lag}})
    cluster = CLUSTERS[3]
    more, most = (
        evaluate(cluster, Config(replication_factor=3, min_insync_replicas=least), card, LOAD)
        for least in (2, 3)
    )
    between = (more.loss_probability_per_year * most.loss_probability_per_year) ** 0.5
    assert between > 1.1 * most.loss_probability_per_year
    goals = Goals(loss_probability_per_year=between, write_unavailability=None)
    answer = search(evaluate, cluster, card, LOAD, goals)
    assert answer.best.config.min_insync_replicas == 3
    assert "no setting without risks meets the goals" in answer.caveats[-1]
    assert (
        "An audit calls it a risk that min.insync.replicas equals the replication factor (KRA102)"
    ) in answer.caveats[-1]
    (found,) = [f for f in answer.findings if f.code == "KRA102"]
    assert found.detail == "as recommended here, min ISR and RF are both 3."
    loose = Goals(loss_probability_per_year=0.1, write_unavailability=0.1)
    usual = search(evaluate, cluster, card, LOAD, loose)
    assert usual.best.risks == ()
    assert usual.caveats == ()
    why = " ".join(usual.why)
    assert "but an audit calls it a risk that" in why or "RF 2 is too few" in why
    assert "It costs " in why


def test_two_brokers_are_told_what_min_isr_two_would_do() -> None:
    """RF 2 with min ISR 1 is advised for its writes: losses and downtime of the other are said."""
    card = FailureModel.from_dict(
        {
            "broker": {
                "destroyed": {"per_year": 1, "hours": 12},
                "lag": {"per_year": 50, "minutes": 60},
            }
        }
    )
    two = Cluster.uniform(brokers=2, racks=None)
    answer = search(evaluate, two, card, LOAD, Goals())
    assert answer.best.name.startswith("RF 2, min.insync.replicas 1, acks=all")
    (other,) = [c for c in answer.choices if c.name == "RF 2, min.insync.replicas 2, acks=all"][:1]
    rarer = other.reliability.mean_years_to_loss / answer.best.reliability.mean_years_to_loss
    assert rarer > 2.0
    downtime = [time_per_year(c.reliability.write_unavailability) for c in (other, answer.best)]
    trade = (
        f"min.insync.replicas 2 would lose data {significant(rarer)} times less "
        f"often, but refuse writes {downtime[0]} instead of {downtime[1]}."
    )
    assert answer.caveats[-1].endswith(
        f"no setting without this risk is sure to do better on your goals. {trade}"
    )
    assert not any("With min.insync.replicas 2" in reason for reason in answer.why)
    assert trade in answer.explain()
    assert trade in repr(answer)


@pytest.mark.parametrize(
    ("settings_", "codes"),
    [
        ({"replication_factor": 1}, {"KRA204"}),
        ({"replication_factor": 2, "min_insync_replicas": 2}, {"KRA102"}),
        ({"replication_factor": 3, "min_insync_replicas": 3}, {"KRA102"}),
        ({"replication_factor": 3, "min_insync_replicas": 1}, {"KRA101"}),
        ({"replication_factor": 3, "min_insync_replicas": 1, "acks": 1}, {"KRA101", "KRA404"}),
        ({"replication_factor": 3, "min_insync_replicas": 2}, set()),
        ({"replication_factor": 3, "min_insync_replicas": 2, "retries": 0}, {"KRA403"}),
    ],
)
def test_risks_are_those_of_the_audit(settings_: dict[str, object], codes: set[str]) -> None:
    """What the audit's checks call a risk of such a topic and such producers."""
    config = Config(**{"acks": "all", **settings_})
    choice = Choice(config, measured(3, 0, config), {}, None)
    assert {risk.code for risk in choice.risks} == codes
