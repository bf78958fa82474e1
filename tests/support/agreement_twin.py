"""The reference and the reduction side by side: one fault strikes both, and both are compared.

A twin is a cluster of the reference (logs, offsets, epochs, timers) that has come to rest, the
reduction's state for it, and the books: how many acknowledged records each gap holds, how many are
in every log, which are lost.

What stands for what
--------------------
CRASH is a kill, ISOLATE and BACK cut and heal the network (or start the process), STOP is a
controlled stop, POWER a loss of power, DESTROY empties the disk, REPLACED starts on the empty disk,
LAG and CAUGHT_UP stop and resume fetching. Of several slots that are struck together the controller
notices the leader first, the others in slot order.

The operator's election is worked out here from the reference's own logs, by the reduction's
published rule, and put to the controller with the chosen replica as the only eligible one. The
rebalancing of a whole partition is a preferred election.

Where there is no counterpart
-----------------------------
* How long copying takes: with ``copying`` the replaced broker does not fetch until COPIED.
* A broker that lags and becomes leader lags no more: it resumes fetching.
* When the disk gets what was written: everything is flushed before power is lost, except what is
  written after that, if ``page_cache``.
* A record that an election lost and a later one brought back stays lost here: the reduction counts
  it when the first election loses it.
* acks=1 and acks=0: the last record before the leader's fault is acknowledged and not yet copied
  (``tail``). Where all in-sync replicas fall together the reduction takes it for lost if the old
  leader may no longer lead by a clean election; the reference loses it when another one leads, and
  keeps it if an unclean election, Kafka's or the operator's, takes the old one after all. Where
  the old leader may still lead beside others (ELR), whoever is back first decides; there no such
  record is written. Without a controller the reduction writes it off when the controller is back.
* A leader that is down and only on record (KAFKA-19522, 4.0 with ELR) takes no writes here. In the
  reference an acks=0 producer would send to it, believe it, and lose at once what it sent.
* Before 2.0.1, after a loss, the logs of in-sync replicas may differ for ever (KIP-101, KIP-279,
  KAFKA-7164), and before 0.11 a broker may end itself because its log is longer than its leader's.
  The reduction knows neither. There the trace ends, and `DivergedError` says so.
* Lag that befalls a leader: neither notices. A controlled stop strikes one broker at a time.
* A broker that was fenced while its network was cut follows its leader again if the network heals
  without a controller. The reduction takes it for a process that was started, which has to register
  first: it leaves the log as it was. A process that is cut off before it registers and killed then
  left its log closed; the reduction takes that for an unclean shutdown.
* Who catches up without a controller stays a proposed member (KIP-497): if it fails before the
  controller is back, acks=all waits for it. The reduction forgets that it caught up.
* A ZooKeeper controller that falls together with others: the next one decides about all of them at
  once, the reduction one by one; they differ in which replica stays electable.
* 0.8.2 never finds a follower of an empty log behind, the reduction does; there the trace ends.
* In which order a controller that is back fences brokers and registers others: as in the reduction.
* A partition that refuses all writes has no history, so that it can lose none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.protocol.log import replica_log as logs
from advisor.protocol.log.replica_log import Spans
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.isr import NOT_ENOUGH_REPLICAS
from advisor.protocol.rules.partition_registration import NO_LEADER
from advisor.protocol.simulation.cluster import LEADER_NOT_AVAILABLE
from advisor.protocol.simulation.invariants import ALWAYS, check
from advisor.protocol.simulation.state import State
from advisor.reliability.partition import log_levels
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.log_levels import GAP_LOST
from advisor.reliability.partition.reduced_state import Outcome, PartitionState, Transition
from advisor.reliability.partition.transition_table import PartitionTransitionTable
from agreement_cluster import WRITTEN, Cluster, Move
from agreement_moves import possible

# A leader stopped without a controller asks it for a successor until its followers have all.
ALONE = (red.CRASH, red.ISOLATE, red.DESTROY)


@dataclass(frozen=True)
class Twin:
    """Both at rest after the same faults.

    Attributes
    ----------
    state : State
        The reference.
    number : int
        The reduction's state in its transition table.
    gaps : tuple of int
        Acknowledged records in each gap.
    gone, doomed, pending : spans
        Values lost, values that the reduction has written off while no leader decides yet, and the
        tail of a leader that fell without a controller: neither lost nor kept yet.
    destroyed : frozenset of int
        Slots whose disk is gone and not replaced.
    trace : tuple of Move
    """

    state: State
    number: int
    gaps: tuple[int, ...] = ()
    gone: Spans = ()
    doomed: Spans = ()
    pending: Spans = ()
    destroyed: frozenset[int] = frozenset()
    trace: tuple[Move, ...] = ()


class Experiment:
    """One configuration in both.

    Parameters
    ----------
    config : Config
        Version, controller, replication factor, min ISR, acks, unclean election.
    copying, page_cache, tail : bool
        See above.
    apart : bool
        The ZooKeeper controller is none of the brokers; otherwise slot 0 is it at first.
    quorum : bool
        The controller quorum may be lost, too.
    """

    def __init__(
        self,
        config: Config,
        *,
        copying: bool = False,
        page_cache: bool = False,
        tail: bool = False,
        apart: bool = False,
        quorum: bool = False,
    ) -> None:
        assert config.acks is not None
        self.quorum = quorum
        self.config = config
        self.cluster = Cluster(config, apart)
        self.constants = ChainConstants(self.cluster.policy, config.acks, copying, page_cache)
        self.transition_table = PartitionTransitionTable(self.constants, len(self.cluster.slots))
        self.tail = tail and config.acks != "all"
        self._new = self.cluster.state

    def start(self) -> Twin:
        """A new partition, written to if it can be."""
        self.cluster.state = self._new
        return self._written(Twin(self._new, 0))

    def moves(self, twin: Twin, together: bool = False) -> list[Move]:
        """What can happen next, one slot at a time; with ``together`` to several slots too."""
        reduced = self.transition_table.states[twin.number]
        found = possible(twin.state, twin.destroyed, reduced, together)
        if self.quorum:
            found.append(Move(red.QUORUM_LOST if _works(reduced) else red.QUORUM_BACK, (0,)))
        return found

    def step(self, twin: Twin, move: Move) -> Twin:
        """Strike both with one event and compare them.

        Raises
        ------
        AssertionError
            If they differ; the message tells the trace.
        DivergedError
            Before 2.0.1, see above.
        """
        cluster = self.cluster
        cluster.state = twin.state
        before = self.transition_table.states[twin.number]
        number, outcome = self.transition_table.step(twin.number, *move)
        # The operator's election follows at once, if it is due.
        if red.operator_can_elect(self.transition_table.states[number]):
            number, later = self.transition_table.step(number, red.DECIDED, (0,))
            outcome = outcome.then(later)
        after = self.transition_table.states[number]
        last = self._last_words((before, after), outcome, move)
        following = replace(
            twin,
            number=number,
            destroyed=_destroyed(twin.destroyed, move),
            trace=(*twin.trace, move),
        )
        if last and self._pends(before, move):
            following, last = replace(following, pending=last), ()
        elif self._is_tail(last, outcome):
            following = replace(following, doomed=logs.merged((*twin.doomed, *last)))
        following, kept = self._settled_pending(following, after, outcome)
        predicted, gaps = self._books(following, (before, after), outcome, last, move)
        gaps = (gaps[0] + kept, *gaps[1:]) if gaps else ()
        if move.event == red.QUORUM_LOST:
            cluster.stop_quorum()
        elif move.event == red.QUORUM_BACK:
            cluster.start_quorum(*_owed(before, self.constants))
        else:
            cluster.strike(move)
        # Whoever waited for the controller begins to copy when it is back.
        for slot in cluster.slots if move.event == red.QUORUM_BACK else move.slots:
            held_back = after.condition[slot] in (red.COPYING, red.NOT_FETCHING)
            cluster.set_fetching(slot, not held_back)
        cluster.settle()
        by_hand = cluster.elect_what_is_left(self._known(following), following.destroyed)
        for slot in cluster.slots:
            if after.condition[slot] == red.UP:
                cluster.set_fetching(slot, True)
        cluster.settle()
        cluster.expect_equal_logs()
        if outcome.effects & Effect.TOTAL:
            predicted = logs.size(self._known(following))
        cluster.rebalance()
        following = self._compare_losses(replace(following, gaps=gaps), last, predicted, outcome)
        following = self._decided(following, by_hand)
        return self._written(following)

    def _pends(self, before: PartitionState, move: Move) -> bool:
        """Whether the leader falls without a controller: who leads next is decided later."""
        falls = move.event in ALONE and before.registration.leader in move.slots
        return falls and self.tail and not _works(before)

    def _settled_pending(
        self, twin: Twin, after: PartitionState, outcome: Outcome
    ) -> tuple[Twin, int]:
        """What became of an undecided tail: dropped, or so many records copied after all."""
        if not twin.pending or not (_works(after) or red.is_readable(after)):
            return twin, 0
        if outcome.losses & Effect.TAIL:
            doomed = logs.merged((*twin.doomed, *twin.pending))
            return replace(twin, pending=(), doomed=doomed), 0
        kept = logs.size(logs.without(twin.pending, twin.gone))
        return replace(twin, pending=()), kept

    def _known(self, twin: Twin) -> Spans:
        """Acknowledged values that may still be read."""
        written_off = logs.merged((*twin.gone, *twin.doomed, *twin.pending))
        return logs.without(self.cluster.partition.acked, written_off)

    def _last_words(
        self, around: tuple[PartitionState, PartitionState], outcome: Outcome, move: Move
    ) -> Spans:
        """What is written just before the fault: on no disk, or in no log but the leader's."""
        cluster = self.cluster
        first = cluster.state.next_value
        leader = around[0].registration.leader
        writable = red.is_writable(around[0], self.constants)
        dark = move.event == red.POWER
        if move.event == red.LIMP:
            # What the leader alone has then is the beginning of the gap.
            return ()
        if dark:
            cluster.flush()
        tail = outcome.losses & Effect.TAIL and not outcome.losses & Effect.PAGE_CACHE_LOSS
        after = around[1].registration
        electable = {*after.isr, *after.elr}
        several = leader in electable and len(electable) > 1
        # Without a controller the leader stays on record, and it is decided later.
        later = self.constants.policy.rules.eligible_leader_replicas and not _works(around[1])
        undecided = several and (after.leader == NO_LEADER or later)
        if dark and writable and self.constants.page_cache and not (tail and self.tail):
            assert cluster.produce(WRITTEN) is None
            cluster.settle()
        elif self.tail and writable and leader in move.slots and (tail or not (dark or undecided)):
            assert cluster.produce(1) is None
        end = cluster.state.next_value
        return ((first, end),) if end > first else ()

    def _books(
        self,
        twin: Twin,
        around: tuple[PartitionState, PartitionState],
        outcome: Outcome,
        last: Spans,
        move: Move,
    ) -> tuple[int, tuple[int, ...]]:
        """Records that the reduction says are lost, the last words apart, and the new gaps."""
        before, after = around
        survivors = logs.size(last)
        if outcome.losses & Effect.PAGE_CACHE_LOSS or self._is_tail(last, outcome):
            survivors = 0
        # In-sync replicas that lose the page cache lack what was not flushed: a gap of its own.
        dark = move.event == red.POWER and bool(set(before.registration.isr) & set(move.slots))
        sizes = list(twin.gaps)
        assert len(sizes) == before.gaps == len(outcome.gap_map)
        if sizes and not dark:
            sizes[0] += survivors
        lost_here = 0
        new = [0] * after.gaps
        for size, there in zip(sizes, outcome.gap_map, strict=True):
            self._same(twin, "a gap's new number is below", max(there + 1, after.gaps), after.gaps)
            if there == GAP_LOST:
                lost_here += size
            elif there >= 0:
                new[there] += size
        if dark and new:
            new[0] += survivors
        return lost_here, tuple(new)

    def _compare_losses(self, twin: Twin, last: Spans, predicted: int, outcome: Outcome) -> Twin:
        cluster = self.cluster
        fresh = cluster.lost(twin.gone)
        doomed = twin.doomed
        if outcome.losses & Effect.PAGE_CACHE_LOSS and not outcome.effects & Effect.TOTAL:
            predicted += logs.size(last)
        here = logs.size(logs.without(fresh, logs.merged((*doomed, *twin.pending))))
        self._same(twin, "loss event", here > 0, bool(outcome.losses & ~Effect.TAIL))
        self._same(twin, "records lost", here, predicted)
        gone = logs.merged((*twin.gone, *fresh))
        return replace(twin, gone=gone, doomed=logs.without(doomed, gone))

    def _decided(self, twin: Twin, by_hand: bool) -> Twin:
        """With a leader it is clear what became of what was written off: it stays written off."""
        leader = self.cluster.leader
        if leader == NO_LEADER:
            return twin
        unclean = by_hand or self.cluster.policy.unclean
        back = 0 if unclean else self.cluster.held(leader, twin.doomed)
        self._same(twin, "written off and back", back, 0)
        return replace(twin, gone=logs.merged((*twin.gone, *twin.doomed)), doomed=())

    def _is_tail(self, last: Spans, outcome: Outcome) -> bool:
        """Whether the last words were a tail that the reduction writes off."""
        written_off = outcome.losses & Effect.TAIL and not outcome.losses & Effect.PAGE_CACHE_LOSS
        return bool(written_off) and self.tail and bool(last)

    def _written(self, twin: Twin) -> Twin:
        """Write, compare everything, and enter what was written in the books."""
        cluster = self.cluster
        reduced = self.transition_table.states[twin.number]
        before = logs.size(cluster.partition.acked)
        error = cluster.produce(WRITTEN)
        cluster.settle()
        if error not in (None, NOT_ENOUGH_REPLICAS, LEADER_NOT_AVAILABLE):
            # The first write is what makes a leader strike those who lag.
            error = cluster.produce(WRITTEN)
            cluster.settle()
        written = logs.size(cluster.partition.acked) - before
        gaps = (twin.gaps[0] + written, *twin.gaps[1:]) if twin.gaps else ()
        twin = replace(twin, gaps=gaps, state=cluster.state)
        self._compare(twin, reduced, error is None)
        if twin.trace:
            cluster.expect_equal_logs()
        known = self._known(twin)
        for slot, level in enumerate(reduced.level):
            lacking = logs.size(known) if level == log_levels.EMPTY else sum(gaps[:level])
            held = logs.size(known) - lacking
            self._same(twin, f"records held by slot {slot}", cluster.held(slot, known), held)
        return twin

    def _compare(self, twin: Twin, reduced: PartitionState, writable: bool) -> None:
        record = self.cluster.record
        expected = reduced.registration
        leader = expected.leader if red.is_readable(reduced) else NO_LEADER
        for what, here, there in (
            ("leader", self.cluster.leader, leader),
            ("isr", set(record.isr), set(expected.isr)),
            ("elr", set(record.elr), set(expected.elr)),
            ("last known leader", record.last_known_elr, expected.last_known_elr),
            ("writable", writable, red.is_writable(reduced, self.constants)),
            ("invariants", check(self.cluster.state, ALWAYS), ()),
        ):
            self._same(twin, what, here, there)

    def _same(self, twin: Twin, what: str, reference: object, reduction: object) -> None:
        if reference != reduction:
            raise AssertionError(
                f"{what}: reference {reference}, reduction {reduction}\nafter {twin.trace}\n"
                f"{self.config!r} copying={self.constants.copying} "
                f"page_cache={self.constants.page_cache} tail={self.tail}\n"
                f"reference {self.cluster.record}\n"
                f"reduction {self.transition_table.states[twin.number]}"
            )


def _works(state: PartitionState) -> bool:
    return state.controller == red.CONTROLLER_WORKS


def _owed(state: PartitionState, constants: ChainConstants) -> tuple[list[int], list[int]]:
    """Whom a controller that is back fences, and who registers then, in the reduction's order."""
    order = Transition(state, constants)._decision_order
    fallen = [slot for slot in state.unfenced if state.condition[slot] not in red.RUNNING]
    waiting = [slot for slot, own in enumerate(state.condition) if own in red.WAITING]
    return sorted(fallen, key=order), sorted(waiting, key=order)


def _destroyed(before: frozenset[int], move: Move) -> frozenset[int]:
    if move.event == red.DESTROY:
        return before | set(move.slots)
    if move.event == red.REPLACED:
        return before - set(move.slots)
    return before
