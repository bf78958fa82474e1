"""The truncated CTMC of one replica set as arrays, with names of rates instead of rates.

It is built once and filled for every similar card and for every draw of its uncertainty.
"""

from __future__ import annotations

import gc
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from advisor.reliability.chain import structure_store
from advisor.reliability.chain.state_selection import (
    Moves,
    NominalRates,
    Selection,
    select_states,
    truncated_states,
)
from advisor.reliability.common_cause.outage_class import OutageClasses, outage_classes
from advisor.reliability.common_cause.struck_losses import struck_together_with_losses
from advisor.reliability.failures import fault_processes
from advisor.reliability.failures.mechanisms import CONFIGURATION, table, transitions
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.log_levels import GAP_LOST
from advisor.reliability.partition.reduced_state import PartitionState, as_plain, from_plain
from advisor.reliability.partition.transition_table import (
    EXPLORING,
    GAPS,
    IN_SYNC,
    READABLE,
    WRITABLE,
)
from advisor.reliability.solver.generator import IntArray
from advisor.reliability.statespace.flush_window import AbsorptionTable, FlushWindowLosses
from advisor.reliability.statespace.state_graph import Graph, graph, shared_constants
from advisor.reliability.statespace.state_index import met_in_order

# With four replicas 30,000 states are left out, and 300,000 transitions lead to them.
_COUNTS, _EFFECTS = np.int8, np.int16
# Chains of three replicas take 5 MB each, of four 40; what is gone is read from disk again.
_MOST_BYTES = 160 * 2**20
_KINDS: dict[str, Any] = {"waits": _COUNTS, "effects": _EFFECTS}


@dataclass(frozen=True, eq=False)
class Structure:
    """A chain without the values of its rates; equal only to itself. State 0 is the healthy one.

    source, target, rate (transitions,): state, state, index into ``rate_names``.
    weight (transitions,): multiplicity.
    effects (transitions,): bits of `Effect`. After TRUNCATED the chain starts anew.
    gap_map (transitions, gaps): old gap to new gap, or GAP_LOST or GAP_CLOSED.
    attribution (states,): share of each mechanism in what keeps replicas away; rows add up to 1.
    truncated_target, stops_writes (truncated transitions,): which truncated state each TRUNCATED
        transition leads to, and whether writes stop with it.
    writes_rarely_stop (states,): states that refuse writes and are entered from writable ones so
        rarely that ``flush_window`` leaves them out.
    partition (states,), partitions: which of these each state has.
    own, racks (states, slots): condition and rack of each slot's broker; see `FaultEnvironment`.
    waits, election_risks (states + truncated states, ...): see `Graph`.
    restarts (states, names): of a condensed chain: how many further transitions of each name only
        start it anew.
    uncondensed: of a condensed chain: the other one.
    """

    states: int
    source: IntArray
    target: IntArray
    rate: IntArray
    weight: NDArray[np.float64]
    effects: NDArray[np.int16]
    gap_map: IntArray
    rate_names: tuple[str, ...]
    writable: NDArray[np.bool_]
    readable: NDArray[np.bool_]
    growing: NDArray[np.bool_]
    gaps: IntArray
    in_sync: IntArray
    attribution: dict[str, NDArray[np.float64]]
    constants: ChainConstants
    environment: fault_processes.FaultEnvironment
    truncated_target: IntArray
    stops_writes: NDArray[np.bool_]
    writes_rarely_stop: NDArray[np.bool_]
    flush_window: FlushWindowLosses
    partition: IntArray
    partitions: tuple[PartitionState, ...]
    own: IntArray
    racks: IntArray
    waits: NDArray[np.int8]
    election_risks: NDArray[np.float64]
    restarts: sparse.csr_array | None = None
    uncondensed: Structure | None = None

    @property
    def bytes(self) -> int:
        """What its arrays take."""
        arrays = (value for value in vars(self).values() if isinstance(value, np.ndarray))
        return sum(array.nbytes for array in arrays)

    @property
    def whole(self) -> Structure:
        """The chain with every transition by itself."""
        return self.uncondensed or self

    @cached_property
    def condensed(self) -> Structure:
        """The same chain for draws of a card: what only starts it anew is summed up by state.

        Nine tenths of all transitions lead into truncated states and neither lose nor change what
        is counted.
        """
        quiet = self.effects == Effect.TRUNCATED
        quiet &= ~(self.gap_map == GAP_LOST).any(axis=1)
        quiet[struck_together_with_losses(self, self.with_effect(Effect.LOSS))] = False
        size = self.states, len(self.rate_names)
        cells = self.source[quiet], self.rate[quiet]
        return replace(
            self,
            source=self.source[~quiet],
            target=self.target[~quiet],
            rate=self.rate[~quiet],
            weight=self.weight[~quiet],
            effects=self.effects[~quiet],
            gap_map=self.gap_map[~quiet],
            restarts=sparse.csr_array((self.weight[quiet], cells), shape=size),
            # A copy, so that no two chains refer to each other: memory is free as soon as one goes.
            uncondensed=replace(self),
        )

    def with_effect(self, effect: Effect) -> NDArray[np.bool_]:
        """Which transitions have any of these effects, shape (transitions,)."""
        has_effect = self._with_effect.get(effect)
        if has_effect is None:
            has_effect = self._with_effect[effect] = self.effects & effect != 0
            has_effect.flags.writeable = False
        return has_effect

    @cached_property
    def _with_effect(self) -> dict[Effect, NDArray[np.bool_]]:
        return {}

    def where(self, holds: Callable[[PartitionState, ChainConstants], bool]) -> NDArray[np.bool_]:
        """In which states something holds of the partition, shape (states,)."""
        by_state = self._where.get(holds)
        if by_state is None:
            by_partition = np.array([holds(state, self.constants) for state in self.partitions])
            by_state = self._where[holds] = by_partition[self.partition]
            by_state.flags.writeable = False
        return by_state

    @cached_property
    def _where(self) -> dict[Callable[..., bool], NDArray[np.bool_]]:
        return {}

    @cached_property
    def total(self) -> NDArray[np.bool_]:
        """Which transitions leave no record in any log, shape (transitions,)."""
        return self.with_effect(Effect.TOTAL)

    @cached_property
    def outage_classes(self) -> tuple[OutageClasses, OutageClasses, OutageClasses]:
        """Outage classes of the states: separate, standing and joint.

        Outages that began together end separately; or together, those by destruction excepted; or
        all of them together.
        """
        mechanisms = table()
        begun_together = mechanisms.begun_together
        destroyed = mechanisms.stages(mechanisms.replacement.condition)
        intact = [condition for condition in begun_together if condition not in destroyed]
        separate, standing, joint = (
            outage_classes(*self._of_replicas, conditions)
            for conditions in ((), intact, begun_together)
        )
        return separate, standing, joint

    @property
    def _of_replicas(self) -> tuple[IntArray, IntArray]:
        replicas = self.environment.replicas
        return self.own[:, :replicas], self.racks[:, :replicas]

    def unflushed(self, flush_hours: float, hung_hours: float) -> NDArray[np.float64]:
        """Hours after each transition in which the last writes are not on disk; 0 if none stop.

        While acks=all waits for a lagging follower nothing is acknowledged, so that wait is
        deducted.
        """
        hung_follower_hours = [hung_hours * entry.hangs for entry in transitions(self.rate_names)]
        remaining_hours = np.maximum(flush_hours - np.array(hung_follower_hours), 0.0)
        return np.where(self.ends_writing, remaining_hours[self.rate], 0.0)

    @cached_property
    def ends_writing(self) -> NDArray[np.bool_]:
        """Which transitions between states that are kept stop writes, shape (transitions,)."""
        return (
            self.writable[self.source]
            & ~self.writable[self.target]
            & ~self.with_effect(Effect.TRUNCATED)
        )


class CacheInfo(NamedTuple):
    """How many answers are kept, and their bytes."""

    currsize: int
    bytes: int


class _WithinBytes:
    """As `functools.lru_cache`, for chains: bounded by their bytes, however many there are."""

    def __init__(self, question: Callable[..., Structure]) -> None:
        self.__wrapped__ = question
        self._answers: OrderedDict[tuple[Any, ...], Structure] = OrderedDict()
        self._sizes: dict[tuple[Any, ...], int] = {}
        # The explorer asks in one thread while another forgets.
        self._lock = threading.Lock()

    def __call__(self, *key: Any) -> Structure:
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]
        answer = self.__wrapped__(*key)
        with self._lock:
            self._answers[key] = answer
            self._sizes[key] = answer.bytes
            while sum(self._sizes.values()) > _MOST_BYTES and len(self._answers) > 1:
                oldest, _ = self._answers.popitem(last=False)
                del self._sizes[oldest]
        return answer

    def cache_clear(self) -> None:
        """Forget all answers."""
        with self._lock:
            self._answers.clear()
            self._sizes.clear()

    def cache_info(self) -> CacheInfo:
        """Return how many answers are kept."""
        with self._lock:
            return CacheInfo(len(self._answers), sum(self._sizes.values()))


@_WithinBytes
def structure(
    constants: ChainConstants, environment: fault_processes.FaultEnvironment, *guides: NominalRates
) -> Structure:
    """The chain of the states that matter if rates are close to those of one of the guides."""
    key = structure_store.key_of(constants, environment, guides)
    stored = structure_store.load(key)
    if stored is not None:
        return _restored(stored, constants, environment)
    explored = _explored(constants, environment, guides)
    structure_store.save(key, explored.states, lambda: _arrays_of(explored))
    return explored


def _explored(
    constants: ChainConstants,
    environment: fault_processes.FaultEnvironment,
    guides: tuple[NominalRates, ...],
) -> Structure:
    with EXPLORING:
        all_states = graph(shared_constants(constants, environment), environment)
        collecting = gc.isenabled()
        # Nearly all that is allocated here is kept; garbage collection would take a third of the
        # time.
        gc.disable()
        try:
            return _arrays(all_states, select_states(all_states, guides, constants), constants)
        finally:
            if collecting:
                gc.enable()


# What a stored chain holds as it is; all ints are as narrow as they can be there.
_STORED = (
    *("source", "target", "rate", "weight", "effects", "gap_map", "writable", "readable"),
    *("growing", "gaps", "in_sync", "truncated_target", "stops_writes", "writes_rarely_stop"),
    *("partition", "own", "racks", "waits", "election_risks"),
)


def _arrays_of(chain: Structure) -> dict[str, NDArray[Any]]:
    """A chain as arrays, for the store."""
    window, odds = chain.flush_window, chain.flush_window.odds
    return {
        **{name: getattr(chain, name) for name in _STORED},
        **{f"window_{name}": getattr(window, name) for name in ("state", "rate", "end")},
        **{f"odds_{name}": getattr(odds, name) for name in ("outage", "rate", "end")},
        "text": structure_store.text_as_array(
            [chain.rate_names, odds.outages, odds.stops, [as_plain(p) for p in chain.partitions]]
        ),
    }


def _restored(
    stored: structure_store.Arrays,
    constants: ChainConstants,
    environment: fault_processes.FaultEnvironment,
) -> Structure:
    names, outages, stops, partitions = structure_store.text_of(stored["text"])
    wide: dict[str, Any] = {
        name: array.astype(_KINDS.get(name, np.int64)) if array.dtype.kind == "i" else array
        for name, array in stored.items()
    }
    states = len(wide["writable"])
    odds = AbsorptionTable(
        outages=outages,
        outage=wide["odds_outage"],
        rate=wide["odds_rate"],
        end=wide["odds_end"],
        stops=tuple(stops),
    )
    return Structure(
        states=states,
        rate_names=tuple(names),
        partitions=tuple([from_plain(partition) for partition in partitions]),
        attribution=outage_attribution(wide["waits"][:states]),
        constants=constants,
        environment=environment,
        flush_window=FlushWindowLosses(
            wide["window_state"], wide["window_rate"], wide["window_end"], odds
        ),
        **{name: wide[name] for name in _STORED},
    )


def whole_structure(
    constants: ChainConstants, environment: fault_processes.FaultEnvironment
) -> Structure:
    """The chain of all states; only for small settings."""
    with EXPLORING:
        all_states = graph(shared_constants(constants, environment), environment)
        kept = np.zeros(1, dtype=np.int64)
        moves = Moves.of(all_states, kept, constants)
        kept_moves = moves.among(all_states, kept)
        while len(fresh := truncated_states(kept_moves)[0]):
            fresh_moves = Moves.of(all_states, fresh, constants)
            moves = moves.and_then(fresh_moves, len(kept) + np.arange(len(fresh)))
            kept = np.concatenate([kept, fresh])
            kept_moves = moves.among(all_states, kept)
        return _arrays(
            all_states, Selection(kept_moves, np.zeros(len(kept), dtype=bool)), constants
        )


def _arrays(all_states: Graph, selection: Selection, constants: ChainConstants) -> Structure:
    moves, kept = selection.moves, selection.moves.kept
    left_out, place = truncated_states(moves)
    truncated = moves.target < 0
    # Names get the numbers in which this chain meets them, whatever the graph served before.
    name_numbers, rate = met_in_order(moves.rate, len(all_states.rate_names))
    table, with_left_out = all_states.table, np.concatenate([kept, left_out])
    own, racks = all_states.brokers(kept)
    distinct, partition = np.unique(all_states.partition[kept], return_inverse=True)
    waits = all_states.waits(with_left_out)
    gap_maps = np.array(all_states.gap_maps, dtype=np.int64)
    facts = table.facts(all_states.partition[with_left_out])
    takes_writes, kept_facts = facts[WRITABLE] > 0, facts[:, : len(kept)]
    writable, gaps = takes_writes[: len(kept)], kept_facts[GAPS]
    rate_names = [all_states.rate_names[number] for number in name_numbers.tolist()]
    flush_window = _flush_window_losses(all_states, selection, rate_names, writable)
    return Structure(
        states=len(kept),
        source=moves.source,
        target=np.where(truncated, 0, moves.target),
        rate=rate,
        weight=moves.times,
        effects=(moves.effects | np.where(truncated, Effect.TRUNCATED, 0)).astype(_EFFECTS),
        gap_map=gap_maps.reshape(-1, max(table.replicas - 1, 1)).take(moves.gaps, axis=0),
        rate_names=tuple(rate_names),
        writable=writable,
        readable=kept_facts[READABLE] > 0,
        growing=writable & (gaps > 0),
        gaps=gaps,
        in_sync=kept_facts[IN_SYNC],
        attribution=outage_attribution(waits[: len(kept)]),
        constants=constants,
        environment=all_states.environment,
        truncated_target=place,
        stops_writes=writable[moves.source[truncated]] & ~takes_writes[len(kept) + place],
        writes_rarely_stop=selection.writes_rarely_stop,
        flush_window=flush_window,
        partition=partition.astype(np.int64),
        partitions=tuple([table.states[number] for number in distinct.tolist()]),
        own=own,
        racks=racks,
        waits=waits.astype(_COUNTS),
        election_risks=all_states.election_risks(with_left_out),
    )


def _flush_window_losses(
    all_states: Graph, selection: Selection, names: list[str], writable: NDArray[np.bool_]
) -> FlushWindowLosses:
    """Find the flush-window losses of the kept states; their rates are added to ``names``."""
    moves = selection.moves
    stops_writes = (moves.target >= 0) & writable[moves.source] & ~writable[moves.target]
    stopped = np.unique(moves.target[stops_writes & ~selection.writes_rarely_stop[moves.target]])
    owner, rate, end = all_states.flush_window_losses(moves.kept[stopped])
    ends = end.tolist()
    power = [all_states.rate_names[number] for number in rate.tolist()]
    names += [n for n in dict.fromkeys([*power, *all_states.outages.names(ends)]) if n not in names]
    place = {name: number for number, name in enumerate(names)}
    odds, renamed = all_states.outages.odds(ends, place)
    numbers = np.array([place[name] for name in power], dtype=np.int64)
    return FlushWindowLosses(stopped[owner], numbers, renamed, odds)


def outage_attribution(waits: NDArray[np.integer[Any]]) -> dict[str, NDArray[np.float64]]:
    """Share of each mechanism in the outages of a state; every replica's outage counts the same."""
    mechanisms = table()
    causes = dict.fromkeys(mechanisms.names, np.zeros(len(waits), dtype=np.int64))
    for condition, mechanism in mechanisms.outages.items():
        causes[mechanism.name] = causes[mechanism.name] + waits[:, condition]
    causes[mechanisms.replacement.name] = (
        causes[mechanisms.replacement.name] + waits[:, mechanisms.conditions]
    )
    count = waits.sum(axis=1)
    shares = {name: share / np.maximum(count, 1.0) for name, share in causes.items()}
    shares[CONFIGURATION] = (count == 0).astype(np.float64)
    return {name: share for name, share in shares.items() if share.any()}
