"""What a cluster has seen, typed in the explorer: the card that follows, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import advisor
from advised import MODEL, described
from advisor.advice import Goals
from advisor.learning import learn
from advisor.present.interactive import seen
from advisor.present.interactive.explorer import explorer
from advisor.present.interactive.explorer_model import ExplorerModel
from advisor.protocol.rules.config import Config
from advisor.reliability.failures.failure_model import FailureModel

CARD = FailureModel.from_dict(
    {
        "broker": {
            "crash": {"per_year": {"value": 2, "low": 1, "high": 5}, "minutes": 5},
            "destroyed": {"per_year": {"value": 0.01, "low": 0.001, "high": 0.1}, "hours": 12},
        },
        "rack": {
            "power": {
                "per_year": {"value": 0.1, "low": 0.02, "high": 0.5},
                "minutes": {"value": 60, "low": 10, "high": 300},
            }
        },
    }
)
TYPED = {
    seen.YEARS: "3",
    seen.BROKERS: "12",
    "seen.broker.crash": "20",
    "seen.broker.destroyed": "0",
    "seen.rack.power": "2",
    "seen.rack.power.minutes": "40, 12",
}
COUNTS = {
    "brokers": 12,
    "years": 3,
    "events": {
        "broker.crash": 20,
        "broker.destroyed": 0,
        "rack.power": {"events": 2, "minutes": [40, 12]},
    },
}


def model_of(card: FailureModel = CARD) -> ExplorerModel:
    return ExplorerModel(described(), card, None, Goals(), Config(), "orders")


def test_it_answers_as_learn_does_of_the_same_counts() -> None:
    """Numbers, intervals and verdicts with how sure they are: those of the card of `learn`."""
    model = model_of()
    values = {**model.chosen, **TYPED}
    shown = model.setting(values, intervals=True)
    learned = learn(COUNTS, prior=CARD, cluster=described())
    alone = model_of(learned.model)
    expected = alone.setting(alone.chosen, intervals=True)
    assert {name: shown[name] for name in ("loss", "refused", "lines")} == {
        name: expected[name] for name in ("loss", "refused", "lines")
    }
    assert model.verdicts(values) == alone.verdicts(alone.chosen)
    assert shown["loss"] != model.setting(model.chosen, intervals=True)["loss"]


def test_the_curve_and_the_better_setting_follow_the_counts() -> None:
    """Every setting of the curve, and where the topic stands today."""
    model = model_of()
    learned = learn(COUNTS, prior=CARD, cluster=described())
    alone = model_of(learned.model)
    answer, expected = model.answer({**model.chosen, **TYPED}), alone.answer(alone.chosen)
    assert [setting["refused"] for setting in answer.settings.values()] == [
        setting["refused"] for setting in expected.settings.values()
    ]
    assert [*answer.marks.values()] == [*expected.marks.values()]


def test_the_card_is_there_to_be_copied(tmp_path: Path) -> None:
    """It reads back as the card that was learned."""
    model = model_of()
    *_, (title, text, copied) = model.setting({**model.chosen, **TYPED})["commands"]
    (tmp_path / "my_card.toml").write_text(text)
    learned = learn(COUNTS, prior=CARD, cluster=described())
    assert advisor.load_model(tmp_path / "my_card.toml") == replace(learned.model, name="my_card")
    assert title.startswith("my_card.toml")
    assert copied


def test_a_zero_is_counted_and_an_empty_field_is_not() -> None:
    """That nothing happened lowers a rate only where it was typed."""
    cluster = described()
    years = {**seen.UNCOUNTED, seen.YEARS: "10"}
    assert seen.learned_from(years, CARD, cluster) is None
    none = seen.learned_from({**years, "seen.broker.destroyed": "0"}, CARD, cluster)
    assert none is not None
    assert none.model["broker.destroyed.per_year"] < CARD["broker.destroyed.per_year"] / 1.2
    assert none.model["broker.crash.per_year"] == CARD["broker.crash.per_year"]


def test_what_the_counts_did_is_said_with_and_without_intervals() -> None:
    """First at the middle values, then with the ranges before and after."""
    model = model_of()
    uncounted = {**model.chosen, "min_insync_replicas": "3"}
    values = {**uncounted, **TYPED}
    before, after = model.setting(uncounted), model.setting(values)
    said = after["learned"]
    assert "3 years of 12 brokers" in said
    assert " to " not in said
    assert before["refused"][0] != after["refused"][0]
    refused = model.setting(values, intervals=True)["learned"].partition(";")[0]
    assert refused.count(" to ") == 2
    assert "learned" not in before
    assert "Nothing is counted" in model.setting({**model.chosen, seen.YEARS: "3"})["learned"]


@pytest.mark.parametrize(
    ("changed", "control"),
    [
        ({seen.YEARS: ""}, "seen.broker.crash"),
        ({seen.YEARS: "0"}, seen.YEARS),
        ({seen.YEARS: "31"}, seen.YEARS),
        ({seen.YEARS: "three"}, seen.YEARS),
        ({seen.BROKERS: "0"}, seen.BROKERS),
        ({seen.BROKERS: "1e3"}, seen.BROKERS),
        ({"seen.broker.crash": "-1"}, "seen.broker.crash"),
        ({"seen.broker.crash": "1.5"}, "seen.broker.crash"),
        ({"seen.broker.crash": "999999999"}, "seen.broker.crash"),
        ({"seen.rack.power": "1"}, "seen.rack.power.minutes"),
        ({"seen.rack.power": ""}, "seen.rack.power.minutes"),
        ({"seen.rack.power.minutes": "0"}, "seen.rack.power.minutes"),
        ({"seen.rack.power.minutes": "9999999"}, "seen.rack.power.minutes"),
    ],
)
def test_a_count_that_cannot_be_is_refused_at_its_control(
    changed: dict[str, str], control: str
) -> None:
    """Its control comes first among those to blame, and nothing is shown for it."""
    model = model_of()
    shown = model.setting({**model.chosen, **TYPED, **changed})
    assert shown["by"][0] == control
    assert set(shown) == {"refusal", "by"}


def test_racks_are_counted_only_where_they_are_known() -> None:
    """A cluster without racks has no control for them, and cannot answer."""
    keys = {control["key"] for control in seen.seen_controls(described())}
    unknown = described().with_racks(dict.fromkeys((1, 2, 3)))
    assert keys - {control["key"] for control in seen.seen_controls(unknown)} == {
        "seen.rack.power",
        "seen.rack.power.minutes",
    }


def test_what_a_card_does_not_have_is_said_at_the_control() -> None:
    """A mechanism without a number in the card is counted in vain."""
    model = model_of(MODEL)
    values = {**model.chosen, seen.YEARS: "3", "seen.cluster.wiped": "1"}
    assert "seen.cluster.wiped" in [name for name, _ in model.setting(values)["notes"]]


def test_only_a_page_with_a_kernel_has_the_controls() -> None:
    """An exported page leaves them out and says where they are."""
    view = explorer(described(), MODEL, cards=[])
    page = json.loads(view.html.split('<script type="application/json">')[1].split("</script>")[0])
    offline = {control["key"] for control in page["controls"]}
    live = {control["key"] for control in view.page["controls"]}
    assert live - offline == set(seen.KEYS)
    assert "kernel" in page["note"]
    assert not any(name.startswith(seen.PREFIX) for name in page["context"])


def test_the_trait_is_what_was_learned() -> None:
    """Python reads the card from the widget; nothing is learned of nothing."""
    view = explorer(described(), MODEL, cards=[])
    assert view.learned is None
    view.values = {**view.values, seen.YEARS: "3", "seen.broker.crash": "20"}
    assert (
        view.learned.model
        == learn({"brokers": 3, "years": 3, "events": {"broker.crash": 20}}, prior=MODEL).model
    )
