"""Which assumption moves a measure most: the swings, their order, their words and their chart."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

import advisor
from advisor.errors import InputError
from advisor.protocol.rules.config import Config
from advisor.reliability import measure_table
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.sensitivity import Swing, Tornado, tornadoes
from advisor.reliability.solver.generator import ROUGH

CARD = FailureModel.from_dict(
    {
        "broker": {
            "crash": {"per_year": {"value": 2, "low": 1, "high": 5}, "minutes": 5},
            "destroyed": {
                "per_year": {"value": 0.1, "low": 0.05, "high": 0.4, "evidence": "own: <b>"},
                "hours": {"value": 12, "low": 11, "high": 13},
            },
        }
    }
)
CONFIG = Config(replication_factor=2, min_insync_replicas=1, acks="all")
CLUSTER = advisor.Cluster.uniform(brokers=2, racks=2)


@pytest.fixture(scope="module")
def result() -> Reliability:
    return evaluate(CLUSTER, CONFIG, CARD)


def test_an_end_is_the_evaluation_of_the_card_changed_there(result: Reliability) -> None:
    """Each end equals an evaluation, to all digits, of the card with that one number moved.

    The ends are solved to a relative residual of `ROUGH`; ten times that is allowed for what a
    residual may mean in the answer.
    """
    for measure in ("loss_events_per_year", "write_unavailability", "mean_years_to_loss"):
        rows = result.tornado(measure).rows
        assert {row.path for row in rows} == set(CARD.uncertain)
        for row in rows:
            for end, found in ((row.low, row.result_at_low), (row.high, row.result_at_high)):
                exact = evaluate(CLUSTER, CONFIG, CARD.with_values({row.path: end}))
                assert found == pytest.approx(getattr(exact, measure), rel=10 * ROUGH)


@dataclass(frozen=True)
class Product:
    """A made-up result: crash rate times destruction rate squared, per hour of repair."""

    loss_events_per_year: float


def product(model: FailureModel) -> Product:
    """Evaluate a card by a formula whose swings are known."""
    crashes, destroyed = model["broker.crash.per_year"], model["broker.destroyed.per_year"]
    return Product(crashes * destroyed**2 / model["broker.destroyed.hours"])


def each(
    formula: Callable[[FailureModel], Product],
) -> Callable[[Sequence[FailureModel]], list[Product]]:
    """The formula of several cards."""
    return lambda cards: [formula(card) for card in cards]


def test_the_swings_of_a_formula_are_the_formula() -> None:
    """The factors are (high/low), its square and its inverse, and order the rows."""
    found = tornadoes(each(product), CARD, {"loss_events_per_year": 2 * 0.01 / 12})
    rows = found["loss_events_per_year"].rows
    assert [(row.path, row.factor) for row in rows] == [
        ("broker.destroyed.per_year", pytest.approx(8.0**2)),
        ("broker.crash.per_year", pytest.approx(5.0)),
        ("broker.destroyed.hours", pytest.approx(13 / 11)),
    ]
    assert rows[2].result_at_low > rows[2].result_at_high


def test_a_known_product_bounds_the_swing_of_its_minutes() -> None:
    """Longer outages are as much rarer: minutes move nothing that counts their product alone."""
    minutes = {"value": 200, "low": 20, "high": 1000}
    rate = {"minutes_per_year": 20, "low": 4, "high": 200}
    model = FailureModel.from_dict(
        {"cluster": {"crash": {"per_year": rate, "brokers": 1, "minutes": minutes}}}
    )

    def stopped(card: FailureModel) -> Product:
        return Product(card["cluster.crash.per_year"] * card["cluster.crash.minutes"])

    measure = "loss_events_per_year"
    rows = tornadoes(each(stopped), model, {measure: 20.0})[measure].rows
    swings = {row.path: row.factor for row in rows}
    assert swings["cluster.crash.per_year"] == pytest.approx(50.0)
    assert swings["cluster.crash.minutes"] == pytest.approx(1.0)


def test_a_bend_between_the_ends_counts() -> None:
    """A number whose ends agree but whose middle does not is not taken for harmless."""

    def bent(model: FailureModel) -> Product:
        return Product(3.0 if model["broker.crash.per_year"] == 2 else 1.0)

    rows = tornadoes(each(bent), CARD, {"loss_events_per_year": 3.0})["loss_events_per_year"]
    assert rows.rows[0].factor == pytest.approx(3.0)


def test_an_end_at_nothing_is_an_infinite_factor() -> None:
    """A low of 0 that stops all losses comes first, and the chart still has a place for it."""
    card = FailureModel.from_dict(
        {"broker": {"destroyed": {"per_year": {"value": 1, "low": 0, "high": 2}, "hours": 5}}}
    )
    rows = evaluate(CLUSTER, CONFIG, card).tornado("loss_events_per_year")
    assert rows.rows[0].factor == math.inf
    assert rows.rows[0].result_at_low == 0.0
    rows.plot()


def test_it_says_it_in_words_and_tables(result: Reliability) -> None:
    """The sentence is in `explain`; the table has a row a number; foreign text stays text."""
    found = result.tornado("loss_events_per_year")
    first = found.rows[0]
    assert f"moves loss_events_per_year most is {first.path}: " in found.explain()
    assert list(found.to_frame()["path"]) == [row.path for row in found]
    assert found.to_dict()["rows"][0]["evidence"] == first.evidence
    assert "own: &lt;b&gt;" in found._repr_html_()
    assert "<b>" not in found._repr_html_()


def test_ends_that_are_computed_have_two_digits_in_words_and_table() -> None:
    """0.0173913 is no number that anybody gave: the sentence, the lines and the table say 0.017."""
    swing = Swing("a.per_year", 0.1, 0.0173913, 0.125, 0.31234, 0.41234, 1.3, "")
    found = Tornado("loss_events_per_year", "events/year", 0.3, (swing,))
    assert found.summary.endswith("0.31 at its low, 0.017, and 0.41 at its high, 0.125.")
    assert "a.per_year from 0.017 to 0.125: 0.31 to 0.41 events/year" in found.explain()
    assert "0.0173913" not in found._repr_html_()


def test_the_chart_has_a_bar_for_each_number_that_matters(result: Reliability) -> None:
    """Widest on top, each with its path and range as its label."""
    found = result.tornado("loss_events_per_year")
    ax = found.plot()
    moving = [row for row in found if row.factor > 1.005]
    labels = [label.get_text().splitlines()[0] for label in ax.get_yticklabels()]
    assert labels == [row.path for row in moving]
    assert len(ax.patches) == len(moving) > 0


def test_without_ranges_nothing_moves() -> None:
    """A card of exact numbers has no rows, says so, and draws a sentence."""
    exact = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 1, "hours": 5}}})
    found = evaluate(CLUSTER, CONFIG, exact).tornado("write_unavailability")
    assert len(found) == 0
    assert "No number" in found.summary
    assert found.plot().texts


def test_every_measure_and_only_a_measure_has_one(result: Reliability) -> None:
    """All names are answered; another name is refused with the list."""
    names = measure_table.names()
    assert [result.tornado(name).measure for name in names] == [*names]
    with pytest.raises(InputError, match="is no measure; there are"):
        result.tornado("durability")
