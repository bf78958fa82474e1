"""What `explorer` takes, and what it begins with."""

from typing import Any

import pytest

import advisor
from advised import MODEL, described
from advisor.advice import Goals
from advisor.cluster import Cluster
from advisor.errors import InputError
from advisor.present.interactive.explorer import explorer
from advisor.reliability.workload import Workload

LOAD = Workload(partitions=3)


def test_names_and_texts_stand_for_card_and_cluster() -> None:
    """A card's name and a describe output's text are read."""
    text = "[brokers]\n1 = 'a'\n2 = 'b'\n"
    view = advisor.explorer(text, "two_az", LOAD, cards=[])
    assert "RF 2 with min ISR 1" in view.verdict
    number: Any = 1e-6
    with pytest.raises(InputError, match="goals"):
        advisor.explorer(text, "two_az", goals=number)


def test_it_begins_with_the_topic_described() -> None:
    """Without load and setting, the controls show the cluster's first topic as it is."""
    page = explorer(described(), MODEL, cards=[]).page
    assert page["chosen"]["topic"] == "orders"
    assert page["chosen"]["min_insync_replicas"] == "1"
    assert [control["key"] for control in page["controls"]] == list(page["chosen"])


def test_a_goal_without_racks_is_refused_at_once() -> None:
    """Survival of a rack needs the racks; the explorer says so."""
    goals = Goals(survive="rack")
    view = explorer(Cluster.uniform(brokers=3, racks=None), MODEL, goals=goals, cards=())
    assert "needs the rack of every broker" in view.verdict
