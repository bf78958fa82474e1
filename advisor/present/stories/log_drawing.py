"""Draws the logs of a partition: a row of cells for each replica, with HW, LEO and epochs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from advisor.present.stories.log_change import (
    PartitionChange,
    ReplicaRow,
    label,
    spans_in_words,
)
from advisor.present.stories.picture import PALETTE, WIDTH, box, line, svg, text
from advisor.protocol.log.replica_log import Run, Spans, records, size, spans, without
from advisor.rendering import Html, html_joined, markup

_LEFT = 8
_ROOM = 248  # for cells, so that "LEO 16" still fits behind them
_NAMES = 60
_LETTER = 5.6  # mean width of one in a line of words, and of a bold one
_BOLD = 7.0
_DIGIT = 6.4
_CLEAR = 6  # behind a long number, so that the next is not read as its end
_CELL = 26
_GAP = 34
_HIGH = 19
_ROW = 70
_LINE = 12
_TOP = 16
MOST_CELLS = 16


@dataclass(frozen=True)
class Columns:
    """Which offsets have a cell, and how many lines of words stand above the cells of a replica."""

    offsets: tuple[int, ...]
    lines: int = 1

    @property
    def row(self) -> float:
        """Height of a replica."""
        return _ROW + _LINE * (self.lines - 1)

    @property
    def gaps(self) -> tuple[tuple[int, int], ...]:
        """Ranges of offsets that are left out."""
        pairs = zip((-1, *self.offsets), self.offsets, strict=False)
        return tuple((low + 1, high) for low, high in pairs if high > low + 1)

    @property
    def cell(self) -> float:
        """Width of a cell."""
        room = _ROOM - _GAP * len(self.gaps)
        return min(_CELL, room / max(len(self.offsets), 1))

    def x(self, offset: int) -> float:
        """Left edge of an offset; the right edge of the last cell for all that follow."""
        cells = sum(1 for shown in self.offsets if shown < offset)
        wide = sum(1.0 if high <= offset else 0.5 for low, high in self.gaps if low < offset)
        return _LEFT + cells * self.cell + wide * _GAP


def columns(changes: Iterable[PartitionChange]) -> Columns:
    """Return the offsets to draw: all of a short log, else those around differences."""
    rows = [row for change in changes for row in change.rows]
    lines = (len(_lines(row, letters=False)) for row in rows)
    return Columns(_offsets(rows), max(lines, default=1))


def _offsets(rows: Sequence[ReplicaRow]) -> tuple[int, ...]:
    last = max((row.log.leo for row in rows), default=0)
    if last <= MOST_CELLS:
        return tuple(range(last))
    edges = {edge for row in rows for edge in _edges(row)}
    near = {0} | {edge + step for edge in edges for step in (-1, 0) if 0 <= edge + step < last}
    if len(near) > MOST_CELLS:
        near = {0} | {edge - 1 for edge in edges if edge > 0}
    offsets = sorted(near)
    if len(offsets) > MOST_CELLS:
        offsets = [0, *offsets[-(MOST_CELLS - 1) :]]
    # A gap of one offset takes more room than its cell.
    filled = {offset for offset in range(last) if offset - 1 in near and offset + 1 in near}
    if len(filled | set(offsets)) <= MOST_CELLS:
        offsets = sorted(filled | set(offsets))
    return tuple(offsets)


def _lines(row: ReplicaRow, letters: bool) -> list[str]:
    """Return the states of a replica as lines that fit, with room for the lost records."""
    taken = _BOLD * (len(_gone(row, letters)) + 1) if row.gone else 0.0
    fits = (WIDTH - 2 * _LEFT - _NAMES - taken) / _LETTER
    lines = [""]
    for word in row.words:
        joined = f"{lines[-1]}, {word}".removeprefix(", ")
        if lines[-1] and len(joined) > fits:
            lines[-1] += ","
            lines.append(word)
        else:
            lines[-1] = joined
    return lines


def _gone(row: ReplicaRow, letters: bool) -> str:
    """Return which records the step took, or how many."""
    names = spans_in_words(row.gone, letters)
    return f"gone: {names}" if len(names) < 14 else f"{size(row.gone)} gone"


def _edges(row: ReplicaRow) -> set[int]:
    """Offsets at which something begins or ends in a log."""
    edges = {0, row.log.leo, row.log.flushed, row.hw or 0}
    offset = 0
    for run in row.log.runs:
        edges.add(offset)
        offset += run.length
    return edges


def draw(
    change: PartitionChange, columns: Columns, epochs: Sequence[int], letters: bool, words: str
) -> Html:
    """One step of a story as an ``<svg>``; columns and epochs are the same for all its steps."""
    parts = [text(_LEFT, 10, "offset", "soft small")] if not columns.offsets else []
    parts += [text(x, 10, words, "middle soft small") for x, words in _scale(columns)]
    for place, row in enumerate(change.rows):
        drawing = _Row(row, columns, _TOP + place * columns.row, epochs, letters, change.acked)
        parts += drawing.parts()
    return svg(WIDTH, _TOP + columns.row * len(change.rows), words, parts)


def _scale(columns: Columns) -> Iterator[tuple[float, str]]:
    """Yield the offsets above the cells and how many a gap leaves out, as many as fit."""
    marks = [(columns.x(n) + columns.cell / 2, f"{n:,}") for n in columns.offsets]
    marks += [(columns.x(low) + _GAP / 2, f"+{high - low:,}") for low, high in columns.gaps]
    right = 0.0
    for x, words in sorted(marks):
        half = _DIGIT * len(words) / 2
        if x - half >= right:
            right = x + half + (1 if len(words) < 3 else _CLEAR)
            yield x, words


@dataclass(frozen=True)
class _Row:
    """Draws one replica."""

    row: ReplicaRow
    columns: Columns
    top: float
    epochs: Sequence[int]
    letters: bool
    acked: Spans

    def parts(self) -> list[Html]:
        off = "" if self.row.up else " dim"
        parts = [
            line([(_LEFT, self.top), (WIDTH - _LEFT, self.top)], "rule"),
            text(_LEFT, self.top + 14, f"Broker {self.row.broker}", f"strong{off}"),
        ]
        for number, words in enumerate(_lines(self.row, self.letters)):
            y = self.top + 14 + _LINE * number
            parts.append(text(_LEFT + _NAMES, y, words, "soft"))
        if self.row.gone:
            words = _gone(self.row, self.letters)
            parts.append(text(WIDTH - _LEFT, self.top + 14, words, "strong end"))
        cells = html_joined(self._cells())
        parts.append(markup('<g class="off">{}</g>', cells) if off else cells)
        return [*parts, *self._ghosts(), *self._marks()]

    @property
    def _y(self) -> float:
        return self.top + 31 + _LINE * (self.columns.lines - 1)

    def _cells(self) -> list[Html]:
        log = self.row.log
        parts = []
        for low, high in self.columns.gaps:
            held = min(log.leo, high) - low
            if held > 0:
                x = self.columns.x(low)
                parts.append(box(x, self._y, _GAP, _HIGH, self._kind(records(log, low, high))))
                parts.append(text(x + _GAP / 2, self._y + 13, "⋯", "middle"))
        for offset in self.columns.offsets:
            if offset < log.leo:
                runs = records(log, offset, offset + 1)
                x = self.columns.x(offset)
                parts.append(box(x, self._y, self.columns.cell, _HIGH, self._kind(runs)))
                parts.append(self._name(x, runs[0].first, "middle"))
        flushed = self.columns.x(log.flushed)
        if log.flushed:
            parts.append(
                box(_LEFT, self._y + _HIGH - 3, flushed - _LEFT, 3, "flag", markup(' opacity=".7"'))
            )
        return parts

    def _kind(self, runs: Sequence[Run]) -> str:
        """Class of a cell: the colour of its epoch; dashed unless all is acknowledged."""
        colour = f"c{self.epochs.index(runs[0].epoch) % len(PALETTE)}"
        acknowledged = not without(spans(runs), self.acked)
        return f"cell {colour}" if acknowledged else f"cell open {colour}"

    def _name(self, x: float, value: int, kind: str) -> Html:
        words = label(value, self.letters)
        if _DIGIT * len(words) > self.columns.cell - 1:
            return markup("")  # the scale above says where it is
        return text(x + self.columns.cell / 2, self._y + 13, words, kind)

    def _ghosts(self) -> list[Html]:
        """Cells of records that were in the log before the step: crossed, or overwritten."""
        before, log, width = self.row.before, self.row.log, self.columns.cell
        parts = []
        for offset in self.columns.offsets:
            if offset >= before.leo:
                break
            old_record = records(before, offset, offset + 1)[0].first
            runs = records(log, offset, offset + 1)
            if runs and runs[0].first == old_record:
                continue
            x = self.columns.x(offset)
            parts.append(box(x + 1, self._y + 1, width - 2, _HIGH - 2, "gone"))
            if not runs:
                low, high = self._y + 1, self._y + _HIGH - 1
                parts.append(self._name(x, old_record, "middle soft"))
                parts.append(line([(x + 1, high), (x + width - 1, low)], "gone"))
        for low, high in self.columns.gaps:
            if min(before.leo, high) > max(log.leo, low):
                x, y = self.columns.x(low), self._y
                parts.append(box(x + 1, y + 1, _GAP - 2, _HIGH - 2, "gone"))
                if log.leo <= low:
                    parts.append(text(x + _GAP / 2, y + 13, "⋯", "middle soft"))
                parts.append(line([(x + 1, y + _HIGH - 1), (x + _GAP - 1, y + 1)], "gone"))
        return parts

    def _marks(self) -> list[Html]:
        """High watermark above the cells, epochs and log end offset below."""
        log = self.row.log
        parts: list[Html] = []
        if self.row.hw is not None:
            x = self.columns.x(self.row.hw)
            parts.append(line([(x, self._y - 4), (x, self._y + _HIGH + 2)], "ink"))
            words = f"HW {self.row.hw:,}"
            side = "middle" if x > 26 else ""
            parts.append(text(max(x, _LEFT), self._y - 6, words, f"small {side}".strip()))
        below = self._y + _HIGH + 11
        at = 0
        for epoch, length in _by_epoch(log.runs):
            left, right = self.columns.x(at) + 2, self.columns.x(at + length) - 2
            if right > left:
                parts.append(line([(left, below - 8), (right, below - 8)], "rule"))
                parts.append(text((left + right) / 2, below, f"e{epoch}", "middle soft small"))
            at += length
        end = self.columns.x(log.leo)
        parts.append(line([(end, self._y), (end, below - 6)], "rule"))
        words = f"LEO {log.leo:,}"
        fits = end + 3 + _LETTER * len(words) <= WIDTH
        where, side = (end + 3, "") if fits else (WIDTH - 2, " end")
        parts.append(text(where, below, words, f"small{side}"))
        return parts


def _by_epoch(runs: Sequence[Run]) -> list[tuple[int, int]]:
    """Epochs and how many records each has, neighbours joined."""
    joined: list[tuple[int, int]] = []
    for run in runs:
        if joined and joined[-1][0] == run.epoch:
            joined[-1] = (run.epoch, joined[-1][1] + run.length)
        else:
            joined.append((run.epoch, run.length))
    return joined
