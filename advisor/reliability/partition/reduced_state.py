"""A quiescent partition and its transitions by Kafka's rules, without time.

The state keeps what decides the future of a partition: which replicas are up, the controller's
registration, and which replicas hold how much of the acknowledged log
(:mod:`advisor.reliability.partition.log_levels`). Elections, ISR changes and acknowledgements are
those of :mod:`advisor.protocol.rules`. Between two events the partition becomes quiescent:
elections are over, replicas that are up have caught up, and producers have written.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from advisor.protocol.rules import controller, election
from advisor.protocol.rules.partition_registration import NO_LEADER, Registration
from advisor.reliability.partition import log_levels
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.log_levels import gaps_between, newest, ranked

UP, DOWN_CLEAN, DOWN_UNCLEAN, DESTROYED, COPYING, NOT_FETCHING = range(6)

EMPTY = log_levels.EMPTY
# Events; each can strike several slots at once.
CRASH, ISOLATE, STOP, POWER, DESTROY, BACK, REPLACED, COPIED, LAG, CAUGHT_UP = range(10)
# Power fails within the flush window: the last writes are not on disk yet.
EARLY_POWER = 10
RUNNING = (UP, COPYING, NOT_FETCHING)
DOWN = (DOWN_CLEAN, DOWN_UNCLEAN)
_FALLS = frozenset((CRASH, ISOLATE, STOP, POWER, EARLY_POWER, DESTROY))
RETURNS = frozenset((BACK, REPLACED))
# The controller is told of these only.
_HEARD = _FALLS | RETURNS
# The conditions in which an event can strike a slot.
_STRUCK = {
    **dict.fromkeys((CRASH, POWER, EARLY_POWER), (*RUNNING, DOWN_CLEAN)),
    **dict.fromkeys((ISOLATE, STOP), RUNNING),
    DESTROY: (*RUNNING, *DOWN),
    BACK: DOWN,
    REPLACED: (DESTROYED,),
    COPIED: (COPYING,),
    LAG: (UP,),
    CAUGHT_UP: (NOT_FETCHING,),
}

_MEDIA_LOSS = int(Effect.LOSS | Effect.MEDIA_LOSS)
_PAGE_CACHE_LOSS = int(Effect.LOSS | Effect.PAGE_CACHE_LOSS)
_ELECTION_LOSS = int(Effect.LOSS | Effect.ELECTION_LOSS)
_TAIL, _TOTAL, _UNFLUSHED = int(Effect.TAIL), int(Effect.TOTAL), int(Effect.UNFLUSHED)
_FAILOVER, _HANDOVER = int(Effect.FAILOVER), int(Effect.HANDOVER)
_LOSSES = int(Effect.LOSSES)

# What a struck slot becomes; one that is back is UP, or COPYING if it is empty.
_AFTER = {
    **dict.fromkeys((CRASH, POWER, EARLY_POWER), DOWN_UNCLEAN),
    **dict.fromkeys((ISOLATE, STOP), DOWN_CLEAN),
    **dict.fromkeys((CAUGHT_UP, COPIED), UP),
    DESTROY: DESTROYED,
    LAG: NOT_FETCHING,
}


class PartitionState(NamedTuple):
    """A quiescent partition. Slots are positions in the assignment, 0 the preferred leader.

    Attributes
    ----------
    registration : Registration
        With slots for broker ids and every epoch 0.
    condition : tuple of int
        Per slot: UP, DOWN_CLEAN, DOWN_UNCLEAN, DESTROYED, COPYING or NOT_FETCHING.
    level : tuple of int
        Per slot: log completeness, see `log_levels`.
    """

    registration: Registration
    condition: tuple[int, ...]
    level: tuple[int, ...]

    @property
    def gaps(self) -> int:
        """How many gaps there are between the finite levels."""
        return gaps_between(self.level)

    @property
    def has_data(self) -> bool:
        """Whether any replica, up or down, holds a record."""
        return min(self.level) != EMPTY


class Outcome(NamedTuple):
    """What an event did beside changing the state.

    Attributes
    ----------
    effects : int
        Bits of :class:`Effect`.
    gap_map : tuple of int
        For each old gap its new number, GAP_LOST, or GAP_CLOSED when every log has it.
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


def healthy(replicas: int) -> PartitionState:
    """Every replica up, in sync and complete; slot 0 leads."""
    slots = tuple(range(replicas))
    return PartitionState(
        Registration(replicas=slots, isr=slots, leader=0), (UP,) * replicas, (0,) * replicas
    )


def is_readable(state: PartitionState) -> bool:
    """A leader serves reads; one that is down and only on record does not (KAFKA-19522)."""
    leader = state.registration.leader
    return leader != NO_LEADER and state.condition[leader] in RUNNING


def is_writable(state: PartitionState, setup: ChainConstants) -> bool:
    """A produce with the configured acks would be acknowledged."""
    return is_readable(state) and not _refused(state.registration, setup)


def _refused(registration: Registration, setup: ChainConstants) -> bool:
    """The leader refuses writes: the ISR is below the min ISR."""
    return setup.refuses[min(len(registration.isr), len(setup.refuses) - 1)]


def applies(state: PartitionState, event: int, slot: int) -> bool:
    """Whether an event can strike a slot in its present condition."""
    return bool(_struck(state, event, (slot,)))


def _struck(state: PartitionState, event: int, slots: tuple[int, ...]) -> tuple[int, ...]:
    """Those of the slots that an event can strike in their present condition."""
    condition, can_be = state.condition, _STRUCK[event]
    if event == COPIED and not is_readable(state):
        return ()
    leader = state.registration.leader if event == LAG else None
    return tuple([slot for slot in slots if condition[slot] in can_be and slot != leader])


def apply(
    state: PartitionState, event: int, slots: tuple[int, ...], setup: ChainConstants
) -> tuple[PartitionState, Outcome]:
    """Strike the slots with one event and let the partition become quiet again.

    Slots that the event cannot strike are ignored; if none remains, nothing happens.
    """
    struck = _struck(state, event, slots)
    if not struck:
        return state, nothing_happens(state)
    work = _Transition(state, setup)
    work.strike(event, struck)
    if event in _HEARD:
        work.decide(event, struck)
    work.settle()
    return work.finish()


@lru_cache(maxsize=2**16)
def _active(condition: tuple[int, ...]) -> frozenset[int]:
    return frozenset(s for s, c in enumerate(condition) if c in RUNNING)


class _Transition:
    """The partition while one event is applied."""

    pushed: log_levels.Slots | None = None
    spared: frozenset[int] = frozenset()
    returned_unclean: frozenset[int] = frozenset()
    effects = 0

    def __init__(self, state: PartitionState, setup: ChainConstants) -> None:
        self.before = state
        self.setup = setup
        self.decisions = setup.decisions
        self.registration = registration = state.registration
        self.condition = list(state.condition)
        # holds[s] = j: slot s holds gap j and every older one.
        self.holds = list(state.level)
        # Slots with unfenced brokers; only an event changes them.
        self.active = self.were_active = _active(state.condition)
        self.led_before = self.leader()
        self.written = self.led_before != NO_LEADER and not _refused(registration, setup)

    def leader(self) -> int:
        """The registered leader, if it is up."""
        leader = self.registration.leader
        return leader if leader in self.active else NO_LEADER

    def strike(self, event: int, slots: tuple[int, ...]) -> None:
        """Change conditions and logs."""
        if event in RETURNS:
            self.returned_unclean = frozenset([s for s in slots if self.condition[s] != DOWN_CLEAN])
            for slot in slots:
                self.condition[slot] = COPYING if self._must_copy(slot) else UP
        else:
            for slot in slots:
                self.condition[slot] = _AFTER[event]
        self.active = _active(tuple(self.condition))
        if event == DESTROY:
            for slot in slots:
                self.holds[slot] = EMPTY
            self._count_media_loss()
        if event in (POWER, EARLY_POWER) and self.setup.page_cache:
            self._lose_page_cache(frozenset(slots), event == EARLY_POWER)
        if event == COPIED:
            for slot in slots:
                self.holds[slot] = self.holds[self.registration.leader]

    def decide(self, event: int, slots: tuple[int, ...]) -> None:
        """Apply the controller's decisions, slot by slot.

        Brokers that fail or return together are fenced or unfenced one by one, the leader first.
        """
        final = self.active
        if event in _FALLS:
            # The controller knows already of brokers that were down.
            slots = tuple([slot for slot in slots if slot in self.were_active])
            if not slots:
                return
        if len(slots) == 1:
            self.registration = self._decision(event, slots[0], final)
        else:
            order = sorted(slots, key=lambda slot: slot != self.led_before)
            for position, slot in enumerate(order):
                later = frozenset(order[position + 1 :])
                active = (final - later) | (later & self.were_active) if later else final
                self.registration = self._decision(event, slot, active)
        before, leader = self.led_before, self.leader()
        self._follow(before, leader)
        if before in slots and leader != before:
            self.effects |= _HANDOVER if event == STOP else _FAILOVER
            # Records that only the old leader had acknowledged had not reached the others.
            electable = self.registration.isr + self.registration.elr
            given_up = leader != NO_LEADER or before not in electable
            if given_up and self.setup.acks != "all" and self.written:
                self.effects |= _TAIL

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
        """Elect by operator if no electable replica is left; then replicas catch up and write."""
        if self.registration.leader == NO_LEADER:
            self._elect_what_is_left()
        leader = self.leader()
        if leader == NO_LEADER:
            return
        self.condition[leader] = UP
        for slot, condition in enumerate(self.condition):
            if condition == UP and slot not in self.registration.isr:
                self.holds[slot] = self.holds[leader]
                self._propose((*self.registration.isr, slot))
        self._remove_from_isr(leader)

    def _remove_from_isr(self, leader: int) -> None:
        """A follower that does not fetch leaves the ISR once it is behind the leader.

        That takes a write, or a new leader, which does not know its followers' offsets. Where
        writes are refused it stays in sync.
        """
        isr, condition = self.registration.isr, self.condition
        for slot in isr:
            if condition[slot] != UP:
                break
        else:
            return
        if leader != self.led_before or not _refused(self.registration, self.setup):
            self._propose(tuple([slot for slot in isr if condition[slot] == UP]))

    def _propose(self, isr: tuple[int, ...]) -> None:
        """The leader's AlterPartition request."""
        self.registration = self.decisions.isr_proposed(self.registration, isr, self.active)

    def finish(self) -> tuple[PartitionState, Outcome]:
        """Rank the logs again and map every old gap to its new number."""
        registration, before = self.registration, self.before
        if registration.leader in self.active and not _refused(registration, self.setup):
            self.pushed = registration.isr
        ranks, gap_map = ranked(tuple(self.holds), before.level, self.pushed)
        if registration is not before.registration:
            registration = self.decisions.quiet(registration)
        state = PartitionState(registration, self._remembered_conditions(), ranks)
        if self.spared and state.gaps > 0 and self.spared == newest(ranks):
            self.effects |= _UNFLUSHED
        return state, Outcome(self.effects, gap_map)

    def _remembered_conditions(self) -> tuple[int, ...]:
        """An unclean shutdown matters only while the broker is in the ISR or ELR on record."""
        if DOWN_UNCLEAN not in self.condition:
            return tuple(self.condition)
        on_record: tuple[int, ...] = ()
        if self.setup.policy.rules.eligible_leader_replicas:
            on_record = self.registration.isr + self.registration.elr
            if not self.setup.policy.rules.last_known_leader_must_be_active:
                on_record += self.registration.last_known_elr
        remembered = list(self.condition)
        for slot, condition in enumerate(remembered):
            if condition == DOWN_UNCLEAN and slot not in on_record:
                remembered[slot] = DOWN_CLEAN
        return tuple(remembered)

    def _must_copy(self, slot: int) -> bool:
        """It is empty, and another replica has records to copy."""
        return self.setup.copying and self.holds[slot] == EMPTY and min(self.holds) != EMPTY

    def _count_media_loss(self) -> None:
        if not self.before.has_data:
            return
        most = min(self.holds)
        if most == EMPTY:
            self.effects |= _TOTAL
        if most > 0:
            self.effects |= _MEDIA_LOSS

    def _lose_page_cache(self, dark: frozenset[int], early: bool) -> None:
        """Unflushed records are lost if every holder lost power, else kept by the others."""
        if self.written:
            holders = frozenset(self.registration.isr)
        elif early:
            holders = newest(self.holds)
        else:
            return
        if holders <= dark:
            self.effects |= _PAGE_CACHE_LOSS if holders else 0
        elif holders & dark:
            self.pushed = self.spared = holders - dark

    def _follow(self, previous: int, leader: int) -> None:
        """A new leader's log is the truth; records beyond it are lost."""
        if leader in (NO_LEADER, previous):
            return
        if leader not in self.spared:
            self.pushed, self.spared = None, frozenset()
        kept = self.holds[leader]
        if min(self.holds) < kept:
            self.effects |= _ELECTION_LOSS | (_TOTAL if kept == EMPTY else 0)
        self.holds = [max(held, kept) for held in self.holds]

    def _elect_what_is_left(self) -> None:
        """The operator's unclean election once no electable replica can return with its log.

        Kafka would wait for ever. The operator waits only for brokers that are down and hold more
        than any active one, then elects the active replica that holds most: a healthy one first,
        then the first in the assignment.
        """
        registration = self.registration
        electable = registration.isr or registration.elr or registration.last_known_elr
        for slot in electable:
            if self.condition[slot] in DOWN:
                return
        best = min(
            self.active,
            key=lambda slot: (self.holds[slot], self.condition[slot] != UP, slot),
            default=None,
        )
        down = [h for h, c in zip(self.holds, self.condition, strict=True) if c in DOWN]
        if best is None or min(down, default=EMPTY) < self.holds[best]:
            return
        self.registration = controller.elected_by_operator(
            registration, election.UNCLEAN, frozenset((best,)), self.setup.policy
        )
        self._follow(NO_LEADER, self.leader())
