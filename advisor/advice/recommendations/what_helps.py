"""What reduces the losses and the time without writes that settings leave, by cause.

Settings carry a topic through the failures of single brokers and racks. What is left has causes of
its own: people, power, a site. `what_helps` names the largest of them that something can be done
about, and what that is where the brokers stand: nobody in a cloud is told to buy a power feed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from advisor.formatting import percent
from advisor.reliability.failures.mechanisms import words
from advisor.reliability.results.reliability import Reliability

LOSSES, WRITES = "loss_probability_per_year", "write_unavailability"
_NAMES = {LOSSES: "losses", WRITES: "time without writes"}
# What makes less than that of a measure is not worth a sentence.
_LEAST_SHARE = 0.1
_ENOUGH_RACKS = 3


@dataclass(frozen=True)
class Way:
    """Something to do about a cause, and where it can be done.

    Attributes
    ----------
    what : str
        As an order: "keep a copy in another region".
    hostings : tuple of str
        Kinds of cards that it is for; empty: any. "" stands for cards that do not say.
    racks : range
        Numbers of racks that it is for.
    """

    what: str
    hostings: tuple[str, ...] = ()
    racks: range = range(10_000)

    def fits(self, hosting: str, racks: int) -> bool:
        """Whether it can be done there."""
        return (not self.hostings or hosting in self.hostings) and racks in self.racks


_RENTED, _OWN = ("cloud", "managed"), ("own", "")
_RUN = ("cloud", *_OWN)
_ONE, _FEW = range(2), range(2, _ENOUGH_RACKS)
_SPREAD_ZONES = Way("spread the brokers over three zones", _RENTED, range(_ENOUGH_RACKS))
_SPREAD_RACKS = Way("spread brokers and controllers over three racks", _OWN, _FEW)
_ELSEWHERE = (
    Way("keep a copy in another region (a second cluster that MirrorMaker 2 fills)", _RENTED),
    Way("keep a copy at another site (a second cluster that MirrorMaker 2 fills)"),
)
_UPS = Way("a UPS or generator that outlasts the cut, a second site, or a copy elsewhere", _OWN)
_SITE_POWER = (_UPS, *_ELSEWHERE)
_RACK_POWER = (
    Way(_UPS.what, _OWN, _ONE),
    Way("give every rack a power feed and a UPS of its own", _OWN),
    *_ELSEWHERE,
)
_DELETED = (
    Way(
        "keep a copy that nobody who runs this cluster can delete (a backup, or a second cluster "
        "that MirrorMaker 2 fills), since replicas copy a deletion"
    ),
)
_RACK = (_SPREAD_ZONES, _SPREAD_RACKS)

WAYS: Mapping[str, Mapping[str, tuple[Way, ...]]] = {
    LOSSES: {
        "cluster.wiped": _DELETED,
        "cluster.destroyed": _ELSEWHERE,
        "cluster.power": _SITE_POWER,
        "rack.destroyed": (*_RACK, *_ELSEWHERE),
        "rack.power": (*_RACK, *_RACK_POWER),
    },
    WRITES: {
        "cluster.crash": (
            Way("limit clients with quotas, and leave brokers room for a burst of load"),
        ),
        "cluster.rollout": (
            Way(
                "change one rack at a time, and wait until all replicas are in sync",
                _RUN,
            ),
        ),
        "cluster.disk_full": (Way("alert on free disk space, and set retention.bytes on topics"),),
        "cluster.controller": (
            Way(
                "run three controllers apart from the brokers, in as many racks as there are", _RUN
            ),
        ),
        "cluster.power": _SITE_POWER,
        "cluster.wiped": (Way("drill how empty brokers are started and filled from a copy"),),
        "rack.network": (*_RACK, Way("connect every rack to two switches", _OWN)),
        "rack.power": (*_RACK, *_RACK_POWER),
        "broker.gray": (
            Way("alert when a leader drops its followers from the ISR, and move leadership away"),
        ),
        "broker.restart": (Way("restart one broker at a time, each after all ISRs are full"),),
    },
}
"""Measure to cause to what reduces it; the first way that fits is taken."""


@dataclass(frozen=True)
class Help:
    """What reduces the largest part of a measure that something can be done about.

    Attributes
    ----------
    measure : str
    what : str
        The order.
    causes : tuple of str
        Mechanisms that it reduces, the largest first.
    share : float
        Their part of the measure, 0 to 1.
    """

    measure: str
    what: str
    causes: tuple[str, ...]
    share: float

    def __str__(self) -> str:
        return (
            f"{percent(self.share)} of the remaining {_NAMES[self.measure]} come from "
            f"{words(self.causes[0])}; what helps: {self.what}."
        )


def what_helps(result: Reliability) -> tuple[Help, ...]:
    """Return what reduces the losses, and the time without writes, of a setting most.

    Parameters
    ----------
    result : Reliability
        Of the setting that was chosen.

    Returns
    -------
    tuple of Help
        At most one for each; none for what settings, or one more replica, would reduce.
    """
    racks = len(set(result.cluster.brokers.values()) - {None})
    return tuple(_helps(result.causes, result.model.hosting, racks))


def _helps(causes: Mapping[str, Mapping[str, float]], hosting: str, racks: int) -> Iterator[Help]:
    for measure, ways in WAYS.items():
        whole = sum(causes[measure].values())
        reduced: dict[str, dict[str, float]] = {}
        for cause, amount in causes[measure].items():
            fitting = (way for way in ways.get(cause, ()) if way.fits(hosting, racks))
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
