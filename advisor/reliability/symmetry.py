"""Which replicas could change places without any measure noticing.

Brokers are alike, and so are racks with equally many replicas. A clean election chooses among
replicas that are alike too, so that the order of the assignment decides nothing but names: states
that differ by exchanging such replicas are one. With unclean election the order decides what is
lost, and every state stands for itself.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

from advisor.protocol.partition import NO_LEADER
from advisor.reliability.automaton import Automaton
from advisor.reliability.faults import Machines, Setting
from advisor.reliability.reduction import PartitionState

Permutation = tuple[int, ...]


class Symmetry:
    """Picks one state for all that are alike.

    Parameters
    ----------
    table : Automaton
    setting : Setting
    """

    def __init__(self, table: Automaton, setting: Setting) -> None:
        self._table = table
        self._exchanges = _exchanges(setting.racks, table.setup.policy.unclean)
        self._machines: dict[Machines, tuple[Machines, ...]] = {}
        self._partitions: dict[int, tuple[int, ...]] = {}

    def representative(self, machines: Machines, partition: int) -> tuple[Machines, int]:
        """The least of the states that are alike."""
        if len(self._exchanges) == 1:
            return machines, partition
        alike = self._machines.get(machines)
        if alike is None:
            alike = tuple(
                machines._replace(own=_moved(machines.own, slots)) for slots in self._exchanges
            )
            self._machines[machines] = alike
        numbers = self._partitions.get(partition)
        if numbers is None:
            state = self._table.states[partition]
            numbers = tuple(
                self._table.number(_move_partition(state, slots)) for slots in self._exchanges
            )
            self._partitions[partition] = numbers
        return min(zip(alike, numbers, strict=True))


def _exchanges(racks: tuple[int, ...], unclean: bool) -> list[Permutation]:
    """Permutations of the slots, to[from], that keep racks together; the identity first."""
    if unclean:
        return [tuple(range(len(racks)))]
    found = []
    for slots in permutations(range(len(racks))):
        moved: dict[int, int] = {}
        together = all(
            moved.setdefault(racks[s], racks[t]) == racks[t] for s, t in enumerate(slots)
        )
        if together and len(set(moved.values())) == len(moved):
            found.append(slots)
    return found


def _moved(values: tuple[int, ...], to: Permutation) -> tuple[int, ...]:
    moved = list(values)
    for position, value in enumerate(values):
        moved[to[position]] = value
    return tuple(moved)


def _move_partition(state: PartitionState, to: Permutation) -> PartitionState:
    old = state.registration
    registration = replace(
        old,
        isr=tuple(sorted(to[s] for s in old.isr)),
        elr=tuple(sorted(to[s] for s in old.elr)),
        last_known_elr=tuple(sorted(to[s] for s in old.last_known_elr)),
        leader=old.leader if old.leader == NO_LEADER else to[old.leader],
    )
    return PartitionState(registration, _moved(state.condition, to), _moved(state.level, to))
