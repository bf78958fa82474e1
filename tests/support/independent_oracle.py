"""An independent simulation of one partition, whose logs hold the times of their records.

The model ranks replicas by log completeness and solves a CTMC. Here a log is the set of hours at
which its records were written, failures are drawn in continuous time, and losses are measured as
set differences. Only the controller's rules are shared. Elections are clean or unclean, acks=all,
and copies, lag, detection and elections take no time.
"""

import heapq
import math
import random
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from operator import itemgetter

from advisor.protocol.rules import controller, election
from advisor.protocol.rules.controller import Policy
from advisor.protocol.rules.partition_registration import NO_LEADER, Registration, new_registration

YEAR = 8760.0
# Hours of writing as (from, to), ascending.
Hours = tuple[tuple[float, float], ...]
# Mechanism of a card -> the condition of a broker that it strikes.
KINDS = {
    "broker.crash": "crashed",
    "broker.power": "dark",
    "broker.destroyed": "gone",
    "broker.restart": "restarting",
    "rack.network": "isolated",
    "rack.power": "dark",
}
_UNCLEAN = ("crashed", "dark", "gone")


def both(one: Hours, other: Hours) -> Hours:
    """Intersection of two sets of hours."""
    found, i, j = [], 0, 0
    while i < len(one) and j < len(other):
        start, end = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if start < end:
            found.append((start, end))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def during(log: Hours, start: float, end: float) -> Hours:
    """A log without what was written before ``start`` or after ``end``."""
    first = bisect_right(log, start, key=itemgetter(1))
    last = bisect_left(log, end, key=itemgetter(0))
    if first >= last:
        return ()
    (earliest, until), (since, latest) = log[first], log[last - 1]
    if earliest >= start and latest <= end:
        return log[first:last]
    if last - first == 1:
        return ((max(earliest, start), min(latest, end)),)
    between = log[first + 1 : last - 1]
    return ((max(earliest, start), until), *between, (since, min(latest, end)))


def either(one: Hours, other: Hours) -> Hours:
    """Union of two sets of hours."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(one + other):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return tuple(found)


def written(log: Hours, start: float, end: float) -> Hours:
    """A log with one more span appended."""
    if log and log[-1][1] == start:
        return (*log[:-1], (log[-1][0], end))
    return (*log, (start, end))


def hours_in(log: Hours) -> float:
    """Total length."""
    return math.fsum(end - start for start, end in log)


@dataclass
class Tally:
    """Totals of a run, later per year or as fractions of time."""

    loss_events_per_year: float = 0.0
    hours_lost_per_year: float = 0.0
    write_unavailability: float = 0.0
    read_unavailability: float = 0.0


class Partition:
    """One partition and its brokers, 0 to RF - 1.

    Parameters
    ----------
    racks : tuple of int
        Rack of each broker.
    policy : Policy
    per_year, hours : dict of mechanism to float
        Rates and mean durations.
    flush_hours, kept_hours : float
        Hours of the log that a power failure loses, and retention: older records are never lost.
    seed : int
    """

    def __init__(
        self,
        racks: tuple[int, ...],
        policy: Policy,
        per_year: dict[str, float],
        hours: dict[str, float],
        flush_hours: float,
        kept_hours: float,
        seed: int,
    ) -> None:
        self.racks, self.policy, self.hours = racks, policy, hours
        self.flush_hours, self.kept_hours = flush_hours, kept_hours
        self.random = random.Random(seed)
        self.brokers = tuple(range(len(racks)))
        self.now = 0.0
        self.created: dict[frozenset[int], Registration] = {}
        self.registration = self._new_registration(frozenset(self.brokers))
        self.down: dict[int, str] = {}
        self.outage_number = [0] * len(racks)
        self.ends: list[tuple[float, int, tuple[int, ...], tuple[int, ...]]] = []
        self.log: list[Hours] = [((-kept_hours, 0.0),)] * len(racks)
        self.alive: Hours = self.log[0]
        self.decided: dict[tuple[object, ...], Registration] = {}
        self.tally = Tally()
        # Planned restarts never overlap; the rate makes up for those that are skipped.
        busy = len(racks) * per_year.get("broker.restart", 0.0) * hours.get("broker.restart", 0.0)
        self.strikes = [
            (rate / YEAR / (1.0 - busy / YEAR * (name == "broker.restart")), name, place)
            for name, rate in per_year.items()
            for place in (self.brokers if name.startswith("broker") else sorted(set(racks)))
        ]

    def run(self, years: float) -> Tally:
        """Simulate some years; return rates per year and fractions of time."""
        rates = [rate for rate, _, _ in self.strikes]
        end, whole = self.now + years * YEAR, math.fsum(rates)
        self.tally = Tally()
        while True:
            strike = self.now + self.random.expovariate(whole)
            following = min(strike, self.ends[0][0]) if self.ends else strike
            self._write_until(min(following, end))
            if following >= end:
                break
            if following < strike:
                _, _, brokers, numbers = heapq.heappop(self.ends)
                pairs = zip(brokers, numbers, strict=True)
                self._return([b for b, number in pairs if self.outage_number[b] == number])
            else:
                _, name, place = self.random.choices(self.strikes, rates)[0]
                self._strike(name, place)
        span = years * YEAR
        return Tally(
            self.tally.loss_events_per_year / years,
            self.tally.hours_lost_per_year / years,
            self.tally.write_unavailability / span,
            self.tally.read_unavailability / span,
        )

    def _active(self) -> frozenset[int]:
        return frozenset(self.brokers).difference(self.down)

    def _write_until(self, time: float) -> None:
        leader, isr = self.registration.leader, self.registration.isr
        if leader == NO_LEADER:
            self.tally.read_unavailability += time - self.now
        if leader == NO_LEADER or len(isr) < self.policy.min_isr:
            self.tally.write_unavailability += time - self.now
        else:
            complete = self.log[leader] is self.alive
            longer = written(self.log[leader], self.now, time)
            self.alive = longer if complete else written(self.alive, self.now, time)
            for broker in self._active():
                self.log[broker] = longer
        self.now = time

    def _strike(self, name: str, place: int) -> None:
        kind = KINDS[name]
        group = [place] if name.startswith("broker") else self._of_rack(place)
        if kind == "restarting" and "restarting" in self.down.values():
            return
        # A broker that is down can only be destroyed, or lose power with its rack.
        hit = [b for b in group if self._can_strike(b, kind, len(group) > 1)]
        if not hit:
            return
        fallen = [b for b in hit if b not in self.down]
        for broker in hit:
            self.down[broker] = kind
            self.outage_number[broker] += 1
            if kind == "gone":
                self.log[broker] = ()
            if kind == "dark":
                flushed_until = self.now - self.flush_hours
                self.log[broker] = during(self.log[broker], -math.inf, flushed_until)
        until = self.now + self.random.expovariate(1.0 / self.hours[name])
        numbers = tuple(self.outage_number[b] for b in hit)
        heapq.heappush(self.ends, (until, self.outage_number[hit[0]], tuple(hit), numbers))
        self.random.shuffle(fallen)
        for position, broker in enumerate(fallen):
            active = self._active() | frozenset(fallen[position + 1 :])
            stop = kind == "restarting"
            self._decide("broker_stopping" if stop else "broker_gone", broker, active)
        self._settle()

    def _of_rack(self, rack: int) -> list[int]:
        return [b for b in self.brokers if self.racks[b] == rack]

    def _can_strike(self, broker: int, kind: str, with_others: bool) -> bool:
        now = self.down.get(broker)
        if now is None:
            return True
        if kind == "gone":
            return now != "gone"
        return with_others and kind == "dark" and now == "isolated"

    def _return(self, brokers: list[int]) -> None:
        for broker in brokers:
            unclean = self.down.pop(broker) in _UNCLEAN
            self._decide("broker_back", broker, self._active(), unclean)
            self._settle()

    def _decide(
        self, what: str, about: int | tuple[int, ...], active: frozenset[int], *more: bool
    ) -> None:
        """Ask a rule of the controller; how often the registration changed makes no difference."""
        asked = (what, self.registration, about, active, *more)
        if asked not in self.decided:
            rule = getattr(controller, what)
            answer = rule(self.registration, about, active, *more, self.policy)
            self.decided[asked] = replace(answer, leader_epoch=0, partition_epoch=0)
        self.registration = self.decided[asked]

    def _settle(self) -> None:
        """Elect by operator if no replica is electable; then replicas that are up catch up."""
        active = self._active()
        if self.registration.leader == NO_LEADER:
            self._elect_by_operator(active)
        leader = self.registration.leader
        if leader != NO_LEADER:
            for broker in sorted(active):
                self.log[broker] = self.log[leader]
                if broker not in self.registration.isr:
                    isr = (*self.registration.isr, broker)
                    self._decide("isr_proposed", isr, active)
            if len(self.registration.isr) == len(self.brokers) and leader != self.brokers[0]:
                self.registration = self._new_registration(active)
        self._count_losses()

    def _new_registration(self, active: frozenset[int]) -> Registration:
        if active not in self.created:
            registration = new_registration(self.brokers, active)
            assert registration is not None
            self.created[active] = registration
        return self.created[active]

    def _elect_by_operator(self, active: frozenset[int]) -> None:
        record = self.registration
        electable = record.isr or record.elr or record.last_known_elr
        if not active or any(self.down.get(b, "gone") != "gone" for b in electable):
            return

        def newest(broker: int) -> float:
            return self.log[broker][-1][1] if self.log[broker] else -math.inf

        best = max(sorted(active), key=newest)
        if all(newest(b) <= newest(best) for b, kind in self.down.items() if kind != "gone"):
            found = controller.elected_by_operator(
                record, election.UNCLEAN, frozenset((best,)), self.policy
            )
            self.registration = replace(found, leader_epoch=0, partition_epoch=0)

    def _count_losses(self) -> None:
        """Count records that the leader lacks, or without a leader every log."""
        leader = self.registration.leader
        if leader != NO_LEADER and self.log[leader] is self.alive:
            return
        oldest = self.now - self.kept_hours
        self.alive = during(self.alive, oldest, self.now)
        self.log = [during(log, oldest, self.now) for log in self.log]
        held: Hours = ()
        for log in self.log if leader == NO_LEADER else [self.log[leader]]:
            held = either(held, log)
        left = both(self.alive, held)
        lost = hours_in(self.alive) - hours_in(left)
        # Rounding of a few sums.
        if lost > 1e-9:
            self.tally.loss_events_per_year += 1.0
            self.tally.hours_lost_per_year += lost
        self.alive = left
        # Complete logs share one object, so that later comparisons are quick.
        self.log = [left if log == left else log for log in self.log]
