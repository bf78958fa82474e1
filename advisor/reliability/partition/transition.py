"""One event at a partition: the transitions of the protocol's rules until it is quiet again."""

from __future__ import annotations

from functools import lru_cache

from advisor.protocol.rules import controller, election
from advisor.protocol.rules.partition_registration import NO_LEADER, Registration
from advisor.reliability.partition import log_levels
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.log_levels import EMPTY, newest, ranked
from advisor.reliability.partition.partition_events import (
    BACK,
    CAUGHT_UP,
    COPIED,
    CRASH,
    DESTROY,
    EARLY_POWER,
    FAILURES,
    ISOLATE,
    LAG,
    LIMP,
    POWER,
    RECOVERED,
    RETURNS,
    STOP,
    Outcome,
)
from advisor.reliability.partition.partition_state import (
    CONTROLLER_WORKS,
    COPYING,
    CUT_OFF,
    DESTROYED,
    DOWN_CLEAN,
    DOWN_UNCLEAN,
    LIMPING,
    NOT_FETCHING,
    RUNNING,
    UP,
    WAITING,
    WAITING_CLEAN,
    WAITING_UNCLEAN,
    PartitionState,
    is_writable,
    most_complete,
    receivers,
    refused,
)

_MEDIA_LOSS = int(Effect.LOSS | Effect.MEDIA_LOSS)
_PAGE_CACHE_LOSS = int(Effect.LOSS | Effect.PAGE_CACHE_LOSS)
_ELECTION_LOSS = int(Effect.LOSS | Effect.ELECTION_LOSS)
_TAIL, _TOTAL, _UNFLUSHED = int(Effect.TAIL), int(Effect.TOTAL), int(Effect.UNFLUSHED)
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
        works, self.controller = self.controller == CONTROLLER_WORKS, after
        if works:
            self.unfenced = tuple(sorted(self.active))
        if after != CONTROLLER_WORKS:
            return
        fallen = [slot for slot in self.unfenced if slot not in self.active]
        waiting = tuple([s for s, own in enumerate(self.condition) if own in WAITING])
        fallen.sort(key=self._decision_order)
        waiting = tuple(sorted(waiting, key=self._decision_order))
        self.unfenced = ()
        self.condition = [DOWN_CLEAN if own == CUT_OFF else own for own in self.condition]
        if self.constants.policy.rules.mode == "kraft":
            self._each(CRASH, tuple(fallen), self.active, self.active | frozenset(fallen))
        elif fallen:
            self.registration = controller.controller_started(
                self.registration, self.active, self.constants.policy, fallen
            )
        if waiting:
            before = self.active
            self._start(waiting, WAITING_CLEAN)
            self.active = _active(tuple(self.condition))
            self._each(BACK, waiting, self.active, before)
        leader = self.leader()
        self._follow(self.led_before, leader)
        on_record = self.before.registration.leader
        if on_record in fallen and self._gave_up(on_record, leader):
            self.effects |= _TAIL

    def _decision_order(self, slot: int) -> tuple[bool, int, int, int, bool, bool]:
        """Sort key: after an outage the controller fences the leader first, the emptiest last.

        The last to be fenced stays electable, so this order is the worst case. The position of a
        slot in the assignment must not matter: `lumping` sorts slots by what is lost.
        """
        on_record, level = self.registration, self.holds[slot]
        place = on_record.isr.index(slot) if slot in on_record.isr else len(self.holds)
        in_elr, known = slot in on_record.elr, slot in on_record.last_known_elr
        return slot != on_record.leader, self.condition[slot], level, place, in_elr, known

    def decide(self, event: int, slots: tuple[int, ...]) -> None:
        """Apply the controller's decisions, slot by slot.

        Brokers that fail or return together are fenced or unfenced one by one, the leader first.
        """
        if self.controller != CONTROLLER_WORKS:
            return
        final = self.active
        if event in FAILURES:
            # The controller knows already of brokers that were down.
            slots = tuple([slot for slot in slots if slot in self.were_active])
            if not slots:
                return
        order = sorted(slots, key=lambda slot: slot != self.led_before)
        self._each(event, tuple(order), final, self.were_active)
        before, leader = self.led_before, self.leader()
        self._follow(before, leader)
        if before in slots and leader != before:
            self.effects |= _HANDOVER if event == STOP else _FAILOVER
            if self.written and self._gave_up(before, leader):
                self.effects |= _TAIL

    def _gave_up(self, old: int, leader: int) -> bool:
        """Whether acknowledged records that only the old leader had are dropped."""
        if self.constants.acks == "all" or leader == old:
            return False
        return leader != NO_LEADER or old not in self.registration.isr + self.registration.elr

    def _each(
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
        kept = (leader,) if limps else tuple([slot for slot in isr if condition[slot] == UP])
        if kept == isr:
            return
        both = (self.before.registration, self.registration)
        if leader != self.led_before or not all(refused(one, self.constants) for one in both):
            self._propose(kept)

    def _propose(self, isr: tuple[int, ...]) -> None:
        """The leader's AlterPartition request."""
        self.registration = self.decisions.isr_proposed(self.registration, isr, self.active)

    def finish(self) -> tuple[PartitionState, Outcome]:
        """Rank the logs again and map every old gap to its new number."""
        registration, before = self.registration, self.before
        now = PartitionState(
            registration, tuple(self.condition), before.level, self.controller, self.unfenced
        )
        if is_writable(now, self.constants):
            self.pushed = receivers(now)
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
        most = min(self.holds)
        if most == EMPTY:
            self.effects |= _TOTAL
        if most > 0:
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
        kept = self.holds[leader]
        if min(self.holds) < kept:
            self.effects |= _ELECTION_LOSS | (_TOTAL if kept == EMPTY else 0)
        self.holds = [max(held, kept) for held in self.holds]

    def elect_what_is_left(self) -> None:
        """The operator's unclean election; see `operator_can_elect`."""
        best = most_complete(self.before.level, self.before.condition)
        assert best is not None
        self.registration = controller.elected_by_operator(
            self.registration, election.UNCLEAN, frozenset((best,)), self.constants.policy
        )
        self._follow(NO_LEADER, self.leader())
