"""A delivery timeout above the default needs memory for the records that wait."""

import pytest

import advisor
from advisor.advice.migration.plan import make_plan

CARD = advisor.FailureModel.from_dict({"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}})
CLUSTER = advisor.Cluster.uniform(brokers=3, racks=3)
CONFIG = advisor.Config(replication_factor=3, min_insync_replicas=2, acks="all")
LOAD = advisor.Workload(records_per_second=1000.0, record_bytes=512)


@pytest.mark.parametrize(("timeout_ms", "said"), [(None, 0), (120_000, 0), (600_000, 1)])
def test_it_is_assumed_that_producers_have_it(timeout_ms: int | None, said: int) -> None:
    """Once, where the timeout is longer than Kafka's own."""
    config = CONFIG.changed(delivery_timeout_ms=timeout_ms)
    assumptions = advisor.evaluate(CLUSTER, config, CARD, LOAD).assumptions
    memory = [text for text in assumptions if "buffer.memory" in text and "max.block.ms" in text]
    assert len(memory) == said


def test_a_recommendation_says_it_of_a_longer_timeout() -> None:
    """Which a limit on failed sends asks for; not of the default."""
    for limit, said in ((None, 0), (0.0, 1)):
        goals = advisor.Goals(records_refused_per_year=limit)
        notes = advisor.recommend(CLUSTER, CARD, LOAD, goals).notes
        assert len([note for note in notes if "buffer.memory" in note]) == said


def test_the_properties_say_how_much() -> None:
    """Half an hour of the load, 921.6 MB, as a comment that no client reads."""
    longer = CONFIG.changed(delivery_timeout_ms=1_800_000)
    files = make_plan(CLUSTER, longer, LOAD).files
    text = files["producer.properties"]
    comment = [line for line in text.splitlines() if "buffer.memory=" in line]
    assert comment[0].startswith("# buffer.memory=921600000 (920 MB)")
    assert all("buffer.memory" not in file for file in files.values() if file != text)
    few = advisor.Workload(records_per_second=10.0, record_bytes=512)
    for config, load in ((CONFIG, LOAD), (longer, few)):
        assert "buffer.memory" not in make_plan(CLUSTER, config, load).files["producer.properties"]
