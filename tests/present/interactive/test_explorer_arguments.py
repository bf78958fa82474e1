"""What `explorer` takes, and what it begins with."""

from typing import Any

import pytest

import advisor
from advised import MODEL
from advisor.advice import Goals
from advisor.catalog import data_path
from advisor.cluster import Cluster, load_cluster
from advisor.errors import InputError
from advisor.present.interactive.controls import SWITCHED_VERSIONS
from advisor.present.interactive.explorer import explorer
from advisor.protocol.rules.versions import NEWEST_KNOWN
from advisor.reliability.workload import Workload

LOAD = Workload(partitions=3)
SIX = data_path("clusters/three-az-six-brokers.txt")
RACKS = data_path("clusters/three-az-six-brokers.racks.toml")


def test_names_and_texts_stand_for_card_and_cluster() -> None:
    """A card's name and a describe output's text are read."""
    text = "[brokers]\n1 = 'a'\n2 = 'b'\n"
    view = advisor.explorer(text, "two_az", LOAD, cards=[])
    assert view.setting.replication_factor == 2
    assert view.verdict.headline == "Keep RF 2, min ISR 1, acks=all."
    number: Any = 1e-6
    with pytest.raises(InputError, match="goals"):
        advisor.explorer(text, "two_az", goals=number)


def test_it_begins_with_the_worst_topic_of_a_user_as_it_is_today() -> None:
    """Its settings and its share of the load are those that `recommend` judges."""
    cluster = load_cluster(SIX, racks=RACKS)
    load = Workload(partitions=45, records_per_second=9_000)
    view = advisor.explorer(cluster, "three_az_cloud", load, cards=[])
    action = next(
        action
        for action in advisor.recommend(cluster, "three_az_cloud", load).quick_verdict.actions
        if not cluster.topic(action.topic).internal
    )
    assert view.topic == action.topic == "audit"
    assert view.verdict.severity == action.severity
    (shown,) = view.verdict.actions
    assert shown.loss_today == pytest.approx(action.loss_today, rel=1e-3)
    assert shown.refused_today == pytest.approx(action.refused_today, rel=1e-9)
    assert view.setting.min_insync_replicas == 3
    model = view._explorer_model
    assert model.load_of_topic(view.values).records_per_second == pytest.approx(9_000 * 3 / 45)
    ((mark,),) = model.marked(view.values).marks.values()
    assert (mark["mark"], mark["at"]) == ("today", [3, 3])
    assert view.page["controls"][0]["options"][1][0] == "audit"
    assert [control["key"] for control in view.page["controls"]] == list(view.page["chosen"])
    # Another topic comes with its own settings and load.
    view.topic = "clickstream"
    assert (view.setting.replication_factor, view.setting.min_insync_replicas) == (2, 1)
    assert model.load_of_topic(view.values).partitions == 24
    assert view.verdict.actions[0].topic == "clickstream"


def test_a_goal_without_racks_is_refused_at_once() -> None:
    """Survival of a rack needs the racks; the explorer says so."""
    goals = Goals(survive="rack")
    with pytest.raises(InputError, match="needs the rack of every broker"):
        explorer(Cluster.uniform(brokers=3, racks=None), MODEL, goals=goals, cards=())


def test_the_newest_version_is_that_of_the_table() -> None:
    """A version that the table learns can be chosen, without another list to edit."""
    view = explorer(Cluster.uniform(brokers=1, racks=None), MODEL, cards=())
    options = {control["key"]: control.get("options") for control in view.page["controls"]}
    assert options["kafka_version"][0] == [NEWEST_KNOWN, NEWEST_KNOWN]
    assert SWITCHED_VERSIONS[0] == NEWEST_KNOWN
