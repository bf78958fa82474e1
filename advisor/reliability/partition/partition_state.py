"""The reduced state of a partition between two events, and what it serves."""

from __future__ import annotations

from typing import NamedTuple

from advisor.protocol.rules.partition_registration import NO_LEADER, Registration
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.log_levels import EMPTY, gaps_between

UP, DOWN_CLEAN, DOWN_UNCLEAN, DESTROYED, COPYING, NOT_FETCHING, LIMPING = range(7)
# While there is no controller: cut off, but never fenced; and back, waiting to register.
CUT_OFF, WAITING_CLEAN, WAITING_UNCLEAN = range(7, 10)
CONDITIONS = 10

RUNNING = (UP, COPYING, NOT_FETCHING, LIMPING)
DOWN = (DOWN_CLEAN, DOWN_UNCLEAN)
WAITING = (WAITING_CLEAN, WAITING_UNCLEAN)
# What the controller is: at work, gone, or gone with clients stopped, too.
CONTROLLER_WORKS, NO_CONTROLLER, CLIENTS_STOPPED = range(3)


class PartitionState(NamedTuple):
    """A quiescent partition. Slots are positions in the assignment, 0 the preferred leader.

    registration: with slots for broker ids and every epoch 0.
    condition: per slot: UP, DOWN_CLEAN, DOWN_UNCLEAN, DESTROYED, COPYING, NOT_FETCHING or LIMPING;
        and, without a controller, CUT_OFF, WAITING_CLEAN or WAITING_UNCLEAN.
    level: per slot: log completeness, see `log_levels`.
    controller: CONTROLLER_WORKS, NO_CONTROLLER or CLIENTS_STOPPED.
    unfenced: slots whose brokers were not fenced when the controller was lost; () while it works.
    """

    registration: Registration
    condition: tuple[int, ...]
    level: tuple[int, ...]
    controller: int = CONTROLLER_WORKS
    unfenced: tuple[int, ...] = ()

    @property
    def gaps(self) -> int:
        """Number of gaps between the finite levels."""
        return gaps_between(self.level)

    @property
    def has_data(self) -> bool:
        """Whether any replica, up or down, holds a record."""
        return min(self.level) != EMPTY


def healthy(replicas: int) -> PartitionState:
    """Every replica up, in sync and complete; slot 0 leads."""
    slots = tuple(range(replicas))
    return PartitionState(
        Registration(replicas=slots, isr=slots, leader=0), (UP,) * replicas, (0,) * replicas
    )


def is_readable(state: PartitionState) -> bool:
    """A leader serves reads; one that is down and only on record does not (KAFKA-19522)."""
    leader = state.registration.leader
    serves = leader != NO_LEADER and state.condition[leader] in RUNNING
    return serves and state.controller != CLIENTS_STOPPED


def is_writable(state: PartitionState, constants: ChainConstants) -> bool:
    """A produce with the configured acks would be acknowledged."""
    if not is_readable(state) or refused(state.registration, constants):
        return False
    return state.controller == CONTROLLER_WORKS or not _waits_for_ever(state, constants)


def _waits_for_ever(state: PartitionState, constants: ChainConstants) -> bool:
    """acks=all waits for an ISR member that no controller can remove."""
    if constants.acks != "all":
        return False
    leader, condition = state.registration.leader, state.condition
    others = [slot for slot in state.registration.isr if slot != leader]
    if condition[leader] == LIMPING:
        return bool(others)
    return any(condition[slot] != UP for slot in others)


def refused(registration: Registration, constants: ChainConstants) -> bool:
    """The leader refuses writes: the ISR is below the min ISR."""
    return constants.refuses[min(len(registration.isr), len(constants.refuses) - 1)]


def receivers(state: PartitionState) -> tuple[int, ...]:
    """The slots that new records reach: the ISR, or without a controller all that fetch."""
    if state.controller == CONTROLLER_WORKS:
        return state.registration.isr
    leader, condition = state.registration.leader, state.condition
    if condition[leader] == LIMPING:
        return (leader,)
    return tuple([slot for slot, own in enumerate(condition) if own == UP or slot == leader])


def copies_run(state: PartitionState) -> bool:
    """A leader serves the replicas that copy its log."""
    return is_readable(state) and state.condition[state.registration.leader] != LIMPING


def operator_can_elect(state: PartitionState) -> bool:
    """No electable replica can return with its log, and another holds as much as any that may.

    Kafka waits for ever, or until a replaced, empty broker returns and leads.
    """
    registration, condition = state.registration, state.condition
    if state.controller != CONTROLLER_WORKS or registration.leader != NO_LEADER:
        return False
    electable = registration.isr or registration.elr or registration.last_known_elr
    if any(condition[slot] in DOWN for slot in electable):
        return False
    return most_complete(state.level, condition) is not None


def most_complete(level: tuple[int, ...], condition: tuple[int, ...]) -> int | None:
    """The active replica that holds most; None if one that is down holds more.

    A healthy one first, then the first in the assignment.
    """
    best = min(
        (slot for slot, own in enumerate(condition) if own in RUNNING),
        key=lambda slot: (level[slot], condition[slot] != UP, slot),
        default=None,
    )
    down = [held for held, own in zip(level, condition, strict=True) if own in DOWN]
    return None if best is None or min(down, default=EMPTY) < level[best] else best
