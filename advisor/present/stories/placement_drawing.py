"""Draws which broker leads and which follows: partitions as rows, brokers as columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from advisor.present.stories.picture import WIDTH, Picture, box, line, svg, text
from advisor.protocol.rules.partition_registration import NO_LEADER
from advisor.protocol.simulation.state import State
from advisor.rendering import Html, html_joined, markup

_LEFT = 8
_BOLD = 6.8  # widest of the letters of a name
_ROW = 24
_TOP = 30

LEADER = "leads"
IN_SYNC = "in ISR"
BEHIND = "not in ISR"
FOLLOWS = "follows"
_KINDS = {LEADER: "cell c0", IN_SYNC: "cell c2", BEHIND: "cell open c1", FOLLOWS: "cell c2"}


@dataclass(frozen=True)
class Placement:
    """Partitions, their replicas in order, who leads and is in sync, and which brokers are up."""

    replicas: Mapping[str, Sequence[int]]
    isr: Mapping[str, Collection[int]] | None
    leaders: Mapping[str, int | None]
    brokers: Mapping[int, bool]


def placement_of(state: State) -> Placement:
    """Placement of every partition of a simulated cluster."""
    registrations = {f"{p.topic}-{p.number}": p.registration for p in state.partitions}
    return Placement(
        {name: record.replicas for name, record in registrations.items()},
        {name: record.isr for name, record in registrations.items()},
        {n: None if r.leader == NO_LEADER else r.leader for n, r in registrations.items()},
        {broker.id: broker.running for broker in state.brokers},
    )


def draw_assignment(assignment: Mapping[int, Sequence[int]], caption: str = "") -> Picture:
    """Draw an assignment as `advisor.assign` returns it; the first replica leads.

    >>> draw_assignment({0: [1, 2], 1: [2, 1]}).description
    'Brokers 1, 2. Partition 0: 1 leads, 2 follows. Partition 1: 2 leads, 1 follows.'
    """
    replicas = {str(partition): brokers for partition, brokers in assignment.items()}
    ids = sorted({broker for brokers in assignment.values() for broker in brokers})
    leaders = {name: brokers[0] for name, brokers in replicas.items()}
    placement = Placement(replicas, None, leaders, dict.fromkeys(ids, True))
    words = describe(placement)
    return Picture(draw(placement, words), words, caption)


def describe(placement: Placement) -> str:
    """The placement in words."""
    down = [str(broker) for broker, up in placement.brokers.items() if not up]
    parts = [f"Brokers {', '.join(map(str, placement.brokers))}."]
    if down:
        parts.append(f"Down: {', '.join(down)}.")
    for name, brokers in placement.replicas.items():
        roles = ", ".join(f"{broker} {_role(placement, name, broker)}" for broker in brokers)
        leaderless = "no leader, " if placement.leaders[name] is None else ""
        parts.append(f"Partition {name}: {leaderless}{roles}.")
    return " ".join(parts)


def _role(placement: Placement, name: str, broker: int) -> str:
    if placement.leaders[name] == broker:
        return LEADER
    if placement.isr is None:
        return FOLLOWS
    return IN_SYNC if broker in placement.isr[name] else BEHIND


def draw(placement: Placement, words: str) -> Html:
    """The placement as an ``<svg>``."""
    longest_name = max([8, *map(len, placement.replicas)])
    names = min(_BOLD * longest_name, WIDTH / 3)
    wide = (WIDTH - 2 * _LEFT - names) / len(placement.brokers)
    parts = [text(_LEFT, 12, "partition", "soft small")]
    for place, (broker, up) in enumerate(placement.brokers.items()):
        x = _LEFT + names + place * wide + wide / 2
        title = f"broker {broker}" if wide > 48 else str(broker)
        parts.append(text(x, 12, title, "middle strong" + ("" if up else " dim")))
        if not up:
            parts.append(text(x, 24, "down", "middle small"))
    for row, (name, brokers) in enumerate(placement.replicas.items()):
        y = _TOP + row * _ROW
        parts.append(line([(_LEFT, y), (WIDTH - _LEFT, y)], "rule"))
        parts.append(text(_LEFT, y + 16, name, "strong"))
        for place, (broker, up) in enumerate(placement.brokers.items()):
            if broker in brokers:
                x = _LEFT + names + place * wide
                parts += _cell(x, y, wide, _role(placement, name, broker), up)
    return svg(WIDTH, _TOP + _ROW * len(placement.replicas) + 2, words, parts)


def _cell(x: float, y: float, wide: float, role: str, up: bool) -> list[Html]:
    word = role if wide > 55 else {LEADER: "L", IN_SYNC: "F", BEHIND: "out", FOLLOWS: "F"}[role]
    kind = "middle strong" if role == LEADER else "middle"
    drawn = [
        box(x + 3, y + 3, wide - 6, _ROW - 6, _KINDS[role]),
        text(x + wide / 2, y + 16, word, kind),
    ]
    return drawn if up else [markup('<g class="off">{}</g>', html_joined(drawn))]
