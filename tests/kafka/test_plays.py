"""Scenarios share clusters, and each runs once, on its own brokers; here none is started."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from typing import Any

import pytest

import plays
from advisor.kafka_lab.nodes.node_properties import ClusterSpec
from advisor.protocol.scenario.language import Scenario
from patience import PATIENCE_S

OPENINGS = {
    "two": "cluster brokers=2 kafka=3.9 mode=kraft",
    "three": "cluster brokers=3 racks=a,b,c kafka=3.9 mode=kraft",
    "four": "cluster brokers=4 kafka=3.9 mode=kraft",
    "other": "cluster brokers=3 kafka=4.3 mode=kraft",
    "long": "cluster brokers=3 kafka=3.9 mode=kraft",
}
TEXTS = {
    f"{kind} {number}": f"{opening}\ntopic t replicas=1,2\nproduce t-0 {number + 1} acks=all\n"
    for kind, opening in OPENINGS.items()
    for number in range(1 if kind == "long" else 5)
}


class FakeCluster:
    """Notes what was played on which of its brokers."""

    made: list[FakeCluster]
    counted: threading.Lock
    # No thread plays until each has its first cluster, whichever the machine holds up.
    all_begun: threading.Barrier

    def __init__(self, spec: ClusterSpec, brokers: Collection[int]) -> None:
        self.spec, self.brokers = spec, tuple(brokers)
        self.played: list[tuple[str, tuple[int, ...]]] = []
        self.closed = False
        with self.counted:
            self.made.append(self)
            is_first = len(self.made) <= plays.CLUSTERS_AT_ONCE
        if is_first:
            self.all_begun.wait(PATIENCE_S)

    def widen(self, brokers: Collection[int]) -> None:
        self.brokers = tuple(sorted({*self.brokers, *brokers}))

    def close(self) -> None:
        assert not self.closed
        self.closed = True


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that plays all texts, some of which fail, and returns clusters and transcripts."""
    FakeCluster.made = []
    FakeCluster.counted = threading.Lock()
    FakeCluster.all_begun = threading.Barrier(plays.CLUSTERS_AT_ONCE)
    lock, most = threading.Lock(), [0]

    def outputs(scenario: Scenario, cluster: FakeCluster) -> list[list[str]]:
        with lock:
            name = next(n for n, text in TEXTS.items() if "\n".join(scenario.lines) in text)
            cluster.played.append((name, cluster.brokers))
            most[0] = max(most[0], sum(not each.closed for each in FakeCluster.made))
        time.sleep(0.0 if name == "long 0" else 0.05)
        if name in failing:
            raise OSError(name)
        return [[] for _ in scenario.commands]

    failing: set[str] = set()
    monkeypatch.setattr(plays, "started", FakeCluster)
    monkeypatch.setattr(plays, "outputs_on_brokers", outputs)

    def play_all(*fail: str) -> tuple[list[FakeCluster], dict[str, plays.Played], int]:
        failing.update(fail)
        told = plays.transcripts_of_brokers(TEXTS, longest=("long 0",))
        return FakeCluster.made, told, most[0]

    return play_all


def test_each_scenario_is_played_once_on_its_own_brokers(played: Any) -> None:
    """None is left out or played twice, and no cluster has brokers that a scenario lacks."""
    clusters, told, most = played()
    assert told.keys() == TEXTS.keys()
    assert all(isinstance(each, str) for each in told.values())
    runs = [run for cluster in clusters for run in cluster.played]
    assert sorted(name for name, _ in runs) == sorted(TEXTS)
    count = {"two": 2, "three": 3, "four": 4, "other": 3, "long": 3}
    assert {len(brokers) - count[name.split()[0]] for name, brokers in runs} == {0}
    assert all(cluster.closed for cluster in clusters)
    assert most <= plays.CLUSTERS_AT_ONCE
    assert len(clusters) < len(TEXTS) / 2


def test_a_version_has_clusters_of_its_own_and_racks_are_shared(played: Any) -> None:
    """Nothing of 4.3 is played on 3.9; brokers have the racks of the scenarios that name them."""
    for cluster in played()[0]:
        versions = {"4.3" if name.startswith("other") else "3.9" for name, _ in cluster.played}
        assert versions == {cluster.spec.version}
        if cluster.spec.version == "3.9":
            assert cluster.spec.racks == {1: "a", 2: "b", 3: "c", 4: None}


def test_a_long_scenario_begins(played: Any) -> None:
    """What takes minutes is the first on its cluster, and that among the first ones."""
    clusters, _, _ = played()
    first = [cluster.played[0][0] for cluster in clusters[: plays.CLUSTERS_AT_ONCE]]
    assert "long 0" in first


def test_an_error_ends_the_cluster_and_not_the_others(played: Any) -> None:
    """The error is told for its scenario; what follows runs on a new cluster."""
    clusters, told, _ = played("two 0", "other 4")
    assert {name for name, each in told.items() if not isinstance(each, str)} == {
        "two 0",
        "other 4",
    }
    for cluster in clusters:
        assert cluster.closed
        assert not {name for name, _ in cluster.played[:-1]} & {"two 0", "other 4"}
