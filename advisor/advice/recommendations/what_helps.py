"""What reduces the losses and the time without writes that settings leave, by cause.

Settings carry a topic through the failures of single brokers and racks. What is left has causes of
its own: people, power, a site. `what_helps` names the largest of them that something can be done
about, and what that is where the brokers stand: a tenant of a cloud is not told to buy a power
feed. The table is ``data/remedies.csv``.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from advisor import catalog
from advisor.formatting import percent
from advisor.reliability import measure_table
from advisor.reliability.failures.mechanisms import words
from advisor.reliability.results.reliability import Reliability

_FILE = "remedies.csv"
_UNKNOWN = "unknown"
# What makes less than that of a measure needs no sentence.
_LEAST_SHARE = 0.1


@dataclass(frozen=True)
class Way:
    """Something to do about a cause, and where it can be done.

    what: as an order: "keep a copy in another region".
    hostings: kinds of cards that it is for; "unknown" stands for cards that do not say. Empty: any.
    fewest_racks, most_racks: numbers of racks that it is for.
    """

    what: str
    hostings: tuple[str, ...]
    fewest_racks: float
    most_racks: float

    def fits(self, hosting: str, racks: int) -> bool:
        """Whether it can be done there."""
        suits = not self.hostings or (hosting or _UNKNOWN) in self.hostings
        return suits and self.fewest_racks <= racks <= self.most_racks


@cache
def ways() -> Mapping[str, Mapping[str, tuple[Way, ...]]]:
    """Measure to mechanism to what reduces it, in the order of ``data/remedies.csv``."""
    table: dict[str, dict[str, tuple[Way, ...]]] = {
        entry.name: {} for entry in measure_table.weighed()
    }
    with catalog.data_path(_FILE).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            way = Way(
                row["what"],
                tuple(row["hostings"].split()),
                float(row["fewest_racks"] or 0),
                float(row["most_racks"] or math.inf),
            )
            causes = table[row["measure"]]
            causes[row["mechanism"]] = (*causes.get(row["mechanism"], ()), way)
    return table


@dataclass(frozen=True)
class Help:
    """What reduces the largest part of a measure that something can be done about.

    what: the order.
    causes: mechanisms that it reduces, the largest first.
    share: their part of the measure, 0 to 1.
    """

    measure: str
    what: str
    causes: tuple[str, ...]
    share: float

    @property
    def _weighed(self) -> str:
        return measure_table.measure(self.measure).weighed

    def __str__(self) -> str:
        return (
            f"{percent(self.share)} of the remaining {self._weighed} come from "
            f"{words(self.causes[0])}; what helps: {self.what}."
        )


def what_helps(result: Reliability) -> tuple[Help, ...]:
    """Return what reduces the losses, and the time without writes, of a setting most.

    result: of the setting that was chosen.
    Returns at most one help for each measure; none for what settings, or one more
        replica, would reduce.
    """
    racks = len(set(result.cluster.brokers.values()) - {None})
    return tuple(_helps(result.causes, result.model.hosting, racks))


def _helps(causes: Mapping[str, Mapping[str, float]], hosting: str, racks: int) -> Iterator[Help]:
    for measure, ways_by_cause in ways().items():
        whole = sum(causes[measure].values())
        reduced: dict[str, dict[str, float]] = {}
        for cause, amount in causes[measure].items():
            fitting = (way for way in ways_by_cause.get(cause, ()) if way.fits(hosting, racks))
            way = next(fitting, None)
            if way is not None and amount > 0.0:
                reduced.setdefault(way.what, {})[cause] = amount / whole
        what = max(reduced, key=lambda order: sum(reduced[order].values()), default=None)
        if what is None:
            continue
        shares = reduced[what]
        if sum(shares.values()) >= _LEAST_SHARE:
            ordered = tuple(sorted(shares, key=lambda cause: -shares[cause]))
            yield Help(measure, what, ordered, sum(shares.values()))
