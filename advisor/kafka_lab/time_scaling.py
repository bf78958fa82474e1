"""A scenario's milliseconds on clocks that run faster.

Real brokers are given short sessions and lag times, so that a scenario takes a minute and not an
hour. What a scenario says of time is shortened by as much as its lag time was.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.kafka_lab.nodes.node_properties import Clocks
from advisor.protocol.rules.config import Config
from advisor.protocol.scenario.language import Scenario
from advisor.protocol.scenario.options import duration_ms
from advisor.protocol.simulation.state import Settings

# Enough to tell a producer's timeouts from the lag time, on a busy machine too.
_TELLING_LAG_MS = 6_000
_SHORTEST_REQUEST_MS = 500
# KRaft looks for partitions to elect uncleanly so long after one lost its leader.
_SWEEP_MS = 300_000
_SHORT_SWEEP_MS = 30_000


@dataclass(frozen=True)
class Timing:
    """How long things last on a cluster's clocks.

    Attributes
    ----------
    clocks : Clocks
    lag_ms : int
        ``replica.lag.time.max.ms`` of the scenario.
    sweep_ms : int or None
        ``unclean.leader.election.interval.ms`` of the cluster; None: Kafka's five minutes.
    """

    clocks: Clocks
    lag_ms: int
    sweep_ms: int | None = None

    @property
    def scale(self) -> float:
        """A real millisecond for each of the scenario's."""
        return self.clocks.replica_lag_time_max_ms / self.lag_ms

    @property
    def heartbeat_ms(self) -> int:
        """How often a broker says that it lives; ZooKeeper is told, and looks, less often."""
        return self.clocks.session_timeout_ms // 6

    def request_ms(self, config: Config) -> int:
        """``request.timeout.ms`` of a producer."""
        assert config.request_timeout_ms is not None
        return max(_SHORTEST_REQUEST_MS, round(config.request_timeout_ms * self.scale))

    def delivery_s(self, config: Config) -> float:
        """``delivery.timeout.ms``; by default so long that every clock has struck before."""
        if config.delivery_timeout_ms is not None:
            wanted_s = config.delivery_timeout_ms * self.scale / 1000
            if "delivery_timeout_ms" in config.explicit:
                return wanted_s
            return max(wanted_s, self._all_clocks_s)
        return self._all_clocks_s

    def wait_s(self, milliseconds: int) -> float:
        """A scenario's ``wait``: cut off where nothing could happen that has not happened."""
        if self.sweep_ms is not None and milliseconds >= _SWEEP_MS:
            return self.sweep_ms / 1000 + self._all_clocks_s
        return min(milliseconds * self.scale / 1000, self._all_clocks_s)

    @property
    def _all_clocks_s(self) -> float:
        return 4 * self.clocks.notices_within_ms / 1000


def timing_of(scenario: Scenario, settings: Settings) -> Timing:
    """The clocks that a scenario needs.

    One that waits in the midst of things, or sets timeouts of producers, compares clocks with one
    another: it gets the true ones, or a longer lag time.
    """
    verbs = {(command.verb, command.waits) for command in scenario.commands}
    timeouts = any(
        key.endswith("_timeout_ms") for c in scenario.commands if c.verb == "produce"
        for key in c.options
    )  # fmt: skip
    sweep_ms = _SHORT_SWEEP_MS if settings.kraft and _waits_for_a_sweep(scenario) else None
    if ("wait", False) in verbs:
        clocks = Clocks(settings.session_timeout_ms, settings.lag_ms)
    elif timeouts:
        clocks = Clocks(replica_lag_time_max_ms=_TELLING_LAG_MS)
    else:
        clocks = Clocks()
    return Timing(clocks, settings.lag_ms, sweep_ms)


def _waits_for_a_sweep(scenario: Scenario) -> bool:
    """Whether a scenario allows unclean elections on its way, and then waits long enough."""
    allowed = False
    for command in scenario.commands:
        if command.options.get("unclean_leader_election_enable", "").lower() == "true":
            allowed |= command.verb == "alter"
        if allowed and command.verb == "wait" and duration_ms(command.words[0]) >= _SWEEP_MS:
            return True
    return False
