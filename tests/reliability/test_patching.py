"""`patching`: what it compares, its intervals, its views, and what it refuses."""

import json
import re

import pytest
from matplotlib.figure import Figure

import advisor
from advisor import Cluster, Config, FailureModel, Workload
from advisor.errors import AdvisorError, InputError
from advisor.reliability.patching import alone
from advisor.reliability.patching_choices import Patching, PatchingChoice
from advisor.reliability.sampler.plan_reader import plan_for

SIX = Cluster.uniform(6, 3)
TRIO = Config(replication_factor=3, min_insync_replicas=2)
CLOUD = "three_az_cloud"
LOAD = Workload(partitions=12, hourly="office hours")


@pytest.fixture(scope="module")
def found() -> Patching:
    """Two ways to go, two at once or one, at two hours."""
    options = {"at_once": (1, 2), "hours": (2, 14), "orders": ("rack", "id")}
    return advisor.patching(SIX, TRIO, CLOUD, LOAD, restarts=6400, **options)


def one(found: Patching, **wanted: object) -> PatchingChoice:
    """The choice with these values."""
    (choice,) = (
        each
        for each in found.choices
        if all(getattr(each, name) == value for name, value in wanted.items())
    )
    return choice


def test_each_choice_is_there_once(found: Patching) -> None:
    """At once, waiting, order and hour: every combination, in the order given."""
    assert len(found.choices) == 16
    assert [choice.at_once for choice in found.choices] == [1] * 8 + [2] * 8
    assert len({(c.at_once, c.wait_for_isr, c.order, c.hour) for c in found.choices}) == 16


def test_waiting_and_racks_are_what_matters(found: Patching) -> None:
    """Intervals do not touch: waiting beats not waiting, and a rack beats two racks at once."""
    safe = one(found, at_once=2, wait_for_isr=True, order="rack", hour=2)
    across = one(found, at_once=2, wait_for_isr=True, order="id", hour=2)
    hasty = one(found, at_once=2, wait_for_isr=False, order="rack", hour=2)
    assert safe.refused_minutes.high < across.refused_minutes.low / 100.0
    assert safe.refused_minutes.high < hasty.refused_minutes.low / 100.0
    single = one(found, at_once=1, wait_for_isr=True, order="rack", hour=2)
    assert safe.hours.high < single.hours.low


def test_the_hour_changes_failed_sends_alone(found: Patching) -> None:
    """The same restarts by day: as long, as many minutes, eight times the traffic."""
    for waits in (True, False):
        night, day = (
            one(found, at_once=2, wait_for_isr=waits, order="id", hour=hour) for hour in (2, 14)
        )
        assert night.refused_minutes == day.refused_minutes
        assert night.hours == day.hours
        ratio = day.records_refused.value / night.records_refused.value
        # 2 to 0.25; some rolling restarts that begin at 14:00 run into the evening.
        assert ratio == pytest.approx(8.0, rel=0.1)


def test_two_at_once_agree_with_the_enumeration() -> None:
    """No failures by chance, exponential restarts: half a restart for each shared pair."""
    card = FailureModel.from_dict(
        {"calendar": {"weekday": "sunday", "hour": 3, "every_weeks": 2, "minutes": 12}}
    )
    result = advisor.patching(
        SIX, TRIO, card, LOAD, at_once=(2,), wait_for_isr=(True,), orders=("id",)
    )
    plan = plan_for(SIX, TRIO, card.with_calendar(at_once=2, order="id"), LOAD)
    assert plan.rolling is not None
    shared = sum(
        count
        for replicas, count in zip(plan.sets, plan.partitions, strict=True)
        for batch in plan.rolling.batches
        if set(batch) <= set(replicas)
    )
    (choice,) = result.choices
    exact = 6.0 * shared / LOAD.partitions
    assert choice.refused_minutes.low * 0.98 < exact < choice.refused_minutes.high * 1.02
    assert choice.refused_minutes.high / choice.refused_minutes.low < 1.1
    # Nothing but restarts happens, and these lose nothing.
    assert (choice.loss_probability.value, choice.loss_probability.high) == (0.0, 0.0)
    assert choice.hour == 3


def test_a_loss_that_is_seen_has_an_interval() -> None:
    """One replica, destroyed now and then: the chance that it happens within the restarts."""
    card = FailureModel.from_dict(
        {
            "broker": {"destroyed": {"per_year": 2.0, "hours": 1.0}},
            "calendar": {"weekday": "sunday", "hour": 3, "every_weeks": 2, "minutes": 12},
        }
    )
    result = advisor.patching(
        Cluster.uniform(2, 2),
        Config(replication_factor=1),
        card,
        Workload(partitions=2),
        at_once=(1,),
        wait_for_isr=(True,),
    )
    found = result.choices[0].loss_probability
    # Both brokers hold a log, whether they restart or not, for two restarts of 0.2 hours.
    exact = 2.0 * 2.0 / 8760.0 * 0.4
    assert found.seen
    assert found.low * 0.97 < exact < found.high * 1.03
    assert found.high / found.low < 1.3


def test_failures_are_hurried_by_so_much_as_to_be_seen() -> None:
    """One in every other rolling restart; a cluster that fails more often is left as it is."""
    card = advisor.load_model(CLOUD).with_calendar(weekday="sunday", hour=3, every_weeks=4)
    rolling = alone(plan_for(SIX, TRIO, card, LOAD)).rolling
    assert rolling is not None
    plan = plan_for(SIX, TRIO, card, LOAD)
    takes = 6 * 8.0 / 60.0
    expected = plan.strikes_per_year_by_chance / 8760.0 * takes
    assert rolling.hurry * expected == pytest.approx(0.5)
    assert (rolling.run_up_hours, rolling.hurry_hours) == (0.0, pytest.approx(6.0 * takes))
    often = card.with_values({"broker.crash.per_year": 1e5})
    assert alone(plan_for(SIX, TRIO, often, LOAD)).rolling.hurry == 1.0
    hasty = alone(plan_for(SIX, TRIO, card.with_calendar(wait_for_isr=False), LOAD)).rolling
    assert hasty.run_up_hours > 10.0 * card.repair_hours("broker.destroyed")


def test_the_same_seed_gives_the_same_bytes() -> None:
    """And another seed other numbers."""

    def asked(seed: int) -> str:
        found = advisor.patching(SIX, TRIO, CLOUD, at_once=(1,), restarts=640, seed=seed)
        return json.dumps(found.to_dict(), sort_keys=True)

    first = asked(3)
    assert first == asked(3)
    assert first != asked(4)


def test_its_views(found: Patching) -> None:
    """A sentence first; a table with caption and headings; a frame with a line for each choice."""
    assert repr(found).startswith(found.summary)
    assert found.summary.startswith("1 broker at once, waiting for the ISR: a partition refuses")
    page = found._repr_html_()
    assert page.count("<table>") == page.count("<caption>") == 1
    assert page.count("<tr>") == 17
    frame = found.to_frame()
    assert len(frame) == 16
    assert (frame["refused_minutes_low"] <= frame["refused_minutes"]).all()
    assert (frame["refused_minutes"] <= frame["refused_minutes_high"]).all()
    assert re.search(r"6,400 rolling restarts .* what settings\s+decide", found.explain())


def test_its_chart(found: Patching) -> None:
    """A point for each choice, the words beside it, and alternative text that says them all."""
    ax = found.plot(Figure(figsize=(7, 5)).subplots())
    assert len([text for text in ax.texts if text.get_text()]) == 16
    assert ax.get_yticklabels()[0].get_text() == "1 at once, rack by rack, from 2:00"
    description = found.plot().figure.description
    assert "2 at once, by id, from 14:00: 2" in description
    assert description.count("if it does not wait") == 8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at_once": 2}, r"at_once=2: give a list"),
        ({"at_once": ()}, r"at_once=\(\): give a list"),
        ({"at_once": (0,)}, r"calendar\.at_once must be a whole number"),
        ({"wait_for_isr": ("no",)}, r"calendar\.wait_for_isr must be true or false"),
        ({"hours": (25,)}, r"calendar\.hour must be from 0"),
        ({"orders": "rack"}, r"orders='rack': give a list"),
        ({"orders": ("rak",)}, r"did you mean 'rack'"),
        ({"restarts": 3}, r"restarts=3: give 64 to"),
        ({"restarts": 1e3}, r"restarts=1000\.0: give a whole number"),
        ({"seed": -1}, r"seed=-1 must be a whole number"),
        ({"hour": (1,)}, r"no argument 'hour'\. Did you mean hours\?"),
    ],
)
def test_a_wrong_argument_is_named(options: dict[str, object], message: str) -> None:
    """Before anything is sampled, in one sentence."""
    with pytest.raises(AdvisorError, match=message):
        advisor.patching(SIX, TRIO, CLOUD, **options)


def test_a_card_without_restarts_is_refused() -> None:
    """How long a restart takes must be known."""
    card = FailureModel.from_dict({"broker": {"crash": {"per_year": 1.0, "minutes": 5.0}}})
    with pytest.raises(AdvisorError, match="calendar has no minutes; say how long a restart"):
        advisor.patching(SIX, TRIO, card)


@pytest.mark.parametrize(
    ("hourly", "message"),
    [
        ("office", r"hourly='office' is no shape of traffic"),
        ("office_hours", r"did you mean 'office hours'\?"),
        ((1.0,) * 23, "24 numbers from 0"),
        ((0.0,) * 24, "not all of them 0"),
        ((-1.0,) + (1.0,) * 23, "24 numbers from 0"),
        ((True,) * 24, "24 numbers from 0"),
        (24, "24 numbers from 0"),
    ],
)
def test_wrong_traffic_by_the_hour_is_refused(hourly: object, message: str) -> None:
    """A shape by name, or 24 numbers."""
    with pytest.raises(InputError, match=message):
        Workload(hourly=hourly)


def test_traffic_by_the_hour_keeps_its_mean() -> None:
    """24 numbers with mean 1, whatever was given; even traffic is none; it survives copies."""
    for hourly in ("office hours", tuple(range(24)), [5] * 23 + [0]):
        traffic = Workload(hourly=hourly).hourly_traffic
        assert len(traffic) == 24
        assert sum(traffic) == pytest.approx(24.0)
    assert Workload(hourly="even").hourly_traffic == Workload().hourly_traffic == ()
    assert Workload(hourly=[1] * 24).hourly_traffic == ()
    load = Workload(hourly="office hours")
    assert Workload(**load.to_dict()) == load
    assert "hourly" not in Workload().to_dict()
