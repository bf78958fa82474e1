"""What a reader says of a generated history, against its truth.

A row is right if a broker of it really was away, or lagged, then; it is named rightly if that was
by the mechanism that it names. An outage was found if for each broker that it struck a row says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from advisor.learning.evidence import Outage
from advisor.reliability.failures.mechanisms import table
from metric_histories import History, Kind, TrueOutage

_NUMBER = re.compile(r"\D*-(\d+)")
STRUCK_AT_ONCE = (Kind.TOGETHER, Kind.RACK, Kind.DISK_FULL, Kind.ROLLOUT)
AWAY = (Kind.CRASH, Kind.HOST, Kind.RESTART, *STRUCK_AT_ONCE)
"""Kinds in which brokers do not answer."""


class Judged(NamedTuple):
    """How a reader did.

    Attributes
    ----------
    found : dict of Kind to int
        True outages that rows tell of, whatever they call it.
    named : dict of Kind to int
        Those that a row also calls by their mechanism.
    false_rows : list of Outage
        Rows at a time when nothing was.
    misnamed : list of (Outage, TrueOutage)
        Rows that name another mechanism than the true one.
    """

    found: dict[Kind, int]
    named: dict[Kind, int]
    false_rows: list[Outage]
    misnamed: list[tuple[Outage, TrueOutage]]


def judge(history: History, rows: Sequence[Outage], late_s: float) -> Judged:
    """Compare rows with the truth; a row's start may be wrong by so many seconds."""
    causes = [_causes(history, row, late_s) for row in rows]
    names = table().names
    false_rows, misnamed = [], []
    told: dict[int, set[int | str]] = {id(outage): set() for outage in history.outages}
    named: set[int] = set()
    for row, candidates in zip(rows, causes, strict=True):
        if not candidates:
            false_rows.append(row)
            continue
        right = [outage for outage in candidates if outage.kind.value == row.mechanism]
        if row.mechanism in names and not right:
            misnamed.append((row, candidates[0]))
        named.update(id(outage) for outage in right)
        for outage in candidates:
            told[id(outage)].update(_numbers(row) if row.brokers else outage.brokers or [0])
    whole = [o for o in history.outages if told[id(o)] >= set(o.brokers) and _was_told(o, told)]
    return Judged(
        {kind: sum(outage.kind is kind for outage in whole) for kind in Kind},
        {kind: sum(o.kind is kind and id(o) in named for o in whole) for kind in Kind},
        false_rows,
        misnamed,
    )


def _was_told(outage: TrueOutage, told: dict[int, set[int | str]]) -> bool:
    """Whether any row tells of an outage, though it names no broker."""
    return bool(told[id(outage)])


def _causes(history: History, row: Outage, late_s: float) -> list[TrueOutage]:
    """True outages that a row may tell of, the nearest first."""
    start = row.start.timestamp()
    own = _numbers(row)
    near = [
        outage
        for outage in history.outages
        if outage.start - late_s <= start <= outage.end + late_s
        and (own & set(outage.brokers) or _names(row, outage))
    ]
    return sorted(near, key=lambda outage: abs(outage.start - start))


def _names(row: Outage, outage: TrueOutage) -> bool:
    """Whether a row calls an outage by its mechanism where one of both has no brokers.

    Which follower lagged is not always known.
    """
    without = not outage.brokers or not row.brokers
    return without and row.mechanism == outage.kind.value


def _numbers(row: Outage) -> set[int | str]:
    """Numbers of a row's brokers, from names like broker-3.example.org:9404; 0 if it has none."""
    named = ((name, _NUMBER.match(str(name))) for name in row.brokers)
    return {int(match[1]) if match else name for name, match in named} or {0}
