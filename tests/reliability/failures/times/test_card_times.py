"""Distributions of times and repair crews in a card: what is read, and what is refused."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from advisor import FailureModel, load_model
from advisor.errors import ModelError

CRASH = {"per_year": 2.0, "minutes": 30.0}
WEIBULL = {"distribution": "weibull", "shape": 0.7}


def read(crash: dict[str, Any] | None = None, **more: object) -> FailureModel:
    """Read a card with a broker that crashes."""
    return FailureModel.from_dict({"broker": {"crash": CRASH | (crash or {})}, **more})


def test_a_card_holds_the_distributions_of_its_times() -> None:
    """They are read by path, shown, counted in equality and hash, and survive a round trip."""
    observed = {"distribution": "empirical", "minutes": [10, 50], "evidence": "own: pager"}
    model = read({"lifetime": WEIBULL, "duration": observed})
    assert {path: str(found) for path, found in model.times.items()} == {
        "broker.crash.lifetime": "weibull, shape 0.7",
        "broker.crash.duration": "empirical, 2 times of 10 to 50 minutes",
    }
    again = FailureModel.from_dict(model.to_dict(), name="custom")
    assert again == model
    assert again.to_dict() == model.to_dict()
    assert hash(again) == hash(model)
    assert pickle.loads(pickle.dumps(model)) == model
    assert read() != model
    assert hash(read()) != hash(model)
    assert model.with_values({"broker.crash.per_year": 9.0}).times == model.times
    assert "broker.crash.lifetime  weibull, shape 0.7" in repr(model)
    assert "weibull, shape 0.7" in model._repr_html_()
    frame = model.to_frame()
    assert frame.loc["broker.crash.duration", "value"] == "empirical, 2 times of 10 to 50 minutes"
    assert frame.loc["broker.crash.duration", "evidence"] == "own: pager"
    assert frame.loc["broker.crash.minutes", "value"] == 30.0


def test_exponential_times_are_what_a_card_has_anyway() -> None:
    """Said or left out, the card is the same."""
    plain = {"distribution": "exponential"}
    assert read({"lifetime": plain, "duration": plain}) == read()


def test_a_gamma_duration_is_a_shape() -> None:
    """Both ways to write it give the same card; a gamma lifetime has no other way."""
    gamma = {"distribution": "gamma", "shape": 2.5, "evidence": "own: tickets"}
    model = read({"duration": gamma})
    assert model == read({"shape": {"value": 2.5, "evidence": "own: tickets"}})
    assert not model.times
    assert str(read({"lifetime": gamma}).times["broker.crash.lifetime"]) == "gamma, shape 2.5"
    # Gray failures have no key `shape`.
    gray = {"per_year": 1.0, "minutes": 30.0, "dies": 0.1, "duration": gamma}
    model = FailureModel.from_dict({"broker": {"gray": gray, "power": CRASH}})
    assert str(model.times["broker.gray.duration"]) == "gamma, shape 2.5"


def test_the_mean_of_a_list_stands_for_the_number() -> None:
    """Left out, the rate and the duration are those of the observed times."""
    lifetime = {"distribution": "empirical", "days": [100, 200], "evidence": "own: a"}
    duration = {"distribution": "empirical", "hours": [1, 4], "evidence": "own: b"}
    model = FailureModel.from_dict(
        {"broker": {"crash": {"lifetime": lifetime, "duration": duration}}}
    )
    assert model["broker.crash.per_year"] == 365.0 / 150.0
    assert model["broker.crash.minutes"] == 150.0
    assert model.quantities["broker.crash.minutes"].evidence == "own: b"
    assert FailureModel.from_dict(model.to_dict()) == model


def test_a_stated_mean_may_be_rounded() -> None:
    """Within a hundredth it counts as that of the list; further off one of them is wrong."""
    observed = {"distribution": "empirical", "minutes": [10, 50.4]}
    assert read({"duration": observed})["broker.crash.minutes"] == 30.0
    with pytest.raises(ModelError, match=r"crash.minutes is 30, but the times listed.* of 35;"):
        read({"duration": {"distribution": "empirical", "minutes": [10, 60]}})
    with pytest.raises(ModelError, match=r"crash.per_year is 2, but .* a mean of 3\.65;"):
        read({"lifetime": {"distribution": "empirical", "days": [100]}})


def test_a_range_of_the_mean_goes_on_working() -> None:
    """Numbers keep their low and high, and are drawn from, whatever the distribution."""
    crash = {"per_year": {"value": 2, "low": 1, "high": 4}, "lifetime": WEIBULL}
    model = read(crash)
    assert model.uncertain == ("broker.crash.per_year",)
    drawn = list(model.draws(4, seed=1))
    assert len({each["broker.crash.per_year"] for each in drawn}) == 4
    assert all(each.times == model.times for each in drawn)


@pytest.mark.parametrize(
    ("crash", "said"),
    [
        ({"lifetime": 3}, 'crash.lifetime needs a distribution, such as { distribution = "weib'),
        ({"lifetime": {}}, "crash.lifetime needs a distribution"),
        ({"lifetime": {"distribution": "weibul"}}, "'weibul'; did you mean 'weibull'?"),
        ({"lifetime": {"distribution": 7}}, "known are exponential, weibull, lognormal"),
        ({"lifetime": {"distribution": "weibull"}}, "has no shape, which weibull needs."),
        ({"lifetime": WEIBULL | {"shap": 1}}, "'shap', which weibull does not take; did you"),
        ({"lifetime": {"distribution": "fixed", "shape": 1}}, "which fixed does not take;"),
        ({"lifetime": WEIBULL | {"shape": "1"}}, "lifetime.shape must be a number, not '1'."),
        ({"lifetime": WEIBULL | {"shape": True}}, "shape must be a number, not True."),
        ({"lifetime": WEIBULL | {"shape": -1}}, "a finite number above 0, but is -1."),
        ({"lifetime": WEIBULL | {"shape": float("nan")}}, "above 0, but is nan."),
        ({"lifetime": WEIBULL | {"shape": 10**400}}, "above 0, but is inf."),
        ({"lifetime": WEIBULL | {"shape": 0.1}}, "must lie between 0.2 and 1,000, but is 0.1."),
        ({"duration": {"distribution": "lognormal", "sigma": 3}}, "between 0.001 and 2.5, but"),
        ({"lifetime": WEIBULL | {"evidence": 3}}, "needs a text as evidence, not 3."),
        ({"lifetimes": WEIBULL}, "is no key of a card; did you mean 'lifetime'?"),
        (
            {"duration": {"distribution": "gamma", "shape": 2}, "shape": 2},
            "duration and shape are both given",
        ),
        ({"duration": WEIBULL, "shape": 2}, "duration and shape are both given"),
        ({"duration": {"distribution": "empirical"}}, "one list of observed times: minutes, hou"),
        (
            {"duration": {"distribution": "empirical", "minutes": [1], "days": [1]}},
            "one list of observed times",
        ),
        ({"duration": {"distribution": "empirical", "weeks": [1]}}, "'weeks', which empirical d"),
        ({"duration": {"distribution": "empirical", "minutes": []}}, "must be a list of 1 to"),
        ({"duration": {"distribution": "empirical", "minutes": "30"}}, "must be a list of 1 to"),
        ({"duration": {"distribution": "empirical", "minutes": [30, 0]}}, "above 0, but is 0."),
        ({"duration": {"distribution": "empirical", "minutes": [1e-30]}}, "holds 1e-30; a time"),
    ],
)
def test_what_no_card_may_hold_is_refused(crash: dict[str, Any], said: str) -> None:
    """One sentence names the card, the key and what to do."""
    with pytest.raises(ModelError) as error:
        read(crash)
    assert str(error.value).startswith("custom: broker.crash.")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_racks_that_are_destroyed_have_no_duration_of_their_own() -> None:
    """Their brokers are replaced one by one, as the card says of destroyed brokers."""
    destroyed = {"rack": {"destroyed": {"per_year": 1, "duration": WEIBULL}}}
    with pytest.raises(ModelError, match=r"ends as broker\.destroyed says"):
        FailureModel.from_dict(destroyed | {"broker": {"destroyed": {"hours": 5}}})
    destroyed["rack"]["destroyed"] = {"per_year": 1, "lifetime": WEIBULL}
    model = FailureModel.from_dict(destroyed | {"broker": {"destroyed": {"hours": 5}}})
    assert list(model.times) == ["rack.destroyed.lifetime"]


def test_a_file_names_line_and_evidence(tmp_path: Path) -> None:
    """In a file every distribution needs its evidence, and an error names its line."""
    card = tmp_path / "mine.toml"
    numbers = (
        '[broker.crash]\nper_year = { value = 2, evidence = "own: a" }\n'
        'minutes = { value = 5, evidence = "own: a" }\n'
    )
    weibull = 'lifetime = { distribution = "weibull", shape = 0.7'
    card.write_text(numbers + weibull + " }\n", encoding="utf-8")
    with pytest.raises(ModelError, match=r"mine.toml:4: broker.crash.lifetime has no evidence"):
        load_model(card)
    card.write_text(numbers + weibull + ', evidence = "nobody" }\n', encoding="utf-8")
    with pytest.raises(ModelError, match=r"mine.toml:4: .* cites evidence 'nobody'"):
        load_model(card)
    card.write_text(numbers + weibull + ', evidence = "own: b" }\n', encoding="utf-8")
    assert load_model(card).times["broker.crash.lifetime"].evidence == "own: b"


def test_crews_are_a_number_and_a_list() -> None:
    """Without a list a crew is needed where someone has to come; a round trip keeps all of it."""
    model = read(repair={"crews": 2})
    assert model["repair.crews"] == 2.0
    assert model.needed_for == ("broker.power", "broker.destroyed")
    some = read(repair={"crews": 1, "needed_for": ["broker.gray", "broker.crash"]})
    assert some.needed_for == ("broker.crash", "broker.gray")
    for each in (model, some):
        assert FailureModel.from_dict(each.to_dict(), name="custom") == each
        assert pickle.loads(pickle.dumps(each)) == each
        assert ", ".join(each.needed_for) in repr(each)
        assert ", ".join(each.needed_for) in each._repr_html_()
    assert some != read(repair={"crews": 1})
    assert hash(some) != hash(read(repair={"crews": 1}))
    assert some.with_values({"repair.crews": 3}).needed_for == some.needed_for
    assert read().needed_for == ()


@pytest.mark.parametrize(
    ("repair", "said"),
    [
        ({"crews": 0}, "repair.crews must be a whole number from 1, but is 0."),
        ({"crews": 1.5}, "repair.crews must be a whole number from 1, but is 1.5."),
        ({"crews": {"value": 2, "low": 1, "high": 3}}, "is a whole number and has no low and"),
        ({"crew": 1}, "repair.crew is no key of a card; did you mean 'crews'?"),
        ({}, "repair has no crews"),
        ({"needed_for": ["broker.crash"]}, "repair has no crews"),
        ({"crews": 1, "needed_for": []}, "repair.needed_for must be a list of mechanisms"),
        ({"crews": 1, "needed_for": "broker.crash"}, "must be a list of mechanisms"),
        ({"crews": 1, "needed_for": ["broker.krash"]}, "did you mean 'broker.crash'?"),
        ({"crews": 1, "needed_for": ["broker.restart"]}, "cannot wait for a crew"),
        ({"crews": 1, "needed_for": ["rack.power"]}, "cannot wait for a crew"),
        ({"crews": 1, "needed_for": [4]}, "holds 4, whose repairs cannot wait"),
        (3, "repair must be a table, not 3."),
    ],
)
def test_crews_that_cannot_be_are_refused(repair: object, said: str) -> None:
    """One sentence names the key and what to do."""
    with pytest.raises(ModelError) as error:
        read(repair=repair)
    assert said in str(error.value)
