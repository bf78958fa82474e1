"""Plain Python beside the sampler: a heap of events, one replica set, hand-written rules.

Brokers fail after times of any distribution and are repaired, perhaps by few crews. Nothing here
is shared with the package.
"""

import heapq
import itertools
import math
from collections.abc import Callable

import numpy as np

Draw = Callable[[np.random.Generator], float]


def weibull(shape: float, mean: float) -> Draw:
    """Weibull times with a mean."""
    scale = mean / math.gamma(1.0 + 1.0 / shape)
    return lambda rng: float(scale * rng.weibull(shape))


def lognormal(sigma: float, mean: float) -> Draw:
    """Lognormal times with a mean."""
    return lambda rng: float(rng.lognormal(math.log(mean) - sigma**2 / 2.0, sigma))


class Crowd:
    """Brokers that fail and are repaired, each by several ways that do not know of each other.

    A way is a time to fail, a time to repair, and how bad it is: a broker that is out can only be
    struck by what is worse, which ends the outage before. A time to fail runs from the end of the
    outage that it caused, or from its event if that struck nobody.
    """

    def __init__(
        self, seed: int, brokers: int, ways: list[tuple[Draw, Draw, int]], crews: int = 0
    ) -> None:
        self.rng = np.random.default_rng(seed)
        self.ways, self.crews = ways, crews
        self.free, self.queue = crews, list[int]()
        self.out: list[int | None] = [None] * brokers
        self.outage = [0] * brokers
        self.numbers, self.heap = itertools.count(), list[tuple[float, int, str, int, int]]()
        self.now = 0.0
        for broker, way in itertools.product(range(brokers), range(len(ways))):
            self.fails_later(broker, way)

    def push(self, hours: float, what: str, broker: int, which: int) -> None:
        """Note an event."""
        heapq.heappush(self.heap, (self.now + hours, next(self.numbers), what, broker, which))

    def fails_later(self, broker: int, way: int) -> None:
        """Start the time to the next failure."""
        self.push(self.ways[way][0](self.rng), "fails", broker, way)

    def next_event(self) -> tuple[str, int]:
        """Take the next event that changes something: "down" or "up", and the broker."""
        while True:
            self.now, _, what, broker, which = heapq.heappop(self.heap)
            if what == "fails":
                before = self.out[broker]
                worse = before is None or self.ways[which][2] > self.ways[before][2]
                if not worse:
                    self.fails_later(broker, which)
                    continue
                if before is not None:
                    self.ends(broker)
                self.out[broker] = which
                self.outage[broker] += 1
                self.queue.append(broker)
                self.begin_repairs()
                return "down", broker
            if which == self.outage[broker]:
                self.ends(broker)
                self.out[broker] = None
                return "up", broker

    def ends(self, broker: int) -> None:
        """End an outage: its clock runs again, and its crew is free."""
        way = self.out[broker]
        assert way is not None
        if broker in self.queue:
            self.queue.remove(broker)
        else:
            self.free += 1
        self.outage[broker] += 1
        self.fails_later(broker, way)
        self.begin_repairs()

    def begin_repairs(self) -> None:
        """Give those that waited longest a crew."""
        while self.queue and (self.free > 0 or not self.crews):
            broker = self.queue.pop(0)
            self.free -= 1
            way = self.out[broker]
            assert way is not None
            self.push(self.ways[way][1](self.rng), "repaired", broker, self.outage[broker])


class Partition:
    """Acks=all on brokers that crash and keep their logs, without eligible leader replicas.

    Attributes
    ----------
    stopped_at : float or None
        Since when writes are refused.
    outages : list of float
        Hours of the outages of writes that have ended.
    """

    def __init__(self, brokers: int, min_isr: int) -> None:
        self.up, self.isr = set(range(brokers)), set(range(brokers))
        self.min_isr = min_isr
        self.stopped_at: float | None = None
        self.outages: list[float] = []

    def take(self, what: str, broker: int, now: float) -> None:
        """Let a broker go down or come up."""
        if what == "down":
            self.up.discard(broker)
            # The last one stays in the ISR, and is waited for.
            if self.isr != {broker}:
                self.isr.discard(broker)
        else:
            self.up.add(broker)
        if self.isr & self.up:
            self.isr |= self.up
        writes = len(self.isr & self.up) >= self.min_isr
        if not writes and self.stopped_at is None:
            self.stopped_at = now
        elif writes and self.stopped_at is not None:
            self.outages.append(now - self.stopped_at)
            self.stopped_at = None
