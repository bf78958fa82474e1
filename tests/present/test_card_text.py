"""Numbers of a card in words: what was given keeps its digits, what was computed gets two."""

import re

import pytest
from matplotlib.figure import Figure

import advisor
from advisor.present.card_text import range_in_words
from advisor.present.figures.tornado import plot_tornado


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.25, 12.5, "0.25 to 12.5 per year"),
        (0.693147, 1234.56, "0.69 to 1,200 per year"),
        (2.0, 2.0, ""),
    ],
)
def test_no_range_is_more_precise_than_it_is_known(low: float, high: float, said: str) -> None:
    """Three digits may have been given; six were computed, and two of them mean something."""
    assert range_in_words("broker.crash.per_year", low, high) == said


def test_labels_of_a_tornado_have_few_digits() -> None:
    """A rate counted from events has a computed range, and its label has two digits of each end."""
    counted = {"events": 7, "exposure_years": 11.0}
    card = advisor.FailureModel.from_dict(
        {"broker": {"crash": {"per_year": counted, "minutes": 9}}}
    )
    config = advisor.Config(replication_factor=1, acks=1)
    result = advisor.evaluate(advisor.Cluster.uniform(1, racks=1), config, card)
    axes = plot_tornado(result.tornado("write_unavailability"), Figure().add_subplot())
    (label,) = (text.get_text() for text in axes.get_yticklabels())
    numbers = re.findall(r"\d[\d,.]*", label)
    assert len(numbers) == 2
    assert all(len(re.sub(r"^0\.0*|\D", "", number)) == 2 for number in numbers)
