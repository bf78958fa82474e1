"""A quiescent partition and its transitions by Kafka's rules, without time.

Between two events elections are over, replicas that are up have caught up, and producers have
written. The state keeps which replicas are up, the registration, and how much of the log each
holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from functools import lru_cache
from typing import Any, NamedTuple

from advisor.protocol.rules import controller, election
from advisor.protocol.rules.partition_registration import NO_LEADER, Registration
from advisor.reliability.partition import log_levels
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.log_levels import EMPTY, gaps_between, newest, ranked

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


def as_plain(state: PartitionState) -> list[Any]:
    """A state as lists and numbers, which JSON takes."""
    return [list(astuple(state.registration)), *state[1:]]


def from_plain(plain: Sequence[Any]) -> PartitionState:
    """What `as_plain` was given.

    >>> from_plain(as_plain(healthy(3))) == healthy(3)
    True
    """
    registration, *others = map(_with_tuples, plain)
    return PartitionState(Registration(*registration), *others)


def _with_tuples(value: Any) -> Any:
    return tuple(map(_with_tuples, value)) if isinstance(value, list | tuple) else value


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
    return tuple([slot for slot, c in enumerate(condition) if c == UP or slot == leader])


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
    """The active replica that holds most, healthy ones first; None if one down holds more."""
    best = min(
        (slot for slot in range(len(condition)) if condition[slot] in RUNNING),
        key=lambda slot: (level[slot], condition[slot] != UP, slot),
        default=None,
    )
    down = [level[slot] for slot in range(len(level)) if condition[slot] in DOWN]
    return None if best is None or min(down, default=EMPTY) < level[best] else best


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
    condition, strikable = state.condition, _STRUCK[event]
    if event == COPIED and not copies_run(state):
        return ()
    leader = state.registration.leader if event == LAG else None
    return tuple([slot for slot in slots if condition[slot] in strikable and slot != leader])


_MEDIA_LOSS = int(Effect.LOSS | Effect.MEDIA_LOSS)
_PAGE_CACHE_LOSS = int(Effect.LOSS | Effect.PAGE_CACHE_LOSS)
_ELECTION_LOSS = int(Effect.LOSS | Effect.ELECTION_LOSS)
_TAIL, _TOTAL = int(Effect.TAIL), int(Effect.TOTAL)
_FAILOVER, _HANDOVER = int(Effect.FAILOVER), int(Effect.HANDOVER)

# Condition of a struck slot afterwards; one that returns is UP, or COPYING if it is empty.
_AFTER = {
    **dict.fromkeys((CRASH, POWER, EARLY_POWER), DOWN_UNCLEAN),
    **dict.fromkeys((ISOLATE, STOP), DOWN_CLEAN),
    **dict.fromkeys((CAUGHT_UP, COPIED, RECOVERED), UP),
    DESTROY: DESTROYED,
    LAG: NOT_FETCHING,
    LIMP: LIMPING,
}


# An unclean shutdown counts as clean where the controller does not remember the broker.
_CLEAN = {DOWN_UNCLEAN: DOWN_CLEAN, WAITING_UNCLEAN: WAITING_CLEAN}


@lru_cache(maxsize=2**16)
def _active(condition: tuple[int, ...]) -> frozenset[int]:
    return frozenset(s for s, c in enumerate(condition) if c in RUNNING)


class Transition:
    """The partition while one event is applied."""

    pushed: log_levels.Slots | None = None
    spared: frozenset[int] = frozenset()
    returned_unclean: frozenset[int] = frozenset()
    effects = 0

    def __init__(self, state: PartitionState, constants: ChainConstants) -> None:
        self.before = state
        self.constants = constants
        self.decisions = constants.decisions
        self.registration = state.registration
        self.condition = list(state.condition)
        # holds[s] = j: slot s holds gap j and every older one.
        self.holds = list(state.level)
        # Slots with unfenced brokers; only an event changes them.
        self.active = self.were_active = _active(state.condition)
        self.led_before = self.leader()
        self.controller, self.unfenced = state.controller, state.unfenced
        self.written = is_writable(state, constants)

    def leader(self) -> int:
        """The registered leader, if it is up."""
        leader = self.registration.leader
        return leader if leader in self.active else NO_LEADER

    def strike(self, event: int, slots: tuple[int, ...]) -> None:
        """Change conditions and logs."""
        if event in RETURNS and self.controller == CONTROLLER_WORKS:
            self._start(slots, DOWN_CLEAN)
        else:
            for slot in slots:
                self.condition[slot] = self._after(event, slot)
        self.active = _active(tuple(self.condition))
        if event == DESTROY:
            for slot in slots:
                self.holds[slot] = EMPTY
            self._count_media_loss()
        if event in (POWER, EARLY_POWER) and self.constants.page_cache:
            self._lose_page_cache(frozenset(slots), event == EARLY_POWER)
        if event == COPIED:
            for slot in slots:
                self.holds[slot] = self.holds[self.registration.leader]

    def _after(self, event: int, slot: int) -> int:
        """Condition of a struck slot afterwards; without a controller no broker can register."""
        old = self.condition[slot]
        if event == RECOVERED:
            return self._running(slot)
        if self.controller == CONTROLLER_WORKS:
            return _AFTER[event]
        if event in RETURNS:
            if old == CUT_OFF:
                return self._running(slot)
            return WAITING_CLEAN if old == DOWN_CLEAN else WAITING_UNCLEAN
        if event in (ISOLATE, STOP):
            if old in WAITING:
                return DOWN_CLEAN if old == WAITING_CLEAN else DOWN_UNCLEAN
            return CUT_OFF if event == ISOLATE else DOWN_CLEAN
        if event == CRASH and old == WAITING_CLEAN:
            # It has not opened its logs yet, and the file of its clean shutdown is still there.
            return DOWN_CLEAN
        return _AFTER[event]

    def _start(self, slots: tuple[int, ...], clean: int) -> None:
        """Brokers start, or are reachable again, and register."""
        self.returned_unclean = frozenset([s for s in slots if self.condition[s] != clean])
        for slot in slots:
            self.condition[slot] = self._running(slot)

    def change_controller(self, after: int) -> None:
        """Lose the controller, or restore it and make the decisions that were pending."""
        had_controller, self.controller = self.controller == CONTROLLER_WORKS, after
        if had_controller:
            self.unfenced = tuple(sorted(self.active))
        if after != CONTROLLER_WORKS:
            return
        fallen = [slot for slot in self.unfenced if slot not in self.active]
        waiting = tuple([s for s, c in enumerate(self.condition) if c in WAITING])
        fallen.sort(key=self._decision_order)
        waiting = tuple(sorted(waiting, key=self._decision_order))
        self.unfenced = ()
        self.condition = [DOWN_CLEAN if c == CUT_OFF else c for c in self.condition]
        if self.constants.policy.rules.mode == "kraft":
            self._decide_in_turn(CRASH, tuple(fallen), self.active, self.active | frozenset(fallen))
        elif fallen:
            self.registration = controller.controller_started(
                self.registration, self.active, self.constants.policy, fallen
            )
        if waiting:
            were_active = self.active
            self._start(waiting, WAITING_CLEAN)
            self.active = _active(tuple(self.condition))
            self._decide_in_turn(BACK, waiting, self.active, were_active)
        leader = self.leader()
        self._follow(self.led_before, leader)
        on_record = self.before.registration.leader
        if on_record in fallen and self._gave_up(on_record, leader):
            self.effects |= _TAIL

    def _decision_order(self, slot: int) -> tuple[bool, int, int, int, bool, bool]:
        """Sort key: after an outage the controller fences the leader first, the emptiest last.

        The last to be fenced stays electable: the worst case. The position of a slot must not
        matter.
        """
        on_record, level = self.registration, self.holds[slot]
        place = on_record.isr.index(slot) if slot in on_record.isr else len(self.holds)
        in_elr, last_known = slot in on_record.elr, slot in on_record.last_known_elr
        return slot != on_record.leader, self.condition[slot], level, place, in_elr, last_known

    def decide(self, event: int, slots: tuple[int, ...]) -> None:
        """Apply the controller's decisions, one by one, the leader first."""
        if self.controller != CONTROLLER_WORKS:
            return
        final = self.active
        if event in FAILURES:
            # The controller knows already of brokers that were down.
            slots = tuple([slot for slot in slots if slot in self.were_active])
            if not slots:
                return
        order = sorted(slots, key=lambda slot: slot != self.led_before)
        self._decide_in_turn(event, tuple(order), final, self.were_active)
        old_leader, leader = self.led_before, self.leader()
        self._follow(old_leader, leader)
        if old_leader in slots and leader != old_leader:
            self.effects |= _HANDOVER if event == STOP else _FAILOVER
            if self.written and self._gave_up(old_leader, leader):
                self.effects |= _TAIL

    def _gave_up(self, old_leader: int, leader: int) -> bool:
        """Whether acknowledged records that only the old leader had are dropped."""
        if self.constants.acks == "all" or leader == old_leader:
            return False
        return (
            leader != NO_LEADER or old_leader not in self.registration.isr + self.registration.elr
        )

    def _decide_in_turn(
        self,
        event: int,
        order: tuple[int, ...],
        final: frozenset[int],
        were_active: frozenset[int],
    ) -> None:
        """Decide slot by slot; when one is decided, the later ones still count as they were."""
        for position, slot in enumerate(order):
            later = frozenset(order[position + 1 :])
            active = (final - later) | (later & were_active) if later else final
            self.registration = self._decision(event, slot, active)

    def _decision(self, event: int, slot: int, active: frozenset[int]) -> Registration:
        registration, decisions = self.registration, self.decisions
        if event in RETURNS:
            unclean = slot in self.returned_unclean
            return decisions.broker_back(registration, slot, active, unclean)
        if event == STOP:
            # Without a successor it ends as any failure.
            registration = decisions.broker_stopping(registration, slot, active)
        return decisions.broker_gone(registration, slot, active)

    def settle(self) -> None:
        """Replicas catch up, and the leader changes the ISR if there is a controller."""
        leader = self.leader()
        if leader == NO_LEADER:
            return
        limps = self.condition[leader] == LIMPING
        if not limps:
            self.condition[leader] = UP
            for slot, condition in enumerate(self.condition):
                if condition == UP:
                    self.holds[slot] = self.holds[leader]
                    if slot not in self.registration.isr and self.controller == CONTROLLER_WORKS:
                        self._propose((*self.registration.isr, slot))
        if self.controller == CONTROLLER_WORKS:
            self._remove_from_isr(leader, limps)

    def _remove_from_isr(self, leader: int, limps: bool) -> None:
        """A follower that does not fetch leaves the ISR once it is behind the leader.

        That takes a write, or a new leader, which does not know its followers' offsets. Where
        writes are refused it stays in sync; a controller that is back may find an ISR too small
        that was large enough on record while there were writes.
        """
        isr, condition = self.registration.isr, self.condition
        fetching = (leader,) if limps else tuple([slot for slot in isr if condition[slot] == UP])
        if fetching == isr:
            return
        registrations = (self.before.registration, self.registration)
        refuses = all(refused(registration, self.constants) for registration in registrations)
        if leader != self.led_before or not refuses:
            self._propose(fetching)

    def _propose(self, isr: tuple[int, ...]) -> None:
        """The leader's AlterPartition request."""
        self.registration = self.decisions.isr_proposed(self.registration, isr, self.active)

    def finish(self) -> tuple[PartitionState, Outcome]:
        """Rank the logs again and map every old gap to its new number."""
        registration, before = self.registration, self.before
        settled = PartitionState(
            registration, tuple(self.condition), before.level, self.controller, self.unfenced
        )
        if is_writable(settled, self.constants):
            self.pushed = receivers(settled)
        ranks, gap_map = ranked(tuple(self.holds), before.level, self.pushed)
        if registration is not before.registration:
            registration = self.decisions.quiet(registration)
        conditions = self._remembered_conditions()
        state = PartitionState(registration, conditions, ranks, self.controller, self.unfenced)
        if self.spared and state.gaps > 0 and self.spared == newest(ranks):
            self.effects |= _UNFLUSHED
        return state, Outcome(self.effects, gap_map)

    def _remembered_conditions(self) -> tuple[int, ...]:
        """An unclean shutdown matters only while the broker is in the ISR or ELR on record."""
        if DOWN_UNCLEAN not in self.condition and WAITING_UNCLEAN not in self.condition:
            return tuple(self.condition)
        on_record: tuple[int, ...] = ()
        if self.constants.policy.rules.eligible_leader_replicas:
            on_record = self.registration.isr + self.registration.elr
            if not self.constants.policy.rules.last_known_leader_must_be_active:
                on_record += self.registration.last_known_elr
        remembered = list(self.condition)
        for slot, condition in enumerate(remembered):
            if condition in _CLEAN and slot not in on_record:
                remembered[slot] = _CLEAN[condition]
        return tuple(remembered)

    def _running(self, slot: int) -> int:
        """COPYING if it is empty and another replica has records to copy, else UP."""
        copies = self.constants.copying and self.holds[slot] == EMPTY and min(self.holds) != EMPTY
        return COPYING if copies else UP

    def _count_media_loss(self) -> None:
        if not self.before.has_data:
            return
        best = min(self.holds)
        if best == EMPTY:
            self.effects |= _TOTAL
        if best > 0:
            self.effects |= _MEDIA_LOSS

    def _lose_page_cache(self, power_lost: frozenset[int], early: bool) -> None:
        """Unflushed records are lost if every holder lost power, else kept by the others."""
        if self.written:
            holders = frozenset(receivers(self.before))
        elif early:
            holders = newest(self.holds)
        else:
            return
        if holders <= power_lost:
            self.effects |= _PAGE_CACHE_LOSS if holders else 0
        elif holders & power_lost:
            self.pushed = self.spared = holders - power_lost

    def _follow(self, previous: int, leader: int) -> None:
        """A new leader's log is the truth; records beyond it are lost."""
        if leader in (NO_LEADER, previous):
            return
        if leader not in self.spared:
            self.pushed, self.spared = None, frozenset()
        leader_holds = self.holds[leader]
        if min(self.holds) < leader_holds:
            self.effects |= _ELECTION_LOSS | (_TOTAL if leader_holds == EMPTY else 0)
        self.holds = [max(held, leader_holds) for held in self.holds]

    def elect_most_complete(self) -> None:
        """The operator's unclean election; see `operator_can_elect`."""
        best = most_complete(self.before.level, self.before.condition)
        assert best is not None
        self.registration = controller.elected_by_operator(
            self.registration, election.UNCLEAN, frozenset((best,)), self.constants.policy
        )
        self._follow(NO_LEADER, self.leader())


def apply(
    state: PartitionState, event: int, slots: tuple[int, ...], constants: ChainConstants
) -> tuple[PartitionState, Outcome]:
    """Strike the slots with one event, if it can, and let the partition become quiet again."""
    struck = struck_by(state, event, slots)
    if not struck:
        return state, nothing_happens(state)
    work = Transition(state, constants)
    if event in OF_QUORUM:
        work.change_controller(CONTROLLER_AFTER[event])
    elif event == DECIDED:
        work.elect_most_complete()
    else:
        work.strike(event, struck)
        if event in CONTROLLER_EVENTS:
            work.decide(event, struck)
    work.settle()
    return work.finish()
