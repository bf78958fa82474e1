"""The kernel's memory: the state of a cluster as a few structured arrays.

Structured arrays, because Numba reaches a record by one pointer, and counts references to every
plain array.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.failures.mechanisms import Scope

# The index of a scope is its number in `STRIKE`.
SCOPES = (Scope.BROKER, Scope.RACK, Scope.CLUSTER)

# Return codes of the kernel.
FINISHED, MISSING, RECOVERED, NEVER_RECOVERED = range(4)

# Rows of `KernelState.totals`; its columns are the mechanisms, NO_CAUSE and NO_DISK.
LOSS_EVENTS, RECORDS_LOST, UNWRITABLE, UNREADABLE, REFUSED, STALLED, FIRST_LOSSES = range(7)
ENTRIES = 7
# Write outages are counted by length: so many bins to a decade, from the shortest of a millisecond.
SHORTEST_OUTAGE_S = 1e-3
BINS_PER_DECADE = 10
OUTAGE_BINS = 12 * BINS_PER_DECADE
# Bits of `control.counted`: something was added to the totals, or to the outages by length.
TOTALS_COUNTED, OUTAGES_COUNTED = 1, 2
# Of `control.weighing`: chances are drawn as they are and need no weight; with bias; or as they
# are, while `control.ratio` notes their odds without bias and with it. With bias, chances of one
# failure are ``eager`` or as they are; ``odds`` notes how much likelier they are if eager.
# ``started`` is the clock of the outage that began last.
UNBIASED, BIASED, PLAIN = range(3)
# Counted from the last column.
NO_CAUSE, NO_DISK = -2, -1
EXTRA_COLUMNS = 2


def _fields(whole: str, real: str) -> np.dtype[np.void]:
    kinds: list[tuple[str, type]] = [(name, np.int64) for name in whole.split()]
    return np.dtype([*kinds, *((name, np.float64) for name in real.split())])


CONTROL = _fields(
    "pending event afterwards cause touched running unwell broken copying waiting "
    "brokers voters quorum deferred held_event held_afterwards replaced no_disk undecided "
    "struck sets grouped followed active new_losses lost_this_year struck_beyond beyond counted "
    "weighing eager started phase years_left special renewing free_crews queued drawn "
    "miss_state miss_event miss_mask events loss_moments lost_years first_losses "
    "rolling roll_place roll_waits roll_cause roll_event roll_condition roll_unclean_event "
    "roll_unclean_condition alone hourly",
    "now next_strike next_renewal risk_since year_end at_risk ratio odds strikes "
    "copies_per_hour decisions_per_hour failover_hours broker_failover_hours "
    "records_per_hour retained flush_hours tail tail_chance handover_hours budget_hours "
    "waiting_budget_hours delivery_hours dead_stall_hours hung_stall_hours lag_hours "
    "span_hours day_start roll_due roll_date roll_period_hours roll_up_hours roll_pause_hours "
    "roll_unclean roll_hour roll_begun hurry hurry_hours first_strike "
    "sum_weight most_weight most_struck sum_hours sum_unwritable sum_refused sum_lost",
)
"""One record: the current event, the totals, and the constants of the plan."""

STRIKE = _fields(
    "cause targets scope event reach condition excluded chance turned turned_reach turned_event "
    "of_quorum beyond",
    "per_hour takes failover_hours share spreads overlaps likely_share likely_spreads "
    "likely_overlaps",
)
OUTAGE = _fields(
    "cause severity begin end of_rack after first_clock stride brokers law of_crew",
    "hours shape dies likely_dies",
)
RACK = _fields("start end voters", "")
BROKER = _fields("own rack start end struck_by rolling batch active followed struck marked", "")
SERVED = _fields("set bit copy", "")
COPY = _fields("broker running place filling", "")
CLOCK = _fields("place held condition rack queued", "due")
LAW = _fields("kind start end", "scale parameter")
RENEWAL = _fields("law course courses target held", "due since")
SET = _fields(
    "state mask mask_after held held_after waited broken followed place undecided",
    "weight since down flushed base",
)


class KernelState(NamedTuple):
    """The state of a simulated cluster.

    Attributes
    ----------
    control : array of CONTROL, shape (1,)
    strikes : array of STRIKE, shape (courses of mechanisms,)
        ``targets`` brokers, racks or clusters (``scope``) are struck ``per_hour`` altogether:
        those out of service no further than ``reach``, by ``event``; they get ``condition``. With
        ``chance`` each is struck with probability ``share``, or, if ``turned`` is not WELL, gets
        that condition instead. None is struck while a broker is in a condition whose bit
        ``excluded`` holds. Each other rack is struck, too, with probability ``spreads``, and a
        second broker with ``overlaps``; ``likely_`` ones are those with bias. A new leader is
        elected after ``failover_hours``. What has clocks has ``per_hour`` 0, and an event
        ``takes`` the course with a probability.
    outages : array of OUTAGE, shape (conditions,)
        By condition of a broker: mechanism, severity on the scale of `Strikes`, events at the
        beginning and end, mean hours and gamma shape (0 if the duration has another ``law``),
        and how many brokers are in it; whether a rack is out, and whether its repair waits for a
        crew. With probability ``dies`` it ends in the condition ``after``. Brokers that
        were struck together and return together share ``first_clock``, or one for each rack,
        ``stride`` apart; -1: each broker has its own.
    racks : array of RACK, shape (racks,)
        Its brokers are ``members[start:end]``; and its voters of the controller quorum.
    members : array of int, shape (brokers,)
    brokers : array of BROKER, shape (brokers,)
        Its condition, its rack, the clock of ``renewals`` that struck it (from 1; 0: none), and
        the sets on it: ``served[start:end]``; whether it is ``active``: out, or one of its groups
        is not as at the start; how many sets on it are ``followed``; whether this event has
        ``struck`` it, and by place the brokers that are ``marked``, ``control.struck`` of them.
        Behind the ``control.brokers`` brokers stands one for each rack with voters that has none,
        and last the controller quorum. By place in the order of rolling restarts: the broker that
        is ``rolling``, and the number of its ``batch``.
    served : array of SERVED, shape (sets * slots,)
        A set, the bit of the broker's slot in it, and the copy that fills it.
    beside : array of int32, shape (sets * slots, slots - 1)
        The other brokers of each set in ``served``: next to each other, for they are read most.
    copies : array of COPY, shape (copies,)
        A broker, how many sets are being copied, and its place among those that run; by place, the
        copy ``filling`` a disk, ``control.copying`` of them. Sets on the same brokers share one.
    copy_of : array of int, shape (sets, slots)
        The copy that fills each slot.
    clocks : array of CLOCK, shape (clocks,)
        Each broker's, then those of brokers that return together: when it is due, its place among
        the running ones (-1: off), how many brokers wait for it, their condition and rack, and
        its number among the repairs that ever waited for a crew (0: it does not).
    running : array of int, shape (clocks,)
        The clocks that run, ``control.running`` of them.
    laws : array of LAW, shape (laws,)
        Distributions of times: the kind as in `time_distribution`, what its standard form is
        multiplied with, its number, and where its values stand: ``values[start:end]``.
    values : array of float
        Observed times in units of their mean, one list after the other.
    renewals : array of RENEWAL, shape (clocks of mechanisms that are not exponential,)
        The law of its times, the first of the mechanism's ``courses``, whom it strikes, how many
        brokers are out by it, when it is due (infinite while any is), and since when it runs
        (infinite if it only waits for an outage to end).
    earliest : array of int, shape (those clocks,)
        The tree of its tournament; place 1 holds the clock that is due first.
    sets : array of SET, shape (sets + groups,)
        First ``control.sets`` sets; then, if ``control.grouped``, a group for each broker and slot
        (see :mod:`~advisor.reliability.sampler.compiled.group_kernel`). Partition state; struck
        slots (by the event and by the one after it, and both once more while they wait for the
        quorum's event); from 1, the mechanism of a follower that acknowledgements waited for when
        writes stopped; whether it is ``broken``, not healthy; whether it is ``followed`` by
        itself, not by groups; its place among those that need an operator, and by place the set
        that does, ``control.undecided`` of them; partitions; until when time is accounted for;
        when writes stopped; when everything written is on disk; and the records that every log
        holds.
    slots : array of int, shape (sets + groups, slots)
        Brokers; -1 in a group for those that are healthy, whichever they are.
    gaps : array of float, shape (sets + groups, gaps)
        Records in each gap.
    moved : array of float, shape (gaps,)
    attribution : array of float, shape (sets + groups, columns)
        Shares of the causes of an outage, kept while a set cannot be written.
    touched : array of int, shape (sets + groups,)
        The sets and groups that the event strikes, ``control.touched`` of them.
    totals : array of float, shape (ENTRIES, columns)
        What settings decide; while ``beyond`` is set, what they do not.
    outages_by_length : array of float, shape (OUTAGE_BINS,)
        Write outages that have ended, of all partitions.
    aside : array of float, shape (ENTRIES, columns)
        The other of the two.
    traffic : array of float, shape (25,)
        Hours of mean traffic from midnight to each full hour.
        Measures summed over partitions, by cause: a mechanism, NO_CAUSE (the configuration) or
        NO_DISK (a replica that is destroyed or copies, whichever mechanism destroyed it).
    """

    control: NDArray[Any]
    strikes: NDArray[Any]
    outages: NDArray[Any]
    racks: NDArray[Any]
    members: NDArray[np.int64]
    brokers: NDArray[Any]
    served: NDArray[Any]
    beside: NDArray[np.int32]
    copies: NDArray[Any]
    copy_of: NDArray[np.int64]
    clocks: NDArray[Any]
    running: NDArray[np.int64]
    laws: NDArray[Any]
    values: NDArray[np.float64]
    renewals: NDArray[Any]
    earliest: NDArray[np.int64]
    sets: NDArray[Any]
    slots: NDArray[np.int64]
    gaps: NDArray[np.float64]
    moved: NDArray[np.float64]
    attribution: NDArray[np.float64]
    touched: NDArray[np.int64]
    totals: NDArray[np.float64]
    outages_by_length: NDArray[np.float64]
    aside: NDArray[np.float64]
    traffic: NDArray[np.float64]
