"""A cluster as data frames and as a notebook view."""

import pytest

import advisor
from advisor.tables import MOST_ROWS

TEXT = (
    "Topic: a Partition: 0 Leader: 1 Replicas: 1,2 Isr: 1\n"
    "Topic: a Partition: 1 Leader: 2 Replicas: 2,3 Isr: 2,3\n"
    "Topic: b Partition: 0 Leader: none Replicas: 3 Isr: 3\n"
)


def test_a_row_for_each_broker() -> None:
    """Rack, replicas held, partitions led and replicas out of sync, by broker."""
    frame = advisor.load_cluster(TEXT, racks="1=x,2=y,3=y,4=x").to_frame()
    assert frame.index.tolist() == [1, 2, 3, 4]
    assert frame["rack"].tolist() == ["x", "y", "y", "x"]
    assert frame["replicas"].tolist() == [1, 2, 2, 0]
    assert frame["leaders"].tolist() == [1, 1, 0, 0]
    assert frame["out_of_sync"].tolist() == [0, 1, 0, 0]


def test_a_row_for_each_partition() -> None:
    """Leader, replicas and ISR, by topic and partition."""
    frame = advisor.load_cluster(TEXT).to_frame("partitions")
    assert frame.index.tolist() == [("a", 0), ("a", 1), ("b", 0)]
    assert frame.loc[("a", 1), "replicas"] == (2, 3)
    assert frame.loc[("a", 0), "isr"] == (1,)


def test_other_rows_are_refused() -> None:
    """An unknown kind of row is named."""
    with pytest.raises(advisor.AdvisorError, match="rows='topics': give 'brokers' or"):
        advisor.Cluster.uniform().to_frame("topics")


def test_a_large_cluster_is_cut() -> None:
    """Thirty topics are shown, and how many more there are."""
    topics = [
        f"Topic: t{i} Partition: 0 Leader: 1 Replicas: 1 Isr: 1\n" for i in range(MOST_ROWS + 3)
    ]
    page = advisor.load_cluster("".join(topics))._repr_html_()
    assert page.count("<tr>") == MOST_ROWS + 1
    assert "And 3 more topics are not shown" in page
