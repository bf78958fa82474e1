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


def detection_seconds(config: Config, model: FailureModel) -> float:
    """Mean seconds from the death of a broker until the controller acts on it.

    The session of a dead broker has to be silent for the session timeout; the mean is the share of
    it that a card states and `data/broker_timings.csv` measures.
    """
    if OVERRIDE in model.quantities:
        return model[OVERRIDE]
    assert config.session_timeout_ms is not None
    assert config.mode is not None
    return model.get(IN_SESSIONS[config.mode], 0.0) * config.session_timeout_ms / 1000.0
