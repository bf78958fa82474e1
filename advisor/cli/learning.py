"""`advisor learn`: counts from options, and what was learned as text for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from advisor.cli.verdict_text import MOST_COLUMNS, verdict_blocks
from advisor.errors import InputError, shown
from advisor.rendering import Terminal, terminal_blocks

if TYPE_CHECKING:
    from advisor.decision import Verdict
    from advisor.learning import Learned

MOST_LINES = 25
_FEWEST_NUMBERS = 1
_NOT_WRITTEN = "--output my_card.toml writes the card, for --model."


def counts_of(sources: Sequence[str], options: dict[str, Any], with_cluster: bool) -> Any:
    """Return what to learn from: files, as they are or in a cluster that options describe.

    What options count beside metrics was counted in their cluster and time.
    """
    from advisor.learning.counts import is_metrics

    frame = _frame(options)
    events = _events(options["counts"], options["lengths"])
    if not sources and not events:
        raise InputError(
            f"there is nothing to learn from: name a file, or say --count {_example('4')}."
        )
    if not sources:
        if "years" not in frame and options["since"] is None:
            raise InputError("say for how long was counted: --years 3.")
        if "brokers" not in frame and not with_cluster:
            raise InputError("say how many brokers were watched: --brokers 12, or --cluster FILE.")
        return {**frame, "events": events}
    if not frame and not events:
        return list(sources)
    if all(map(is_metrics, sources)):
        return [*sources, {**frame, "events": events}]
    if events and len(sources) > 1:
        raise InputError("--count goes with one file, to say what did not happen; name one.")
    if not all(name.lower().endswith(".csv") for name in sources):
        raise InputError(
            "a file of counts says brokers, years and racks itself; only CSV and metrics take the "
            "options."
        )
    return [
        {**frame, "name": Path(name).stem, "incidents": name, "events": events} for name in sources
    ]


def _frame(options: dict[str, Any]) -> dict[str, Any]:
    frame = {
        name: options[name]
        for name in ("brokers", "years", "mode", "refused_minutes")
        if options[name] is not None
    }
    racks = options["racks"]
    if racks is not None and racks.isdigit():
        frame["racks"] = int(racks)
    return frame


def _events(counts: Sequence[str], lengths: Sequence[str]) -> dict[str, Any]:
    events: dict[str, Any] = {}
    for option in counts:
        name, number = _pair(option, "--count", _example("4"))
        if name in events:
            raise InputError(f"--count {shown(name)} is there twice; add them up.")
        events[name] = {"events": _whole(number, option)}
    for option in lengths:
        name, numbers = _pair(option, "--minutes", _example("40,25"))
        if name not in events:
            raise InputError(f"--minutes {shown(option)}: say how many events, too: --count.")
        minutes = [_number(word, option) for word in numbers.split(",")]
        events[name].setdefault("minutes", []).extend(minutes)
    return events


def _example(value: str) -> str:
    from advisor.reliability.failures.mechanisms import table

    return f"{table().names[0]}={value}"


def _pair(option: str, name: str, example: str) -> tuple[str, str]:
    key, sign, value = option.partition("=")
    if not sign or not key.strip():
        raise InputError(f"{name} {shown(option)}: write it like {example}.")
    return key.strip(), value.strip()


def _whole(text: str, option: str) -> int:
    number = _number(text, option)
    if not number.is_integer():
        raise InputError(f"--count {shown(option)}: give a whole number.")
    return int(number)


def _number(text: str, option: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise InputError(f"{shown(option)}: {shown(text)} is no number.") from None
    if not 0.0 <= number < 1e15:
        raise InputError(f"{shown(option)}: give a number from 0 on.")
    return number


def learned(
    result: Learned,
    verdict: Verdict,
    path: Path | None,
    columns: int = MOST_COLUMNS,
    explained: bool = False,
) -> Terminal:
    """Format what was learned: the verdict, the numbers that moved most, and what that changes."""
    from advisor.learning.learned import number_lines

    observed = "" if result.observed is None else str(result.observed)
    notes = (result.named_words, *result.notes) if explained else ()
    card = f"Card: {path}" if path is not None else _NOT_WRITTEN
    said = [result.change, observed, result.seen_words, result.assumed, *notes, card]
    last = [line for sentence in said if sentence for line in wrap(sentence, columns)]
    first = [*verdict_blocks(verdict, (), columns), list(verdict.below) if explained else []]
    rows = len(result.numbers)
    # A line each for the head of the table and for what it leaves out.
    room = MOST_LINES - sum(len(block) + 1 for block in (*first, last) if block) - 2
    if not explained and rows > room:
        rows = max(_FEWEST_NUMBERS, room - 1)
    numbers = number_lines(result.numbers, rows) if result.numbers else []
    return terminal_blocks([*first, numbers, last])
