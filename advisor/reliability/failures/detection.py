"""How long the controller takes to act on a dead broker."""

from __future__ import annotations

from advisor.protocol.rules.config import Config
from advisor.reliability.failures.failure_model import FailureModel

OVERRIDE = "detection.seconds"
IN_SESSIONS = {
    "kraft": "detection.kraft_sessions",
    "zookeeper": "detection.zookeeper_sessions",
}
"""What a card may give, by controller: the mean in units of the session timeout."""

PATHS = (OVERRIDE, *IN_SESSIONS.values())


def detection_seconds(config: Config, model: FailureModel) -> float:
    """Mean seconds from the death of a broker until the controller acts on it.

    A dead broker sends no more heartbeats (KRaft) or pings (ZooKeeper), and is dead to the
    controller when its session has been silent for the session timeout. The last heartbeat came up
    to one interval before the death, and the controller looks a little later: the mean is a share
    of the timeout that `data/broker_timings.csv` measures and a card states.

    Returns the card's ``detection.seconds``, if it gives them; else its share for the controller of
        the configuration, times the session timeout; 0 if it gives neither.
    """
    if OVERRIDE in model.quantities:
        return model[OVERRIDE]
    assert config.session_timeout_ms is not None
    assert config.mode is not None
    return model.get(IN_SESSIONS[config.mode], 0.0) * config.session_timeout_ms / 1000.0
