"""Pictures in notebooks: HTML with a text for screen readers, in the colours of the page."""

import re
from typing import Any

import IPython.display
import pytest
from matplotlib import pyplot

import advisor
from advisor.present.figures.chart import ShownFigure

CLUSTER = advisor.Cluster.uniform(brokers=3, racks=3)
CARD = advisor.FailureModel.from_dict(
    {
        "broker": {
            "crash": {"per_year": {"value": 2, "low": 1, "high": 5}, "minutes": 5},
            "destroyed": {"per_year": 0.1, "hours": 12},
        }
    }
)
CONFIG = advisor.Config(replication_factor=2, min_insync_replicas=1, acks="all")
DESCRIBED = "Topic: logs Partition: 0 Leader: 1 Replicas: 1,2 Isr: 1,2\n"
RESULTS = {
    "Reliability": lambda: advisor.evaluate(CLUSTER, CONFIG, CARD),
    "Sampled": lambda: advisor.simulate(CLUSTER, CONFIG, CARD, years=20, engine="local"),
    "Audit": lambda: advisor.audit(DESCRIBED, CARD),
    "Recommendation": lambda: advisor.recommend(CLUSTER, CARD),
    "Tornado": lambda: advisor.evaluate(CLUSTER, CONFIG, CARD).tornado(),
}


@pytest.mark.parametrize("name", RESULTS)
def test_plots_of_results_are_shown_with_words(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook gets HTML whose text has the numbers, transparent, and no image without one."""
    shown: list[dict[str, str]] = []

    def display(data: Any, raw: bool = False) -> None:
        assert raw
        shown.append(data)

    monkeypatch.setattr(IPython.display, "display", display)
    RESULTS[name]().plot()
    figure = pyplot.gcf()
    pyplot.close(figure)
    assert isinstance(figure, ShownFigure)
    figure._ipython_display_()
    [data] = shown
    assert set(data) == {"text/html", "text/plain"}
    label = re.search(r'role="img" aria-label="([^"]+)"', data["text/html"])
    assert label
    assert len(label[1].split()) >= 15
    assert re.search(r"\d", label[1])
    assert "#ffffff" not in data["text/html"]
    figure._ipython_display_()
    assert shown[0] == shown[1]
