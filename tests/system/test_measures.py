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
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.reduced_state import UP, PartitionState
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.sampler.compiled import memory_layout as layout
from sampled_runs import FAR, off_by

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


def some_down(state: PartitionState, _: ChainConstants) -> bool:
    """Not every replica is up; no rule of Kafka matters."""
    return set(state.condition) != {UP}


def alone_in_sync(state: PartitionState, _: ChainConstants) -> bool:
    """One replica has all that was acknowledged."""
    return len(state.registration.isr) == 1


SHARE = Measure("some_down", FRACTION, "one down", "One down", time_per_year, states=some_down)
ALONE = Measure(
    "alone", FRACTION, "one in sync", "One in sync", time_per_year, states=alone_in_sync
)
UNREAD = Measure(
    *("unread", FRACTION, "reads again", "Reads again", time_per_year),
    states=measure_table.cannot_read,
    in_elections=True,
)


@pytest.fixture
def shares() -> Iterator[None]:
    """The table with three more shares of time, of which it holds nothing but the states."""
    with measure_table.registered(SHARE, ALONE, UNREAD):
        yield


@pytest.mark.usefixtures("shares")
def test_states_are_all_that_a_share_of_time_needs() -> None:
    """Value, interval, causes, error and attribute; of both replicas' brokers, independent."""
    result = advisor.evaluate(CLUSTER, CONFIG, CARD)
    out = 4.0 * 1.5 / 8760.0 / (1.0 + 4.0 * 1.5 / 8760.0)
    assert result.some_down == pytest.approx(1.0 - (1.0 - out) ** 2, rel=1e-9)
    assert result.alone > result.write_unavailability > 0.0
    assert result.to_dict()["measures"]["alone"] == result.alone
    assert "alone: " in result.explain()
    assert sum(result.causes["alone"].values()) == pytest.approx(result.alone)
    assert 0.0 < result.error_bounds["alone"] < 1e-6 * result.alone
    low, high = result.interval("alone")
    assert 1.5 * low < result.alone < high / 1.5
    (drawn,) = result.under([CARD])
    assert drawn.alone == pytest.approx(result.alone, rel=1e-3)
    like = "read_unavailability"
    assert (result.unread, result.interval("unread")) == (
        getattr(result, like),
        result.interval(like),
    )
    assert (result.causes["unread"], result.error_bounds["unread"]) == (
        result.causes[like],
        result.error_bounds[like],
    )


@pytest.mark.usefixtures("shares")
@pytest.mark.parametrize(
    ("method", "brokers", "partitions"), [("crude", 2, 1), ("crude", 4, 60), ("importance", 2, 1)]
)
def test_a_share_of_time_is_sampled(method: str, brokers: int, partitions: int) -> None:
    """Years as they come, with isolated outages and with groups, and weighted cycles agree."""
    cluster = advisor.Cluster.uniform(brokers, racks=brokers)
    load = advisor.Workload(partitions=partitions)
    asked = cluster, CONFIG, CARD, load
    exact = advisor.evaluate(*asked)
    sampled = advisor.simulate(*asked, years=4000, engine="local", method=method, seed=5)
    for name in ("some_down", "alone"):
        assert off_by(sampled.estimate(name), getattr(exact, name)) < FAR
        assert sum(sampled.causes[name].values()) == pytest.approx(getattr(sampled, name).value)
    assert (sampled.unread, sampled.causes["unread"]) == (
        sampled.read_unavailability,
        sampled.causes["read_unavailability"],
    )
    assert sampled.to_frame().loc["alone", "value"] == sampled.alone.value
    assert "alone = " in sampled.explain()


@pytest.mark.usefixtures("shares")
def test_time_that_counts_even_in_health_is_not_sampled_in_cycles() -> None:
    """A lone replica that is up is alone: years show it, and cycles, which skip health, refuse."""
    asked = advisor.Cluster.uniform(1, racks=1), advisor.Config(replication_factor=1), CARD
    exact = advisor.evaluate(*asked)
    assert 1.0 > exact.alone == pytest.approx(1.0 - exact.read_unavailability)
    sampled = advisor.simulate(*asked, years=20, engine="local", method="crude")
    assert sampled.alone.value == pytest.approx(1.0 - sampled.read_unavailability.value)
    with pytest.raises(InputError, match=r"even while all is healthy \(alone\)"):
        advisor.simulate(*asked, years=20, engine="local", method="importance")


def test_the_rows_of_the_sampler_begin_with_what_its_kernel_names() -> None:
    """The kernel knows writes and reads by their rows; further shares of time come after them."""
    first = [entry.name for entry in measure_table.of_states()][:2]
    assert first == ["write_unavailability", "read_unavailability"]
    assert (layout.UNWRITABLE, layout.UNREADABLE) == (layout.SHARES, layout.SHARES + 1)
    assert all(entry.in_elections for entry in measure_table.of_states()[:2])


def test_an_attribute_that_is_no_measure_is_refused(result: Reliability) -> None:
    """Outside the block an added measure is gone, and the error suggests what there is."""
    with pytest.raises(AttributeError, match="has no attribute 'alone'"):
        _ = result.alone
