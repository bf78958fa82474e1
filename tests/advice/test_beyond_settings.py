"""Goals are held against what settings decide; the rest is said beside it."""

import json

import pytest

from advisor.advice import Goals, audit, recommend
from advisor.advice.beyond_settings import has_beyond
from advisor.advice.candidate import decided_measures, measures_of
from advisor.cli import text
from advisor.cluster import Cluster, Partition, Topic
from advisor.errors import InputError
from advisor.formatting import significant
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.workload import Workload

OWN = {
    "broker": {
        "crash": {"per_year": {"value": 2.0, "low": 1.0, "high": 4.0}, "minutes": 10.0},
        "destroyed": {"per_year": 0.01, "hours": 12.0},
    }
}
SITE = {"cluster": {"power": {"per_year": 0.5, "minutes": 120.0, "not_returning": 0.05}}}
PLAIN = FailureModel.from_dict(OWN)
CARD = FailureModel.from_dict({**OWN, **SITE})
SIX = Cluster.uniform(brokers=6, racks=3)
LOAD = Workload(partitions=6)
GOALS = Goals(loss_probability_per_year=1e-5, write_unavailability=1e-5)
TOPICS = Cluster(
    {1: "a", 2: "b", 3: "c"},
    (
        Topic("orders", (Partition(0, 1, (1, 2, 3), (1, 2, 3)),), {"min.insync.replicas": "2"}),
        Topic("logs", (Partition(0, 1, (1,), (1,)),), {"min.insync.replicas": "1"}),
    ),
    kafka_version="4.1",
)


def test_goals_are_met_by_what_settings_decide() -> None:
    """The site's outages alone exceed both goals, and change neither the choice nor its reasons."""
    answer, plain = recommend(SIX, CARD, LOAD, GOALS), recommend(SIX, PLAIN, LOAD, GOALS)
    assert answer.best.meets_all
    assert answer.best.config == plain.best.config
    result = answer.best.reliability
    for measure, limit in GOALS.limits.items():
        assert measures_of(result)[measure] > limit > decided_measures(result)[measure]
    assert answer.best.meets == plain.best.meets
    assert answer.why[2:] == plain.why[1:]
    assert answer.why[0].startswith("Main cause of loss that settings decide: ")
    assert answer.why[1] == (
        "The comparisons below leave out losses and downtime by causes beyond settings."
    )


def test_the_rest_is_said_beside_the_goals() -> None:
    """Below the verdict, in the command line's text, in rows and in data."""
    answer, plain = recommend(SIX, CARD, LOAD, GOALS), recommend(SIX, PLAIN, LOAD, GOALS)
    for said in (repr(answer), answer._repr_html_(), text.recommendation(answer).text):
        assert "Causes beyond settings add " in said
        assert "(site power outages)" in said
    held = "They apply to what settings decide."
    assert held in text.recommendation(answer).text
    assert "what settings decide" not in text.recommendation(plain).text
    row = answer.rows(intervals=False)[0]
    assert row["write_unavailability_beyond_settings"] > 1e-5
    data = json.loads(json.dumps(answer.to_dict()))["best"]["measures"]["write_unavailability"]
    assert data["by_settings"]["value"] + data["beyond_settings"]["value"] == pytest.approx(
        data["value"]
    )
    assert data["by_settings"]["low"] < data["by_settings"]["value"] < data["by_settings"]["high"]


def test_a_missed_goal_names_what_settings_decide() -> None:
    """Not the whole measure, which the goal is not held against."""
    strict = Goals(loss_probability_per_year=None, write_unavailability=1e-12)
    answer = recommend(Cluster.uniform(1, 1), CARD, LOAD, strict)
    assert "by what settings decide; the goal is less than a second a year" in answer.caveats[0]


def test_an_audit_is_held_against_the_same() -> None:
    """A topic that only the site stops is well; the verdict says what is beyond settings."""
    found = audit(TOPICS, CARD, Workload(), GOALS)
    orders = next(t for t in found.topics if t.topic.name == "orders")
    assert orders.ok
    assert has_beyond(orders.choice.reliability)
    assert not found.ok
    assert found.verdict.startswith("No, 1 of 2 topics misses your goals; worst: ")
    assert found.below_verdict[0].startswith("Causes beyond settings add up to ")
    assert found.below_verdict[0].endswith("(site power outages).")
    table = text.audit(found).text
    assert "refused by settings" in table
    assert "They apply to what settings decide." in table
    assert "refused by settings" in found._repr_html_()
    plain = audit(TOPICS, PLAIN, Workload(), GOALS)
    assert plain.below_verdict[0] == (
        "Causes beyond settings are not in this card: software bugs, operator errors, the "
        "loss of a region."
    )
    for said in (plain.verdict, text.audit(plain).text, plain._repr_html_(), plain.explain()):
        assert "settings decide" not in said
        assert "by settings" not in said


def test_a_number_of_lost_records_can_be_a_goal() -> None:
    """It is a limit like the others: above 1 too, met or missed, worded and durable."""
    goals = Goals(
        loss_probability_per_year=None, write_unavailability=None, acked_records_lost_per_year=2.5
    )
    assert goals.limits == {"acked_records_lost_per_year": 2.5}
    assert goals.sentence == "Goals: at most 2.5 acknowledged records lost a year."
    answer = recommend(SIX, CARD, LOAD, goals)
    assert answer.best.meets == {"acked_records_lost_per_year": True}
    for choice in answer.choices:
        lost = choice.reliability.by_settings("acked_records_lost_per_year")
        assert choice.meets_all == (lost <= 2.5)
    none = Goals(write_unavailability=None, acked_records_lost_per_year=0.0)
    assert "the number of lost records (" in recommend(SIX, CARD, LOAD, none).caveats[0]
    with pytest.raises(InputError, match="acked_records_lost_per_year=-1"):
        Goals(acked_records_lost_per_year=-1)


def test_records_given_up_are_those_that_a_goal_limits() -> None:
    """The finding on delivery timeouts counts what the goal for refused records is held against."""
    for card, words in (
        (CARD, "setting, counting only what settings decide: "),
        (PLAIN, "setting: "),
    ):
        answer = recommend(SIX, card, LOAD, Goals(records_refused_per_year=0.0))
        (found,) = (each for each in answer.findings if each.code == "KRA402")
        refused = answer.best.reliability.by_settings("records_refused_per_year")
        assert f"with the recommended {words}{significant(refused)} after 120 s" in found.detail
