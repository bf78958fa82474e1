"""Events at a partition, the slots that they strike, and their outcome."""

from __future__ import annotations

from typing import NamedTuple

from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.partition_state import (
    CLIENTS_STOPPED,
    CONTROLLER_WORKS,
    COPYING,
    CUT_OFF,
    DESTROYED,
    DOWN,
    DOWN_CLEAN,
    LIMPING,
    NO_CONTROLLER,
    NOT_FETCHING,
    RUNNING,
    UP,
    WAITING,
    PartitionState,
    copies_run,
    operator_can_elect,
)

_UNFLUSHED, _LOSSES = int(Effect.UNFLUSHED), int(Effect.LOSSES)

# Events; each can strike several slots at once.
CRASH, ISOLATE, STOP, POWER, DESTROY, BACK, REPLACED, COPIED, LAG, CAUGHT_UP = range(10)
# Power fails within the flush window: the last writes are not on disk yet.
EARLY_POWER = 10
LIMP, RECOVERED = 11, 12
# Of the controller quorum, whatever the slots: no controller; clients stopped, too; back.
QUORUM_LOST, QUORUM_STOPPED, QUORUM_BACK = 13, 14, 15
# An operator elects a leader where no electable replica can return with its log.
DECIDED = 16
EVENTS = 17
OF_QUORUM = (QUORUM_LOST, QUORUM_STOPPED, QUORUM_BACK)
FAILURES = frozenset((CRASH, ISOLATE, STOP, POWER, EARLY_POWER, DESTROY))
RETURNS = frozenset((BACK, REPLACED))
# Events that the controller acts on.
CONTROLLER_EVENTS = FAILURES | RETURNS
# The conditions in which an event can strike a slot.
_STRUCK = {
    **dict.fromkeys((CRASH, POWER, EARLY_POWER), (*RUNNING, DOWN_CLEAN, CUT_OFF, *WAITING)),
    **dict.fromkeys((ISOLATE, STOP), (*RUNNING, *WAITING)),
    DESTROY: (*RUNNING, *DOWN, CUT_OFF, *WAITING),
    BACK: (*DOWN, CUT_OFF),
    REPLACED: (DESTROYED,),
    COPIED: (COPYING,),
    LAG: (UP,),
    CAUGHT_UP: (NOT_FETCHING,),
    LIMP: (UP, COPYING),
    RECOVERED: (LIMPING,),
}

# State of the controller after an event of its quorum.
CONTROLLER_AFTER = {
    QUORUM_LOST: NO_CONTROLLER,
    QUORUM_STOPPED: CLIENTS_STOPPED,
    QUORUM_BACK: CONTROLLER_WORKS,
}


class Outcome(NamedTuple):
    """Effects of an event other than the next state.

    effects: bits of :class:`Effect`.
    gap_map: for each old gap its new number, GAP_LOST, or GAP_CLOSED when every log has it.
    """

    effects: int = 0
    gap_map: tuple[int, ...] = ()

    @property
    def losses(self) -> int:
        """The bits of losses; 0 if nothing was lost."""
        return self.effects & _LOSSES

    def then(self, later: Outcome) -> Outcome:
        """Outcome of both events in sequence."""
        earlier = self.effects
        if earlier & _UNFLUSHED and later.gap_map[0] != 0:
            earlier &= ~_UNFLUSHED
        followed = tuple([later.gap_map[gap] if gap >= 0 else gap for gap in self.gap_map])
        return Outcome(earlier | later.effects, followed)


def nothing_happens(state: PartitionState) -> Outcome:
    """Every gap stays what it is."""
    return Outcome(gap_map=tuple(range(state.gaps)))


def applies(state: PartitionState, event: int, slot: int) -> bool:
    """Whether an event can strike a slot in its present condition."""
    return bool(struck_by(state, event, (slot,)))


def struck_by(state: PartitionState, event: int, slots: tuple[int, ...]) -> tuple[int, ...]:
    """The slots that an event can strike in their present condition."""
    if event in OF_QUORUM:
        return slots[:1] if state.controller != CONTROLLER_AFTER[event] else ()
    if event == DECIDED:
        return slots[:1] if operator_can_elect(state) else ()
    condition, can_be = state.condition, _STRUCK[event]
    if event == COPIED and not copies_run(state):
        return ()
    leader = state.registration.leader if event == LAG else None
    return tuple([slot for slot in slots if condition[slot] in can_be and slot != leader])
