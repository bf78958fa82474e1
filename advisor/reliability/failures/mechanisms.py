"""The table of failure mechanisms: one entry says everything the package knows about each.

To add one, add an entry to ``_ENTRIES``: no other module names a mechanism. A broker is well or in
one *condition*, the mark of the outage that it is in; so is the controller quorum.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from advisor.reliability.failures.mechanism import (
    COPY,
    DECISION,
    HANGING,
    HOURS,
    MINUTES,
    PER_YEAR,
    SHAPE,
    WELL,
    BrokerEvent,
    Death,
    Mechanism,
    Number,
    Scope,
    Sign,
    Strikes,
    Table,
    Transition,
    Variant,
    death_of,
    pair_of,
    picks,
    picks_by_chance,
    prolonging,
    repair_of,
    striking,
    transition_of,
)

__all__ = [
    "CONFIGURATION",
    "COPY",
    "DECISION",
    "HANGING",
    "HOURS",
    "MINUTES",
    "PER_YEAR",
    "SHAPE",
    "WELL",
    "BrokerEvent",
    "Death",
    "Mechanism",
    "Number",
    "Scope",
    "Sign",
    "Strikes",
    "Table",
    "Transition",
    "death_of",
    "pair_of",
    "picks",
    "picks_by_chance",
    "prolonging",
    "registered",
    "repair_of",
    "striking",
    "table",
    "transition",
    "words",
]

CONFIGURATION = "configuration"
"""The cause of an outage in which every replica is available."""

_NOT_RETURNING = Number(
    "not_returning", "probability that a broker never returns", required=False, probability=True
)

_SPREADS = Number(
    "spreads",
    "probability, for each other rack, to be struck at the same moment",
    required=False,
    probability=True,
)
_BROKERS = Number("brokers", "probability, for each broker, to be struck", probability=True)
_ALL = Number(
    "all",
    "probability that every broker is struck; else each with the probability `brokers`",
    required=False,
    probability=True,
)
_DIES = Number("dies", "probability that the broker dies in the end", probability=True)
_HARD = Number(
    "hard", "share of these deaths that take the host; else 1", required=False, probability=True
)
_ZOOKEEPER_PER_YEAR = Number(
    "zookeeper_per_year",
    "the same with ZooKeeper; as often as `per_year` if left out",
    required=False,
    measured_by="times without a controller or a quorum of ZooKeeper, over cluster-years",
)
_STOPS = Number("stops", "probability that clients are stopped, too", probability=True)
_OVERLAP = Number(
    "overlap",
    "probability that a restart does not wait for the last broker to be back in sync",
    required=False,
    probability=True,
    measured_by="controlled shutdowns while a partition is under-replicated, over all of them",
    question="Does your tooling wait until all replicas are in sync before it restarts the next "
    "broker?",
)
_UNCLEAN = Number(
    "unclean",
    "probability that the shutdown ends hard",
    required=False,
    probability=True,
    measured_by="planned stops after which the broker's log says that it recovers segments",
)
_UNCLEAN_MINUTES = Number(
    "unclean_minutes",
    "mean minutes of a restart whose shutdown ended hard",
    required=False,
    measured_by="the broker's log: from the stop to the end of its log recovery",
)
_UNTIL_IN_SYNC = MINUTES.measured("from the stop until the broker is back in all its ISRs")

_ENTRIES = (
    Mechanism(
        "broker.crash",
        BrokerEvent.CRASH,
        Strikes.RUNNING,
        "broker crashes",
        numbers=(
            PER_YEAR.measured(
                "starts that recover logs while the host stayed up, over broker-years"
            ),
            _UNTIL_IN_SYNC,
            SHAPE,
        ),
        condition=1,
        outlasted=True,
        remembered=True,
    ),
    Mechanism(
        "broker.power",
        BrokerEvent.POWER,
        Strikes.RUNNING,
        "host failures",
        numbers=(
            PER_YEAR.measured("unplanned reboots and replacements of hosts, over broker-years"),
            _UNTIL_IN_SYNC,
            SHAPE,
        ),
        condition=2,
        by_hand=True,
        remembered=True,
    ),
    Mechanism(
        "broker.destroyed",
        BrokerEvent.DESTROY,
        Strikes.STANDING,
        "lost disks",
        numbers=(
            PER_YEAR.measured("disks or volumes replaced, over broker-years"),
            HOURS.measured("from the loss until an empty broker runs in its place"),
            SHAPE,
        ),
        condition=5,
        by_hand=True,
        remembered=True,
    ),
    Mechanism(
        "broker.lag",
        BrokerEvent.LAG,
        Strikes.IN_SYNC,
        "lagging followers",
        numbers=(
            PER_YEAR.measured("IsrShrinksPerSec of brokers that stay up, over broker-years"),
            MINUTES.measured("from the shrink of an ISR until it expands again"),
            SHAPE,
        ),
        condition=6,
    ),
    Mechanism(
        "broker.gray",
        BrokerEvent.LIMP,
        Strikes.IN_SYNC,
        "half-dead brokers",
        numbers=(
            PER_YEAR.measured(
                "leaders that shrink most of their ISRs to themselves while the followers are well"
            ),
            MINUTES.measured("from that shrink until the leader is well, moved or gone"),
            _DIES,
            _HARD,
        ),
        condition=9,
        dies=_DIES,
        hard=_HARD,
        deaths=(Death("dies", "broker.power", True), Death("killed", "broker.crash", False)),
    ),
    Mechanism(
        "broker.restart",
        BrokerEvent.STOP,
        Strikes.IN_SYNC,
        "planned restarts",
        numbers=(
            PER_YEAR.measured("your patch calendar, or controlled shutdowns over broker-years"),
            _UNTIL_IN_SYNC,
            _OVERLAP,
            _UNCLEAN,
            _UNCLEAN_MINUTES,
            SHAPE,
        ),
        condition=4,
        exclusive=True,
        overlaps=_OVERLAP,
        variants=(Variant(_UNCLEAN, BrokerEvent.CRASH, 10, _UNCLEAN_MINUTES),),
        outlasted=True,
    ),
    Mechanism(
        "rack.network",
        BrokerEvent.ISOLATE,
        Strikes.RUNNING,
        "rack network outages",
        numbers=(
            PER_YEAR.measured(
                "outages in which all brokers of one rack were unreachable, over rack-years"
            ),
            MINUTES.measured("the length of these outages"),
            _SPREADS,
            SHAPE,
        ),
        condition=7,
        together=True,
        spreads=_SPREADS,
        outlasted=True,
    ),
    Mechanism(
        "rack.power",
        BrokerEvent.POWER,
        Strikes.POWERED,
        "rack power outages",
        numbers=(
            PER_YEAR.measured("power cuts that took a whole rack, over rack-years"),
            MINUTES.measured("from such a power cut until the rack serves again"),
            _NOT_RETURNING,
            _SPREADS,
            SHAPE,
        ),
        condition=8,
        together=True,
        share=_NOT_RETURNING,
        turns_into="broker.destroyed",
        spreads=_SPREADS,
        outlasted=True,
        remembered=True,
    ),
    Mechanism(
        "rack.destroyed",
        BrokerEvent.DESTROY,
        Strikes.STANDING,
        "destroyed racks",
        numbers=(PER_YEAR, _SPREADS),
        ends_as="broker.destroyed",
        spreads=_SPREADS,
    ),
    Mechanism(
        "cluster.power",
        BrokerEvent.POWER,
        Strikes.POWERED,
        "site power outages",
        numbers=(
            PER_YEAR.measured("power cuts of the whole site, over its years"),
            MINUTES.measured("from such a power cut until the brokers serve again"),
            _NOT_RETURNING,
            SHAPE,
        ),
        condition=3,
        together=True,
        share=_NOT_RETURNING,
        turns_into="broker.destroyed",
    ),
    Mechanism(
        "cluster.destroyed",
        BrokerEvent.DESTROY,
        Strikes.STANDING,
        "destroyed sites",
        numbers=(PER_YEAR,),
        ends_as="broker.destroyed",
    ),
    Mechanism(
        "cluster.crash",
        BrokerEvent.CRASH,
        Strikes.RUNNING,
        "brokers crashing together",
        numbers=(
            PER_YEAR.measured(
                "outages in which brokers of several racks stopped at once, over cluster-years"
            ),
            _BROKERS,
            _ALL,
            MINUTES.measured("the length of these outages"),
            SHAPE,
        ),
        condition=11,
        together=True,
        share=_BROKERS,
        every=_ALL,
        remembered=True,
    ),
    Mechanism(
        "cluster.rollout",
        BrokerEvent.CRASH,
        Strikes.RUNNING,
        "failed rollouts",
        numbers=(
            PER_YEAR.measured("changes that stopped brokers of several racks, over cluster-years"),
            _BROKERS,
            _ALL,
            MINUTES.measured("the length of these outages"),
            SHAPE,
        ),
        condition=12,
        together=True,
        share=_BROKERS,
        every=_ALL,
        sign=Sign.NEW_VERSION,
        remembered=True,
    ),
    Mechanism(
        "cluster.disk_full",
        BrokerEvent.CRASH,
        Strikes.RUNNING,
        "full disks",
        numbers=(
            PER_YEAR.measured("outages by full disks, over cluster-years"),
            _BROKERS,
            _ALL,
            MINUTES.measured("the length of these outages"),
            SHAPE,
        ),
        condition=13,
        together=True,
        share=_BROKERS,
        every=_ALL,
        sign=Sign.FULL_DISK,
        remembered=True,
    ),
    Mechanism(
        "cluster.wiped",
        BrokerEvent.DESTROY,
        Strikes.STANDING,
        "deleted broker data",
        numbers=(
            PER_YEAR,
            _BROKERS,
            _ALL,
            HOURS.measured("a drill: until empty brokers run in place of deleted ones"),
            SHAPE,
        ),
        condition=14,
        together=True,
        share=_BROKERS,
        every=_ALL,
        remembered=True,
    ),
    Mechanism(
        "cluster.controller",
        BrokerEvent.QUORUM_LOST,
        Strikes.IN_SYNC,
        "controller quorum outages",
        numbers=(
            PER_YEAR.measured(
                "times without an active controller (ActiveControllerCount 0), over cluster-years"
            ),
            _ZOOKEEPER_PER_YEAR,
            MINUTES.measured("the length of these times"),
            _STOPS,
            SHAPE,
        ),
        with_zookeeper=_ZOOKEEPER_PER_YEAR,
        condition=15,
        variants=(Variant(_STOPS, BrokerEvent.QUORUM_STOPPED, 16),),
    ),
)


_current = Table(_ENTRIES)


def table() -> Table:
    """The table in use."""
    return _current


@contextmanager
def registered(*entries: Mechanism) -> Iterator[Table]:
    """Add entries to the table for the duration of a ``with`` block.

    Results are cached by card: an entry that behaves differently needs a name of its own.
    """
    global _current
    before = _current
    _current = Table((*before.entries, *entries))
    try:
        yield _current
    finally:
        _current = before


def transition(rate: str) -> Transition:
    """What the name of a transition rate stands for; see `Table.transition`."""
    return transition_of(_current, rate)


def transitions(rates: tuple[str, ...]) -> tuple[Transition, ...]:
    """What the names of several rates stand for."""
    return _transitions(_current, rates)


@lru_cache(maxsize=256)
def _transitions(mechanism_table: Table, rates: tuple[str, ...]) -> tuple[Transition, ...]:
    return tuple(transition_of(mechanism_table, rate) for rate in rates)


def words(cause: str) -> str:
    """What a cause is called in a sentence.

    >>> words("rack.power"), words("configuration")
    ('rack power outages', 'the configuration itself')
    """
    if cause == CONFIGURATION:
        return "the configuration itself"
    return _current[cause].words if cause in _current else cause
