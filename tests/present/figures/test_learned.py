"""What was learned, drawn: a row for each number, its range before and now."""

import pytest

import advisor
from advisor.errors import InputError

COUNTS = {
    "brokers": 12,
    "years": 3,
    "events": {"broker.power": 4, "cluster.crash": [{"minutes": 40}]},
}


def test_each_number_has_its_range_before_and_now() -> None:
    """As multiples of what the card said, the number that moved most at the top."""
    learned = advisor.learn(COUNTS, prior="three_az_cloud")
    ax = learned.plot()
    rows = sorted(learned.numbers, key=lambda row: -row.moved)
    assert [label.get_text() for label in ax.get_yticklabels()] == [row.number for row in rows]
    ranges = [list(line.get_xdata()) for line in ax.lines if len(line.get_xdata()) == 2]
    drawn = iter(ranges)
    for row in rows:
        for interval in (row.prior, row.posterior):
            ends = [interval.low / row.prior.value, interval.high / row.prior.value]
            assert next(drawn) == pytest.approx(ends)


def test_nothing_learned_is_not_drawn() -> None:
    """A count of a mechanism that the card states exactly moves no number."""
    card = advisor.FailureModel.from_dict({"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}})
    learned = advisor.learn(
        {"brokers": 3, "years": 1, "events": {"broker.destroyed": 0}}, prior=card
    )
    with pytest.raises(InputError, match="nothing to draw"):
        learned.plot()
