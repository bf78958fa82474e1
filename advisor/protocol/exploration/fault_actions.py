"""Which faults and repairs a search may try in a state, and the events that they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from advisor.protocol.simulation import events as ev
from advisor.protocol.simulation.state import Broker, Partition, State


def _runs(body: Broker, _state: State) -> bool:
    return body.running


CAN_FAIL: dict[str, Callable[[Broker, State], bool]] = {
    "kill": _runs,
    "stop": _runs,
    "power-off": _runs,
    "destroy": lambda body, state: body.running or _has_data(state.partitions[0], body.id),
    "isolate": lambda body, _state: body.connected,
    "lag": lambda body, _state: body.running and body.fetching,
}

CAN_MEND: dict[str, Callable[[Broker], bool]] = {
    "start": lambda body: not body.running,
    "heal": lambda body: not body.connected,
    "catch-up": lambda body: not body.fetching,
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
