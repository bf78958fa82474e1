"""Scale the times of a scenario to the short timeouts of real brokers.

Real brokers get short session and lag timeouts, so that a scenario takes a minute instead of an
hour. Other times of the scenario are scaled by the same factor as its lag timeout.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.kafka_lab.nodes.node_properties import ClusterTimeouts
from advisor.protocol.rules.config import Config
from advisor.protocol.scenario.language import Scenario
from advisor.protocol.scenario.options import duration_ms
from advisor.protocol.simulation.state import Settings

# Enough to separate producer timeouts from the lag timeout even on a loaded machine.
_LONG_LAG_MS = 6_000
# A broker is back within a second or two of ZooKeeper's start on an idle machine; a session that
# ends meanwhile is another story.
_SESSION_OVER_ZOOKEEPER_RESTART_MS = 9_000
_MIN_REQUEST_TIMEOUT_MS = 500
# Default unclean.leader.election.interval.ms of KRaft.
_UNCLEAN_INTERVAL_MS = 300_000
_SHORT_UNCLEAN_INTERVAL_MS = 30_000


@dataclass(frozen=True)
class TimeScale:
    """Conversion of a scenario's times to a cluster's.

    lag_ms: ``replica.lag.time.max.ms`` of the scenario.
    unclean_interval_ms: ``unclean.leader.election.interval.ms`` of the cluster, if not the default.
    """

    timeouts: ClusterTimeouts
    lag_ms: int
    unclean_interval_ms: int | None = None

    @property
    def scale(self) -> float:
        """Real milliseconds per millisecond of the scenario."""
        return self.timeouts.replica_lag_time_max_ms / self.lag_ms

    @property
    def heartbeat_ms(self) -> int:
        """Heartbeat interval of KRaft brokers; ZooKeeper sessions are checked less often."""
        return self.timeouts.session_timeout_ms // 6

    def request_ms(self, config: Config) -> int:
        """Return the scaled ``request.timeout.ms`` of a producer."""
        assert config.request_timeout_ms is not None
        return max(_MIN_REQUEST_TIMEOUT_MS, round(config.request_timeout_ms * self.scale))

    def delivery_s(self, config: Config) -> float:
        """Return the scaled ``delivery.timeout.ms``; unless set, at least all timeouts."""
        if config.delivery_timeout_ms is not None:
            wanted_s = config.delivery_timeout_ms * self.scale / 1000
            if "delivery_timeout_ms" in config.explicit:
                return wanted_s
            return max(wanted_s, self._all_timers_s)
        return self._all_timers_s

    def wait_s(self, milliseconds: int) -> float:
        """Return the scaled time of ``wait``, limited to the time in which anything can happen."""
        if self.unclean_interval_ms is not None and milliseconds >= _UNCLEAN_INTERVAL_MS:
            return self.unclean_interval_ms / 1000 + self._all_timers_s
        return min(milliseconds * self.scale / 1000, self._all_timers_s)

    @property
    def _all_timers_s(self) -> float:
        return 4 * self.timeouts.longest_timer_ms / 1000


def time_scale_for(scenario: Scenario, settings: Settings) -> TimeScale:
    """Return the time scale that a scenario needs.

    A scenario with ``!wait`` depends on Kafka's real timeouts and gets them. If it sets producer
    timeouts, the lag timeout is long enough to distinguish them. If it stops ZooKeeper, sessions
    are long enough to outlive its restart.
    """
    verbs = {(command.verb, command.waits) for command in scenario.commands}
    sets_timeouts = any(
        key.endswith("_timeout_ms") for c in scenario.commands if c.verb == "produce"
        for key in c.options
    )  # fmt: skip
    unclean_interval_ms = (
        _SHORT_UNCLEAN_INTERVAL_MS
        if settings.kraft and _waits_for_unclean_election(scenario)
        else None
    )
    if ("wait", False) in verbs:
        timeouts = ClusterTimeouts(settings.session_timeout_ms, settings.lag_ms)
    elif sets_timeouts:
        timeouts = ClusterTimeouts(replica_lag_time_max_ms=_LONG_LAG_MS)
    elif not settings.kraft and ("stop-quorum", True) in verbs:
        timeouts = ClusterTimeouts(_SESSION_OVER_ZOOKEEPER_RESTART_MS)
    else:
        timeouts = ClusterTimeouts()
    return TimeScale(timeouts, settings.lag_ms, unclean_interval_ms)


def _waits_for_unclean_election(scenario: Scenario) -> bool:
    """Whether a scenario enables unclean election and then waits for the periodic election."""
    allowed = False
    for command in scenario.commands:
        if command.options.get("unclean_leader_election_enable", "").lower() == "true":
            allowed |= command.verb == "alter"
        if (
            allowed
            and command.verb == "wait"
            and duration_ms(command.words[0]) >= _UNCLEAN_INTERVAL_MS
        ):
            return True
    return False
