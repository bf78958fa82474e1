"""Draws numbers as horizontal bars, each with its value written beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from advisor.errors import InputError
from advisor.present.stories.picture import PALETTE, WIDTH, Picture, box, svg, text
from advisor.rendering import Html, html, markup

_LEFT = 8
_LETTER = 6.6  # widest of the bold values

Value = float | int | None


def draw_bars(
    rows: Mapping[str, Value | Sequence[Value]],
    unit: str = "",
    series: Sequence[str] = (),
    caption: str = "",
) -> Picture:
    """Draw bars from zero, one for each row, or one for each row and series.

    rows: by label; None where there is no number, infinity where it is never reached.
    unit: written behind each number, such as "ms".
    series: names of the numbers of a row, if it has several.
    caption: text below the drawing.
    Raises InputError if a number is negative, or a row has not one number for each series.

    >>> draw_bars({"leader": 1.0, "slowest": 40.0}, "ms").description
    'leader: 1 ms; slowest: 40 ms.'
    """
    table = {name: _row(name, values, series) for name, values in rows.items()}
    finite = [v for values in table.values() for v in values if v is not None and v < math.inf]
    if any(value < 0 for value in finite):
        raise InputError("bars need numbers that are not negative")
    largest = max(finite, default=0) or 1
    words = "; ".join(_said(name, values, unit, series) for name, values in table.items()) + "."
    longest = max(len(_shown(v, unit)) for values in table.values() for v in values)
    room = WIDTH - 2 * _LEFT - 4 - _LETTER * longest
    parts: list[Html] = []
    y = 4.0
    for place, name in enumerate(series):
        parts.append(box(_LEFT, y, 9, 9, f"bar c{place % len(PALETTE)}"))
        parts.append(text(_LEFT + 14, y + 8.5, name, "small"))
        y += 13
    for name, values in table.items():
        parts.append(text(_LEFT, y + 11, name))
        y += 15
        for place, value in enumerate(values):
            length = room * min(value or 0, largest) / largest
            if value is not None:
                parts.append(box(_LEFT, y, length, 11, f"bar c{place % len(PALETTE)}"))
            parts.append(text(_LEFT + length + 4, y + 9, _shown(value, unit), "strong"))
            y += 13
        y += 6
    return Picture(svg(WIDTH, y, words, parts), words, caption)


def _row(name: str, values: Value | Sequence[Value], series: Sequence[str]) -> Sequence[Value]:
    row = list(values) if isinstance(values, Sequence) else [values]
    if len(row) != max(len(series), 1):
        raise InputError(f"{name}: {len(row)} numbers for {max(len(series), 1)} series")
    return row


def _said(name: str, values: Sequence[Value], unit: str, series: Sequence[str]) -> str:
    if not series:
        return f"{name}: {_shown(values[0], unit)}"
    pairs = zip(series, values, strict=True)
    return f"{name}: " + ", ".join(f"{title} {_shown(value, unit)}" for title, value in pairs)


def _shown(value: Value, unit: str) -> str:
    if value is None:
        return "–"
    if value == math.inf:
        return "never"
    amount = f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
    return f"{amount} {unit}".strip()


_PATHS_HEIGHT = 150
_RADIUS = 44
_NODE = 12
_ARROW = markup(
    '<defs><marker id="advisor-arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="5" '
    'markerHeight="5" orient="auto"><path d="M0 0L8 4L0 8z" class="flag"/></marker></defs>'
)

Path = tuple[int, int]


def draw_paths(schemes: Mapping[str, Sequence[Path]]) -> Picture:
    """Draw up to two schemes side by side: nodes in a circle, an arrow for each path.

    schemes: by title: the paths (from, to) between replicas 0, 1, ...

    >>> draw_paths({"one leader": [(0, 1), (0, 2)]}).description
    'one leader: 2 paths, 0 to 1, 0 to 2.'
    """
    parts = [_ARROW]
    for place, (title, paths) in enumerate(schemes.items()):
        centre = WIDTH * (2 * place + 1) / (2 * len(schemes))
        parts.append(text(centre, 14, f"{title}: {len(paths)} paths", "middle strong"))
        count = 1 + max((end for path in paths for end in path), default=0)
        points = [_point(centre, node, count) for node in range(count)]
        parts += [_arrow(points[source], points[target]) for source, target in paths]
        for node, (x, y) in enumerate(points):
            circle = '<circle cx="{}" cy="{}" r="{}" class="cell c{}"/>'
            parts.append(markup(circle, _tenths(x), _tenths(y), _NODE, node % 6))
            parts.append(text(x, y + 3.5, node, "middle strong"))
    words = " ".join(_paths_in_words(title, paths) for title, paths in schemes.items())
    return Picture(svg(WIDTH, _PATHS_HEIGHT, words, parts), words)


def _point(centre: float, node: int, count: int) -> tuple[float, float]:
    angle = 2 * math.pi * node / count - math.pi / 2
    return centre + _RADIUS * 1.3 * math.cos(angle), 84 + _RADIUS * math.sin(angle)


def _arrow(source: tuple[float, float], target: tuple[float, float]) -> Html:
    """Draw an arrow between the rims of two nodes, beside the arrow of the opposite direction."""
    across, down = target[0] - source[0], target[1] - source[1]
    length = math.hypot(across, down)
    ux, uy = across / length, down / length
    beside = 3.0
    x0, y0 = source[0] + ux * _NODE - uy * beside, source[1] + uy * _NODE + ux * beside
    x1, y1 = target[0] - ux * _NODE - uy * beside, target[1] - uy * _NODE + ux * beside
    return markup(
        '<path d="M{} {}L{} {}" class="thin" marker-end="url(#advisor-arrow)"/>',
        *map(_tenths, (x0, y0, x1, y1)),
    )


def _tenths(value: float) -> Html:
    return html(f"{value:.1f}")


def _paths_in_words(title: str, paths: Sequence[Path]) -> str:
    pairs = ", ".join(f"{source} to {target}" for source, target in paths)
    return f"{title}: {len(paths)} paths, {pairs}."


_RECORD = 21.8
_RECORD_HEIGHT = 19
_LOG_HEIGHT = 44
_MOST_RECORDS = 13


def draw_rows(rows: Mapping[str, Sequence[int]], caption: str = "") -> Picture:
    """Draw the records of some logs, in their order.

    A record that comes after a later one, or a second time, has a red frame.

    rows: records by title, 13 at most.
    caption: text below the drawing.
    Raises InputError if a row is too long.

    >>> draw_rows({"5 in flight": [1, 0, 2], "1 in flight": [0, 1, 2]}).description
    '5 in flight: 1, 0 (out of order), 2. 1 in flight: 0, 1, 2.'
    """
    parts, words = [], []
    for place, (title, records) in enumerate(rows.items()):
        if len(records) > _MOST_RECORDS:
            raise InputError(f"{title}: {len(records)} records; {_MOST_RECORDS} fit")
        y = place * _LOG_HEIGHT
        parts.append(text(_LEFT, y + 13, title, "strong"))
        records_in_words = []
        for column, record in enumerate(records):
            wrong = _wrong(record, records[:column])
            x = _LEFT + column * _RECORD
            parts.append(box(x, y + 19, _RECORD, _RECORD_HEIGHT, "cell c0"))
            parts.append(text(x + _RECORD / 2, y + 32, record, "middle"))
            if wrong:
                parts.append(box(x + 1, y + 20, _RECORD - 2, _RECORD_HEIGHT - 2, "gone"))
            records_in_words.append(f"{record} ({wrong})" if wrong else str(record))
        words.append(f"{title}: {', '.join(records_in_words) or 'empty'}.")
    spoken = " ".join(words)
    return Picture(svg(WIDTH, _LOG_HEIGHT * len(rows), spoken, parts), spoken, caption)


def _wrong(record: int, earlier_records: Sequence[int]) -> str:
    if record in earlier_records:
        return "again"
    return "out of order" if any(earlier > record for earlier in earlier_records) else ""
