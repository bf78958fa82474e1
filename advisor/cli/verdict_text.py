"""A `Verdict` as blocks of lines for the terminal: what to do, in at most 25 lines for six topics.

In: the verdict, and what the last line says about where the rest is. Out: blocks for
`terminal_blocks`. `columns_of_terminal` says how wide they may be.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from advisor.formatting import capital
from advisor.rendering import one_line

if TYPE_CHECKING:
    from advisor.decision import Verdict
    from advisor.decision.rows import TopicRow

MOST_COLUMNS, LEAST_COLUMNS = 100, 60
_MOST_TOPICS, _MOST_BROKEN = 30, 3
_NAME, _SHORTEST_NAME, _CUT = 1, 16, "..."
_ARROW, _GAP = "->", 2
_COMMAND = "kafka-"
_HEAD = ("", "topic", "today", "set to", "a loss every", "no writes/year")
_UNITS = {"year": "y", "month": "mo", "day": "d", "hour": "h"}
_UNIT = re.compile("|".join(f"{unit}s?" for unit in _UNITS))


def columns_of_terminal() -> int:
    """Return the width to print at: that of the terminal up to 100, which is also the default."""
    if not sys.stdout.isatty():
        return MOST_COLUMNS
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return MOST_COLUMNS
    return max(LEAST_COLUMNS, min(columns, MOST_COLUMNS))


def verdict_blocks(
    verdict: Verdict,
    rest: Sequence[str] = (),
    columns: int = MOST_COLUMNS,
    state: Sequence[str] = (),
) -> list[list[str]]:
    """Return a verdict as blocks of lines; `rest` says where commands, reasons and ranges are."""
    from advisor.decision.rows import around, headline, held_back_words

    broken, to_do = headline(verdict)
    said = around(verdict)
    held = held_back_words(verdict.actions)
    sure = " ".join(filter(None, (said.sure, said.undrawn)))
    return [
        _wrong_now(broken, [*_more_broken(verdict), *state], columns),
        _wrapped([to_do, verdict.text], columns),
        _topics(verdict, columns),
        _wrapped([said.floor, sure, *said.goals, f"* {capital(held)}." if held else ""], columns),
        _wrapped([" ".join(rest)], columns),
    ]


def _wrong_now(broken: str, others: Sequence[str], columns: int) -> list[str]:
    """What is broken or out of sync now; a command has a line of its own, to be copied."""
    indent = "  " if broken else ""
    lines = _wrapped([broken], columns)
    for sentence in others:
        said, command, rest = sentence.partition(_COMMAND)
        lines += _wrapped([f"{indent}{said.strip()}"], columns)
        lines += [f"{indent}  {one_line(command + rest)}"] if command else []
    return lines


def _more_broken(verdict: Verdict) -> list[str]:
    """What else is broken now, the first few."""
    from advisor.decision.rows import unsaid_now

    unsaid = unsaid_now(verdict)
    more = len(unsaid) - _MOST_BROKEN
    shown = list(unsaid[:_MOST_BROKEN])
    return [*shown, f"And {more:,} more."] if more > 0 else shown


def _topics(verdict: Verdict, columns: int) -> list[str]:
    """The topics in trouble as a table, the healthy ones in a line."""
    from advisor.decision.rows import healthy, healthy_words, in_trouble, row
    from advisor.decision.verdict import OK

    trouble = in_trouble(verdict)
    # A single one is what was asked about, and is shown in any case.
    shown = trouble or verdict.actions[: len(verdict.actions) == 1]
    rows = [row(action) for action in shown[:_MOST_TOPICS]]
    lines = _table([_cells(topic) for topic in rows], columns) if rows else []
    hidden = len(shown) - len(rows)
    if hidden:
        lines.append(f"{hidden:,} more topics to change are not shown; --json lists every topic.")
    if healthy(verdict) and shown is trouble:
        severity = OK.ljust(max((len(topic.severity) for topic in rows), default=0))
        lines += _wrapped([f"{severity}  {healthy_words(verdict)}"], columns)
    return lines


def _cells(row: TopicRow) -> tuple[str, ...]:
    return (
        row.severity,
        one_line(row.topic),
        row.today,
        (row.set_to or "keep") + (" *" if row.held_back else ""),
        _short_units(row.losses.joined(_ARROW)),
        row.minutes.joined(_ARROW),
    )


def _short_units(words: str) -> str:
    """Years, months and days for a narrow column.

    >>> _short_units("9.2 months -> 220 years"), _short_units("over 2,000 years")
    ('9.2 mo -> 220 y', 'over 2,000 y')
    """
    return _UNIT.sub(lambda unit: _UNITS[unit[0].removesuffix("s")], words)


def _table(rows: Sequence[Sequence[str]], columns: int) -> list[str]:
    """Topics as aligned columns; where they do not fit, each has two lines.

    Names are shortened before that, but not so that two of them read the same.
    """
    widths = _widths([_HEAD, *rows])
    room = max(columns - sum(widths) + widths[_NAME] - _GAP * (len(widths) - 1), 0)
    names = [_shortened(row[_NAME], room) for row in rows]
    whole = [row[_NAME] for row in rows]
    differ = room >= _SHORTEST_NAME and len(set(names)) == len(set(whole))
    if differ or max(map(len, whole)) <= room:
        fitting = [(row[0], name, *row[2:]) for row, name in zip(rows, names, strict=True)]
        return aligned([_HEAD, *fitting])
    lines = []
    for row in rows:
        lines.append(f"{row[0].ljust(widths[0])}  {row[_NAME]}")
        lines += _wrapped([f"    {row[2]}; set to: {row[3]}"], columns)
        lines += _wrapped([f"    {_HEAD[4]}: {row[4]}; {_HEAD[5]}: {row[5]}"], columns)
    return lines


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _shortened(name: str, longest: int) -> str:
    """A name of at most so many characters; of a longer one both ends.

    >>> _shortened("payments", 8), _shortened("payments.completed.v1", 11)
    ('payments', 'paym...d.v1')
    """
    if len(name) <= longest or longest < _SHORTEST_NAME // 2:
        return name
    end = (longest - len(_CUT)) // 2
    return f"{name[: longest - len(_CUT) - end]}{_CUT}{name[-end:]}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of one length as aligned columns."""
    widths = _widths(rows)
    cells = ([cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows)
    return [(" " * _GAP).join(row).rstrip() for row in cells]


def _wrapped(sentences: Iterable[str], columns: int) -> list[str]:
    """Sentences as lines of at most so many columns; what follows an indent keeps it."""
    lines = []
    for sentence in sentences:
        text = one_line(sentence)
        indent = " " * (len(text) - len(text.lstrip()))
        lines += wrap(
            text.strip(),
            columns,
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines
