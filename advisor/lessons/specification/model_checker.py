"""Model checker for the public TLA+ specification of Kafka replication.

``check`` returns the numbers that TLC prints, and so shows which truncation defects KIP-101,
KIP-279 and KIP-320 fixed. Source: hachikuji/kafka-specification.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from advisor.errors import InputError
from advisor.lessons.specification.packed_states import (
    LEADER_IN_ISR,
    STRONG_ISR,
    TYPE_OK,
    WEAK_ISR,
    Space,
)
from advisor.lessons.specification.transcription import VARIANTS, Constants, Variant
from advisor.protocol.exploration.search import survey

INVARIANTS: Mapping[str, int] = MappingProxyType(
    {
        "TypeOk": TYPE_OK,
        "LeaderInIsr": LEADER_IN_ISR,
        "WeakIsr": WEAK_ISR,
        "StrongIsr": STRONG_ISR,
    }
)
"""Invariants of the specification by name, and their bits in ``Space.broken``."""


@dataclass(frozen=True, slots=True)
class Result:
    """Result of an exhaustive search of one variant.

    distinct_states: as counted by TLC, the initial state included.
    depth: transitions to the furthest state. TLC prints one more, since it counts states.
    shortest: invariant name -> transitions of a shortest violation; None if the invariant holds.
        ``LeaderInIsr`` is violated by the initial state (0), which has no leader.
    visited: states stored: one of each symmetry class.
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
    """Visit every reachable state of a variant and check all invariants.

    log_size, max_records, max_leader_epoch: longest log, most records written, and highest leader
        epoch, from 0.
    """
    space = _space(variant, replicas, log_size, max_records, max_leader_epoch)
    result = survey(
        space.initial,
        space.successors,
        broken=space.broken,
        weight=space.weight,
    )
    depths = {bit: len(path) - 1 for bit, path in result.violations.items()}
    shortest = {name: depths.get(bit) for name, bit in INVARIANTS.items()}
    return Result(
        variant=space.variant.name,
        constants=space.constants,
        distinct_states=result.states,
        depth=result.depth,
        shortest=MappingProxyType(shortest),
        visited=result.visited,
    )


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
    variant = VARIANTS.get(_ALIASES.get(name, name))
    if variant is None:
        raise InputError(f"unknown variant {name!r}; one of {', '.join(VARIANTS)}")
    return variant
