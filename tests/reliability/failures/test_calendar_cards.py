"""Cards with a calendar of rolling restarts: what they may say, and what else reads them."""

import pickle
from pathlib import Path

import pytest

import advisor
from advisor import Cluster, Config, FailureModel
from advisor.errors import InputError, ModelError, NotComputedError
from advisor.reliability.calendar import KEYS, Calendar

TUESDAYS = {"weekday": "tuesday", "hour": 2, "every_weeks": 4}
CARD = """title = "Mine"
[broker.crash]
per_year = { value = 2, low = 1, high = 4, evidence = "own: counted" }
minutes = { value = 5, evidence = "own: counted" }
[calendar]
weekday = "tuesday"
hour = 2
every_weeks = 4
at_once = 2
wait_for_isr = false
minutes = 8
"""


def written(folder: Path, text: str = CARD) -> FailureModel:
    path = folder / "mine.toml"
    path.write_text(text)
    return advisor.load_model(path)


def test_a_card_file_has_a_calendar(tmp_path: Path) -> None:
    """Its keys are read, and brokers restart as often as its weeks say."""
    model = written(tmp_path)
    assert model.calendar == Calendar(**TUESDAYS, at_once=2, wait_for_isr=False)
    assert model["broker.restart.minutes"] == 8.0
    assert model["broker.restart.per_year"] == 365.0 / 28.0
    assert model.mechanisms == ("broker.crash", "broker.restart")


def test_it_survives_every_copy(tmp_path: Path) -> None:
    """Tables, pickles and changed numbers keep it; two cards that differ in it alone differ."""
    model = written(tmp_path)
    assert FailureModel.from_dict(model.to_dict(), "mine") == model
    assert "per_year" not in model.to_dict()["broker"]["restart"]
    assert pickle.loads(pickle.dumps(model)) == model
    assert model.with_values({"broker.crash.minutes": 9.0}).calendar == model.calendar
    assert [draw.calendar for draw in model.draws(2, seed=1)] == [model.calendar] * 2
    other = model.with_calendar(at_once=1)
    assert other != model
    assert hash(other) != hash(model)


def test_it_is_shown(tmp_path: Path) -> None:
    """Text and notebook view say when brokers restart."""
    model = written(tmp_path)
    words = "every 4 weeks on Tuesday at 2:00, 2 brokers at a time, the next without waiting"
    assert words in repr(model)
    assert words in model._repr_html_()


def test_its_numbers_may_stand_with_those_of_restarts() -> None:
    """A duration with its range and evidence is the same in either section."""
    minutes = {"value": 8, "low": 4, "high": 16, "evidence": "own: watched"}
    one = FailureModel.from_dict(
        {"calendar": TUESDAYS, "broker": {"restart": {"minutes": minutes}}}
    )
    other = FailureModel.from_dict({"calendar": {**TUESDAYS, "minutes": minutes}})
    assert one == other
    assert one.uncertain == ("broker.restart.minutes",)


def test_a_shipped_card_takes_one() -> None:
    """`with_calendar` replaces the random restarts of a card and keeps how long they take."""
    before = advisor.load_model("three_az_cloud")
    after = before.with_calendar(**TUESDAYS)
    assert after["broker.restart.minutes"] == before["broker.restart.minutes"]
    assert set(before.quantities) - set(after.quantities) == {"broker.restart.overlap"}
    assert after.with_calendar(minutes=3.0)["broker.restart.minutes"] == 3.0


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"weekday": "tusday"}, r"calendar\.weekday .*did you mean 'tuesday'"),
        ({"weekday": 2}, r"calendar\.weekday must be one of monday"),
        ({"hour": 24}, r"calendar\.hour must be from 0 to below 24, not 24"),
        ({"hour": float("nan")}, r"calendar\.hour must be a number"),
        ({"every_weeks": 0}, r"calendar\.every_weeks must be a whole number from 1"),
        ({"every_weeks": 1.5}, r"calendar\.every_weeks must be a whole number"),
        ({"at_once": True}, r"calendar\.at_once must be a whole number"),
        ({"at_onc": 2}, r"calendar\.at_onc is no key of a calendar; did you mean 'at_once'"),
        ({"wait_for_isr": "yes"}, r"calendar\.wait_for_isr must be true or false"),
        ({"order": "racks"}, r"calendar\.order .*did you mean 'rack'"),
        ({"pause_minutes": -1}, r"calendar\.pause_minutes must be from 0"),
        ({"catch_up_minutes": "long"}, r"calendar\.catch_up_minutes must be a number"),
        ({"catch_up_minutes": float("nan")}, r"calendar\.catch_up_minutes must be a number"),
        ({"hour": 10**400}, r"calendar\.hour must be from 0 to below 24, not 1e400"),
        ({"minutes": 0}, r"calendar\.minutes must be more than 0"),
        ({"unclean": 1.5}, r"calendar\.unclean is a probability"),
        ({"shape": "wide"}, r"calendar\.shape must be a number"),
    ],
)
def test_a_wrong_key_is_named(keys: dict[str, object], message: str) -> None:
    """The message names the key, what is wrong and what is near."""
    with pytest.raises(ModelError, match=message):
        FailureModel.from_dict({"calendar": {**TUESDAYS, "minutes": 8, **keys}})


@pytest.mark.parametrize("key", ["weekday", "hour", "every_weeks", "minutes"])
def test_what_is_missing_is_named(key: str) -> None:
    """When it begins, how often, and how long a restart takes must be said."""
    calendar = {name: value for name, value in {**TUESDAYS, "minutes": 8}.items() if name != key}
    with pytest.raises(ModelError, match=rf"calendar has no {key}; say"):
        FailureModel.from_dict({"calendar": calendar})


def test_no_number_is_said_twice() -> None:
    """A rate or an overlap beside the calendar, and a duration in both sections, are refused."""
    calendar = {**TUESDAYS, "minutes": 8}
    for key in ("per_year", "overlap"):
        with pytest.raises(ModelError, match=rf"broker\.restart\.{key} says how often .*leave out"):
            FailureModel.from_dict({"calendar": calendar, "broker": {"restart": {key: 0.5}}})
    with pytest.raises(ModelError, match=r"calendar\.minutes is given in \[broker\.restart\], too"):
        FailureModel.from_dict({"calendar": calendar, "broker": {"restart": {"minutes": 8}}})
    model = FailureModel.from_dict({"calendar": calendar})
    with pytest.raises(ModelError, match=r"follows from calendar\.every_weeks"):
        model.with_values({"broker.restart.per_year": 3.0})


def test_an_error_names_file_and_line(tmp_path: Path) -> None:
    """The line of the key, and of the section that is misspelt."""
    with pytest.raises(ModelError, match=r"mine\.toml:9: calendar\.at_once must be"):
        written(tmp_path, CARD.replace("at_once = 2", "at_once = 0"))
    with pytest.raises(ModelError, match=r"mine\.toml:5: calender is no .*did you mean 'calendar'"):
        written(tmp_path, CARD.replace("[calendar]", "[calender]"))


def test_what_is_no_table_is_refused() -> None:
    """A calendar, or restarts, that are no table."""
    for tables in ({"calendar": 3}, {"calendar": {**TUESDAYS, "minutes": 8}, "broker": 3}):
        with pytest.raises(ModelError, match="must be a table, not 3"):
            FailureModel.from_dict(tables)


def test_a_calendar_by_itself_is_checked_too() -> None:
    """The class refuses what a card may not hold."""
    with pytest.raises(InputError, match="at_once must be a whole number"):
        Calendar(**TUESDAYS, at_once=0)
    assert set(Calendar(**TUESDAYS).to_dict()) < set(KEYS)


def test_exact_answers_take_one_waiting_restart_at_a_time() -> None:
    """`evaluate` gives the answer of as many random restarts, and says so."""
    cluster, config = Cluster.uniform(3), Config(replication_factor=3, min_insync_replicas=2)
    numbers = {"crash": {"per_year": 2.0, "minutes": 5.0}}
    by_calendar = FailureModel.from_dict(
        {"broker": numbers, "calendar": {**TUESDAYS, "minutes": 8}}
    )
    restart = {"restart": {"per_year": 365.0 / 28.0, "minutes": 8}}
    at_random = FailureModel.from_dict({"broker": {**numbers, **restart}})
    found, same = (advisor.evaluate(cluster, config, m) for m in (by_calendar, at_random))
    assert found.write_unavailability == same.write_unavailability > 0.0
    assert found.causes == same.causes
    said = [text for text in found.assumptions if "calendar" in text]
    assert len(said) == 1
    assert "13 times a year" in said[0]
    assert not any("calendar" in text for text in same.assumptions)


@pytest.mark.parametrize("keys", [{"at_once": 2}, {"wait_for_isr": False}])
def test_exact_answers_refuse_other_calendars(keys: dict[str, object]) -> None:
    """`evaluate`, `recommend` and `audit` refuse in one sentence that says what to ask instead."""
    model = FailureModel.from_dict({"calendar": {**TUESDAYS, "minutes": 8, **keys}})
    described = "Topic: t Partition: 0 Leader: 1 Replicas: 1,2 Isr: 1,2\n"
    ((key, value),) = keys.items()
    message = rf"^calendar\.{key}={str(value).lower()}: .*advisor\.simulate"
    for ask in (
        lambda: advisor.evaluate(Cluster.uniform(3), Config(), model),
        lambda: advisor.recommend(Cluster.uniform(3), model),
        lambda: advisor.audit(described, model),
    ):
        with pytest.raises(NotComputedError, match=message):
            ask()
