"""How often any set is exposed while the brokers that one event destroyed are replaced one by one.

Of m brokers that are replaced in random order at least one is out for 1/1 + 1/2 + ... + 1/m of the
mean time to replace one; m sets, one on each, would be exposed for m times that in all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import special

from advisor.reliability.solver.generator import IntArray, Vector
from advisor.reliability.statespace.state_index import codes_of_rows

# Events that are examined, evenly chosen from all.
_EVENTS = 24
# Random orders in which brokers return, always the same.
_ORDERS, _FEWEST, _CELLS = 256, 8, 200_000
_SEED = 19740131


class Destroyed(NamedTuple):
    """Destroyed brokers that expose sets of one outage class.

    events (rows, columns): the rest of the event, equal for equal events.
    brokers (rows, parts, brokers): brokers of each part; a part is destroyed by an event of its
        own. The last broker is repeated in parts with fewer brokers.
    """

    events: IntArray
    brokers: IntArray


class StaggeredReplacement:
    """Sets of destroyed brokers, in rows, any of which exposes replica sets to the same event."""

    def __init__(self, classes: Sequence[Destroyed], cluster: int) -> None:
        self._cluster = cluster
        sizes = [len(of_class.events) for of_class in classes]
        widest = max(of_class.brokers.shape[2] for of_class in classes)
        brokers = np.concatenate([_widened(of_class.brokers, widest) for of_class in classes])
        every = np.arange(len(classes))
        number = np.repeat(every, sizes)
        events = np.concatenate([of_class.events for of_class in classes])
        _, which = np.unique(codes_of_rows(events.T - events.min()), return_inverse=True)
        which, last = which.ravel(), int(which.max())
        some = np.unique(np.linspace(0, last, min(last + 1, _EVENTS)).round())
        self._rows = [brokers[which == event] for event in some]
        self._held = np.array([np.isin(every, number[which == event]) for event in some])
        # Rows of several classes are counted once, by their classes.
        chosen = np.isin(which, some)
        flat = np.column_stack([which, brokers.reshape(len(brokers), -1)])[chosen]
        _, row = np.unique(codes_of_rows(flat.T), return_inverse=True)
        held = np.zeros((int(row.max()) + 1, len(classes)), dtype=bool)
        held[row.ravel(), number[chosen]] = True
        self._row_classes, self._row_counts = np.unique(held, axis=0, return_counts=True)

    def after_rack_destructions(self, rates: Vector, sizes: Vector) -> tuple[float, float]:
        """Rate at which any row is out, as a share of the sum over rows, and its standard error.

        rates (classes,): of each row of a class, each part destroyed by its own event.
        sizes (classes,): product of the numbers of brokers in the parts.
        """
        return self._share(rates, sizes, self._out_after_rack_destructions)

    def after_random_destructions(
        self, rates: Vector, sizes: Vector, share: float
    ) -> tuple[float, float]:
        """The same for rows of one part, by events that destroy each broker with a probability."""
        counts = np.arange(1, self._cluster + 1)
        hours = special.bdtrc(counts - 1, self._cluster, share) / counts
        return self._share(rates, sizes / share**sizes, self._out_by_count[..., 1:] @ hours)

    def _share(self, rates: Vector, per_rate: Vector, out: Vector) -> tuple[float, float]:
        """Share for ``out``, the time in mean replacements for which any row is out, by event."""
        events = np.where(self._held, rates * per_rate, 0.0).max(axis=1)
        rows = np.where(self._row_classes, rates, 0.0).max(axis=1)
        shares = events @ out / (self._row_counts @ rows)
        return float(shares.mean()), float(shares.std(ddof=1)) / math.sqrt(len(shares))

    @cached_property
    def _out_after_rack_destructions(self) -> Vector:
        cells = max(_cells(rows) for rows in self._rows)
        orders = min(max(_CELLS // cells, _FEWEST), _ORDERS)
        return np.array([_out_after_rack_destructions(rows, orders) for rows in self._rows])

    @cached_property
    def _out_by_count(self) -> Vector:
        """Whether any row is out; shape (events, orders, brokers of the cluster that are out)."""
        draw = np.random.default_rng(_SEED)
        count, orders = (
            np.arange(self._cluster + 1),
            min(max(_CELLS // self._cluster, _FEWEST), _ORDERS),
        )
        first = [
            _last_rank(rows[:, 0], self._cluster, orders, draw).min(axis=1) for rows in self._rows
        ]
        return (np.array(first)[..., None] <= count).astype(np.float64)


def _widened(brokers: IntArray, width: int) -> IntArray:
    more = width - brokers.shape[2]
    return np.pad(brokers, ((0, 0), (0, 0), (0, more)), mode="edge")


def _cells(rows: IntArray) -> int:
    return math.prod(len(np.unique(rows[:, column])) for column in range(rows.shape[1]))


def _out_after_rack_destructions(rows: IntArray, orders: int) -> Vector:
    """Mean replacements, multiplied over parts, for which any row is out; shape (orders,)."""
    draw = np.random.default_rng(_SEED)
    parts = range(rows.shape[1])
    held = [len(np.unique(rows[:, axis])) for axis in parts]
    last = [_last_rank(rows[:, axis], held[axis], orders, draw) for axis in parts]
    out = np.zeros((orders, *held))
    out[(np.arange(orders)[:, None], *(ranks - 1 for ranks in last))] = 1.0
    # A row is out while at least its highest rank of brokers of each part is out.
    for axis in parts:
        np.maximum.accumulate(out, axis=axis + 1, out=out)
    # Exactly k are out for 1/k of a mean replacement.
    for axis in reversed(parts):
        out = out @ (1.0 / np.arange(1.0, out.shape[axis + 1] + 1))
    return out


def _last_rank(rows: IntArray, brokers: int, orders: int, draw: np.random.Generator) -> IntArray:
    """Highest rank, from 1, of each row's brokers in random orders; shape (orders, rows)."""
    order = draw.permuted(np.tile(np.arange(1, brokers + 1), (orders, 1)), axis=1)
    ranks: IntArray = order[:, np.searchsorted(np.unique(rows), rows)].max(axis=2)
    return ranks
