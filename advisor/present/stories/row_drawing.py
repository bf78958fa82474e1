"""Draws logs by themselves: a row of numbered records for each, without offsets and replicas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.errors import InputError
from advisor.present.stories.picture import WIDTH, Picture, box, svg, text

_LEFT = 8
_CELL = 21.8
_HIGH = 19
_ROW = 44
_MOST = 13


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
        if len(records) > _MOST:
            raise InputError(f"{title}: {len(records)} records; {_MOST} fit")
        y = place * _ROW
        parts.append(text(_LEFT, y + 13, title, "strong"))
        said = []
        for column, record in enumerate(records):
            wrong = _wrong(record, records[:column])
            x = _LEFT + column * _CELL
            parts.append(box(x, y + 19, _CELL, _HIGH, "cell c0"))
            parts.append(text(x + _CELL / 2, y + 32, record, "middle"))
            if wrong:
                parts.append(box(x + 1, y + 20, _CELL - 2, _HIGH - 2, "gone"))
            said.append(f"{record} ({wrong})" if wrong else str(record))
        words.append(f"{title}: {', '.join(said) or 'empty'}.")
    spoken = " ".join(words)
    return Picture(svg(WIDTH, _ROW * len(rows), spoken, parts), spoken, caption)


def _wrong(record: int, before: Sequence[int]) -> str:
    if record in before:
        return "again"
    return "out of order" if any(earlier > record for earlier in before) else ""
