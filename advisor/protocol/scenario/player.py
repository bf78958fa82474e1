"""Runs a scenario, from its text or file to a transcript and differences.

The only module of ``protocol`` with I/O: it reads the scenario file.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from advisor.arguments import suggests_names
from advisor.errors import InputError, MissingExtraError, shown
from advisor.files import read_input
from advisor.plotting import draw
from advisor.protocol.scenario.commands import Runner
from advisor.protocol.scenario.language import Command, Scenario, is_expectation, parse
from advisor.protocol.simulation.state import State
from advisor.rendering import html, markup

_MOST_BYTES = 1_000_000


class Moment(NamedTuple):
    """A command, what it printed, and the cluster after it.

    ``notes`` are the comment lines directly above the command, without their ``#``.
    """

    command: str
    verb: str
    printed: tuple[str, ...]
    notes: tuple[str, ...]
    state: State


@suggests_names
@dataclass(frozen=True)
class Play:
    r"""Result of a scenario.

    Parameters
    ----------
    transcript : str
        Scenario text with the actual output below each command, in ``>`` lines.
    differences : tuple of (int, str, str)
        Line number, expected text and printed text of every line of output that differs from the
        scenario's ``>`` lines; an empty text means no line. The output of a command without
        ``>`` lines is not compared.
    moments : tuple of Moment
        The cluster after each command; empty for real brokers.

    See Also
    --------
    play : Runs a scenario.

    Notes
    -----
    In a notebook a result shows itself as a `story`: the logs after each step, with a slider.

    Examples
    --------
    >>> result = play("cluster brokers=1\ntopic t replicas=1\nproduce t-0 2 acks=all\n> acked 1")
    >>> result
    Play(1 differences; line 4: expected 'acked 1', printed 'acked 2')
    >>> result.ok
    False
    >>> result.differences
    ((4, 'acked 1', 'acked 2'),)
    >>> print(result.transcript, end="")
    cluster brokers=1
    topic t replicas=1
    produce t-0 2 acks=all
    > acked 2
    """

    transcript: str
    differences: tuple[tuple[int, str, str], ...]
    moments: tuple[Moment, ...] = field(default=(), repr=False, compare=False)

    @property
    def ok(self) -> bool:
        """Whether all output was as expected."""
        return not self.differences

    def __repr__(self) -> str:
        if self.ok:
            return "Play(as expected)"
        line, expected, printed = self.differences[0]
        return (
            f"Play({len(self.differences)} differences; "
            f"line {line}: expected {expected!r}, printed {printed!r})"
        )

    def story(self, partition: str | None = None, title: str | None = None) -> Any:
        r"""Draw the cluster after each command, with a slider through the steps.

        The result shows itself in a notebook, in its HTML export and in any page; it needs no
        kernel and no network.

        Parameters
        ----------
        partition : str, optional
            Partition whose logs are drawn, such as ``t-0``. Default: the only partition. With
            several, a table of partitions and brokers instead of logs.
        title : str, optional
            Heading. Default: the first comment of the scenario.

        Returns
        -------
        advisor.present.stories.story.Story
            Its ``html`` is the page fragment, its ``steps`` are the drawings.

        Raises
        ------
        InputError
            If there is no such partition, or the scenario ran on real brokers.
        MissingExtraError
            If the extra ``notebook`` is not installed.

        See Also
        --------
        play : Runs a scenario.

        Examples
        --------
        >>> result = play("cluster brokers=1\ntopic t replicas=1\nproduce t-0 2 acks=all")
        >>> result.story().steps[-1].description.split(": ", 2)[-1]
        'records A to B, HW 2, LEO 2.'
        """
        return draw("story", self, partition, title)

    def _repr_html_(self) -> str:
        """The story, or the transcript where it cannot be drawn."""
        try:
            story = self.story()
        except (InputError, MissingExtraError):
            return markup("<pre>{}</pre>", html(self.transcript)).text
        return str(story.html)


def play(source: str | Path) -> Play:
    """Run a scenario, given as text or path, on the simulated cluster."""
    scenario = parse(text_of(source))
    runner = Runner()
    printed, states = [], []
    for command in scenario.commands:
        printed.append(runner.one(command))
        assert runner.cluster is not None
        states.append(runner.cluster.state)
    result = played(scenario, printed)
    return replace(result, moments=_moments(scenario, printed, states))


def _moments(
    scenario: Scenario, printed: list[list[str]], states: list[State]
) -> tuple[Moment, ...]:
    result = []
    for command, texts, state in zip(scenario.commands, printed, states, strict=True):
        line = scenario.lines[command.line - 1].partition(" #")[0].strip()
        notes: list[str] = []
        for raw in reversed(scenario.lines[: command.line - 1]):
            if not raw.lstrip().startswith("#"):
                break
            notes.insert(0, raw.lstrip().lstrip("#").strip())
        result.append(Moment(line, command.verb, tuple(texts), tuple(notes), state))
    return tuple(result)


def played(scenario: Scenario, printed: list[list[str]]) -> Play:
    """Result of a scenario from the output of its commands, simulated or real."""
    return Play(_transcript(scenario, printed), _differences(scenario, printed))


def rewrite(source: str | Path) -> str:
    """Run a scenario and replace its expected output by the actual output; comments are kept."""
    return play(source).transcript


def text_of(source: str | Path) -> str:
    """Text of a scenario given as text or path."""
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith("cluster ")):
        return source
    if not isinstance(source, str | Path):
        raise InputError(f"source={shown(source)}: a scenario is a path or a text")
    try:
        return read_input(source, _MOST_BYTES).decode("utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is no UTF-8 text, or no path"
        raise InputError(
            f"scenario file {shown(str(source))} cannot be read ({why}); give a path or a "
            "scenario's text"
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
    differences: list[tuple[int, str, str]] = []
    for command, texts in zip(scenario.commands, printed, strict=True):
        if command.expected:
            differences.extend(_compare(command, texts))
    return tuple(differences)


def _compare(command: Command, texts: list[str]) -> list[tuple[int, str, str]]:
    """Compare line by line, ignoring the amount of white space (editors replace tabs)."""
    differences = []
    last = command.expected[-1][0]
    for position in range(max(len(command.expected), len(texts))):
        is_expected = position < len(command.expected)
        line, expected = command.expected[position] if is_expected else (last, "")
        text = texts[position] if position < len(texts) else ""
        if expected.split() != text.split():
            differences.append((line, expected, text))
    return differences
