"""Which replicas could change places without any measure noticing.

Brokers are alike, and so are racks with equally many replicas. A clean election chooses among
replicas that are alike too, so that the order of the assignment decides nothing but names: states
that differ by exchanging such replicas are one. A state is brought into its one form by sorting
its slots by what the partition knows of them, and equal ones by rack and by what their brokers
suffer; so the rules are asked once for all partitions that are alike, whatever their racks.
With unclean election the order decides what is lost, and every state stands for itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations

from advisor.protocol.partition import NO_LEADER
from advisor.reliability.automaton import Automaton
from advisor.reliability.faults import WELL, Machines, Setting, all_well
from advisor.reliability.reduction import PartitionState

Order = tuple[int, ...]
_HEALTHY = 0
# Sorts after every rack with several replicas.
_ALONE = 99


class Symmetry:
    """Picks one state for all that are alike.

    Parameters
    ----------
    table : Automaton
    setting : Setting
    """

    def __init__(self, table: Automaton, setting: Setting) -> None:
        self._table = table
        self._alike = not table.setup.policy.unclean
        sizes = Counter(setting.racks)
        self._renamings = _renamings(sizes)
        self._singles = sorted(rack for rack, size in sizes.items() if size == 1)
        self._start = all_well(setting)
        self._forms: dict[int, tuple[int, Order]] = {}

    def representative(self, machines: Machines, partition: int) -> tuple[Machines, int]:
        """The one form of all states that are alike."""
        if not self._alike:
            return machines, partition
        if partition == _HEALTHY and set(machines.own) == {WELL}:
            # The preferred replica leads again, whoever led before.
            return self._start, _HEALTHY
        form = self._forms.get(partition)
        if form is None:
            form = self._forms[partition] = self._form(partition)
        first, ranks = form
        slots = min(
            sorted(zip(ranks, [new[rack] for rack in machines.racks], machines.own, strict=True))
            for new in self._renamings
        )
        _, racks, own = zip(*slots, strict=True)
        singles = iter(self._singles)
        named = tuple(next(singles) if rack == _ALONE else rack for rack in racks)
        return Machines(own, named), first

    def known_of(self, state: PartitionState) -> tuple[tuple[int, ...], ...]:
        """All that a partition knows of its slots; in any order, if the order decides nothing."""
        known = (_known(state, slot, False) for slot in range(len(state.condition)))
        return tuple(sorted(known)) if self._alike else tuple(known)

    def _form(self, partition: int) -> tuple[int, Order]:
        """The number of a partition's sorted form, and the rank of each of its slots in it."""
        state = self._table.states[partition]
        ordered = self._table.setup.policy.rules.elect_in_isr_order
        known = [_known(state, slot, ordered) for slot in range(len(state.condition))]
        distinct = sorted(set(known))
        to = [0] * len(known)
        for position, slot in enumerate(sorted(range(len(known)), key=known.__getitem__)):
            to[slot] = position
        number = self._table.number(_moved_partition(state, tuple(to), ordered))
        return number, tuple(distinct.index(mine) for mine in known)


def _renamings(sizes: Mapping[int, int]) -> list[dict[int, int]]:
    """Exchanges of racks with equally many replicas, new name of each old one.

    Racks with one replica need no name to be told apart: they are all called ``_ALONE``.
    """
    shared = sorted(rack for rack, size in sizes.items() if size > 1)
    alone = {rack: _ALONE for rack, size in sizes.items() if size == 1}
    return [
        {**alone, **dict(zip(shared, names, strict=True))}
        for names in permutations(shared)
        if all(sizes[new] == sizes[old] for old, new in zip(shared, names, strict=True))
    ]


def _known(state: PartitionState, slot: int, ordered: bool) -> tuple[int, ...]:
    """All that the partition knows of a slot; the leader sorts first."""
    registration = state.registration
    in_sync = slot in registration.isr
    return (
        slot != registration.leader,
        state.condition[slot],
        state.level[slot],
        registration.isr.index(slot) if ordered and in_sync else -int(in_sync),
        slot in registration.elr,
        slot in registration.last_known_elr,
    )


def _moved(values: tuple[int, ...], to: Order) -> tuple[int, ...]:
    moved = list(values)
    for position, value in enumerate(values):
        moved[to[position]] = value
    return tuple(moved)


def _moved_partition(state: PartitionState, to: Order, ordered: bool) -> PartitionState:
    old = state.registration
    isr = tuple(to[s] for s in old.isr)
    registration = replace(
        old,
        isr=isr if ordered else tuple(sorted(isr)),
        elr=tuple(sorted(to[s] for s in old.elr)),
        last_known_elr=tuple(sorted(to[s] for s in old.last_known_elr)),
        leader=old.leader if old.leader == NO_LEADER else to[old.leader],
    )
    return PartitionState(registration, _moved(state.condition, to), _moved(state.level, to))
