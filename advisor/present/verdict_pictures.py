"""The two pictures of a verdict, as plain SVG: an arrow for each topic, and how sure the choice is.

`arrows` draws every topic from today to after the change, by the time between losses and the time
without writes, with the wall that no setting gets behind. `price_axis` draws from which price of a
loss on the choice pays. Both say in words what they show, and take the colours of `verdict.css`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from advisor.decision import Action, SettingChoice, Verdict
from advisor.decision.rows import Change, TopicRow, in_trouble, row
from advisor.decision.words import MOST_PRICE_MINUTES, duration
from advisor.formatting import RAREST_YEARS, capital, span
from advisor.present.stories.picture import box, line, number, svg, text
from advisor.reliability.failures import mechanisms
from advisor.rendering import Html, html, html_joined, markup

Place = tuple[float, float]
Area = tuple[float, float, float, float]
"""Left, top, right, bottom."""

_MOST_PLACES, _MOST_DESCRIBED = 12, 12
_HOURS, _DAY = 1 / 8760, 1 / 365
_YEARS = (
    (_HOURS, "hour"),
    (_DAY, "day"),
    (1 / 12, "month"),
    (1.0, "year"),
    (10.0, "10 years"),
    (100.0, "100 years"),
    (1000.0, "1,000 years"),
)
_ALL_YEAR = 525_600.0
_MINUTES = (
    (1 / 60, "1 s"),
    (1 / 6, "10 s"),
    (1.0, "1 min"),
    (10.0, "10 min"),
    (60.0, "1 h"),
    (600.0, "10 h"),
    (6000.0, "100 h"),
    (_ALL_YEAR, "all year"),
)
_ENDLESS = "over 100 years"
_LETTER, _LINE = 7.2, 15.0
"""Width of a letter and height of a line of text, in the units of a drawing."""


@dataclass(frozen=True)
class Size:
    """Size of a drawing and its margins, in its own units."""

    width: float
    height: float
    left: float
    bottom: float
    top: float = 8.0
    right: float = 8.0
    wall: float = 150.0


WIDE = Size(width=980.0, height=230.0, left=92.0, bottom=26.0)
NARROW = Size(width=366.0, height=270.0, left=84.0, bottom=42.0, wall=74.0)


@dataclass(frozen=True)
class _Axis:
    """A logarithmic axis: values from `first` at place `start` to `last` at `end`."""

    first: float
    last: float
    start: float
    end: float

    def at(self, value: float) -> float:
        low, high = sorted((self.first, self.last))
        share = math.log(min(max(value, low), high) / self.first) / math.log(self.last / self.first)
        return self.start + share * (self.end - self.start)


def arrows(verdict: Verdict, size: Size = WIDE) -> Html:
    """Draw each topic from today to after the change; at least one."""
    actions = verdict.actions
    across, upward = _axes(actions, size)
    edges = size.left, size.width - size.right, size.top, size.height - size.bottom
    wall, words_of_wall = _wall(verdict, across, upward, size)

    def today(action: Action) -> Place:
        return across.at(_between(action.loss_today)), upward.at(action.refused_today)

    def after(action: Action) -> Place:
        return across.at(_between(action.loss_after)), upward.at(action.refused_after)

    starts = _grouped(in_trouble(verdict) or actions, today)[:_MOST_PLACES]
    shown = [action for _, group in starts for action in group]
    lines = list(dict.fromkeys((today(action), after(action)) for action in shown))
    stays = dict.fromkeys(after(action) for action in actions if action.set_to is None)
    rings = dict.fromkeys(after(action) for action in shown if action.set_to is not None)
    parts = [*_rules(across, upward), *wall, *_ticks(across, size)]
    parts += [_arrow(start, end) for start, end in lines]
    parts += [_circle(place, 4.5, "dot-ok") for place in stays]
    parts += [_circle(place, 4.5, "dot-after") for place in rings]
    parts += [_circle(start, 5.5, f"dot-{group[0].severity}") for start, group in starts]
    obstacles = [*_along(lines), *stays, *(start for start, _ in starts)]
    parts += _names(starts, obstacles, words_of_wall, edges)
    described = [row(action) for action in shown[:_MOST_DESCRIBED]]
    return svg(size.width, size.height, describe(described), parts)


def describe(rows: Sequence[TopicRow]) -> str:
    """Return the picture in words, with its numbers."""
    losses_and_minutes = [
        f"{topic.topic}: {_said('loses records', topic.losses, _every)}, "
        f"{_said('stops writes', topic.minutes, _a_year)}."
        for topic in rows
    ]
    return " ".join(
        [
            "Topics from today to after the change: time between losses across, time without "
            "writes upward; better to the right and up.",
            *losses_and_minutes,
        ]
    )


def _said(does: str, change: Change, form: Callable[[str], str]) -> str:
    if change.today == change.after:
        return f"{does} {form(change.after)}"
    return f"{does} {form(change.today)}, then {form(change.after)}"


def _every(words: str) -> str:
    return words if words in ("never", "all the time") else f"every {words}"


def _a_year(words: str) -> str:
    return words if words == "all year" else f"{words} a year"


def _between(losses_per_year: float) -> float:
    """Years between losses, up to what counts as never."""
    return min(1.0 / losses_per_year, RAREST_YEARS) if losses_per_year > 0.0 else RAREST_YEARS


def _axes(actions: Sequence[Action], size: Size) -> tuple[_Axis, _Axis]:
    """Axes with room for every topic and every floor, and for the wall behind these."""
    years = [_between(n) for a in actions for n in (a.loss_today, a.loss_after)]
    years += [_between(a.floor.losses_per_year) for a in actions]
    minutes = [m for a in actions for m in (a.refused_today, a.refused_after)]
    minutes += [a.floor.minutes_without_writes_per_year for a in actions]
    right, top = size.width - size.right, size.top
    ticks = [at for at, _ in _YEARS]
    first = _tick_below(min(years) / 1.15, ticks)
    if not any(first < tick <= max(years) for tick in ticks):
        first = _tick_below(first / 1.15, ticks)
    # The wall begins where the best floor is; a little of the axis lies behind it.
    wall = right - size.wall
    best = max(max(years), 4.0 * first)
    last = first * (best / first) ** ((right - size.left) / (wall - size.left))
    shortest = max(min(minutes), _MINUTES[0][0])
    longest = max(max(minutes) * 1.6, shortest * 12.0)
    bottom = size.height - size.bottom
    share = 0.16
    above = shortest / (longest / shortest) ** (share / (1.0 - share))
    return _Axis(first, last, size.left, right), _Axis(longest, above, bottom, top)


def _tick_below(value: float, ticks: Sequence[float]) -> float:
    return max((tick for tick in ticks if tick <= value), default=ticks[0])


def _wall(verdict: Verdict, across: _Axis, upward: _Axis, size: Size) -> tuple[list[Html], Area]:
    """What no setting gets behind, solid behind the best floor, and where its words stand."""
    floors = [action.floor for action in verdict.actions]
    bottom = size.height - size.bottom
    width = across.end - across.start
    xs = [across.at(_between(floor.losses_per_year)) for floor in floors]
    ys = [upward.at(floor.minutes_without_writes_per_year) for floor in floors]
    drawn = []
    for x, y, kind in ((min(xs), max(ys), "edge"), (max(xs), min(ys), "wall")):
        drawn += [
            box(x, y, across.end - x, bottom - y, kind),
            box(across.start, upward.end, width, y - upward.end, kind),
        ]
    cause = verdict.floor.cause if verdict.floor is not None else ""
    words = ["no setting", "gets here"] if size is NARROW else ["no setting gets here"]
    words += [f"({mechanisms.words(cause)})"] if cause and size is not NARROW else []
    middle, first = (max(xs) + across.end) / 2.0, (min(ys) + bottom) / 2.0
    half = max(map(len, words)) * _LETTER / 2.0
    drawn += [
        text(middle, first + _LINE * place, words_of_line, "soft middle")
        for place, words_of_line in enumerate(words)
    ]
    return drawn, (middle - half, first - _LINE, middle + half, first + _LINE * len(words))


def _ticks(across: _Axis, size: Size) -> list[Html]:
    """The edges of the drawing, and times between losses in words."""
    bottom = size.height - size.bottom
    drawn = [line([(across.start, size.top), (across.start, bottom), (across.end, bottom)], "axis")]
    taken = -math.inf
    for years, words in _YEARS:
        x = across.at(years)
        if not across.first <= years <= across.last or x - len(words) * _LETTER / 2.0 < taken:
            continue
        first = years == across.first
        label = f"a loss every {words}" if first and size is not NARROW else words
        drawn.append(line([(x, bottom), (x, bottom + 4.0)], "axis"))
        end = x + len(label) * _LETTER if first else x + len(label) * _LETTER / 2.0
        if end > size.width:
            continue
        drawn.append(text(x, bottom + 18.0, label, "soft" if first else "soft middle"))
        taken = end + 8.0
    if size is NARROW:
        drawn.append(text(across.start, bottom + 34.0, "time between losses", "soft"))
    return drawn


def _rules(across: _Axis, upward: _Axis) -> list[Html]:
    """Lines of the same time without writes, with their words beside the drawing."""
    lines = [(at, words) for at, words in _MINUTES if upward.last <= at <= upward.first]
    drawn = []
    for minutes, words in lines:
        y = upward.at(minutes)
        drawn.append(line([(across.start, y), (across.end, y)], "rule"))
        label = words if minutes >= _ALL_YEAR else f"{words}/year"
        drawn.append(text(across.start - 6.0, y + 4.0, label, "soft end"))
    return drawn


def _arrow(start: Place, end: Place) -> Html:
    """A line that ends in a tip short of the dot it leads to; nothing where it goes nowhere."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.hypot(dx, dy)
    if length < 14.0:
        return markup("")
    ux, uy = dx / length, dy / length
    tip = end[0] - 6.5 * ux, end[1] - 6.5 * uy
    back = tip[0] - 9.0 * ux, tip[1] - 9.0 * uy
    sides = [
        tip,
        (back[0] - 4.0 * uy, back[1] + 4.0 * ux),
        (back[0] + 4.0 * uy, back[1] - 4.0 * ux),
        tip,
    ]
    return html_joined([line([start, back], "arrow"), line(sides, "tip")])


def _circle(place: Place, radius: float, kind: str) -> Html:
    circle = '<circle cx="{}" cy="{}" r="{}" class="{}"/>'
    return markup(circle, number(place[0]), number(place[1]), number(radius), html(kind))


def _grouped(
    actions: Sequence[Action], place: Callable[[Action], Place]
) -> list[tuple[Place, list[Action]]]:
    """Topics at the same place, to a few units."""
    groups: dict[tuple[int, int], list[Action]] = {}
    for action in actions:
        x, y = place(action)
        groups.setdefault((round(x / 6.0), round(y / 6.0)), []).append(action)
    return [(place(group[0]), group) for group in groups.values()]


def _along(lines: Iterable[tuple[Place, Place]]) -> list[Place]:
    """Places along lines, for what must not cover them."""
    steps = [step / 24.0 for step in range(25)]
    return [
        (start[0] + step * (end[0] - start[0]), start[1] + step * (end[1] - start[1]))
        for start, end in lines
        for step in steps
    ]


def _names(
    starts: Sequence[tuple[Place, list[Action]]],
    obstacles: Sequence[Place],
    words_of_wall: Area,
    edges: Area,
) -> list[Html]:
    """The name of each topic beside its dot, where it covers the least of the drawing."""
    drawn, occupied = [], [words_of_wall]
    for (x, y), group in starts:
        name = row(group[0]).topic
        words = name if len(group) == 1 else f"{name} and {len(group) - 1} more"
        width = len(words) * _LETTER
        across = {"": x + 9.0, "end": x - 9.0 - width, "middle": x - width / 2.0}
        places = [
            (across[anchor], y + down, anchor)
            for down, anchors in ((-8.0, ("", "end")), (-24.0, across), (8.0, across))
            for anchor in anchors
        ]
        left, top, anchor = min(
            places, key=lambda at: _covered(_box(at, width), obstacles, occupied, edges)
        )
        occupied.append(_box((left, top, anchor), width))
        at = {"": left, "end": left + width, "middle": x}[anchor]
        drawn.append(text(at, top + 12.0, words, f"halo {anchor}".strip()))
    return drawn


def _box(place: tuple[float, float, str], width: float) -> Area:
    left, top, _ = place
    return left, top, left + width, top + _LINE


def _covered(
    area: Area,
    obstacles: Sequence[Place],
    occupied: Sequence[Area],
    edges: Area,
) -> float:
    left, top, right, bottom = area
    outside = max(edges[0] - left, 0.0) + max(right - edges[1], 0.0)
    outside += max(edges[2] - top, 0.0) + max(bottom - edges[3], 0.0)
    crossed = sum(left < x < right and top < y < bottom for x, y in obstacles)
    names = sum(
        left < box[2] and box[0] < right and top < box[3] and box[1] < bottom for box in occupied
    )
    return 5.0 * outside + crossed + 20.0 * names


_PRICE_WIDTH, _PRICE_HEIGHT, _PRICE_LINE = 366.0, 66.0, 34.0


def price_axis(choice: SettingChoice) -> Html | None:
    """Draw from which price of a loss on the choice pays; None where no price matters."""
    spread = choice.break_even_minutes or choice.break_even_above
    if spread is None:
        return None
    price = choice.minutes_per_loss
    ends = [value for value in (*spread, price) if 0.0 < value < MOST_PRICE_MINUTES]
    if not ends:
        return None
    axis = _Axis(min(ends) / 3.0, max(ends) * 3.0, 6.0, _PRICE_WIDTH - 6.0)
    # What is outside, 0 and infinity too, stands at the ends.
    low, middle, high = (
        axis.start if value == 0.0 else axis.at(value)
        for value in (spread.low, spread.median, spread.high)
    )
    y = _PRICE_LINE
    parts = [line([(axis.start, y), (axis.end, y)], "axis")]
    if high - low > 1.0:
        parts.append(line([(low, y), (high, y)], "range"))
    parts.append(line([(middle, y - 8.0), (middle, y + 8.0)], "middle-draw"))
    at = axis.start if price == 0.0 else axis.at(price)
    parts.append(line([(at, y - 3.0), (at - 6.0, y - 13.0), (at + 6.0, y - 13.0)], "dot-warning"))
    parts.append(_within(at, y - 18.0, f"price of a loss: {price_words(price)}", ""))
    first, last = price_words(spread.low), price_words(spread.high)
    parts.append(_within(low, y + 24.0, first, "soft"))
    if last != first and high - low > (len(first) + len(last)) * _LETTER / 2.0 + 10.0:
        parts.append(_within(high, y + 24.0, last, "soft"))
    return svg(_PRICE_WIDTH, _PRICE_HEIGHT, price_sentence(choice), parts)


def price_words(minutes: float) -> str:
    """Return a price of a loss in words.

    >>> price_words(10_080.0), price_words(0.0), price_words(math.inf)
    ('7 days', 'nothing', 'over 100 years')
    """
    if minutes == 0.0:
        return "nothing"
    return _ENDLESS if minutes >= MOST_PRICE_MINUTES else duration(minutes)


def price_sentence(choice: SettingChoice) -> str:
    """Return what the axis of prices shows; "" where no price makes a difference."""
    below = choice.break_even_minutes
    spread = below or choice.break_even_above
    if spread is None:
        return ""
    pays = "it pays" if below is not None else "a higher min ISR pays"
    used = f"Used: {price_words(choice.minutes_per_loss)}."
    if spread.low >= MOST_PRICE_MINUTES or spread.high == 0.0:
        price = "any price of a loss" if spread.high == 0.0 else "no price of a loss that matters"
        return f"{capital(pays)} at {price}. {used}"
    if spread.low == spread.high:
        return f"{capital(pays)} if a loss outweighs {_from(spread.low)}. {used}"
    draws = "Bar, by the card's ranges: " if choice.draws else ""
    return f"{draws}{pays} if a loss outweighs {_from_to(spread.low, spread.high)}. {used}"


def _from(minutes: float) -> str:
    return f"{price_words(minutes)} without writes"


def _from_to(low: float, high: float) -> str:
    if low == 0.0:
        return f"anything up to {_from(high)}"
    if high >= MOST_PRICE_MINUTES:
        return f"{price_words(low)} to {_from(high)}"
    return f"{span(price_words(low), price_words(high))} without writes"


def _within(x: float, y: float, words: str, kind: str) -> Html:
    """Words centred at a place, as far as they stay inside the drawing."""
    half = len(words) * _LETTER / 2.0
    x = min(max(x, half), _PRICE_WIDTH - half)
    return text(x, y, words, f"{kind} middle".strip())
