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
LOSS_EVENTS, RECORDS_LOST, REFUSED, STALLED, FIRST_LOSSES, UNWRITABLE, UNREADABLE = range(7)
# From here on a row for each measure that is a share of time in certain states; see `Plan.shares`.
SHARES = UNWRITABLE
# Write outages are counted by length, in logarithmic bins, from the shortest of a millisecond.
SHORTEST_OUTAGE_S = 1e-3
BINS_PER_DECADE = 10
OUTAGE_BINS = 12 * BINS_PER_DECADE
# Bits of `control.counted`: something was added to the totals, or to the outages by length.
TOTALS_COUNTED, OUTAGES_COUNTED = 1, 2
# Of `control.bias_mode`: probabilities are the natural ones and need no weight; biased; or natural,
# in a cycle without bias, whose likelihood ratio is computed all the same.
UNBIASED, BIASED, PLAIN = range(3)
# Counted from the last column.
NO_CAUSE, NO_DISK = -2, -1
EXTRA_COLUMNS = 2
_WHOLE, _REAL = np.int64, np.float64


def record_dtype(integers: str, floats: str) -> np.dtype[np.void]:
    """A record of integers and floats, by their names."""
    kinds: list[tuple[str, type]] = [(name, _WHOLE) for name in integers.split()]
    return np.dtype([*kinds, *((name, _REAL) for name in floats.split())])


# Times are in hours since the block began, unless a comment says otherwise; flags are 0 or 1.
_FIELDS: list[tuple[str, type]] = [
    # The current event.
    ("now", _REAL),  # Time of the event.
    ("event", _WHOLE),  # What happens to partitions: an event of `reduced_state`.
    ("second_event", _WHOLE),  # What happens to them next at the same instant; NOTHING for none.
    ("cause", _WHOLE),  # The mechanism behind it: a column of the totals.
    ("failover_hours", _REAL),  # Until a new leader serves, if this event takes the leader.
    ("event_pending", _WHOLE),  # Flag: the event was taken and has yet to be applied to the sets.
    ("struck_count", _WHOLE),  # Brokers that the event strikes.
    ("touched_count", _WHOLE),  # Sets and groups that it strikes.
    ("new_losses", _WHOLE),  # Losses of records by it, as drawn; 0 for none.
    ("deferred_step", _WHOLE),  # What follows at this instant: of brokers, of the quorum, or 0.
    ("deferred_event", _WHOLE),  # `event` of the deferred step of the brokers.
    ("deferred_second_event", _WHOLE),  # `second_event` of that step.
    ("missing_state", _WHOLE),  # Key of the transition that the table lacks: the state,
    ("missing_event", _WHOLE),  # the event,
    ("missing_mask", _WHOLE),  # and the bits of the slots that it strikes.
    ("replaying", _WHOLE),  # The entry of `isolated` that is replayed now, from 1; else 0.
    # The cluster.
    ("brokers_in_outage", _WHOLE),  # Of `KernelState.brokers`, with those that stand for voters.
    ("sets_not_healthy", _WHOLE),  # Sets and groups.
    ("running_count", _WHOLE),  # Clocks of repairs that run.
    ("running_copies", _WHOLE),  # Copies that run.
    ("undecided_count", _WHOLE),  # Sets that wait for an operator to elect a leader.
    ("followed_count", _WHOLE),  # Sets that no group stands for, where there are groups.
    ("active_count", _WHOLE),  # Brokers that are `active`.
    ("quorum_event", _WHOLE),  # The partition event that led to the quorum's state of now.
    ("free_crews", _WHOLE),  # Repair crews without work.
    ("repairs_queued", _WHOLE),  # Repairs that ever waited for a crew: the next place in the queue.
    ("next_strike", _REAL),  # Next event of the Poisson process; -1: to be drawn.
    ("drawn_kind", _WHOLE),  # Its kind, from 1, if it is drawn already; else 0.
    ("drawn_as", _WHOLE),  # Why it is not skipped, as `isolated_kernel` says; 0: natural.
    ("skipped_per_hour", _REAL),  # Rate of the failures whose outages are skipped.
    ("next_renewal", _REAL),  # When the first clock of `renewals` is due.
    ("striking_renewal", _WHOLE),  # The clock of `renewals` that strikes now, from 1; else 0.
    # Years.
    ("years_left", _WHOLE),  # Years to be sampled, this one included.
    ("phase", _WHOLE),  # 0: a year is to begin; 1: in a year; 2: after it, until all is healthy.
    ("year_end", _REAL),  # When the year ends.
    ("lost_this_year", _WHOLE),  # Flag: a record was lost in this year.
    ("lost_since_healthy", _WHOLE),  # Flag: one was lost, and not all has been healthy since.
    ("at_risk_since", _REAL),  # When all was first healthy after the last loss.
    ("counted", _WHOLE),  # Bits: what was added to since cycles or paths collected it last.
    # Totals.
    ("events", _WHOLE),  # Events that were applied.
    ("loss_moments", _WHOLE),  # Moments at which any partition lost a record.
    ("lost_years", _WHOLE),  # Years with a loss.
    ("first_losses", _WHOLE),  # Losses that ended a time at risk.
    ("at_risk_hours", _REAL),  # Hours from healthy to the next loss.
    # Biased cycles.
    ("bias_mode", _WHOLE),  # UNBIASED, BIASED or PLAIN.
    ("likelihood_ratio", _REAL),  # Natural over biased probability of the cycle up to now.
    ("biased_spread", _WHOLE),  # Flag: whether it spreads to a rack is drawn with a biased chance.
    ("spread_odds", _REAL),  # Biased over natural probability of these draws.
    ("biased_chances", _WHOLE),  # The same of all other chances of this failure,
    ("chance_odds", _REAL),  # and of the draws for them.
    ("started_clock", _WHOLE),  # The clock of the outage that began last; -1 for none.
    ("all_flushed_at", _REAL),  # When all is on disk that was written before writes last stopped.
    # Rolling restarts.
    ("roll_state", _WHOLE),  # IDLE, GOING or WAITING, of the calendar's kernel.
    ("roll_next", _WHOLE),  # Place in the order of the next broker to restart.
    ("roll_due", _REAL),  # When the calendar acts next; infinite while it waits for replicas.
    ("roll_date", _REAL),  # When the next rolling restart begins.
    ("roll_begun", _REAL),  # When this one began, where each is sampled alone.
    ("first_strike", _REAL),  # When the first failure after that comes.
    ("sum_weight", _REAL),  # Sums over rolling restarts sampled alone: of their weights,
    ("sum_hours", _REAL),  # weighted durations in hours,
    ("sum_unwritable", _REAL),  # weighted partition-hours without writes,
    ("sum_refused", _REAL),  # weighted records refused,
    ("sum_lost", _REAL),  # and the weights of those with a loss.
    ("largest_weight", _REAL),  # The largest weight,
    ("largest_struck_weight", _REAL),  # and the largest of those with a failure.
    # Constants.
    ("roll_waits", _WHOLE),  # Flag: the next brokers wait until all replicas are in sync.
    ("roll_cause", _WHOLE),  # The mechanism: a column of the totals.
    ("roll_event", _WHOLE),  # The partition event of a clean shutdown,
    ("roll_condition", _WHOLE),  # and the broker's condition.
    ("roll_unclean_event", _WHOLE),  # The same of one that ends hard.
    ("roll_unclean_condition", _WHOLE),
    ("roll_unclean", _REAL),  # Probability that a shutdown ends hard.
    ("roll_period_hours", _REAL),  # From one rolling restart to the next.
    ("roll_up_hours", _REAL),  # From when brokers stop until they run, where nothing waits.
    ("roll_pause_hours", _REAL),  # Before the next brokers stop.
    ("roll_hour", _REAL),  # Hour of the day at which one begins.
    ("roll_alone", _WHOLE),  # Flag: each "year" is one rolling restart.
    ("acceleration", _REAL),  # Factor of the rate of the first failure,
    ("accelerated_hours", _REAL),  # for so long from the beginning of a rolling restart.
    # Constants of the plan.
    ("brokers", _WHOLE),  # Brokers of the cluster.
    ("sets", _WHOLE),  # Replica sets.
    ("grouped", _WHOLE),  # Flag: groups stand for sets in the same state.
    ("voters", _WHOLE),  # Voters of the controller quorum; 0: outages of racks never stop it.
    ("replaced_condition", _WHOLE),  # Condition of a broker whose disk is replaced.
    ("no_disk_cause", _WHOLE),  # Column of the totals for destroyed disks.
    ("has_clocks_or_crews", _WHOLE),  # Flag: lifetimes that are not exponential, or repair crews.
    ("counts_isolated", _WHOLE),  # Flag: isolated outages may be counted, and not replayed.
    ("strikes_per_hour", _REAL),  # Rate of the Poisson process of all failures.
    ("copies_per_hour", _REAL),  # Rate at which a copy ends.
    ("decisions_per_hour", _REAL),  # Rate at which an operator elects a leader of a set.
    ("records_per_hour", _REAL),  # Written to one partition.
    ("retained_records", _REAL),  # Most records of one partition that exist.
    ("tail_records", _REAL),  # Mean records of a partition that the leader alone has.
    ("tail_chance", _REAL),  # Probability that there is any such record.
    ("flush_hours", _REAL),  # Age at which a written record is on disk.
    ("span_hours", _REAL),  # Length of a year, or from a healthy cluster to a rolling restart.
    ("broker_failover_hours", _REAL),  # Until a new leader serves, after a broker failed;
    ("handover_hours", _REAL),  # and after leadership was handed over.
    ("budget_hours", _REAL),  # How long producers retry in an outage,
    ("waiting_budget_hours", _REAL),  # while the leader does not answer,
    ("delivery_hours", _REAL),  # and in total.
    ("dead_stall_hours", _REAL),  # Mean wait of acknowledgements for a dead follower,
    ("hung_stall_hours", _REAL),  # and for one that hangs.
    ("lag_hours", _REAL),  # The shortest such wait.
    ("in_elections", _WHOLE),  # Bits of the measures that a change of the leader adds to.
    ("hourly_traffic", _WHOLE),  # Flag: traffic changes by the hour of the day.
    ("hour_at_time_0", _REAL),  # Hour of the day at time 0, modulo 24.
]
CONTROL = np.dtype(_FIELDS)
"""One record: what is not of one broker or set."""

STRIKE = record_dtype(
    "cause targets scope event reach condition excluded by_chance turned turned_reach turned_event "
    "of_quorum known skipped",
    "per_hour probability failover_hours share every spreads overlaps biased_share biased_every "
    "biased_spreads biased_overlaps skipped_per_hour",
)
OUTAGE = record_dtype(
    "cause severity begin end of_rack after after_process first_clock stride brokers distribution "
    "of_crew",
    "hours shape dies biased_dies hard biased_hard",
)
RACK = record_dtype("start end voters", "")
BROKER = record_dtype(
    "condition rack start end struck_by rolling batch active followed struck marked", ""
)
SERVED = record_dtype("set bit copy", "")
COPY = record_dtype("broker running place filling", "")
CLOCK = record_dtype("place held condition rack queued", "due")
DISTRIBUTION = record_dtype("kind start end", "scale parameter")
ISOLATED = record_dtype("state times length", "outages")
RENEWAL = record_dtype("distribution kind kinds target held", "due since")
SET = record_dtype(
    "state mask second_mask deferred_mask deferred_second_mask stall_cause not_healthy followed "
    "place undecided",
    "weight accounted_until stopped_at flushed_at base_records",
)


class KernelState(NamedTuple):
    """The state of a simulated cluster.

    strikes (kinds of mechanisms,): ``targets`` brokers, racks or clusters (``scope``) are struck
        ``per_hour`` altogether: those out of service no further than ``reach``, by ``event``; they
        get ``condition``. If it is ``by_chance``, each is struck with probability ``share``, or, if
        ``turned`` is not WELL, gets that condition instead. None is struck while a broker is in a
        condition whose bit ``excluded`` holds. Each other rack is struck, too, with probability
        ``spreads``, and a second broker with ``overlaps``; ``biased_`` probabilities are those with
        bias. A mechanism with clocks has ``per_hour`` 0; then ``probability`` is that of this kind,
        given an event of the mechanism. Of how many brokers it is ``known`` what an isolated outage
        adds; and how many were ``skipped``, of those that begin ``skipped_per_hour``.
    outages (conditions,): by condition of a broker: mechanism, severity on the scale of `Strikes`,
        events at the beginning and end, mean hours and gamma shape (0 if the duration has a
        ``distribution``), and how many brokers are in it; whether a rack is out, and whether the
        repair waits for a crew. With probability ``dies`` it ends in the condition ``after``.
        Brokers that were struck together and return together share ``first_clock``, or one for each
        rack, ``stride`` apart; -1: each broker has its own.
    racks (racks,): its brokers are ``members[start:end]``; and its voters of the controller quorum.
    brokers (brokers,): its condition, its rack, the clock of ``renewals`` that struck it (from 1),
        and the sets on it: ``served[start:end]``; whether it is ``active``: out, or one of its
        groups is not as at the start; how many sets on it are ``followed``; whether this event has
        ``struck`` it (2: its second event), and by place the brokers that are ``marked``,
        ``control.struck_count`` of them. Behind the ``control.brokers`` brokers stands one for each
        rack with voters that has none, and last the controller quorum. By place in the order of
        rolling restarts: the broker that is ``rolling``, and the number of its ``batch``.
    served (sets * slots,): a set, the bit of the broker's slot in it, and the copy that fills it.
    beside (sets * slots, slots - 1): the other brokers of each set in ``served``: next to each
        other, for they are read most.
    copies (copies,): a broker, how many sets are being copied, and its place among those that run;
        by place, the copy ``filling`` a disk. Sets on the same brokers share one.
    copy_of (sets, slots): the copy that fills each slot.
    clocks (clocks,): each broker's, then those of brokers that return together: when it is due, its
        place among the ``running`` ones (-1: off), how many brokers wait for it, their condition
        and rack, and its number among the repairs that ever waited for a crew (0: it does not).
    distributions (distributions,): the kind as in `time_distribution`, the factor of its standard
        form, its parameter, and where its observed times stand, in units of their mean:
        ``values[start:end]``.
    renewals (clocks of mechanisms that are not exponential,): the distribution of its times, the
        first of the mechanism's kinds and their number, the broker, rack or cluster that it
        strikes, how many brokers are out by it, when it is due (infinite while any is), and since
        when it runs (infinite if it only waits for an outage to end).
    earliest (those clocks,): the tree of its tournament; place 1 holds the clock that is due first.
    sets (sets + groups,): first ``control.sets`` sets; then, if ``control.grouped``, a group for
        each broker and slot (see `group_kernel`). Partition state; bits of the slots that the event
        strikes (``mask``), and that the second event does, and both once more while they wait for
        the quorum's event (``deferred_``); from 1, the mechanism of a follower that
        acknowledgements waited for when writes stopped (``stall_cause``); its ``place`` among those
        that need an operator, and by place the set that does (``undecided``); partitions
        (``weight``); until when time is accounted for; when writes stopped; when everything written
        is on disk (``flushed_at``); and the records that every log holds (``base_records``).
    slots (sets + groups, slots): brokers; -1 in a group for those that are healthy, whichever they
        are.
    attribution (sets + groups, columns): shares of the causes of an outage, kept while a set cannot
        be written, or its time is measured.
    touched (sets + groups,): the sets and groups that the event strikes, ``control.touched_count``
        of them.
    totals (rows, columns): measures summed over partitions, by cause: a mechanism, NO_CAUSE (the
        configuration) or NO_DISK (a replica that is destroyed or copies, whichever mechanism
        destroyed it).
    outages_by_length (OUTAGE_BINS,): write outages that have ended, of all partitions.
    traffic (25,): hours of mean traffic from midnight to each full hour.
    isolated, isolated_totals (kinds * brokers, ...): outages of one broker that begin and end with
        all else healthy: the ``state`` of what is known about them, how many ``times`` one was
        counted and not replayed, how many ``outages`` of writes it brings, all of one ``length``,
        and what it adds to the totals of its cause.
    replayed_totals, replayed_outages: as ``totals`` and ``outages_by_length``, and in their place
        while one is replayed.
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
    distributions: NDArray[Any]
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
    traffic: NDArray[np.float64]
    isolated: NDArray[Any]
    isolated_totals: NDArray[np.float64]
    replayed_totals: NDArray[np.float64]
    replayed_outages: NDArray[np.float64]
