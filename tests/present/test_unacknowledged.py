"""acks=0 reads the same everywhere: nothing acknowledged is lost, and how many records are."""

import pytest

import advisor
from advisor.__main__ import main
from advisor.advice.audits.audit import audit
from advisor.formatting import significant
from advisor.pipeline.simulate import simulate
from advisor.present.outcome import compared_outcomes, outcomes, rack_words, tolerance_words
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import load_model
from advisor.reliability.results.reliability import Reliability

FILE = "data/clusters/three-az-six-brokers.txt"
RACKS = "data/clusters/three-az-six-brokers.racks.toml"
CARD = load_model("three_az_cloud")
CONFIG = Config(replication_factor=3, min_insync_replicas=2, acks=0)
SAID = "nothing acknowledged, "
WRONG = ("lose an acknowledged record", "an acknowledged record is lost", "once in 27 days")


@pytest.fixture(scope="module")
def result() -> Reliability:
    return evaluate(advisor.Cluster.uniform(6, 3), CONFIG, CARD)


def test_every_sentence_says_it(result: Reliability) -> None:
    """The exact result, the widget, the sample and the audit use the same words."""
    cluster = advisor.Cluster.uniform(6, 3)
    sampled = simulate(cluster, CONFIG, CARD, years=100, engine="local")
    described = advisor.load_cluster(FILE, racks=RACKS)
    audited = audit(described, CARD, producer={"acks": 0})
    orders = next(t for t in audited.topics if t.topic.name == "orders")
    for text in (result.summary, sampled.summary):
        assert SAID in text
        assert " records lost a year" in text
    for text in (result.summary, sampled.summary, orders.sentence, audited._repr_html_()):
        assert not [wrong for wrong in WRONG if wrong in text]
    assert "acks=0" in orders.sentence
    dropped = significant(result.records_dropped_per_year)
    assert f"{dropped} records lost a year" in result.summary


def test_tables_and_tolerances_say_it(result: Reliability) -> None:
    """No column has a time between losses of acknowledged records."""
    lost = f"{result.records_dropped_per_year / 1e6:.2g} million a year"
    for outcome in (outcomes(result)[0], compared_outcomes(result, intervals=False)[0]):
        assert outcome.value.startswith(f"nothing acknowledged; records lost: {lost}")
        assert "once in" not in outcome.said + outcome.brief
    assert tolerance_words(result)[0] == ("without losing records", "0")
    assert "acknowledged records are lost" not in rack_words(result.cluster, CONFIG)
    assert "0 without losing records" in result.explain()
    assert "0 without losing records" in repr(result)


def test_the_command_line_says_it(capsys: pytest.CaptureFixture[str]) -> None:
    """`evaluate` and `audit` with --acks 0."""
    line = [FILE, "--racks", RACKS, "--model", "three_az_cloud", "--acks", "0"]
    main(["audit", *line])
    audited = capsys.readouterr().out
    _, _, orders = audited.partition("critical  orders")
    assert orders.splitlines()[1].endswith("acks=0; set to: acks=all")
    assert not [wrong for wrong in WRONG if wrong in audited]
    main(["evaluate", *line])
    assert SAID in capsys.readouterr().out
