"""An independent simulation of the other schemes: logs by offset, one partition at a time.

It shares nothing with the chain: no levels, gaps or lumped states. A log offset is the hours of
writing so far; a replica holds everything below its own end offset that still exists. Lost is what
lies between the longest log before and after.
"""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np

RUNNING = ("well", "lag")
NOTHING = -math.inf


@dataclass
class Life:
    """The brokers and logs of one partition.

    Rates are per hour and broker; `hours` are means. Offsets and losses are hours of writing. A
    loss counts with the probability that a record is in it.
    """

    scheme: str
    replicas: int
    rates: dict[str, float]
    hours: dict[str, float]
    flush_hours: float
    retention_hours: float
    patience_hours: float
    records_per_hour: float
    rng: np.random.Generator
    now: float = 0.0
    written: float = 0.0
    lost: float = 0.0
    refused: float = 0.0
    losses: float = 0.0
    down_since: float = math.nan
    own: list[str] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    kept: list[list[float]] = field(default_factory=list)
    write_spans: list[tuple[float, float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.own, self.ends = ["well"] * self.replicas, [0.0] * self.replicas
        self.members = set(range(self.replicas))
        self.losing = 0.0

    @property
    def quorum(self) -> int:
        """How many replicas must have a record before it is acknowledged."""
        majority = self.replicas // 2 + 1
        return {"synchronous": self.replicas, "asynchronous": 1}.get(self.scheme, majority)

    @property
    def writes(self) -> bool:
        return len(self.members) >= self.quorum

    def live(self, until: float) -> None:
        """Draw one transition after another, each at its rate."""
        while self.now < until:
            changes = [
                (slot, what, rate)
                for slot, own in enumerate(self.own)
                for what, rate in self.next_of(own)
            ]
            pace = sum(rate for *_, rate in changes)
            self.pass_time(self.rng.exponential(1.0 / pace))
            at = self.rng.random() * pace
            sums = itertools.accumulate(rate for *_, rate in changes)
            slot, what, _ = next(
                (change for change, upto in zip(changes, sums, strict=True) if at < upto),
                changes[-1],
            )
            self.losing = 0.0
            self.strike(slot, what)
            self.become_quiet()
            self.losses += -math.expm1(-self.records_per_hour * self.losing)

    def next_of(self, own: str) -> list[tuple[str, float]]:
        """Transitions of a broker: destruction at any time, otherwise one outage at a time."""
        found = [("destroyed", self.rates.get("destroyed", 0.0))] if own != "destroyed" else []
        if own != "well":
            found.append(("well", 1.0 / self.hours[own]))
        for what in ("crash", "power", *(["lag"] if own == "well" else [])):
            if own in RUNNING and what in self.rates:
                found.append((what, self.rates[what]))
        return found

    def pass_time(self, hours: float) -> None:
        if self.writes:
            # Writing that continues without a hole extends the last span.
            if not self.kept or self.kept[-1][1] < self.written:
                self.kept.append([self.written, self.written])
            self.write_spans.append((self.now, self.now + hours, self.written))
            self.write_spans = [
                s for s in self.write_spans if s[1] > self.now + hours - self.flush_hours
            ]
            self.written += hours
            self.kept[-1][1] = self.written
            for slot in self.members:
                self.ends[slot] = self.written
        self.now += hours

    def strike(self, slot: int, what: str) -> None:
        longest = max(self.ends)
        if what == "lag" and self.members == {slot}:
            return
        if what == "lag" and slot in self.members and self.rng.random() < 1 / len(self.members):
            # The leader does not lag.
            return
        self.own[slot] = what
        if what == "destroyed":
            self.ends[slot] = NOTHING
        if what == "power" and self.scheme != "flushed majority":
            self.ends[slot] = min(self.ends[slot], self.surely_on_disk())
        self.forget(longest)

    def surely_on_disk(self) -> float:
        """The offset below which every record has been flushed."""
        since = self.now - self.flush_hours
        young = [
            start + max(since - begun, 0.0) for begun, end, start in self.write_spans if end > since
        ]
        return min(young, default=math.inf)

    def forget(self, longest: float) -> None:
        """Count records that no log holds any more."""
        left = max(self.ends)
        if left >= longest:
            return
        oldest = self.written - self.retention_hours
        gone = sum(max(hi - max(lo, left, oldest), 0.0) for lo, hi in self.kept)
        self.losing += gone
        self.lost += gone
        self.kept = [[lo, min(hi, left)] for lo, hi in self.kept if lo < left and hi > oldest]

    def become_quiet(self) -> None:
        """Elect and catch up; track interruptions of writing."""
        wrote = self.writes
        longest = max(self.ends)
        up = [slot for slot, own in enumerate(self.own) if own in RUNNING]
        begins_anew = longest == NOTHING
        if not begins_anew and max((self.ends[s] for s in up), default=NOTHING) == longest:
            # Copies take no time, but only the longest log that exists is copied.
            for slot in up:
                self.ends[slot] = longest if self.ends[slot] == NOTHING else self.ends[slot]
        voters = up if begins_anew else [s for s in up if self.ends[s] > NOTHING]
        best = max((self.ends[s] for s in voters), default=NOTHING)
        may = bool(voters) and best == longest
        if "majority" in self.scheme:
            may = len(voters) >= self.quorum
        if self.scheme == "asynchronous":
            may = bool(voters)
        self.members = set()
        if may:
            self.follow(up, voters, best, longest)
        if wrote and not self.writes:
            self.down_since = self.now
        if self.writes and not wrote:
            self.refused += max(self.now - self.down_since - self.patience_hours, 0.0)

    def follow(self, up: list[int], voters: list[int], best: float, longest: float) -> None:
        """Replicas truncate to the leader's log; healthy ones catch up at once."""
        self.ends = [min(end, best) for end in self.ends]
        self.forget(longest)
        well = {slot for slot in up if self.own[slot] == "well"}
        self.members = well or {max(voters, key=lambda slot: self.ends[slot])}
        for slot in up:
            if best > NOTHING and (slot in self.members or self.ends[slot] == NOTHING):
                self.ends[slot] = best
            if best == NOTHING and self.writes:
                # All running replicas begin the new log.
                self.ends[slot] = self.written
