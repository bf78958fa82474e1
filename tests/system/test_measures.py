"""A measure is one entry: added to the table, it is in results, tables, reports and texts."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import advisor
from advisor.__main__ import main
from advisor.advice.candidate import Candidate, goals_words, measures_of
from advisor.advice.goals import goal_words
from advisor.cli.options import limit_options
from advisor.errors import InputError
from advisor.formatting import time_per_year
from advisor.present.figures.sweep import plot_sweep
from advisor.present.outcome import compared_outcomes, outcomes
from advisor.present.report.page import sampled_check
from advisor.reliability import measure_table
from advisor.reliability.measure_table import FRACTION, Measure
from advisor.reliability.results.reliability import Reliability

DARK = "dark_time"
ENTRY = Measure(
    DARK,
    FRACTION,
    "time in the dark",
    "In the dark",
    time_per_year,
    shown=True,
    compared=True,
    goal="time in the dark",
    brief_goal="dark",
    read=lambda result: result.read_unavailability,
)
RATE = {"value": 4.0, "low": 2.0, "high": 8.0}
CARD = advisor.FailureModel.from_dict({"broker": {"crash": {"per_year": RATE, "minutes": 90.0}}})
CONFIG = advisor.Config(replication_factor=2, min_insync_replicas=1, acks="all")
CLUSTER = advisor.Cluster.uniform(2, racks=2)
CLUSTERS = Path(__file__).resolve().parents[2] / "data" / "clusters"


@pytest.fixture(autouse=True)
def added() -> Iterator[None]:
    """The table with one more entry."""
    assert DARK not in measure_table.names()
    with measure_table.registered(ENTRY):
        yield
    assert DARK not in measure_table.names()


@pytest.fixture
def result() -> Reliability:
    """Two replicas, of which the second seldom fails as well."""
    return advisor.evaluate(CLUSTER, CONFIG, CARD)


def test_a_result_has_it(result: Reliability) -> None:
    """Value, interval, floor and tornado are those of what it reads."""
    like = "read_unavailability"
    assert 0.0 < result.to_dict()["measures"][DARK] == result.read_unavailability
    assert result.interval(DARK) == result.interval(like)
    assert result.interval(DARK)[0] < result.interval(DARK)[1]
    assert result.beyond_settings(DARK) == result.beyond_settings(like)
    assert result.tornado(DARK).rows == result.tornado(like).rows
    assert "In the dark" not in result.explain()
    assert f"{DARK}: " in result.explain()
    with pytest.raises(InputError, match=f"there are: .*{DARK}"):
        result.interval("daylight")


def test_tables_and_data_have_it(result: Reliability) -> None:
    """A row of the frame and of the notebook's table, exact and sampled."""
    sampled = advisor.simulate(CLUSTER, CONFIG, CARD, years=400, engine="local", method="crude")
    assert sampled.estimate(DARK) == sampled.read_unavailability
    for found in (result, sampled):
        assert DARK in found.to_frame().index
        assert found.to_dict()["measures"][DARK]
        assert "time in the dark" in found._repr_html_()
    assert sampled.beyond_settings(DARK) == result.beyond_settings(DARK)
    assert ENTRY.title in [row["title"] for row in sampled_check(result, sampled)["rows"]]


def test_reports_and_charts_have_it(result: Reliability) -> None:
    """A line of its own, a column in comparisons, a curve, and words by its unit."""
    for listed in (outcomes(result), compared_outcomes(result)):
        (dark,) = (outcome for outcome in listed if outcome.measure == DARK)
        (reads,) = (outcome for outcome in listed if outcome.measure == "read_unavailability")
        assert (dark.title, dark.said) == (ENTRY.title, reads.said)
    chart = plot_sweep("crashes", {"4": 4.0}, {"RF 2": [result]}, DARK)
    assert chart.name == "dark-time-crashes"


def test_the_command_line_says_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Among the numbers of a setting."""
    cluster = str(CLUSTERS / "three-az-six-brokers.txt")
    main(["evaluate", cluster, "--model", "two_az", "--rf", "2", "--min-isr", "1", "--acks", "all"])
    assert f"{DARK}: " in capsys.readouterr().out


def test_a_goal_may_limit_it(result: Reliability) -> None:
    """It has an option with help, is judged, and is named where it is missed."""
    command = click.Command("audit")
    for add in limit_options():
        add(command)
    (option,) = (each for each in command.params if each.name == DARK)
    assert "time in the dark at most this fraction of the time" in option.help
    assert measures_of(result)[DARK] == result.read_unavailability
    assert (goal_words(DARK), goal_words(DARK, brief=True)) == ("time in the dark", "dark")
    assert "meets_all" in Candidate(CONFIG, result, {DARK: False}, None).row(intervals=False)
    assert goals_words(Candidate(CONFIG, result, {DARK: False}, None)) == "missed: dark"


def test_goals_have_a_field_for_each() -> None:
    """`Goals` documents a limit for every measure of the table that may have one."""
    fields = {field.name for field in dataclasses.fields(advisor.Goals)}
    assert {*measure_table.goals()} - {DARK} == fields - {"survive", "minutes_per_loss"}
