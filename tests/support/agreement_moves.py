"""What can strike a twin next."""

from __future__ import annotations

from itertools import combinations

from advisor.protocol.simulation.state import FENCED, State, broker_of
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.partition.reduced_state import PartitionState
from agreement_cluster import Move

TOGETHER = (red.CRASH, red.ISOLATE, red.POWER, red.DESTROY, red.BACK, red.REPLACED)
_CATCHES_UP = (red.CAUGHT_UP, red.COPIED, red.RECOVERED)


def possible(
    state: State, destroyed: frozenset[int], reduced: PartitionState, together: bool
) -> list[Move]:
    """Every move of one slot; with ``together`` of several slots too.

    Parameters
    ----------
    state : State
        The reference.
    destroyed : frozenset of int
        Slots whose disk is gone and not replaced.
    reduced : PartitionState
    together : bool
    """
    by_event: dict[int, list[int]] = {}
    proposed = set(reduced.unfenced) - set(reduced.registration.isr)
    slots = range(len(reduced.condition))
    for slot in slots:
        for event in _strikes(state, slot, slot in destroyed):
            if event in _CATCHES_UP and proposed:
                continue
            if red.applies(reduced, event, slot):
                by_event.setdefault(event, []).append(slot)
    found = [Move(event, (slot,)) for event, struck in by_event.items() for slot in struck]
    if together:
        found += [
            Move(event, chosen)
            for event in TOGETHER
            for size in range(2, len(slots) + 1)
            for chosen in combinations(by_event.get(event, ()), size)
            if state.controller_broker not in chosen
        ]
    return found


def _strikes(state: State, slot: int, destroyed: bool) -> tuple[int, ...]:
    body = broker_of(state, slot)
    if destroyed:
        return (red.REPLACED,)
    if not body.running:
        return (red.BACK, red.DESTROY)
    if not body.connected:
        fenced = not state.has_quorum and body.session == FENCED
        back = () if fenced else (red.BACK,)
        # Before it registers it has not opened its logs, which the reduction does not know.
        crash = (red.CRASH,) if body.registered or not body.clean else ()
        return (*back, red.POWER, red.DESTROY, *crash)
    return (
        red.CRASH, red.ISOLATE, red.STOP, red.POWER, red.DESTROY, red.LAG, red.CAUGHT_UP,
        red.COPIED, red.LIMP, red.RECOVERED,
    )  # fmt: skip
