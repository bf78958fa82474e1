"""What the sampler's kernel reads and writes: a cluster as a few arrays of records.

Numba follows a record by one pointer, whereas every plain array costs it a reference count.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.failures.mechanisms import Scope

# A scope's place is its number in `STRIKE`.
SCOPES = (Scope.BROKER, Scope.RACK, Scope.CLUSTER)

# How the kernel comes back.
FINISHED, MISSING, WELL_AGAIN, NEVER_WELL = range(4)

# Rows of `KernelState.book`; its columns are the mechanisms, NO_CAUSE and NO_DISK.
LOSS_EVENTS, RECORDS_LOST, UNWRITABLE, UNREADABLE, REFUSED, STALLED = range(6)
ENTRIES = 6
# From the end.
NO_CAUSE, NO_DISK = -2, -1
EXTRA_COLUMNS = 2


def _fields(whole: str, real: str) -> np.dtype[np.void]:
    kinds: list[tuple[str, type]] = [(name, np.int64) for name in whole.split()]
    return np.dtype([*kinds, *((name, np.float64) for name in real.split())])


DESK = _fields(
    "pending event afterwards cause touched running copied unwell broken copying waiting "
    "new_losses lost_this_year phase years_left miss_state miss_event miss_mask "
    "events loss_moments lost_years first_losses",
    "now next_strike risk_since year_end at_risk strikes copies_per_hour "
    "records_per_hour retained flush_hours tail tail_chance handover_hours budget_hours "
    "waiting_budget_hours delivery_hours dead_stall_hours hung_stall_hours lag_hours",
)
"""One record: the event under way, the totals, and the constants of the plan."""

STRIKE = _fields(
    "targets scope event reach condition exclusive chance turned turned_reach turned_event",
    "per_hour failover_hours share",
)
SPELL = _fields("cause severity end first_clock stride brokers", "hours shape")
RACK = _fields("start end", "")
BROKER = _fields("own rack start end", "")
SERVED = _fields("set bit copy", "")
COPY = _fields("broker running", "")
CLOCK = _fields("place held condition rack", "due")
SET = _fields("state mask mask_after waited", "weight since down flushed base")


class KernelState(NamedTuple):
    """A cluster in the middle of its life.

    Attributes
    ----------
    desk : array of DESK, shape (1,)
    strikes : array of STRIKE, shape (mechanisms,)
        ``targets`` brokers, racks or clusters (``scope``) are struck ``per_hour`` altogether:
        those out of service no further than ``reach``, by ``event``; they get ``condition``. With
        ``chance`` each is struck, or if ``turned`` is not WELL gets that condition instead, with
        probability ``share``. A leader that fails with it is followed after ``failover_hours``.
    spells : array of SPELL, shape (conditions,)
        The outages of brokers: mechanism, severity on the scale of `Strikes`, event at the end,
        mean hours and gamma shape; how many brokers are in it now. If all brokers struck together
        return together, ``first_clock`` is theirs (-1: each broker has its own), and racks have
        one each, ``stride`` apart.
    racks : array of RACK, shape (racks,)
        Its brokers are ``members[start:end]``.
    members : array of int, shape (brokers,)
    brokers : array of BROKER, shape (brokers,)
        What it suffers, its rack, and the sets on it: ``served[start:end]``.
    served : array of SERVED, shape (sets * slots,)
        A set, the bit of the broker's slot in it, and the copy that fills it.
    copies : array of COPY, shape (copies,)
        A broker, and how many sets it fills now. Sets on the same brokers share their copies.
    copy_of : array of int, shape (sets, slots)
        The copy that fills each slot.
    clocks : array of CLOCK, shape (clocks,)
        Each broker's, then those of brokers that return together: when it rings, its place among
        the running ones (-1: off), how many brokers it holds, and their condition and rack.
    running : array of int, shape (clocks,)
        The clocks that run, ``desk.running`` of them.
    sets : array of SET, shape (sets,)
        Automaton state, struck slots (by the event and by the one after it), the mechanism
        (from 1) of a follower that writes had waited for when they ended, partitions, up to when time is accounted, when
        writes ended, when all that is left of them was or will be on disk, and the records below
        all gaps.
    slots : array of int, shape (sets, slots)
        Brokers.
    gaps : array of float, shape (sets, gaps)
        Records in each gap.
    moved : array of float, shape (gaps,)
    blame : array of float, shape (sets, columns)
        Shares of what keeps replicas away, kept while a set cannot be written.
    touched : array of int, shape (sets,)
        The sets that notice the event, ``desk.touched`` of them.
    book : array of float, shape (ENTRIES, columns)
        What happened to partitions, by cause: a mechanism, NO_CAUSE (the configuration itself) or
        NO_DISK (a replica that is gone or still copies, whichever mechanism destroyed it).
    """

    desk: NDArray[Any]
    strikes: NDArray[Any]
    spells: NDArray[Any]
    racks: NDArray[Any]
    members: NDArray[np.int64]
    brokers: NDArray[Any]
    served: NDArray[Any]
    copies: NDArray[Any]
    copy_of: NDArray[np.int64]
    clocks: NDArray[Any]
    running: NDArray[np.int64]
    sets: NDArray[Any]
    slots: NDArray[np.int64]
    gaps: NDArray[np.float64]
    moved: NDArray[np.float64]
    blame: NDArray[np.float64]
    touched: NDArray[np.int64]
    book: NDArray[np.float64]
