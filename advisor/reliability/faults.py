"""What befalls brokers and racks, and what a partition on them notices of it.

The life of one replica set's machines. A broker is well or suffers one thing at a time; what ends
first frees it. Only destruction strikes whatever the broker suffers already. A rack's failure
strikes the brokers of the rack that are well, and they come back together. That a failure finds
a broker down already, and would have kept it down longer, is neglected: an overlap of two
spells on one machine, of relative weight rate times duration.

=====================  ====================================================================
mechanism              meaning here
=====================  ====================================================================
broker.crash           down for `minutes`; comes back after an unclean shutdown, log intact
broker.power           the same, and what was not yet flushed is gone
broker.destroyed       gone for `hours`, then replaced, empty; copying follows
broker.lag             a follower is out of the ISR for `minutes`, though up
broker.restart         controlled shutdown for `minutes`; one broker of the cluster at a time
rack.network           all brokers of the rack unreachable for `minutes`, logs intact
rack.power             all down for `minutes`, unflushed records gone
rack.destroyed         all brokers of the rack destroyed at once, whatever their state
cluster.power          all brokers lose power at once, each back after `minutes` by itself, or,
                       with probability `not_returning`, destroyed
=====================  ====================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from advisor.reliability import reduction as red

(
    WELL,
    CRASHED,
    DARK,
    DARK_ALL,
    RESTARTING,
    GONE,
    LAGGING,
    ISOLATED,
    RACK_DARK,
) = range(9)

# condition -> the mechanism that caused it and whose duration ends it
SPELLS = {
    CRASHED: "broker.crash",
    DARK: "broker.power",
    DARK_ALL: "cluster.power",
    RESTARTING: "broker.restart",
    GONE: "broker.destroyed",
    LAGGING: "broker.lag",
    ISOLATED: "rack.network",
    RACK_DARK: "rack.power",
}

NOT_RETURNING = "cluster.power.not_returning"

Events = tuple[tuple[int, tuple[int, ...]], ...]


class Machines(NamedTuple):
    """Brokers of one replica set.

    Attributes
    ----------
    own : tuple of int
        Per slot: what the broker suffers.
    racks : tuple of int
        Per slot: where it stands.
    """

    own: tuple[int, ...]
    racks: tuple[int, ...]

    def members(self, rack: int) -> tuple[int, ...]:
        """Slots in a rack."""
        return tuple([slot for slot, r in enumerate(self.racks) if r == rack])


class Change(NamedTuple):
    """One thing that can happen next to the machines.

    Attributes
    ----------
    rate : str
        Name of the rate, such as "broker.crash" or "repair broker.crash".
    machines : Machines
        Afterwards.
    events : tuple of (event, slots)
        What the partition notices, in order.
    """

    rate: str
    machines: Machines
    events: Events


@dataclass(frozen=True, slots=True)
class Setting:
    """Where the replicas stand and what can happen there.

    Attributes
    ----------
    racks : tuple of int
        Rack number per slot, 0 first.
    mechanisms : frozenset of str
        Those of the card that can happen, and NOT_RETURNING if that can.
    """

    racks: tuple[int, ...]
    mechanisms: frozenset[str]


def all_well(setting: Setting) -> Machines:
    """Nothing has happened."""
    return Machines((WELL,) * len(setting.racks), setting.racks)


def changes(machines: Machines, setting: Setting) -> Iterator[Change]:
    """Everything that can happen next, with the name of its rate."""
    for slot in range(len(machines.own)):
        yield from _broker_strikes(machines, setting, slot)
        yield from _broker_ends(machines, slot)
    for rack in range(max(setting.racks) + 1):
        yield from _rack_changes(machines, setting, machines.members(rack))
    if "cluster.power" in setting.mechanisms:
        yield from _cluster_power(machines, NOT_RETURNING in setting.mechanisms)


def ends(machines: Machines) -> Iterator[Change]:
    """The spells that can end next, with the names of their rates."""
    for slot in range(len(machines.own)):
        yield from _broker_ends(machines, slot)
    for rack in range(max(machines.racks) + 1):
        yield from _rack_ends(machines, machines.members(rack))


def _own(machines: Machines, slots: tuple[int, ...], condition: int) -> Machines:
    own = list(machines.own)
    for slot in slots:
        own[slot] = condition
    return Machines(tuple(own), machines.racks)


_STRIKES = (
    ("broker.crash", CRASHED, red.CRASH, (WELL, LAGGING)),
    ("broker.power", DARK, red.POWER, (WELL, LAGGING)),
    ("broker.lag", LAGGING, red.LAG, (WELL,)),
    ("broker.restart", RESTARTING, red.STOP, (WELL,)),
)


def _broker_strikes(machines: Machines, setting: Setting, slot: int) -> Iterator[Change]:
    own = machines.own[slot]
    only = (slot,)
    restarts = RESTARTING in machines.own
    for mechanism, condition, event, when in _STRIKES:
        if mechanism not in setting.mechanisms or own not in when:
            continue
        if mechanism == "broker.restart" and restarts:
            continue
        yield Change(mechanism, _own(machines, only, condition), ((event, only),))
    if "broker.destroyed" in setting.mechanisms and own != GONE:
        yield Change("broker.destroyed", _own(machines, only, GONE), ((red.DESTROY, only),))


def _broker_ends(machines: Machines, slot: int) -> Iterator[Change]:
    own = machines.own[slot]
    if own in (WELL, ISOLATED, RACK_DARK):
        return
    event = {GONE: red.REPLACED, LAGGING: red.CAUGHT_UP}.get(own, red.BACK)
    yield Change(f"repair {SPELLS[own]}", _own(machines, (slot,), WELL), ((event, (slot,)),))


def _rack_changes(
    machines: Machines, setting: Setting, members: tuple[int, ...]
) -> Iterator[Change]:
    def suffering(*conditions: int) -> tuple[int, ...]:
        return tuple([s for s in members if machines.own[s] in conditions])

    running = suffering(WELL, LAGGING)
    if "rack.network" in setting.mechanisms and running:
        yield Change("rack.network", _own(machines, running, ISOLATED), ((red.ISOLATE, running),))
    powered = suffering(WELL, LAGGING, ISOLATED)
    if "rack.power" in setting.mechanisms and powered:
        yield Change("rack.power", _own(machines, powered, RACK_DARK), ((red.POWER, powered),))
    standing = tuple([s for s in members if machines.own[s] != GONE])
    if "rack.destroyed" in setting.mechanisms and standing:
        yield Change("rack.destroyed", _own(machines, standing, GONE), ((red.DESTROY, standing),))
    yield from _rack_ends(machines, members)


def _rack_ends(machines: Machines, members: tuple[int, ...]) -> Iterator[Change]:
    for spell in (ISOLATED, RACK_DARK):
        back = tuple([s for s in members if machines.own[s] == spell])
        if back:
            yield Change(f"repair {SPELLS[spell]}", _own(machines, back, WELL), ((red.BACK, back),))


def _cluster_power(machines: Machines, some_stay_gone: bool) -> Iterator[Change]:
    standing = tuple([s for s, own in enumerate(machines.own) if own != GONE])
    running = tuple([s for s in standing if machines.own[s] in (WELL, LAGGING, ISOLATED)])
    dark = _own(machines, running, DARK_ALL)
    for rate, lost, events in _power_cuts(standing, running, some_stay_gone):
        yield Change(rate, _own(dark, lost, GONE), events)


@lru_cache(maxsize=4096)
def _power_cuts(
    standing: tuple[int, ...], running: tuple[int, ...], some_stay_gone: bool
) -> tuple[tuple[str, tuple[int, ...], Events], ...]:
    """For all who may not return: the name of the rate, they, and what the partition notices."""
    dark = (red.POWER, running)
    return tuple(
        (f"cluster.power {count} of {len(standing)}", lost, (dark, (red.DESTROY, lost)))
        for count in range(len(standing) + 1 if some_stay_gone else 1)
        for lost in combinations(standing, count)
    )
