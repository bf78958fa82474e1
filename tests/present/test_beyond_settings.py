"""Reports, charts and the explorer show what settings decide beside what they do not."""

import re

import pytest

from advised import MODEL, described
from advisor.advice import Recommendation, audit, recommend
from advisor.present.interactive.explorer import explorer
from advisor.present.outcome import outcomes
from advisor.present.report.page import render_report
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.results.assumptions import OUTSIDE_EVERY_CARD
from advisor.reliability.workload import Workload

SITE = {"power": {"per_year": {"value": 0.5, "low": 0.2, "high": 1.0}, "minutes": 120.0}}
CARD = FailureModel.from_dict({**MODEL.to_dict(), "cluster": SITE})
LOAD = Workload(partitions=3)


@pytest.fixture(scope="module")
def advice() -> Recommendation:
    return recommend(described(), CARD, LOAD)


def test_the_report_shows_both_parts(advice: Recommendation) -> None:
    """In the verdict, beside the goals, below the charts, and in every table of measures."""
    text = render_report(advice, audit(described(), CARD))
    for words in (
        "Causes beyond settings add ",
        "(site power outages)",
        "They apply to what settings decide.",
        "Grey area: out of reach at that replication factor and min ISR",
        "<small>by settings: ",
        '<th scope="col">Settings decide</th><th scope="col">Causes beyond settings</th>',
    ):
        assert words in text
    assert text.count(f"{OUTSIDE_EVERY_CARD[1:]}.") == 1


def test_a_report_without_the_rest_does_not_speak_of_it() -> None:
    """A card of which settings decide everything."""
    text = render_report(recommend(described(), MODEL, LOAD), audit(described(), MODEL))
    assert not re.search("settings decide|causes beyond settings:|by settings|[Gg]rey area", text)
    assert text.count(f"{OUTSIDE_EVERY_CARD[1:]}.") == 1


def test_the_explorer_shows_both_parts() -> None:
    """In its list of measures and its legend; without them neither speaks of it."""
    shown = explorer(described(), CARD, LOAD, cards=[])
    assert "Causes beyond settings add " in shown.html
    assert '"out of reach at this RF and min ISR"' in shown.html
    assert "Settings decide: " in shown.html
    plain = explorer(described(), MODEL, LOAD, cards=[])
    assert "; causes beyond settings: " not in plain.html
    assert '"out of reach at this RF and min ISR"' not in plain.html
    assert "Settings decide: " not in plain.html


def test_a_measure_is_worded_with_its_parts(advice: Recommendation) -> None:
    """Writes and reads in time a year, losses in years; both parts or neither."""
    result = advice.best.reliability
    by_measure = {outcome.measure: outcome.parts for outcome in outcomes(result)}
    assert all(re.search(r"(s|min|h)/year$", part) for part in by_measure["write_unavailability"])
    assert by_measure["loss_probability_per_year"][0] == "rarer than once in 2,000 years"
    plain = recommend(described(), MODEL, LOAD).best.reliability
    assert {outcome.parts for outcome in outcomes(plain)} == {("", "")}
