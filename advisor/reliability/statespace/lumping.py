"""Lumping: one canonical state for all states that differ by exchanging exchangeable replicas.

Brokers are exchangeable, and so are racks with equally many replicas. The preferred replica leads
whenever it can, so its rack is distinguished: it has the number 0. A clean election after
its failure chooses among exchangeable replicas, so that the order of the followers decides nothing
but names. The canonical form sorts the slots by what the partition knows of them, and equal ones by
rack and broker condition. With unclean elections the order of assignment decides what is lost: only
the last two replicas are exchanged, if their racks are exchangeable, and where their order decides
the election each of the two is elected half the time.

Lumping is exact where every rack holds one replica, or one rack holds all. Elsewhere three effects
are neglected, and `lumping_error` allows for them: the order of assignment decides which of the
followers in unlike racks leads until the preferred replica is back; a leader that does not fetch is
treated as a follower; and an election between the last two replicas tells their order, which the
next election repeats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.protocol.rules.partition_registration import NO_LEADER, Registration
from advisor.reliability.failures.fault_processes import FaultEnvironment, initial_state
from advisor.reliability.failures.mechanisms import HANGING, WELL
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.log_levels import EMPTY
from advisor.reliability.partition.reduced_state import CONDITIONS, PartitionState
from advisor.reliability.partition.transition_table import PartitionTransitionTable
from advisor.reliability.solver.generator import IntArray
from advisor.reliability.statespace.state_index import place_values

Order = tuple[int, ...]
Classes = tuple[int, ...]
"""Per slot, ascending; equal numbers for exchangeable slots."""
_HEALTHY = 0
# Shares of a measure neglected: a leader that does not fetch treated as a follower; the rack of the
# next leader, among unlike racks; and the order of the last two replicas after an election.
_LAGGING_LEADER, _NEXT_LEADER, _ELECTION_ORDER = 1e-8, 1e-4, 1e-3
# Of a partition's slots.
_LEVELS = EMPTY + 1


class Symmetry:
    """Maps states to their canonical form."""

    def __init__(self, table: PartitionTransitionTable, environment: FaultEnvironment) -> None:
        self._table = table
        self._classes, replicas = slot_classes(table.constants, environment), table.replicas
        self._lumps = len(set(self._classes)) < replicas
        self.exchanging = self._lumps and table.constants.policy.unclean
        # Sorts after every rack that has a name.
        self._alone = max(environment.slot_racks) + 1
        singles = _interchangeable_singles(environment)
        self._renamings = _renamings(environment, singles, self._alone)
        self._singles = np.array(singles)
        behind = len(environment.slot_racks) - replicas
        # Behind the replicas, each in a place of its own; see `FaultEnvironment`.
        self._behind = np.arange(replicas, replicas + behind)
        self._digits, self._conditions = _digits(environment), environment.table.conditions
        self._places = place_values(self._digits, replicas + behind)
        self._form_of: dict[tuple[int, ...], int] = {}
        self._forms = np.zeros(0, dtype=np.int64)
        self._ranks = np.zeros((0, replicas), dtype=np.int64)
        self._by_slot: dict[int, list[int]] = {}
        self._known_numbers: dict[Hashable, int] = {}
        well, racks = np.array([initial_state(environment).own]), np.array([environment.slot_racks])
        # The preferred replica leads again.
        start = self._slots(well, self._renamings[0][racks])
        self._start = (start @ self._places)[0]

    def representatives(
        self, own: IntArray, racks: IntArray, partition: IntArray
    ) -> tuple[NDArray[Any], IntArray]:
        """The canonical form of states: the code of the brokers' states, and the partition.

        own, racks (states, slots): condition and rack of each slot's broker.
        """
        if not self._lumps:
            return self._slots(own, racks) @ self._places, partition
        self._ask_forms(partition)
        ranks = self._ranks.take(partition, axis=0) * self._digits
        if len(self._behind):
            last = np.broadcast_to(self._behind * self._digits, (len(ranks), len(self._behind)))
            ranks = np.concatenate([ranks, last], axis=1)
        code: NDArray[Any] | None = None
        for new in self._renamings:
            slots = ranks + self._slots(own, new[racks])
            slots.sort(axis=1)
            # The sorted ranks are the same whatever the names.
            renamed_code = slots % self._digits @ self._places
            code = renamed_code if code is None else np.minimum(code, renamed_code)
        assert code is not None
        healthy = (partition == _HEALTHY) & (own == WELL).all(axis=1)
        return np.where(healthy, self._start, code), self._forms[partition]

    def broker_states(self, code: NDArray[Any]) -> tuple[IntArray, IntArray]:
        """Condition and rack of each slot's broker, shape (states, slots)."""
        slots = code[:, None] // self._places % self._digits
        racks, own = np.divmod(slots.astype(np.int64), self._conditions)
        alone = racks == self._alone
        racks[alone] = self._singles[(np.cumsum(alone, axis=1) - 1)[alone]]
        return own, racks

    def by_slot(self, *partitions: int) -> list[tuple[int, ...]]:
        """What distinguishes the slots of partitions, as numbers; all differ if order decides."""
        numbers, ordered = (
            self._known_numbers,
            self._table.constants.policy.rules.elect_in_isr_order,
        )
        for partition in partitions:
            if partition not in self._by_slot:
                of_slot: Sequence[Hashable] = (
                    _known(self._table.states[partition], ordered, self._classes)
                    if self._lumps
                    else [(partition, slot) for slot in range(self._table.replicas)]
                )
                self._by_slot[partition] = [numbers.setdefault(k, len(numbers)) for k in of_slot]
        return list(zip(*[self._by_slot[partition] for partition in partitions], strict=True))

    def _slots(self, own: IntArray, racks: IntArray) -> IntArray:
        return racks * self._conditions + own

    def _ask_forms(self, partition: IntArray) -> None:
        """Have the forms and ranks of these partitions ready."""
        more = len(self._table.states) - len(self._forms)
        if more > 0:
            self._forms = np.concatenate([self._forms, np.full(more, -1)])
            empty = np.zeros((more, self._table.replicas), dtype=np.int64)
            self._ranks = np.concatenate([self._ranks, empty])
        unknown = np.unique(partition[self._forms[partition] < 0])
        forms = [self._form(number) for number in unknown.tolist()]
        if forms:
            self._forms[unknown] = [number for number, _ in forms]
            self._ranks[unknown] = [ranks for _, ranks in forms]

    def _form(self, partition: int) -> tuple[int, Order]:
        """The number of a partition's sorted form, and the rank of each of its slots in it."""
        state = self._table.states[partition]
        ordered = self._table.constants.policy.rules.elect_in_isr_order
        of_slot = _known(state, ordered, self._classes)
        distinct = sorted(set(of_slot))
        ranks = tuple([distinct.index(mine) for mine in of_slot])
        # All that is known of the slots, in order, is the form.
        key = (state.controller, *sorted(of_slot))
        form = self._form_of.get(key)
        if form is None:
            order = sorted(range(len(of_slot)), key=ranks.__getitem__)
            as_it_is = order == list(range(len(of_slot)))
            form = partition if as_it_is else self._table.number(_sorted(state, order, ordered))
            self._form_of[key] = form
        return form, ranks


def broker_state_count(environment: FaultEnvironment) -> int:
    """All codes that `Symmetry.representatives` gives are below this."""
    codes: int = _digits(environment) ** len(environment.slot_racks)
    return codes


def _digits(environment: FaultEnvironment) -> int:
    """Number of combinations of a broker's condition and rack."""
    return (max(environment.slot_racks) + 2) * environment.table.conditions


def lumping_error(constants: ChainConstants, environment: FaultEnvironment) -> float:
    """Relative error of any measure by lumping.

    An estimate that tests and ``bench/bounds.py`` check against chains without lumping: a quarter
    of it is reached.
    """
    racks, of = environment.racks, slot_classes(constants, environment)
    if len(set(of)) == len(of):
        return 0.0
    if constants.policy.unclean:
        return _ELECTION_ORDER
    chosen = 1 < len(set(racks)) < len(racks) and len(set(racks[1:])) > 1
    lags = any(e.name in environment.mechanisms for e in environment.table.with_effect(*HANGING))
    return chosen * _NEXT_LEADER + lags * _LAGGING_LEADER


def slot_classes(constants: ChainConstants, environment: FaultEnvironment) -> Classes:
    """Classes of exchangeable slots."""
    racks, last = environment.racks, len(environment.racks) - 1
    if not constants.policy.unclean:
        return (0,) * len(racks)
    # They are last in the assignment, and the preferred replica is distinguished.
    kinds = [
        (slot == 0, rack == racks[0], racks.count(rack), _voters(environment, rack))
        for slot, rack in enumerate(racks)
    ]
    pair = last > 0 and kinds[last - 1] == kinds[last]
    return (*range(last), last - pair)


def _interchangeable_singles(environment: FaultEnvironment) -> list[int]:
    """Racks with one replica and equally many voters, the most there are, ascending."""
    sizes = Counter(environment.racks)
    by_voters: dict[int, list[int]] = {}
    for rack, size in sorted(sizes.items()):
        if size == 1:
            by_voters.setdefault(_voters(environment, rack), []).append(rack)
    return max(by_voters.values(), key=len, default=[])


def _voters(environment: FaultEnvironment, rack: int) -> int:
    return environment.voters[rack] if environment.voters else 0


def _renamings(environment: FaultEnvironment, singles: Sequence[int], alone: int) -> list[IntArray]:
    """Exchanges of racks with equally many replicas and voters; the ``singles`` share a name."""
    sizes = Counter(environment.racks)
    kinds = {rack: (size, _voters(environment, rack)) for rack, size in sizes.items()}
    named = sorted(rack for rack in kinds if rack not in singles)
    renamings = []
    for names in permutations(named):
        if all(kinds[new] == kinds[old] for old, new in zip(named, names, strict=True)):
            renaming = np.arange(alone)
            renaming[list(singles)] = alone
            renaming[named] = names
            renamings.append(renaming)
    return renamings


def _known(state: PartitionState, ordered: bool, of: Classes) -> list[int]:
    """What distinguishes each slot of a partition, as one number; by class, the leader first."""
    registration, replicas = state.registration, len(state.level)
    leader, isr = registration.leader, registration.isr
    elr, last_known = registration.elr, registration.last_known_elr
    numbers = []
    for slot, (condition, level) in enumerate(zip(state.condition, state.level, strict=True)):
        place = (isr.index(slot) if ordered else 0) if slot in isr else replicas
        of_log = ((of[slot] * 2 + (slot != leader)) * CONDITIONS + condition) * _LEVELS + level
        on_record = (place * 2 + (slot in elr)) * 2 + (slot in last_known)
        on_record = on_record * 2 + (slot in state.unfenced)
        numbers.append(of_log * 8 * (replicas + 1) + on_record)
    return numbers


def _sorted(state: PartitionState, order: Sequence[int], ordered: bool) -> PartitionState:
    """The partition with its slots in another order."""
    to = [0] * len(order)
    for position, slot in enumerate(order):
        to[slot] = position
    condition, level = state.condition, state.level
    return PartitionState(
        _moved_registration(state.registration, tuple(to), ordered),
        tuple([condition[slot] for slot in order]),
        tuple([level[slot] for slot in order]),
        state.controller,
        tuple(sorted([to[slot] for slot in state.unfenced])),
    )


@lru_cache(maxsize=2**16)
def _moved_registration(old: Registration, to: Order, ordered: bool) -> Registration:
    isr = tuple([to[s] for s in old.isr])
    return Registration(
        replicas=old.replicas,
        isr=isr if ordered else tuple(sorted(isr)),
        leader=old.leader if old.leader == NO_LEADER else to[old.leader],
        elr=tuple(sorted([to[s] for s in old.elr])),
        last_known_elr=tuple(sorted([to[s] for s in old.last_known_elr])),
    )
