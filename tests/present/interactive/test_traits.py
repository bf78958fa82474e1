"""What other widgets can be linked to: topic, setting, what a loss is worth, and the verdict."""

import ipywidgets
import pytest
import traitlets

from advised import MODEL, described
from advisor.decision import Verdict
from advisor.errors import InputError
from advisor.present.interactive.controls import PRICE, PRICES
from advisor.present.interactive.explorer import Explorer, explorer


@pytest.fixture
def view() -> Explorer:
    return explorer(described(), MODEL, cards=[])


def test_a_linked_widget_chooses_and_follows(view: Explorer) -> None:
    """A list of topics and a scale of prices, both ways; the page is told what they choose."""
    topics = ipywidgets.Dropdown(options=["", "orders"], value="orders")
    prices = ipywidgets.SelectionSlider(options=[price for price, _ in PRICES], value=10_080.0)
    links = [
        ipywidgets.link((view, "topic"), (topics, "value")),
        ipywidgets.link((view, "minutes_per_loss"), (prices, "value")),
    ]
    topics.value = ""
    assert view.topic == view.values["topic"] == ""
    assert view.setting.min_insync_replicas == 2
    prices.value = 10.0
    assert view.values[PRICE] == "10"
    assert view.verdict.choice.minutes_per_loss == 10.0
    # What is chosen on the page.
    view.values = {**view._explorer_model.chosen, PRICE: "60"}
    assert (topics.value, prices.value) == ("orders", 60.0)
    for link in links:
        link.unlink()


def test_the_verdict_can_be_observed(view: Explorer) -> None:
    """Each change of the setting brings the verdict on it; one that Kafka refuses changes none."""
    seen = list[Verdict]()
    view.observe(lambda change: seen.append(change.new), "verdict")
    for least in (2, 1, 3):
        view.setting = view.setting.changed(min_insync_replicas=least)
        (action,) = seen[-1].actions
        assert action.today.config == view.setting
        assert view.values["min_insync_replicas"] == str(least)
    before = len(seen)
    with pytest.raises(InputError, match="refuses every write"):
        view.setting = view.setting.changed(kafka_version="3.6", replication_factor=1)
    with pytest.raises(InputError, match="is no step"):
        view.minutes_per_loss = 11.0
    with pytest.raises(InputError):
        view.topic = "no such topic"
    with pytest.raises(traitlets.TraitError):
        view.verdict = seen[0]
    assert len(seen) == before
    assert view.setting.min_insync_replicas == 3


def test_two_explorers_show_the_same_setting(view: Explorer) -> None:
    """Of one topic and of another, side by side."""
    other = explorer(described(), MODEL, cards=[])
    with_both = ipywidgets.link((view, "setting"), (other, "setting"))
    other.setting = other.setting.changed(acks=1)
    assert view.setting == other.setting
    assert view.values["acks"] == "1"
    assert str(view.verdict) == str(other.verdict)
    with_both.unlink()
