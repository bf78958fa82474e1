"""The public TLA+ specification of Kafka's replication, searched exhaustively.

``check`` counts what TLC counts: distinct states without symmetry or constraint, and the length in
transitions of a shortest way to break each invariant. That is how the search in ``explore`` is
trusted; and it retells how Kafka's truncation was mended (KIP-101, KIP-279, KIP-320).

Source: hachikuji/kafka-specification.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from advisor.errors import InputError
from advisor.protocol.exploration.search import Violation, explore, retrace, survey
from advisor.protocol.specification.packed_states import (
    LEADER_IN_ISR,
    STRONG_ISR,
    TYPE_OK,
    WEAK_ISR,
    Space,
    State,
    actions,
)
from advisor.protocol.specification.state import Constants
from advisor.protocol.specification.variants import VARIANTS, Variant

INVARIANTS: Mapping[str, int] = MappingProxyType(
    {
        "TypeOk": TYPE_OK,
        "LeaderInIsr": LEADER_IN_ISR,
        "WeakIsr": WEAK_ISR,
        "StrongIsr": STRONG_ISR,
    }
)
"""Name of each invariant of the specification, and its bit in a state's broken ones."""


@dataclass(frozen=True, slots=True)
class Result:
    """What an exhaustive search of one variant found.

    Attributes
    ----------
    variant : str
    constants : Constants
    distinct_states : int
        As TLC counts them, the initial state included.
    depth : int
        Transitions to the furthest state (TLC prints one more: it counts states).
    shortest : mapping
        Invariant name to the transitions of a shortest violation, or None: it holds. The
        specification breaks ``LeaderInIsr`` at once (0): it begins without a leader.
    visited : int
        States held in memory: one of each class of symmetric ones.
    """

    variant: str
    constants: Constants
    distinct_states: int
    depth: int
    shortest: Mapping[str, int | None]
    visited: int


def check(
    variant: str, replicas: int, log_size: int, max_records: int, max_leader_epoch: int
) -> Result:
    """Search every reachable state of a variant, going on through violations.

    Parameters
    ----------
    variant : str
        ``"TruncateToHighWatermark"``, ``"Kip101"``, ``"Kip279"``, ``"Kip320FirstTry"`` or
        ``"Kip320"``; ``"TruncateToHW"`` and the module's own name ``"KafkaTruncate..."`` mean
        the first.
    replicas, log_size, max_records, max_leader_epoch : int
        The specification's constants: replicas, offsets in a log, records ever written, and the
        highest leader epoch (epochs count from 0).

    Raises
    ------
    InputError
        For an unknown variant or constants out of range.
    """
    space = _space(variant, replicas, log_size, max_records, max_leader_epoch)
    found = survey(
        space.initial,
        space.successors,
        broken=space.broken,
        weight=space.weight,
    )
    depths = {bit: len(path) - 1 for bit, path in found.violations.items()}
    shortest = {name: depths.get(bit) for name, bit in INVARIANTS.items()}
    return Result(
        variant=space.variant.name,
        constants=space.constants,
        distinct_states=found.states,
        depth=found.depth,
        shortest=MappingProxyType(shortest),
        visited=found.visited,
    )


def shortest_violation(
    variant: str,
    replicas: int,
    log_size: int,
    max_records: int,
    max_leader_epoch: int,
    *,
    invariant: str = "StrongIsr",
) -> tuple[tuple[str, State], ...] | None:
    """The actions of a shortest way to break an invariant, each with the state after it.

    Parameters
    ----------
    variant, replicas, log_size, max_records, max_leader_epoch
        As for `check`.
    invariant : {"TypeOk", "LeaderInIsr", "WeakIsr", "StrongIsr"}

    Returns
    -------
    tuple or None
        None where the invariant holds in every reachable state.

    Raises
    ------
    InputError
        For an unknown variant or invariant, or constants out of range.
    """
    if invariant not in INVARIANTS:
        raise InputError(f"unknown invariant {invariant!r}; one of {', '.join(INVARIANTS)}")
    space = _space(variant, replicas, log_size, max_records, max_leader_epoch)
    bit = INVARIANTS[invariant]
    found = explore(
        space.initial, space.successors, violates=lambda packed: bool(space.broken(packed) & bit)
    )
    if not isinstance(found, Violation):
        return None
    told = retrace(
        found.path,
        lambda packed: (
            (label, space.pack(after))
            for label, after in actions(space.variant, space.constants, space.unpack(packed))
        ),
        space.canonical,
    )
    return tuple((label, space.unpack(packed)) for label, packed in told)


def _space(
    variant: str, replicas: int, log_size: int, max_records: int, max_leader_epoch: int
) -> Space:
    constants = Constants(replicas, log_size, max_records, max_leader_epoch)
    for name, value, least in (
        ("replicas", replicas, 1),
        ("log_size", log_size, 0),
        ("max_records", max_records, 0),
        ("max_leader_epoch", max_leader_epoch, 0),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(f"{name}={value!r} must be a whole number of at least {least}")
    return Space(_variant(variant), constants)


_ALIASES = {
    "KafkaTruncateToHighWatermark": "TruncateToHighWatermark",
    "TruncateToHW": "TruncateToHighWatermark",
}


def _variant(name: str) -> Variant:
    known = VARIANTS.get(_ALIASES.get(name, name))
    if known is None:
        raise InputError(f"unknown variant {name!r}; one of {', '.join(VARIANTS)}")
    return known
