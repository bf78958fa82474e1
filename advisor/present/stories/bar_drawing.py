"""Draws numbers as horizontal bars, each with its value written beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from advisor.errors import InputError
from advisor.present.stories.picture import PALETTE, WIDTH, Picture, box, svg, text
from advisor.rendering import Html

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
