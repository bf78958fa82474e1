"""The timeline: a row for each broker that was struck, bands for common causes."""

import pytest

import advisor
from advisor.errors import InputError
from advisor.learning import Learned
from advisor.reliability.failures.mechanisms import words

WINDOW = {"brokers": 12, "racks": 3, "since": "2025-01-01", "until": "2026-01-01"}


def learned(**events: object) -> Learned:
    named = {name.replace("__", "."): typed for name, typed in events.items()}
    return advisor.learn({**WINDOW, "events": named}, prior="three_az_cloud")


def test_brokers_have_rows_and_common_causes_bands() -> None:
    """Struck brokers by id, one row for unknown ones, a band for what struck several."""
    result = learned(
        broker__power=[
            {"start": "2025-03-01 10:00", "end": "2025-03-01 12:00", "brokers": [4]},
            {"start": "2025-04-01 10:00"},
        ],
        cluster__crash=[{"start": "2025-06-01", "end": "2025-06-02", "brokers": [1, 2]}],
    )
    (ax,) = result.timeline().axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1", "2", "4", "a broker"]
    assert len(ax.patches) == 1
    names = [words("broker.power"), words("cluster.crash")]
    assert [text.get_text() for text in ax.figure.legends[0].get_texts()] == names
    assert f"{names[0]} 2, {names[1]} 1" in ax.figure.description


def test_clusters_have_axes_each() -> None:
    """A fleet is drawn one below the other; a cluster without times is left out."""
    event = {"start": "2025-03-01 10:00", "end": "2025-03-01 12:00"}
    fleet = [
        {**WINDOW, "name": name, "events": {"broker.power": events}}
        for name, events in {"a": [event], "b": [event, event], "c": 3}.items()
    ]
    figure = advisor.learn(fleet, prior="three_az_cloud").timeline()
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["a", "b"]


def test_counts_without_times_cannot_be_drawn() -> None:
    """It is said what is missing."""
    with pytest.raises(InputError, match="start and end"):
        learned(broker__power=4).timeline()
