"""Playing a scenario: from its text, or the path of its file, to a transcript and its differences.

Reading the file is the only thing here that touches the world.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from advisor.errors import InputError
from advisor.protocol.scenario.commands import Runner
from advisor.protocol.scenario.language import Command, Scenario, is_expectation, parse


@dataclass(frozen=True)
class Play:
    """What came of a scenario.

    Attributes
    ----------
    transcript : str
        The scenario with, below each command, what it printed.
    differences : tuple of (int, str, str)
        Line, what was expected there, what was printed (empty: nothing).
    """

    transcript: str
    differences: tuple[tuple[int, str, str], ...]

    @property
    def ok(self) -> bool:
        """Whether everything was as expected."""
        return not self.differences

    def __repr__(self) -> str:
        if self.ok:
            return "Play(as expected)"
        line, expected, printed = self.differences[0]
        return (
            f"Play({len(self.differences)} differences; "
            f"line {line}: expected {expected!r}, printed {printed!r})"
        )


def play(source: str | Path) -> Play:
    r"""Run a scenario on the simulation.

    Parameters
    ----------
    source : str or Path
        The text of a scenario, or the path of its file. A string with a line break, or one that
        begins with ``cluster ``, is a text.

    Returns
    -------
    Play

    Raises
    ------
    InputError
        If the file cannot be read, or the scenario is wrong; the message names the line and what
        was expected.

    Examples
    --------
    >>> play("cluster brokers=1\ntopic t replicas=1\nproduce t-0 2 acks=all").transcript
    'cluster brokers=1\ntopic t replicas=1\nproduce t-0 2 acks=all\n> acked 2\n'
    """
    scenario = parse(text_of(source))
    return played(scenario, Runner().run(scenario))


def played(scenario: Scenario, printed: list[list[str]]) -> Play:
    """What came of a scenario whose commands printed this, whoever ran them."""
    return Play(_transcript(scenario, printed), _differences(scenario, printed))


def rewrite(source: str | Path) -> str:
    """The scenario with its expectations replaced by what it prints now.

    Commands that print nothing have none; comments and empty lines stay as they are.
    """
    return play(source).transcript


def text_of(source: str | Path) -> str:
    """The text of a scenario given as text or path.

    Raises
    ------
    InputError
        If there is no such file or it is not text.
    """
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith("cluster ")):
        return source
    path = Path(source)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        why = "is not UTF-8 text" if isinstance(error, ValueError) else "cannot be read"
        raise InputError(
            f"scenario file '{path}' {why}; give a path or a scenario's text"
        ) from None


def _transcript(scenario: Scenario, printed: list[list[str]]) -> str:
    by_line = {c.line: p for c, p in zip(scenario.commands, printed, strict=True)}
    result: list[str] = []
    for number, raw in enumerate(scenario.lines, start=1):
        if is_expectation(raw):
            continue
        result.append(raw)
        result.extend(f"> {text}" for text in by_line.get(number, ()))
    return "\n".join(result) + "\n"


def _differences(scenario: Scenario, printed: list[list[str]]) -> tuple[tuple[int, str, str], ...]:
    found: list[tuple[int, str, str]] = []
    for command, texts in zip(scenario.commands, printed, strict=True):
        if command.expected:
            found.extend(_compared(command, texts))
    return tuple(found)


def _compared(command: Command, texts: list[str]) -> list[tuple[int, str, str]]:
    """Line by line; runs of blanks count as one, so that tabs survive an editor."""
    found = []
    last = command.expected[-1][0]
    for position in range(max(len(command.expected), len(texts))):
        here = position < len(command.expected)
        line, expected = command.expected[position] if here else (last, "")
        text = texts[position] if position < len(texts) else ""
        if expected.split() != text.split():
            found.append((line, expected, text))
    return found
