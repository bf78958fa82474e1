"""Faults and repairs enabled in a state, by scenario verb, and their simulation events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from advisor.protocol.simulation import events as ev
from advisor.protocol.simulation.state import Broker, Partition, State


def _is_running(broker: Broker, _state: State) -> bool:
    return broker.running


FAULT_ENABLED: dict[str, Callable[[Broker, State], bool]] = {
    "kill": _is_running,
    "stop": _is_running,
    "power-off": _is_running,
    "destroy": lambda broker, state: broker.running or _has_data(state.partitions[0], broker.id),
    "isolate": lambda broker, _state: broker.connected,
    "lag": lambda broker, _state: broker.running and broker.fetching,
}

REPAIR_ENABLED: dict[str, Callable[[Broker], bool]] = {
    "start": lambda broker: not broker.running,
    "heal": lambda broker: not broker.connected,
    "catch-up": lambda broker: not broker.fetching,
}

EVENTS: dict[str, Callable[[int], Any]] = {
    "kill": ev.Kill,
    "stop": ev.Stop,
    "power-off": ev.PowerOff,
    "destroy": ev.Destroy,
    "isolate": ev.Isolate,
    "lag": ev.Lag,
    "start": ev.Start,
    "heal": ev.Heal,
    "catch-up": ev.CatchUp,
}


def _has_data(partition: Partition, broker: int) -> bool:
    return any(r.broker == broker and r.log.leo > 0 for r in partition.replicas)
