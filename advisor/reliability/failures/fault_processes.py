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

from advisor.reliability.partition import reduced_state as red

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
OUTAGE_MECHANISM = {
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
Own = tuple[int, ...]


class Machines(NamedTuple):
    """Brokers of one replica set.

    Attributes
    ----------
    own : tuple of int
        Per slot: what the broker suffers.
    racks : tuple of int
        Per slot: where it stands.
    """

    own: Own
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
    own : tuple of int
        What each slot's broker suffers afterwards.
    events : tuple of (event, slots)
        What the partition notices, in order.
    """

    rate: str
    own: Own
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


def initial_state(setting: Setting) -> Machines:
    """Nothing has happened."""
    return Machines((WELL,) * len(setting.racks), setting.racks)


def changes(machines: Machines, setting: Setting) -> Iterator[Change]:
    """Everything that can happen next, with the name of its rate."""
    yield from broker_and_cluster_transitions(machines.own, setting.mechanisms)
    yield from of_racks(machines, setting)


def broker_and_cluster_transitions(own: Own, mechanisms: frozenset[str]) -> Iterator[Change]:
    """What can happen next to single brokers, or to all of them at once."""
    for slot in range(len(own)):
        yield from _broker_strikes(own, mechanisms, slot)
        yield from _broker_ends(own, slot)
    if "cluster.power" in mechanisms:
        yield from _cluster_power(own, NOT_RETURNING in mechanisms)


def of_racks(machines: Machines, setting: Setting) -> Iterator[Change]:
    """What can happen next to racks."""
    for rack in range(max(setting.racks) + 1):
        yield from _rack_changes(machines.own, machines.members(rack), setting.mechanisms)


def ends(machines: Machines) -> Iterator[Change]:
    """The spells that can end next, with the names of their rates."""
    for slot in range(len(machines.own)):
        yield from _broker_ends(machines.own, slot)
    for rack in range(max(machines.racks) + 1):
        yield from _rack_ends(machines.own, machines.members(rack))


def _suffering(own: Own, slots: tuple[int, ...], condition: int) -> Own:
    """The same but for some slots."""
    after = list(own)
    for slot in slots:
        after[slot] = condition
    return tuple(after)


_STRIKES = (
    ("broker.crash", CRASHED, red.CRASH, (WELL, LAGGING)),
    ("broker.power", DARK, red.POWER, (WELL, LAGGING)),
    ("broker.lag", LAGGING, red.LAG, (WELL,)),
    ("broker.restart", RESTARTING, red.STOP, (WELL,)),
)


def _broker_strikes(own: Own, mechanisms: frozenset[str], slot: int) -> Iterator[Change]:
    only = (slot,)
    restarts = RESTARTING in own
    for mechanism, condition, event, when in _STRIKES:
        if mechanism not in mechanisms or own[slot] not in when:
            continue
        if mechanism == "broker.restart" and restarts:
            continue
        yield Change(mechanism, _suffering(own, only, condition), ((event, only),))
    if "broker.destroyed" in mechanisms and own[slot] != GONE:
        yield Change("broker.destroyed", _suffering(own, only, GONE), ((red.DESTROY, only),))


def _broker_ends(own: Own, slot: int) -> Iterator[Change]:
    spell = own[slot]
    if spell in (WELL, ISOLATED, RACK_DARK):
        return
    event = {GONE: red.REPLACED, LAGGING: red.CAUGHT_UP}.get(spell, red.BACK)
    after = _suffering(own, (slot,), WELL)
    yield Change(f"repair {OUTAGE_MECHANISM[spell]}", after, ((event, (slot,)),))


def _rack_changes(
    own: Own, members: tuple[int, ...], mechanisms: frozenset[str]
) -> Iterator[Change]:
    def among(*conditions: int) -> tuple[int, ...]:
        return tuple([s for s in members if own[s] in conditions])

    running = among(WELL, LAGGING)
    if "rack.network" in mechanisms and running:
        after = _suffering(own, running, ISOLATED)
        yield Change("rack.network", after, ((red.ISOLATE, running),))
    powered = among(WELL, LAGGING, ISOLATED)
    if "rack.power" in mechanisms and powered:
        after = _suffering(own, powered, RACK_DARK)
        yield Change("rack.power", after, ((red.POWER, powered),))
    standing = tuple([s for s in members if own[s] != GONE])
    if "rack.destroyed" in mechanisms and standing:
        after = _suffering(own, standing, GONE)
        yield Change("rack.destroyed", after, ((red.DESTROY, standing),))
    yield from _rack_ends(own, members)


def _rack_ends(own: Own, members: tuple[int, ...]) -> Iterator[Change]:
    for spell in (ISOLATED, RACK_DARK):
        back = tuple([s for s in members if own[s] == spell])
        if back:
            after = _suffering(own, back, WELL)
            yield Change(f"repair {OUTAGE_MECHANISM[spell]}", after, ((red.BACK, back),))


def _cluster_power(own: Own, some_stay_gone: bool) -> Iterator[Change]:
    standing = tuple([s for s, spell in enumerate(own) if spell != GONE])
    running = tuple([s for s in standing if own[s] in (WELL, LAGGING, ISOLATED)])
    dark = _suffering(own, running, DARK_ALL)
    for rate, lost, events in _power_cuts(standing, running, some_stay_gone):
        yield Change(rate, _suffering(dark, lost, GONE), events)


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
