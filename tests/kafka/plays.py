"""Play many scenarios on few clusters of real brokers, several at a time.

Brokers mostly wait, for sessions to expire and for followers to leave the ISR, so several clusters
beside each other take hardly longer than one. A cluster plays the scenarios of its version, mode
and settings one after the other, those with the fewest brokers first: each has its own ones only.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.node_properties import ClusterSpec
from advisor.kafka_lab.player import outputs_on_brokers, spec_for
from advisor.protocol.scenario.language import Scenario, parse
from advisor.protocol.scenario.player import played
from clusters import started

CLUSTERS_AT_ONCE = 4
# Scenarios that are left for each cluster if it is worth starting another one for them.
_FEWEST_TO_SHARE = 2

Played = str | BaseException


@dataclass(frozen=True)
class Wanted:
    """A scenario to be played, and the cluster that it needs.

    Attributes
    ----------
    name : str
    scenario : Scenario
    spec : ClusterSpec
        With the racks of all scenarios that share its clusters.
    brokers : tuple of int
        Its own brokers.
    """

    name: str
    scenario: Scenario
    spec: ClusterSpec
    brokers: tuple[int, ...]


def wanted(texts: Mapping[str, str]) -> list[Wanted]:
    """Return scenarios by name with the cluster of each, those with the fewest brokers first."""
    scenarios = {name: parse(text) for name, text in texts.items()}
    own = {name: spec_for(scenario) for name, scenario in scenarios.items()}
    shared: dict[str, ClusterSpec] = {}
    for spec in own.values():
        key = repr(replace(spec, racks={}))
        racks = shared[key].racks if key in shared else {}
        # A rack changes nothing for a scenario without racks: it places its replicas itself.
        merged = {**racks, **{b: rack or racks.get(b) for b, rack in spec.racks.items()}}
        assert not any(rack and rack != merged[b] for b, rack in racks.items()), key
        shared[key] = replace(spec, racks=merged)
    made = [
        Wanted(
            name,
            scenario,
            shared[repr(replace(own[name], racks={}))],
            tuple(sorted(own[name].racks)),
        )
        for name, scenario in scenarios.items()
    ]
    return sorted(made, key=lambda each: len(each.brokers))


def transcripts_of_brokers(
    texts: Mapping[str, str], longest: Collection[str] = ()
) -> dict[str, Played]:
    """Play scenarios on real brokers; return the transcript or the error of each.

    Parameters
    ----------
    texts : mapping of str to str
        The scenarios by name.
    longest : collection of str
        Names of those that take minutes, which begin.
    """
    players = _Players(wanted(texts), longest)
    with ThreadPoolExecutor(CLUSTERS_AT_ONCE) as pool:
        try:
            for ended in [pool.submit(players.play) for _ in range(CLUSTERS_AT_ONCE)]:
                ended.result()
        except BaseException:  # An interrupt: the threads end with what they play now.
            players.stop()
            raise
    return players.transcripts


class _Players:
    """Threads that share the scenarios; each has one cluster at a time."""

    def __init__(self, waiting: list[Wanted], longest: Collection[str]) -> None:
        self.transcripts: dict[str, Played] = {}
        self._waiting = waiting
        self._longest = longest
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()  # Clusters of each specification.

    def stop(self) -> None:
        """Let the threads end after what they play now."""
        with self._lock:
            self._waiting.clear()

    def play(self) -> None:
        """Play what is left, on the last cluster as long as there is something for it."""
        cluster: RealCluster | None = None
        while True:
            chosen = self._next_on(cluster)
            if chosen is None:
                if cluster is not None:
                    self._close(cluster)
                    cluster = None
                chosen = self._next_on_a_new_cluster()
            if chosen is None:
                return
            cluster = self._play(chosen, cluster)

    def _play(self, chosen: Wanted, cluster: RealCluster | None) -> RealCluster | None:
        """Play a scenario; return the cluster if it can play another one."""
        try:
            if cluster is None:
                cluster = started(chosen.spec, chosen.brokers)
            cluster.widen(chosen.brokers)
            outputs = outputs_on_brokers(chosen.scenario, cluster)
            self.transcripts[chosen.name] = played(chosen.scenario, outputs).transcript
        except BaseException as error:  # That of `pytest.skip` is no Exception.
            self.transcripts[chosen.name] = error
            if cluster is None:
                self._running[repr(chosen.spec)] -= 1
            else:
                self._close(cluster)
            return None
        return cluster

    def _close(self, cluster: RealCluster) -> None:
        with self._lock:
            self._running[repr(cluster.spec)] -= 1
        cluster.close()

    def _next_on(self, cluster: RealCluster | None) -> Wanted | None:
        """Take the next scenario that has all brokers of a cluster."""
        if cluster is None:
            return None
        with self._lock:
            for each in self._waiting:
                if each.spec == cluster.spec and {*cluster.brokers} <= {*each.brokers}:
                    self._waiting.remove(each)
                    return each
        return None

    def _next_on_a_new_cluster(self) -> Wanted | None:
        """Take a scenario: a long one, or of those of which most are left for each cluster."""
        with self._lock:
            left = Counter(repr(each.spec) for each in self._waiting)
            shares = {key: left[key] / (1 + self._running[key]) for key in left}

            def urgent(each: Wanted) -> tuple[bool, float]:
                return each.name in self._longest, shares[repr(each.spec)]

            chosen = max(self._waiting, key=urgent, default=None)
            if chosen is None:
                return None
            long, share = urgent(chosen)
            if self._running[repr(chosen.spec)] and not long and share < _FEWEST_TO_SHARE:
                return None
            self._waiting.remove(chosen)
            self._running[repr(chosen.spec)] += 1
            return chosen
