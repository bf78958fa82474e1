"""Every scenario in tests/scenarios gives exactly its expected output."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.protocol.scenario.player import play, rewrite

SCENARIOS = sorted((Path(__file__).resolve().parents[2] / "scenarios").glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path):
    """All output is expected, and rewriting the scenario changes no byte."""
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert play(path).differences == ()
    assert rewrite(path) == text


def test_there_are_enough_scenarios():
    """At least forty, including each catalogued loss that the simulation covers."""
    assert len(SCENARIOS) >= 40
    covered_by_name = {path.stem[:3].upper() for path in SCENARIOS}
    covered = "L01 L02 L03 L07 L08 L09 L10 L11 L12 L14 L17 L18 L19 L20 L21"
    assert set(covered.split()) <= covered_by_name


DESIGN = """\
cluster brokers=3 kafka=3.9 mode=kraft      # kraft or zookeeper; or a list: brokers=0,1,2; racks=
topic t1 replicas=1,2,3 min_insync_replicas=2   # one list a partition, `;` between them
produce t1-0 10 acks=all
> acked 10
kill 3
state t1-0
> leader=1 epoch=0 replicas=1,2,3 isr=1,2 elr= hw=10
kill 2
produce t1-0 1 acks=all
> acked 0 NOT_ENOUGH_REPLICAS
log 1 t1-0
> leo=10 epochs=0@0
"""


def test_the_first_example_prints_what_the_documentation_shows():
    """The documented example is its own transcript."""
    played = play(DESIGN)
    assert played.ok
    assert played.transcript == DESIGN


def test_the_same_scenario_twice_gives_the_same_bytes():
    """Results do not depend on hash seeds, clocks or earlier runs."""
    scenario = next(path for path in SCENARIOS if path.stem == "five-partitions-on-three-brokers")
    assert play(scenario).transcript == play(scenario).transcript


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        ("l01-kip-101-loss-by-high-watermark", "l01-kip-101-mended", "NoAcknowledgedRecordLost"),
        (
            "l01-restart-of-a-follower",
            "l01-restart-of-a-follower-mended",
            "NoAcknowledgedRecordLost",
        ),
        ("l02-kip-101-divergence", "l02-kip-101-divergence-mended", "WeakIsr"),
        ("l03-kip-279-fast-failovers", "l03-kip-279-mended", "LogMatching"),
        ("l03-kip-279-fast-failovers", "l03-truncation-on-fetch", "LogMatching"),
        ("l07-last-replica-standing", "l07-last-replica-standing-with-elr", "LeaderCompleteness"),
    ],
)
def test_old_rules_fail_where_new_rules_hold(old, new, lost):
    """The same faults violate the invariant under the old rules, not under the new."""
    by_name = {path.stem: path for path in SCENARIOS}
    assert f"> {lost} " in play(by_name[old]).transcript
    assert f"> {lost} " not in play(by_name[new]).transcript
