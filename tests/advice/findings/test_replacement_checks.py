"""Findings about brokers that are replaced empty."""

from advisor.advice import Goals
from advisor.advice.audits.audit import audit
from advisor.advice.findings.checks import (
    check_replacement,
)
from advisor.cluster import Cluster
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.workload import Workload
from checked_topics import CARD, ONE, SIX, partition, with_min_isr

DESTROYED = FailureModel.from_dict(
    {
        "broker": {
            "crash": {"per_year": 2, "minutes": 60},
            "destroyed": {"per_year": 1, "hours": 2},
        },
    }
)
TIGHT = Goals(loss_probability_per_year=1e-9)
ELR = Config(kafka_version="4.1", replication_factor=3, min_insync_replicas=2, acks="all")


def replacement_words(config: Config, card: FailureModel = DESTROYED) -> list[str]:
    result = evaluate(Cluster(SIX), config, card)
    return [str(found) for found in check_replacement(result, TIGHT)]


def test_a_replaced_broker_may_lead_only_with_eligible_leader_replicas() -> None:
    """The finding needs ELR and clean elections; it states the share of the losses.

    Without ELR, with unclean elections, with one replica, or where no disk is ever lost, starting
    an empty broker early makes no difference of this kind.
    """
    share = evaluate(Cluster(SIX), ELR, DESTROYED).empty_leader_share()
    assert share is not None
    assert replacement_words(ELR) == [
        f"KRA312 {100 * share:.0f} % of the modelled losses are due to a broker that leads empty."
    ]
    for other in (
        ELR.changed(eligible_leader_replicas=False),
        ELR.changed(kafka_version="3.9"),
        ELR.changed(unclean_leader_election_enable=True),
        ELR.changed(replication_factor=1, min_insync_replicas=1),
    ):
        assert replacement_words(other) == []
    assert replacement_words(ELR, CARD) == []


def test_replacements_are_reported_where_they_matter_for_a_goal() -> None:
    """Half of what a goal allows, or a tenth of losses that miss it; nothing of rare losses."""
    result = evaluate(Cluster(SIX), ELR, DESTROYED)
    share, lost = result.empty_leader_share(), result.loss_probability_per_year
    assert share is not None
    assert 0.1 < share < 0.9

    def told(limit: float | None, result: Reliability = result) -> bool:
        return bool(list(check_replacement(result, Goals(loss_probability_per_year=limit))))

    assert told(0.9 * lost)
    assert told(1.9 * share * lost)
    assert not told(max(2.1 * share, 1.1) * lost)
    assert not told(None)
    # Rarer crashes empty the ELR less often: less than a tenth of losses that miss the goal.
    rare = evaluate(Cluster(SIX), ELR, DESTROYED.with_values({"broker.crash.per_year": 0.001}))
    assert 0 < (rare.empty_leader_share() or 0.0) < 0.1
    assert not told(0.9 * rare.loss_probability_per_year, rare)


def test_an_audit_reports_replacements_once() -> None:
    """Reported for the worst topic that it applies to: not RF 1, and not the last topic."""
    topics = (
        with_min_isr(2, name="third"),
        with_min_isr(1, name="second"),
        with_min_isr(1, ONE, name="first"),
    )
    found = audit(Cluster(SIX, topics), DESTROYED, goals=TIGHT, kafka_version="4.1")
    names = [topic.topic.name for topic in found.topics]
    assert names[0] == "first"
    told = [str(f) for f in found.findings if f.code == "KRA312"]
    assert len(told) == 1
    assert f"of the modelled losses of {names[1]} are" in told[0]


def test_replacements_use_the_actual_placement() -> None:
    """The share is that of the actual placement: two replicas in a rack that loses power.

    Kafka would spread the replicas over three racks, with another share.
    """
    card = FailureModel.from_dict(
        {**DESTROYED.to_dict(), "rack": {"power": {"per_year": 0.05, "minutes": 60}}}
    )
    there = ((1, 4, 2),)
    topic = with_min_isr(2, partition(replicas=there[0]))
    found = audit(Cluster(SIX, (topic,)), card, goals=TIGHT, kafka_version="4.1")
    (told,) = (f for f in found.findings if f.code == "KRA312")
    result = evaluate(Cluster(SIX), ELR, card, Workload(partitions=1), placement=there)
    spread = evaluate(Cluster(SIX), ELR, card, Workload(partitions=1))
    assert [told] == list(check_replacement(result, TIGHT, "t"))
    assert [told] != list(check_replacement(spread, TIGHT, "t"))
