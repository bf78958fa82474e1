"""What is recommended for described topics and for a new one, with measures that are known."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from advisor.advice import Goals, Recommendation, recommend
from advisor.advice.goals import decades_short, judge
from advisor.advice.recommendations.recommendation import compared
from advisor.advice.situation import Situation, assumed_load, usual_config
from advisor.advice.tolerance import Survival
from advisor.cluster import Cluster, Partition, Topic
from advisor.decision.rule import MINUTES_PER_YEAR
from advisor.errors import InputError
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.workload import Workload

CARD = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 1, "hours": 12}}})
SIX = Cluster.uniform(brokers=6, racks=3)
TWO_RACKS = Cluster.uniform(brokers=4, racks=2)
LOAD = Workload(partitions=1)
ZONES = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}


def topic(name: str, *replicas: tuple[int, ...], min_isr: int | None = None) -> Topic:
    partitions = tuple(Partition(i, r[0], r, r) for i, r in enumerate(replicas))
    return Topic(name, partitions, {} if min_isr is None else {"min.insync.replicas": str(min_isr)})


def made_up(
    cluster: Cluster, config: Config, model: FailureModel, load: Workload, **placed: object
) -> Reliability:
    """Lose 10^-3 for each copy an acknowledgement needs, refuse less the more may be missing."""
    del placed
    real = evaluate(cluster, config.changed(replication_factor=1, min_insync_replicas=1), model)
    factor = config.replication_factor or 1
    least = min(config.min_insync_replicas or 1, factor) if config.acks == "all" else 0
    lost = 10.0 ** (-3 * least - 1)
    return replace(
        real,
        loss_probability_per_year=lost,
        loss_events_per_year=lost,
        acked_records_lost_per_year=lost,
        mean_years_to_loss=1 / lost,
        write_unavailability=10.0 ** (-3 * (factor - max(least, 1)) - 2),
        read_unavailability=10.0 ** (-3 * factor),
        records_refused_per_year=1e6 / (config.delivery_timeout_ms or 1),
        config=config,
        load=load,
        intervals={},
    )


def advised(cluster: Cluster = SIX, **options: Any) -> Recommendation:
    goals = options.pop("goals", None)
    return recommend(cluster, CARD, options.pop("load", LOAD), goals, evaluated=made_up, **options)


def best(cluster: Cluster = SIX, **goals: object) -> tuple[int | None, int | None, object]:
    config = advised(cluster, goals=Goals(**goals)).best.config
    return config.replication_factor, config.min_insync_replicas, config.acks


def test_the_price_of_a_loss_decides() -> None:
    """Costs by hand: 5 minutes and 1e-7 losses with min ISR 2, 0.005 and 1e-4 with min ISR 1."""
    minutes = [10.0 ** (-3 * spare - 2) * MINUTES_PER_YEAR for spare in (1, 2)]
    price = (minutes[0] - minutes[1]) / (1e-4 - 1e-7)
    # A new topic keeps the usual setting unless another is ten minutes better.
    assert best() == best(minutes_per_loss=1.01 * price) == (3, 2, "all")
    assert best(minutes_per_loss=0.5) == (3, 2, "all")
    today = Config(replication_factor=3, min_insync_replicas=3, acks="all")
    for worth, least in ((0.99 * price, 1), (1.01 * price, 2)):
        answer = advised(current=today, goals=Goals(minutes_per_loss=worth))
        assert answer.best.config.min_insync_replicas == least, worth


def test_more_replicas_are_for_goals_only() -> None:
    """A limit that no min ISR meets with three replicas, and one that four do not meet either."""
    assert best(loss_probability_per_year=1e-3) == (3, 2, "all")
    assert best(loss_probability_per_year=1e-8, write_unavailability=1e-4) == (4, 3, "all")
    strict = advised(goals=Goals(loss_probability_per_year=1e-30))
    (outcome,) = strict.quick_verdict.actions[0].goals
    assert (outcome.state, strict.best.config.replication_factor) == ("out of reach", 3)
    assert outcome.best == pytest.approx(1e-16)
    assert not strict.best.meets_all
    assert any("out of reach" in line for line in strict.below_verdict)


def test_two_racks_never_survive_one() -> None:
    """The goal is said to be out of reach; where racks are unknown it is refused."""
    answer = advised(TWO_RACKS, goals=Goals(survive="rack"))
    (outcome,) = answer.quick_verdict.actions[0].goals
    assert (outcome.goal, outcome.state) == ("survive", "out of reach")
    assert "Two racks never give both" in answer.rack_rule
    unknown = Cluster.uniform(brokers=3, racks=None)
    with pytest.raises(InputError, match="needs the rack of every broker"):
        repr(advised(unknown, goals=Goals(survive="rack")))
    assert advised(unknown, goals=Goals(survive="broker")).best.meets_all


def test_a_new_topic_is_told_what_to_set() -> None:
    """No topic, no setting today: nothing is kept and nothing was lost before."""
    for brokers, words in ((1, "RF 1, min ISR 1"), (2, "RF 2, min ISR 1"), (3, "RF 3, min ISR 2")):
        verdict = advised(Cluster.uniform(brokers, racks=None)).quick_verdict
        assert verdict.headline == f"Set {words}, acks=all."
        assert "oday" not in str(verdict)
        assert [action.severity for action in verdict.actions] == ["ok"]
    today = Config(replication_factor=3, min_insync_replicas=2, acks="all")
    assert advised(current=today).quick_verdict.headline == "Keep RF 3, min ISR 2, acks=all."


@pytest.mark.parametrize("partitions", [1, 12, 120])
def test_the_number_of_partitions_changes_nothing(partitions: int) -> None:
    """Partitions that lose at the same moment count once; here with the exact model."""
    card = FailureModel.from_dict(
        {
            "broker": {
                "crash": {"per_year": 2, "minutes": 5},
                "lag": {"per_year": 10, "minutes": 10},
                "destroyed": {"per_year": 0.05, "hours": 12},
            },
            "rack": {"network": {"per_year": 0.1, "minutes": 60}},
        }
    )
    answer = recommend(SIX, card, Workload(partitions=partitions))
    assert answer.quick_verdict.headline == "Set RF 3, min ISR 2, acks=all."


ORDERS = topic("orders", (1, 2, 3), (4, 5, 6), min_isr=2)
STRICT = topic("strict", (1, 2, 3), min_isr=3)
SINGLE = topic("single", (1,))
OFFSETS = topic("__consumer_offsets", (1,))


def test_every_topic_has_its_own_plan() -> None:
    """What is well stays, what waits for consent is held back, the rest is written."""
    cluster = Cluster(ZONES, (ORDERS, STRICT, SINGLE, OFFSETS), kafka_version="4.1")
    dear = Goals(minutes_per_loss=1e6)
    held = advised(cluster, goals=dear)
    actions = {action.topic: action for action in held.quick_verdict.actions}
    assert {name for name, a in actions.items() if a.set_to} == {
        "strict",
        "single",
        "__consumer_offsets",
    }
    assert [name for name, a in actions.items() if a.held_back] == ["strict"]
    lowered = "topic strict: min.insync.replicas from 3 to 2"
    assert (held.plan.held_back, held.plan.lowered) == ((lowered,), ())
    text = "\n".join(held.commands())
    assert lowered in held.commands()[0]
    assert "--allow-lower-durability" in held.commands()[0]
    assert "--entity-name strict" not in text
    assert "--entity-name single" in text
    assert "orders" not in text
    settled = {t.name: (t.replication_factor, t.min_insync_replicas) for t in held.plan.after}
    assert settled["single"] == settled["__consumer_offsets"] == (3, 2)
    assert (settled["strict"], settled["orders"]) == ((3, 3), (3, 2))
    allowed = advised(cluster, goals=dear, allow_lower_durability=True)
    assert allowed.plan.held_back == ()
    assert allowed.plan.lowered == (lowered,)
    assert "--entity-name strict" in "\n".join(allowed.commands())
    data = json.loads(json.dumps(held.to_dict(), allow_nan=False))
    assert (data["held_back"], data["lowers_durability"]) == ([lowered], [])
    assert data["commands"] == held.commands()
    assert {a["topic"]: a["severity"] for a in data["verdict"]["actions"]}["orders"] == "ok"


def test_the_plan_moves_what_the_decision_counted() -> None:
    """Replicas after the plan are those that were evaluated; none is taken away."""
    mixed = topic("mixed", (1, 2), (2, 3, 4, 5), min_isr=1)
    cluster = Cluster(ZONES, (SINGLE, mixed, OFFSETS), kafka_version="4.1")
    answer = advised(cluster)
    after = {t.name: [p.replicas for p in t.partitions] for t in answer.plan.after}
    for action in answer.quick_verdict.actions:
        assert action.set_to is not None
        factor = action.set_to.replication_factor
        assert tuple(r[:factor] for r in after[action.topic]) == action.set_to.placement
    assert [len(replicas) for replicas in after["mixed"]] == [3, 4]


def test_topics_with_more_replicas_keep_them() -> None:
    """RF 4 stays RF 4, and what its racks cannot survive is said."""
    racks = {1: "a", 2: "a", 3: "b", 4: "c"}
    rich = topic("rich", (1, 2, 3, 4), min_isr=3)
    answer = advised(
        Cluster(racks, (rich,), kafka_version="4.1"),
        goals=Goals(survive="rack", minutes_per_loss=1e9),
    )
    (action,) = answer.quick_verdict.actions
    assert action.after.replication_factor == 4
    assert action.goals[0].state == "out of reach"
    assert any(
        line.startswith("Surviving the failure: out of reach") for line in answer.below_verdict
    )


def test_the_same_setting_is_evaluated_once() -> None:
    """Verdict, plan, table and data ask for each setting and placement one time."""
    asked: list[object] = []

    def counting(
        cluster: Cluster, config: Config, model: FailureModel, load: Workload, **placed: object
    ) -> Reliability:
        asked.append((config, load, placed.get("placement")))
        return made_up(cluster, config, model, load)

    cluster = Cluster(ZONES, (ORDERS, SINGLE), kafka_version="4.1")
    answer = recommend(cluster, CARD, evaluated=counting)
    assert asked == []
    answer.quick_verdict.to_dict()
    of_topics = len(asked)
    for look in (repr, Recommendation.commands, Recommendation.table, Recommendation.to_dict):
        look(answer)
    assert len(set(asked)) == len(asked)
    answer.verdict.to_dict()
    assert len(asked) > of_topics
    assert len(set(asked)) == len(asked)


def test_a_longer_delivery_timeout_stands_beside_the_default() -> None:
    """It is compared, and the finding says what each gives up."""
    answer = advised()
    assert answer.best.config.delivery_timeout_ms == 120_000
    shown = {choice.config.delivery_timeout_ms for choice in answer.choices}
    assert shown == {120_000, 600_000, 1_800_000}
    for limit, timeout_ms in ((9.0, 120_000), (1.7, 600_000), (0.6, 1_800_000), (0.1, 1_800_000)):
        limited = advised(goals=Goals(records_refused_per_year=limit))
        assert limited.best.config.delivery_timeout_ms == timeout_ms, limit
    (finding,) = (f for f in limited.findings if f.code == "KRA402")
    assert "8.3 after 120 s, 1.7 after 600 s and 0.56 after 1,800 s" in finding.detail


def test_settings_beside_each_other_are_ordered_by_cost() -> None:
    """The best first; acks=1 with its losses does not stand before what loses less."""
    answer = advised()
    costs = [choice.cost(10_080.0) for choice in answer.choices[1:]]
    assert costs == sorted(costs)
    assert answer.choices[0] is answer.best
    names = [choice.name for choice in answer.choices]
    acked = names.index("RF 3, min.insync.replicas 1, acks=1")
    assert names.index("RF 3, min.insync.replicas 1, acks=all") < acked


def test_what_is_compared_follows_the_version() -> None:
    """Every min ISR since 0.8.2, a producer that retries, unclean election off."""
    new = Config(kafka_version="4.1", replication_factor=3, min_insync_replicas=2, acks="all")
    pairs = [(c.min_insync_replicas, c.acks) for c in compared(new, 3)]
    assert pairs == [(1, "all"), (1, 1), (2, "all"), (3, "all")]
    assert [(c.min_insync_replicas, c.acks) for c in compared(new, 5)] == [
        (2, "all"),
        (3, "all"),
        (4, "all"),
    ]
    assert not any(c.unclean_leader_election_enable for c in compared(new, 3))
    old = advised(kafka_version="2.0")
    assert old.best.config.retries == 2**31 - 1
    oldest = Config(kafka_version="0.8.1", replication_factor=2, acks="all")
    assert [(c.min_insync_replicas, c.acks) for c in compared(oldest, 2)] == [(1, "all"), (1, 1)]


def test_goals_are_checked() -> None:
    """A limit that is not a number, not finite, negative or above 1 is refused."""
    for wrong in (math.nan, math.inf, -1e-6, 2.0, True, "1e-6"):
        with pytest.raises(InputError):
            Goals(loss_probability_per_year=wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        Goals(survive="region")
    with pytest.raises(InputError, match="acked_records_lost_per_year=-1"):
        Goals(acked_records_lost_per_year=-1)
    assert Goals().limits == {}


def test_goals_are_judged_at_their_limit() -> None:
    """A measure equal to its limit meets it; beyond, the distance counts in decades."""
    goals = Goals(loss_probability_per_year=1e-6)
    assert judge(goals, {"loss_probability_per_year": 1e-6}, None) == {
        "loss_probability_per_year": True
    }
    assert decades_short(goals, {"loss_probability_per_year": 1e-4}) == pytest.approx(2.0)
    none_refused = Goals(records_refused_per_year=0.0)
    assert decades_short(none_refused, {"records_refused_per_year": 1e-9}) == 20.0
    assert decades_short(none_refused, {"records_refused_per_year": 0.0}) == 0.0
    both = judge(Goals(survive="rack"), {}, Survival(1, False, True, True))
    assert both == {"survive_without_loss": False, "survive_writable": True}


def test_topics_and_load_come_from_the_description() -> None:
    """Partitions of user topics are added up; most of them define the present settings."""
    many = topic("many", *[(1, 2, 3)] * 5, min_isr=1)
    few = topic("few", (1, 2), min_isr=1)
    cluster = Cluster(ZONES, (many, few, OFFSETS))
    answer = advised(cluster, load=None)
    assert answer.topics == ("many", "few", "__consumer_offsets")
    assert (answer.load.partitions, answer.load.records_per_second) == (6, 2_000.0)
    assert answer.current is not None
    assert answer.current.config.replication_factor == 3
    only = advised(cluster, load=None, topics=["few"])
    assert (only.topics, only.load.partitions) == (("few",), 1)
    with pytest.raises(InputError, match="nope"):
        advised(cluster, topics=["nope"])
    assert usual_config((OFFSETS,), "3.9") is None


@pytest.mark.parametrize(("topics", "internal", "times"), [(0, 0, 1), (1, 1, 1), (3, 1, 3)])
def test_the_assumed_load_grows_with_the_topics(topics: int, internal: int, times: int) -> None:
    """The default rate for each topic that is not Kafka's own, as audits assume."""
    named = [topic(f"t{n}", (1, 2)) for n in range(topics)] + [OFFSETS] * internal
    load, note = assumed_load(named)
    assert load.records_per_second == 1_000.0 * times
    assert "1,000 records of 1,024 bytes a second" in note


def test_a_situation_is_read_once() -> None:
    """Version, mode, controllers and loads, whoever asks; a shared load goes by partitions."""
    cluster = Cluster(ZONES, (ORDERS, SINGLE), kafka_version="3.9", controllers={7: "a"})
    each = Situation.read(cluster)
    assert (each.version, each.mode, each.stated_version) == ("3.9", "kraft", "3.9")
    assert each.controllers == {7: "a"}
    assert [each.load_of(t).records_per_second for t in each.topics] == [1_000.0, 1_000.0]
    assert each.load.records_per_second == 2_000.0
    shared = Situation.read(cluster, Workload(records_per_second=90.0))
    assert [shared.load_of(t).records_per_second for t in shared.topics] == [60.0, 30.0]
    alone = Situation.read(cluster, Workload(records_per_second=90.0), shared=False)
    assert [alone.load_of(t).records_per_second for t in alone.topics] == [90.0, 90.0]
    assert each.config_of(ORDERS).min_insync_replicas == 2
