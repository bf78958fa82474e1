"""Failure models: rates and repair times, copies, and draws from ranges."""

import itertools
import json
import math
import pickle
import re

import pytest

from advisor import catalog
from advisor.errors import ModelError
from advisor.formatting import as_given, significant
from advisor.reliability.failures.card import sections
from advisor.reliability.failures.failure_model import FailureModel, load_model
from advisor.reliability.failures.mechanisms import table
from model_tables import DESTROYED, FULL, crash

NAMES = catalog.model_names()


def test_bare_numbers_are_exact_and_need_no_evidence():
    """The smallest model of the documentation: one mechanism, two bare numbers."""
    model = FailureModel.from_dict(DESTROYED)
    assert (model.name, model.title) == ("custom", "custom")
    assert model.mechanisms == ("broker.destroyed",)
    assert model["broker.destroyed.per_year"] == 1.0
    assert model.rate_per_hour("broker.destroyed") == 1 / 8760
    assert model.repair_hours("broker.destroyed") == 12.0
    assert model.uncertain == ()


def test_every_key_of_a_card_is_read():
    """All mechanisms in their fixed order, and every key that a card may hold, by its path."""
    model = FailureModel.from_dict(FULL)
    assert model.mechanisms == table().names
    allowed = {f"{section}.{key}" for section, keys in sections().items() for key in keys}
    shapes = {path for path in allowed if path.endswith(".shape")}
    assert allowed - shapes == set(model.quantities) - shapes


def test_mechanisms_keep_their_order_whatever_the_dict():
    """The order of results does not depend on the order in the card."""
    backwards = {
        section: dict(reversed(tables.items())) for section, tables in reversed(FULL.items())
    }
    assert FailureModel.from_dict(backwards) == FailureModel.from_dict(FULL)
    assert list(FailureModel.from_dict(backwards).quantities) == list(
        FailureModel.from_dict(FULL).quantities
    )


@pytest.mark.parametrize(
    ("mechanism", "per_hour", "hours", "shape"),
    [
        ("broker.crash", 0.1, 0.5, 2.0),
        ("broker.destroyed", 2 / 8760, 12.0, 3.0),
        ("rack.network", 1 / 8760, 1.5, 1.0),
        ("rack.destroyed", 1 / 8760, 12.0, 3.0),
        ("cluster.power", 1 / 8760, 0.1, 1.0),
    ],
)
def test_rates_and_repairs_are_in_hours(mechanism, per_hour, hours, shape):
    """Minutes become hours; a destroyed rack is replaced as its brokers are."""
    model = FailureModel.from_dict(FULL)
    assert model.rate_per_hour(mechanism) == pytest.approx(per_hour, rel=1e-15)
    assert model.repair_hours(mechanism) == pytest.approx(hours, rel=1e-15)
    assert model.shape(mechanism) == shape


def test_a_mechanism_left_out_does_not_happen():
    """Its rate is 0; its repair has no meaning and is refused."""
    model = FailureModel.from_dict(DESTROYED)
    assert model.rate_per_hour("rack.power") == 0.0
    with pytest.raises(ModelError, match=r"custom: the card does not give rack\.power\.minutes"):
        model.repair_hours("rack.power")


def test_a_mechanism_that_does_not_exist_is_refused():
    """A misspelt mechanism must not read as a rate of 0."""
    model = FailureModel.from_dict(DESTROYED)
    for ask in (model.rate_per_hour, model.repair_hours, model.shape):
        with pytest.raises(ModelError, match=r"no mechanism 'broker\.crashed'"):
            ask("broker.crashed")


def test_get_falls_back_and_indexing_does_not():
    """`get` gives the default, brackets name what the card does give."""
    model = FailureModel.from_dict(DESTROYED)
    assert model.get("flush.seconds", 7.0) == 7.0
    assert model.get("broker.destroyed.hours", 7.0) == 12.0
    with pytest.raises(ModelError, match=r"flush\.seconds; it gives broker\.destroyed\.per_year"):
        model["flush.seconds"]
    with pytest.raises(ModelError, match="default=1e400 is more than a float holds"):
        model.get("operator.hours", default=10**400)
    assert model.get("operator.hours", math.inf) == math.inf


@pytest.mark.parametrize("name", NAMES)
def test_a_card_survives_dict_json_and_pickle(name):
    """Through a dict, JSON or pickle (as Spark ships it) a card stays equal, as does its hash."""
    model = load_model(name)
    through_json = FailureModel.from_dict(json.loads(json.dumps(model.to_dict())), name)
    for copy in (through_json, pickle.loads(pickle.dumps(model))):
        assert copy == model
        assert hash(copy) == hash(model)
    assert model != model.with_values({"flush.seconds": 1.0})


def test_a_model_cannot_be_changed():
    """A model is immutable, so that results can refer to it."""
    tables = json.loads(json.dumps(DESTROYED))
    model = FailureModel.from_dict(tables)
    tables["broker"]["destroyed"]["hours"] = 1
    assert model["broker.destroyed.hours"] == 12.0
    with pytest.raises(TypeError):
        model.quantities["flush.seconds"] = None


def test_hours_alone_serve_a_destroyed_rack():
    """Where only racks are destroyed, broker.destroyed gives the hours and does not happen."""
    model = FailureModel.from_dict(
        {"rack": {"destroyed": {"per_year": 1}}, "broker": {"destroyed": {"hours": 3}}}
    )
    assert model.mechanisms == ("rack.destroyed",)
    assert model.repair_hours("rack.destroyed") == 3.0


def test_a_power_cut_after_which_all_return_needs_no_replacement():
    """not_returning is 0 unless given, and then broker.destroyed.hours may be missing."""
    cut = {"per_year": 1, "minutes": 60}
    for power in (cut, {**cut, "not_returning": 0}):
        model = FailureModel.from_dict({"cluster": {"power": power}})
        assert model.mechanisms == ("cluster.power",)


def ranges(**quantities):
    """Return a model with the given (low, value, high) for crash rate, minutes, or flush."""
    numbers = {
        key: {"low": low, "value": value, "high": high}
        for key, (low, value, high) in quantities.items()
    }
    crash = {"per_year": 1, "minutes": 1, **numbers}
    flush = crash.pop("seconds", 0)
    return FailureModel.from_dict({"broker": {"crash": crash}, "flush": {"seconds": flush}})


def test_with_values_makes_numbers_exact():
    """The given numbers lose their range, keep their evidence, and the others stay."""
    model = load_model("two_az")
    changed = model.with_values({"broker.crash.per_year": 3})
    quantity = changed.quantities["broker.crash.per_year"]
    assert (quantity.value, quantity.low, quantity.high) == (3.0, 3.0, 3.0)
    assert quantity.evidence == "broker-crash"
    assert set(model.uncertain) - set(changed.uncertain) == {"broker.crash.per_year"}
    assert changed.quantities["flush.seconds"] == model.quantities["flush.seconds"]


@pytest.mark.parametrize("values", [{"broker.crash.per_yaer": 1}, {"broker.crash.minutes": 0}])
def test_with_values_refuses_what_a_card_may_not_hold(values):
    """Neither a path that the card lacks nor an impossible number."""
    with pytest.raises(ModelError):
        load_model("two_az").with_values(values)


def test_draws_are_reproducible_and_differ_by_seed():
    """Same n and seed, same models; a smaller n gives the first of them; another seed, others."""
    model = load_model("three_az_cloud")
    first = list(model.draws(8, seed=1))
    assert first == list(model.draws(8, seed=1))
    assert first[:5] == list(model.draws(5, seed=1))
    assert all(a != b for a, b in zip(first, model.draws(8, seed=2), strict=True))
    assert all(drawn.uncertain == () for drawn in first)


@pytest.mark.parametrize("name", NAMES)
def test_draws_have_the_median_and_the_quantiles_of_the_card(name):
    """Half of the draws are below the value, 2.5 % at or below low, 2.5 % at or above high.

    At: a number that is cut at 0 or, a probability, at 1 stays there.
    Each coordinate of 2^k Sobol points has one point in each cell of width 2^-k, so the median
    splits them exactly and any other quantile is out by at most one point.
    """
    n = 256
    model = load_model(name)
    drawn = list(model.draws(n, seed=7))
    for path in model.uncertain:
        quantity = model.quantities[path]
        values = [one[path] for one in drawn]
        if quantity.minutes_per_year:
            # The product with the minutes is what is drawn, in units of the minutes' value.
            minutes = f"{path.rpartition('.')[0]}.minutes"
            values = [one[path] * one[minutes] / model[minutes] for one in drawn]
        assert sum(value < quantity.value for value in values) == n // 2, path
        assert abs(sum(value <= quantity.low for value in values) - 0.025 * n) <= 1, path
        assert abs(sum(value >= quantity.high for value in values) - 0.025 * n) <= 1, path


@pytest.mark.parametrize(
    "triple",
    [(0, 1, 4), (0, 0, 4), (1, 1, 4), (1, 4, 4)],
    ids=["low 0", "value 0", "no low", "no high"],
)
def test_draws_cope_with_ranges_that_have_no_logarithm(triple):
    """A half that ends at 0 is linear and cut at 0; a half of no width stays at the value."""
    n = 256
    low, value, high = triple
    drawn = [one["broker.crash.per_year"] for one in ranges(per_year=triple).draws(n, seed=3)]
    assert min(drawn) >= 0
    assert sum(number < value for number in drawn) == (n // 2 if low < value else 0)
    assert sum(number > value for number in drawn) == (n // 2 if value < high else 0)
    assert abs(sum(number > high for number in drawn) - 0.025 * n * (value < high)) <= 1
    below = sum(number <= 0 for number in drawn) if low == 0 < value else 0.025 * n
    assert abs(below - 0.025 * n) <= 1


def test_draws_keep_probabilities_below_one():
    """The tail of the lognormal above 1 is cut at 1."""
    gone = {"value": 0.5, "low": 0.25, "high": 1}
    power = {"per_year": 1, "minutes": 1, "not_returning": gone}
    model = FailureModel.from_dict({**DESTROYED, "cluster": {"power": power}})
    drawn = [one["cluster.power.not_returning"] for one in model.draws(256, seed=1)]
    assert max(drawn) == 1.0


def budget(**rate):
    """Return a model of common crashes whose rate is written as given."""
    minutes = {"value": 200, "low": 20, "high": 1000}
    return FailureModel.from_dict(
        {"cluster": {"crash": {"per_year": rate, "brokers": 1, "minutes": minutes}}}
    )


PRODUCT = {"minutes_per_year": 20, "low": 4, "high": 200}


def test_a_product_of_rate_and_minutes_is_drawn_as_one():
    """No draw of it strays further than its own range does; rate and minutes vary against it."""
    model = budget(**PRODUCT)
    number = model.quantities["cluster.crash.per_year"]
    assert (number.value, number.low, number.high) == (0.1, 0.02, 1.0)
    drawn = list(model.draws(256, seed=2))
    products = [d["cluster.crash.per_year"] * d["cluster.crash.minutes"] for d in drawn]
    assert sum(product > 200 * (1 + 1e-9) for product in products) <= 0.025 * 256 + 1
    apart = budget(value=0.1, low=0.02, high=1)
    wide = [
        d["cluster.crash.per_year"] * d["cluster.crash.minutes"] for d in apart.draws(256, seed=2)
    ]
    assert sum(product > 200 for product in wide) > 0.06 * 256


def test_a_known_product_stays_as_it_is_when_only_minutes_move():
    """`at` keeps what is known, `with_values` what was not named; both make numbers exact."""
    model, minutes, rate = budget(**PRODUCT), "cluster.crash.minutes", "cluster.crash.per_year"
    moved = model.at(minutes, 400)
    assert moved[minutes] * moved[rate] == pytest.approx(20)
    assert model.at(rate, 0.5)[minutes] == 200
    kept = model.with_values({minutes: 400})
    assert kept[rate] == 0.1
    # What was known of the product is gone with it, and so it is in a card written from this.
    assert FailureModel.from_dict(kept.to_dict()) == kept
    assert FailureModel.from_dict(model.to_dict()) == model
    assert budget(value=0.1, low=0.02, high=1).at(minutes, 400)[rate] == 0.1


def test_a_fact_about_tooling_is_asked_for_and_not_drawn():
    """Whether restarts wait is no chance: a range of it moves nothing."""
    overlap = {"value": 0.02, "low": 0.001, "high": 1}
    restart = {"per_year": {"value": 12, "low": 4, "high": 52}, "minutes": 8, "overlap": overlap}
    model = FailureModel.from_dict({"broker": {"restart": restart}})
    assert model.uncertain == ("broker.restart.per_year",)
    assert {one["broker.restart.overlap"] for one in model.draws(8, seed=1)} == {0.02}


def test_zookeeper_has_a_rate_of_its_own():
    """Under KRaft it is left out, with ZooKeeper it takes the other's place."""
    outage = {"per_year": 1, "zookeeper_per_year": 2, "minutes": 240, "stops": 0.5}
    model = FailureModel.from_dict({"cluster": {"controller": outage}})
    path = "cluster.controller.per_year"
    assert [model.under(mode)[path] for mode in ("kraft", "zookeeper")] == [1, 2]
    assert "cluster.controller.zookeeper_per_year" not in model.under("kraft").quantities
    assert model.under("zookeeper") is model.under("zookeeper")
    alike = model.under("kraft")
    assert alike.under("zookeeper") is alike


def test_what_a_user_can_measure_is_said_with_how():
    """A log, a metric or a drill; nothing of what no cluster of one's own would ever see."""
    cloud, room = load_model("three_az_cloud").measurable, load_model("single_rack").measurable
    for path in ("broker.restart.overlap", "operator.hours", "copy.bytes_per_second"):
        assert len(cloud[path]) > 20
    assert "cluster.power.per_year" in room
    for never in ("cluster.power.per_year", "cluster.destroyed.per_year", "cluster.crash.all"):
        assert never not in cloud


def test_draws_of_an_exact_model_are_the_model():
    """Without ranges there is nothing to draw."""
    model = FailureModel.from_dict(DESTROYED)
    assert list(model.draws(3, seed=0)) == [model] * 3


def test_draws_vary_numbers_independently():
    """Two ranges fill all four quarters of their plane evenly.

    A pair of Sobol coordinates puts n / 4 points in each quarter, exactly, for n a power of two.
    """
    model = ranges(per_year=(1, 2, 4), minutes=(1, 2, 4))
    quarters = [
        (one["broker.crash.per_year"] > 2, one["broker.crash.minutes"] > 2)
        for one in model.draws(64, seed=5)
    ]
    for quarter in itertools.product((False, True), repeat=2):
        assert quarters.count(quarter) == 16


def test_no_draws_are_refused():
    """An interval needs at least one draw."""
    with pytest.raises(ModelError, match="n >= 1, got 0"):
        list(load_model("two_az").draws(0, seed=1))


def test_a_model_shows_its_numbers_with_range_and_evidence():
    """The text and the table name title, path, value, range and evidence."""
    model = load_model("bare_metal_racks")
    text = repr(model)
    assert text.startswith(f"{model.title} (bare_metal_racks)\n")
    assert re.search(r"broker.destroyed.per_year +0.05 \(0.015 to 0.12\) +broker-destroyed-m", text)
    page = model._repr_html_()
    for path, quantity in model.quantities.items():
        assert f">{path}</th><td>{as_given(quantity.value)}</td>" in page
        assert quantity.evidence in page


def test_a_model_shows_numbers_as_people_write_them():
    """Millions without an exponent, in the text and in the table; two digits of a counted rate."""
    counted = {"events": 7, "exposure_years": 9.0, "evidence": "own: x"}
    model = FailureModel.from_dict(
        {
            "broker": {"crash": {"per_year": counted, "minutes": 1234.5}},
            "copy": {"bytes_per_second": {"value": 5e7, "low": 1e7, "high": 1.25e9}},
        }
    )
    learned = model.quantities["broker.crash.per_year"]
    rate, low, high = map(significant, (learned.value, learned.low, learned.high))
    page, text = model._repr_html_(), repr(model)
    assert f"<td>{rate}</td><td>{low}</td><td>{high}</td>" in page
    assert "<td>50,000,000</td><td>10,000,000</td><td>1,250,000,000</td>" in page
    assert "<td>1,234.5</td>" in page
    assert "50,000,000 (10,000,000 to 1,250,000,000)" in text
    assert f"{rate} ({low} to {high})" in text
    assert "e+" not in page + text


def test_a_table_shows_text_and_not_markup():
    """Texts of a card are escaped in HTML."""
    tables = {**crash(value=1, evidence="own: <b>"), "title": "<script>"}
    page = FailureModel.from_dict(tables)._repr_html_()
    assert "<script>" not in page
    assert "own: &lt;b&gt;" in page
