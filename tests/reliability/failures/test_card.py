"""Cards are read, or refused with one line that says what is wrong and where."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor import catalog
from advisor.errors import ModelError
from advisor.reliability.failures.card import OTHER_NUMBERS
from advisor.reliability.failures.failure_model import FailureModel, load_model
from advisor.reliability.failures.mechanisms import Number
from model_tables import DESTROYED, FULL, crash


def write(path, text):
    """Write a card file and return its path."""
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("tables", "problem"),
    [
        ({}, "nothing ever fails in this card"),
        ({"title": "t", "flush": {"seconds": 1}}, "nothing ever fails in this card"),
        ([], "must be a table"),
        ({1: {}}, "has a key that is no text: 1"),
        ({"brokers": {}}, "brokers is no section of a card; did you mean 'broker'"),
        ({"a\nb": 1}, r"a\\nb is no section"),
        ({"qqq": 1}, "qqq is no section of a card; known are broker, "),
        ({"broker": {"crsh": {}}}, r"broker\.crsh is no section .* did you mean 'broker\.crash'"),
        ({"broker": 3}, "broker must be a table, not 3"),
        ({**DESTROYED, "hosting": "room"}, 'hosting is \'room\'; it must be "own", "cloud" or'),
        ({**DESTROYED, "hosting": 1}, "hosting must be a text, not 1"),
        ({"broker": {"crash": 3}}, r"broker\.crash must be a table, not 3"),
        ({"broker": {"crash": {"per_yaer": 1}}}, r"per_yaer is no key .* 'per_year'"),
        ({"broker": {"crash": {}}}, r"broker\.crash has no per_year"),
        ({"broker": {"crash": {"per_year": 1}}}, r"broker\.crash has no minutes"),
        ({"broker": {"crash": {"minutes": 1}}}, r"broker\.crash has no per_year"),
        ({"broker": {"destroyed": {"per_year": 1}}}, r"broker\.destroyed has no hours"),
        ({"broker": {"destroyed": {"hours": 1}}}, r"broker\.destroyed has no per_year"),
        ({**DESTROYED, "flush": {}}, "flush has no seconds"),
        ({**DESTROYED, "detection": {}}, "detection has no seconds, and not both kraft_sessions"),
        (
            {**DESTROYED, "detection": {"kraft_sessions": 1}},
            "detection has no seconds, and not both kraft_sessions and zookeeper_sessions",
        ),
        ({**DESTROYED, "detection": {"second": 1}}, r"detection\.second is no key .* 'seconds'"),
        (
            {"rack": {"destroyed": {"per_year": 1}}},
            r"rack\.destroyed needs broker\.destroyed\.hours",
        ),
        (
            {"cluster": {"power": {"per_year": 1, "minutes": 1, "not_returning": 0.1}}},
            r"not_returning needs broker\.destroyed\.hours",
        ),
        ({**DESTROYED, "title": 1}, "title must be a text, not 1"),
        (crash(low=1, high=2), r"broker\.crash\.per_year has no value"),
        (crash(value=1, low=1), "needs both low and high"),
        (crash(value=1, hihg=2), "holds 'hihg', which is no part of a number; did you mean 'high'"),
        (crash(value=1, low=2, high=3), "needs low <= value <= high, got 2, 1, 3"),
        (crash(value=4, low=2, high=3), "needs low <= value <= high, got 2, 4, 3"),
        (crash(value=1, low=-1, high=3), "must not be negative, but is -1"),
        (crash(value=1, evidence=3), "needs a text as evidence, not 3"),
        (crash(minutes_per_year=1, value=2), "has both minutes_per_year and a value"),
        (crash(minutes_per_year=1, events=2), "has both a count and a value"),
        (crash(minutes_per_year=3, low=4, high=5), "needs low <= minutes_per_year <= high"),
        (
            {"broker": {"crash": {"per_year": 1, "minutes": {"minutes_per_year": 1}}}},
            r"minutes has minutes_per_year, which only a rate",
        ),
        (
            {"cluster": {"wiped": {"per_year": {"minutes_per_year": 1}, "brokers": 1, "hours": 1}}},
            r"per_year has minutes_per_year, which only a rate \(per_year\) beside minutes may",
        ),
        (
            {"cluster": {"destroyed": {"per_year": 1}}},
            r"cluster\.destroyed needs broker\.destroyed\.hours",
        ),
    ],
)
def test_an_impossible_card_is_refused_in_one_sentence(tables, problem):
    """Every error names the model and the key, says what is wrong, and ends after one line."""
    with pytest.raises(ModelError, match=problem) as caught:
        FailureModel.from_dict(tables, name="mine")
    assert str(caught.value).startswith("mine: ")
    assert "\n" not in str(caught.value)


def test_a_number_of_no_mechanism_may_be_optional_or_a_probability(monkeypatch):
    """As declared in the table: an optional one may be left out, and a probability ends at 1."""
    numbers = (*OTHER_NUMBERS["copy"], Number("share", "of the brokers", False, True))
    monkeypatch.setitem(OTHER_NUMBERS, "copy", numbers)
    monkeypatch.setitem(
        OTHER_NUMBERS, "flush", (OTHER_NUMBERS["flush"][0]._replace(required=False),)
    )
    left_out = FailureModel.from_dict({**DESTROYED, "copy": {"bytes_per_second": 1e8}, "flush": {}})
    assert left_out.get("copy.share", 0.5) == 0.5
    assert "flush.seconds" not in left_out.quantities
    given = FailureModel.from_dict({**DESTROYED, "copy": {"bytes_per_second": 1e8, "share": 0.2}})
    assert given["copy.share"] == 0.2
    for copy, problem in (
        ({"share": 0.2}, "copy has no bytes_per_second"),
        (
            {"bytes_per_second": 1e8, "share": 2},
            r"copy\.share is a probability and must not exceed 1",
        ),
        ({"bytes_per_second": 1e8, "shares": 1}, r"copy\.shares is no key .* 'share'"),
    ):
        with pytest.raises(ModelError, match=problem):
            FailureModel.from_dict({**DESTROYED, "copy": copy})


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (-1, "must not be negative"),
        (float("nan"), "must be a finite number, not nan"),
        (float("inf"), "must be a finite number, not inf"),
        (10**400, "must be a finite number"),
        (1e300, r"must lie between 1e-15 and 1e\+15, but is 1e\+300"),
        (1e-300, r"must lie between 1e-15 and 1e\+15, but is 1e-300"),
        (True, "must be a number, not True"),
        ("3", "must be a number, not '3'"),
        (None, "must be a number, not None"),
        ([1], r"must be a number, not \[1\]"),
    ],
)
@pytest.mark.parametrize("path", ["per_year", "minutes", "shape"])
def test_an_impossible_number_is_refused(path, raw, problem):
    """Negative, NaN, infinite, boolean or textual numbers are refused in every section."""
    tables = {"broker": {"crash": {"per_year": 1, "minutes": 1, path: raw}}}
    with pytest.raises(ModelError, match=rf"custom: broker\.crash\.{path} {problem}"):
        FailureModel.from_dict(tables)
    with pytest.raises(ModelError, match=rf"custom: broker\.crash\.{path} {problem}"):
        FailureModel.from_dict(DESTROYED | {"broker": {"crash": {path: {"value": raw}}}})


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ("broker.crash", "minutes"),
        ("broker.destroyed", "hours"),
        ("copy", "bytes_per_second"),
        ("broker.crash", "shape"),
    ],
)
def test_a_duration_of_nothing_is_refused(section, key):
    """A repair or copy time of 0 would be an infinite rate; a low of 0 is refused too."""
    for raw in (0, {"value": 1, "low": 0, "high": 2}):
        tables = json.loads(json.dumps(FULL))
        table = tables
        for part in section.split("."):
            table = table[part]
        table[key] = raw
        with pytest.raises(ModelError, match=rf"{section}\.{key} must be more than 0"):
            FailureModel.from_dict(tables)


@pytest.mark.parametrize(
    ("section", "key"),
    [("flush", "seconds"), ("detection", "seconds"), ("election", "ms_per_leader")],
)
def test_a_delay_of_nothing_is_allowed(section, key):
    """Flush, detection and election times may be 0, and so may rates."""
    model = FailureModel.from_dict({**DESTROYED, section: {key: 0}})
    assert model[f"{section}.{key}"] == 0.0
    assert FailureModel.from_dict(crash(value=0)).rate_per_hour("broker.crash") == 0.0


@pytest.mark.parametrize("raw", [1.5, {"value": 0.5, "low": 0.1, "high": 1.01}])
def test_a_probability_above_one_is_refused(raw):
    """Neither the value nor the high end of not_returning exceeds 1."""
    power = {"per_year": 1, "minutes": 1, "not_returning": raw}
    with pytest.raises(ModelError, match="is a probability and must not exceed 1"):
        FailureModel.from_dict({**DESTROYED, "cluster": {"power": power}})


WORDS = [*FULL, *FULL["broker"], "title", "per_year", "minutes", "hours", "seconds", "value", "low"]
json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(WORDS) | st.text(max_size=4) | st.integers(), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(json_like)
def test_whatever_comes_in_a_model_or_a_model_error_comes_out(tables):
    """Whatever the input, the only error is a ModelError of one line."""
    try:
        said = repr(FailureModel.from_dict(tables).mechanisms)
    except ModelError as refusal:
        said = str(refusal)
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("name", catalog.model_names())
def test_every_shipped_card_loads_by_name_and_by_path(name):
    """By name and by path the same model, named after the file."""
    model = load_model(name)
    assert model.name == name
    assert load_model(catalog.model_path(name)) == model


NUMBER = '{ value = 1, low = 0.5, high = 2, evidence = "own: counted" }'
CARD = f"[broker.crash]\nper_year = {NUMBER}\nminutes = {NUMBER}\n"


def test_a_card_of_ones_own_may_bring_its_own_evidence(tmp_path):
    """Evidence that starts with own: is accepted; the title defaults to the file's name."""
    model = load_model(write(tmp_path / "mine.toml", CARD))
    assert (model.name, model.title) == ("mine", "mine")
    assert model.quantities["broker.crash.minutes"].evidence == "own: counted"


def test_a_card_of_ones_own_may_cite_the_shipped_evidence(tmp_path):
    """An id of data/failure_rates.csv is evidence in any card."""
    path = write(tmp_path / "mine.toml", CARD.replace("own: counted", "broker-crash"))
    assert load_model(path).quantities["broker.crash.per_year"].evidence == "broker-crash"


@pytest.mark.parametrize(
    ("number", "problem"),
    [
        ("1", "has no evidence; say { value = "),
        ("{ value = 1 }", "has no evidence"),
        ("{ value = 1, low = 0.5, high = 2 }", "has no evidence"),
        ('{ value = 1, evidence = " " }', "has no evidence"),
        ('{ value = 1, evidence = "own:" }', "cites evidence 'own:'"),
        ('{ value = 1, evidence = "brokercrash" }', "did you mean 'broker-crash'"),
        ('{ value = 1, evidence = "qqq" }', r"see data/README\.md"),
        ("nan", "must be a finite number"),
        ("-1", "must not be negative"),
        ("true", "must be a number, not True"),
    ],
)
def test_a_card_file_is_refused_with_file_line_and_key(tmp_path, number, problem):
    """A number without known evidence, or an impossible one, is refused with its line."""
    path = write(
        tmp_path / "mine.toml", f"\n[broker.crash]\nminutes = {NUMBER}\nper_year = {number}\n"
    )
    with pytest.raises(ModelError, match=problem) as caught:
        load_model(path)
    assert str(caught.value).startswith(f"{path}:4: broker.crash.per_year ")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "nothing ever fails in this card"),
        (b"# only a comment\n", "nothing ever fails in this card"),
        (b"\n[broker.crash]\nper_year = \n", r"not valid TOML: .*line 3"),
        (b"[broker.crash]\nper_year = { value = 1,\n", "not valid TOML"),
        (b"[flush]\n[flush]\n", "not valid TOML"),
        (b"[flush]\nseconds = " + b"1" * 5000, "more digits than can be read"),
        (b"title = '\xff'\n", r"not UTF-8 text \(byte 9\)"),
        (b"[broker.crush]\n", r"mine\.toml:1: broker\.crush is no section"),
        (b"broker.crash.per_yaer = 1\n", r"mine\.toml:1: broker\.crash\.per_yaer is no key"),
        (b"\n[flush]\nsecond = 1\n[copy]\n", r"mine\.toml:3: flush\.second is no key"),
        (b"[copy]\n[flush]\n[broker.crash]\n", r"mine\.toml:3: broker\.crash has no per_year"),
        (b"broker = { crash = 1 }\n", r"mine\.toml:1: broker\.crash must be a table"),
    ],
)
def test_a_broken_file_is_refused_by_name(tmp_path, content, problem):
    """Empty, cut, doubled, wrongly encoded or misspelt: one sentence that names the file."""
    path = tmp_path / "mine.toml"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=problem) as caught:
        load_model(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_card_is_refused_with_the_names():
    """The error lists what ships."""
    with pytest.raises(ModelError, match="no failure-model card is called 'four_az'"):
        load_model("four_az")


@pytest.mark.parametrize(
    ("tables", "end"),
    [
        ({"broker": {"crash": {"per_yer": 1, "minutes": 5}}}, "did you mean 'per_year'?"),
        ({"brokers": {}}, "did you mean 'broker'?"),
        (
            {"broker": {"crash": {"zzz": 1}}},
            "known are duration, lifetime, minutes, per_year, shape.",
        ),
    ],
)
def test_a_question_ends_as_one(tables, end):
    """A hint that asks ends in a question mark and nothing else; a list of words in a full stop."""
    with pytest.raises(ModelError) as found:
        FailureModel.from_dict(tables)
    assert str(found.value).endswith(f"; {end}")


def test_texts_of_a_card_are_harmless() -> None:
    """Name, title and evidence have one line; none has what a terminal obeys."""
    number = {"value": 1.0, "evidence": "own: a\nb\x1b[2J"}
    tables = {
        "title": "t\nVerdict: fine\x1b]0;x\x07",
        "when_to_use": "here\nand there\u202e",
        "broker": {"destroyed": {"per_year": number, "hours": 12}},
    }
    model = FailureModel.from_dict(tables, name="n\nm")
    assert (model.name, model.title) == ("n m", "t Verdict: fine\\x1b]0;x\\x07")
    assert model.when_to_use == "here\nand there\\u202e"
    assert model.quantities["broker.destroyed.per_year"].evidence == "own: a b\\x1b[2J"


def test_a_card_says_whose_room_it_is() -> None:
    """It survives a round trip, and is left out where the card does not say."""
    model = FailureModel.from_dict({**DESTROYED, "hosting": "cloud"})
    assert model.hosting == "cloud"
    assert FailureModel.from_dict(model.to_dict(), name=model.name) == model
    silent = FailureModel.from_dict(DESTROYED)
    assert silent.hosting == ""
    assert "hosting" not in silent.to_dict()
