"""What an audit shows of many topics: the worst, and how many more there are."""

import re

import pytest
from matplotlib.figure import Figure

import advisor
from advisor.advice import Audit
from advisor.tables import MOST_ROWS

CARD = advisor.FailureModel.from_dict({"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}})
GOALS = advisor.Goals(loss_probability_per_year=1e-2, write_unavailability=1e-2)


def described(topics: int) -> str:
    """Return a description of so many topics, of which the last alone has one replica."""
    lines = [
        f"Topic: t{i} Partition: 0 Leader: 1 Replicas: {replicas} Isr: {replicas}\n"
        for i in range(topics)
        for replicas in ["1,2,3" if i < topics - 1 else "1"]
    ]
    return "".join(lines)


@pytest.fixture(scope="module")
def many() -> Audit:
    """Audit forty topics."""
    return advisor.audit(described(40), CARD, goals=GOALS)


def test_thirty_topics_are_shown(many: Audit) -> None:
    """Texts and the notebook view have the worst thirty, and say how many are not shown."""
    assert len(many.topics) == 40
    for said in (repr(many), many.explain(), many._repr_html_().partition("</style>")[2]):
        assert "And 10 more topics are not shown; to_frame() has all." in said
        assert "t39" in said
        # Commands that buttons copy, and what copies them, have lines of their own.
        shown = re.sub(r'data-command="[^"]*"|<script>.*?</script>', "", said, flags=re.DOTALL)
        assert len(shown.splitlines()) < 2 * MOST_ROWS
    assert sum(line.startswith("  t") for line in repr(many).splitlines()) == MOST_ROWS
    assert many._repr_html_().count("<tr>") == MOST_ROWS + 1
    assert len(many.to_frame()) == 40
    assert len(many.to_dict()["topics"]) == 40


def test_few_topics_are_all_shown() -> None:
    """Thirty are shown, and nothing is said of more."""
    found = advisor.audit(described(MOST_ROWS), CARD, goals=GOALS)
    assert "more topics" not in repr(found) + found.explain() + found._repr_html_()


def test_findings_of_many_topics_are_one_line(many: Audit) -> None:
    """Findings that differ only in their topic are told once in the text."""
    assert len(many.findings) > 40
    lines = [line for line in many.explain().splitlines() if line.startswith("KRA")]
    assert 0 < len(lines) < 10


def test_the_chart_shows_topics_and_goals(many: Audit) -> None:
    """A mark for each topic, the worst named, a line for each limit."""
    ax = many.plot()
    points = [line for line in ax.lines if line.get_linestyle() == "None"]
    met, missed = (len(line.get_xdata()) for line in points)
    assert (met, missed) == (39, 1)
    assert [text.get_text() for text in ax.texts] == ["t39"]
    limits = [line for line in ax.lines if line.get_linestyle() != "None"]
    assert len(limits) == 2
    given = Figure().add_subplot()
    assert many.plot(given) is given


def test_a_chart_without_limits_has_no_lines() -> None:
    """A goal of None has no line, and an audit without limits can be drawn."""
    goals = advisor.Goals()
    ax = advisor.audit(described(2), CARD, goals=goals).plot()
    assert all(line.get_linestyle() == "None" for line in ax.lines)
