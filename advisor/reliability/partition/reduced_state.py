"""A quiescent partition and its transitions by Kafka's rules, without time.

The state keeps what decides the future of a partition: which replicas are up, the controller's
registration, and which replicas hold how much of the acknowledged log
(:mod:`advisor.reliability.partition.log_levels`). Elections, ISR changes and acknowledgements are
those of :mod:`advisor.protocol.rules`. Between two events the partition becomes quiescent:
elections are over, replicas that are up have caught up, and producers have written.
"""

from __future__ import annotations

from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.log_levels import EMPTY
from advisor.reliability.partition.partition_events import (
    BACK,
    CAUGHT_UP,
    CONTROLLER_AFTER,
    CONTROLLER_EVENTS,
    COPIED,
    CRASH,
    DECIDED,
    DESTROY,
    EARLY_POWER,
    EVENTS,
    ISOLATE,
    LAG,
    LIMP,
    OF_QUORUM,
    POWER,
    QUORUM_BACK,
    QUORUM_LOST,
    QUORUM_STOPPED,
    RECOVERED,
    REPLACED,
    RETURNS,
    STOP,
    Outcome,
    applies,
    nothing_happens,
    struck_by,
)
from advisor.reliability.partition.partition_state import (
    CLIENTS_STOPPED,
    CONDITIONS,
    CONTROLLER_WORKS,
    COPYING,
    CUT_OFF,
    DESTROYED,
    DOWN,
    DOWN_CLEAN,
    DOWN_UNCLEAN,
    LIMPING,
    NO_CONTROLLER,
    NOT_FETCHING,
    RUNNING,
    UP,
    WAITING,
    WAITING_CLEAN,
    WAITING_UNCLEAN,
    PartitionState,
    copies_run,
    healthy,
    is_readable,
    is_writable,
    operator_can_elect,
)
from advisor.reliability.partition.transition import Transition

__all__ = [
    "BACK",
    "CAUGHT_UP",
    "CLIENTS_STOPPED",
    "CONDITIONS",
    "CONTROLLER_WORKS",
    "COPIED",
    "COPYING",
    "CRASH",
    "CUT_OFF",
    "DECIDED",
    "DESTROY",
    "DESTROYED",
    "DOWN",
    "DOWN_CLEAN",
    "DOWN_UNCLEAN",
    "EARLY_POWER",
    "EMPTY",
    "EVENTS",
    "ISOLATE",
    "LAG",
    "LIMP",
    "LIMPING",
    "NOT_FETCHING",
    "NO_CONTROLLER",
    "POWER",
    "QUORUM_BACK",
    "QUORUM_LOST",
    "QUORUM_STOPPED",
    "RECOVERED",
    "REPLACED",
    "RETURNS",
    "RUNNING",
    "STOP",
    "UP",
    "WAITING",
    "WAITING_CLEAN",
    "WAITING_UNCLEAN",
    "Outcome",
    "PartitionState",
    "applies",
    "apply",
    "copies_run",
    "healthy",
    "is_readable",
    "is_writable",
    "nothing_happens",
    "operator_can_elect",
]


def apply(
    state: PartitionState, event: int, slots: tuple[int, ...], constants: ChainConstants
) -> tuple[PartitionState, Outcome]:
    """Strike the slots with one event and let the partition become quiet again.

    Slots that the event cannot strike are ignored; if none remains, nothing happens.
    """
    struck = struck_by(state, event, slots)
    if not struck:
        return state, nothing_happens(state)
    work = Transition(state, constants)
    if event in OF_QUORUM:
        work.change_controller(CONTROLLER_AFTER[event])
    elif event == DECIDED:
        work.elect_what_is_left()
    else:
        work.strike(event, struck)
        if event in CONTROLLER_EVENTS:
            work.decide(event, struck)
    work.settle()
    return work.finish()
