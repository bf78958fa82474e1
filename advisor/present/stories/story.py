"""The steps of a scenario as drawings, with a slider: what `Play.story` returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from advisor.errors import InputError, shown
from advisor.present.stories import log_change, log_drawing, placement_drawing
from advisor.present.stories.log_change import PartitionChange, change, few_enough_for_letters
from advisor.present.stories.picture import Picture
from advisor.present.stories.slider import fragment
from advisor.protocol.scenario.player import Moment, Play
from advisor.protocol.simulation.state import State
from advisor.rendering import Html, html, html_joined, markup

_LOOKS = {"state", "log", "describe", "check", "registration", "consume"}
_SETTING_UP = {"cluster", "topic"}
_KEY_LOGS = (
    "A cell is a record, its colour the leader epoch (e0, e1, ...) that it was written in. Dashed: "
    "not acknowledged. Thick base: flushed to disk. Red and crossed: gone in this step; red frame: "
    "overwritten. HW: high watermark, consumers read up to it. LEO: log end offset."
)
_DEFAULT_TITLE = "The cluster after each step"
_KEY_PLACEMENT = "Blue: leads. Green: follows, in the ISR. Dashed: follows, out of the ISR."


@dataclass(frozen=True)
class Step:
    """One step of a story: its command, with the looks after it that changed nothing."""

    commands: tuple[Moment, ...]
    picture: Picture
    headline: str = ""
    loss: str = ""

    @property
    def description(self) -> str:
        """What the drawing shows, in words."""
        return self.picture.description

    @property
    def html(self) -> str:
        """The step without controls."""
        return self.rendered.text

    @property
    def rendered(self) -> Html:
        """The same, for a page."""
        notes = " ".join(note for moment in self.commands for note in moment.notes)
        parts = [markup("<p>{}</p>", html(notes))] if notes else []
        parts.append(markup("<pre>{}</pre>", html_joined(map(_said, self.commands), "\n")))
        if self.headline:
            parts.append(markup("<p>{}</p>", html(self.headline)))
        if self.loss:
            parts.append(markup('<p class="lost">{}</p>', html(self.loss)))
        return html_joined([*parts, self.picture.drawn])


@dataclass(frozen=True)
class Story:
    """The steps of a scenario; shows itself in a notebook, the step `first` at first."""

    title: str
    steps: tuple[Step, ...] = field(repr=False)
    key: str = field(repr=False)
    first: int = field(default=0, repr=False)

    def __len__(self) -> int:
        return len(self.steps)

    @cached_property
    def html(self) -> str:
        """One fragment for any page: the steps, and a slider that needs no kernel or network."""
        return self.rendered.text

    @property
    def rendered(self) -> Html:
        """The same, for a page."""
        steps = [(_command(step.commands), step.rendered) for step in self.steps]
        return fragment(self.title, steps, self.key, self.first)

    @property
    def at_loss(self) -> Story:
        """The same, at first with the step at which records are lost."""
        lossy = (number for number, step in enumerate(self.steps) if step.loss)
        return replace(self, first=next(lossy, 0))

    def _repr_html_(self) -> str:
        return self.html


def story(play: Play, partition: str | None = None, title: str | None = None) -> Story:
    """Draw the steps of a scenario; see `Play.story`."""
    if not play.moments:
        raise InputError("a story is drawn from the model's state; play it with engine='model'")
    grouped = list(_grouped(play.moments))
    names = {f"{p.topic}-{p.number}": p for m in play.moments for p in m.state.partitions}
    if not names:
        raise InputError("the scenario creates no topic, so there are no logs to draw")
    if partition is not None and partition not in names:
        listed_names = ", ".join(names)
        raise InputError(f"partition={shown(partition)}: the scenario has {listed_names}")
    heading = title or _DEFAULT_TITLE
    if title is None and play.moments[0].notes:
        first, *later = play.moments
        heading = first.notes[0]
        grouped = list(_grouped([first._replace(notes=first.notes[1:]), *later]))
    if partition is None and len(names) > 1:
        return Story(heading, tuple(_placements(grouped)), _KEY_PLACEMENT)
    drawn = names[partition or next(iter(names))]
    steps = _logs(grouped, drawn.topic, drawn.number)
    return Story(heading, tuple(steps), _KEY_LOGS)


def _grouped(moments: Sequence[Moment]) -> Iterator[tuple[Moment, ...]]:
    """Yield the commands of each step, looks with the step before them.

    The first records belong to the step that creates their topic, so that a drawing has some.
    """
    group: list[Moment] = []
    for moment in moments:
        begins = bool(group) and bool(group[-1].state.partitions)
        unchanged = bool(group) and _same(group[-1].state, moment.state)
        first = moment.verb == "produce" and all(m.verb in _SETTING_UP for m in group)
        if begins and not (moment.verb in _LOOKS and unchanged) and not first:
            yield tuple(group)
            group = []
        group.append(moment)
    if group:
        yield tuple(group)


def _same(first: State, second: State) -> bool:
    return (first.partitions, first.brokers) == (second.partitions, second.brokers)


def _logs(groups: Sequence[tuple[Moment, ...]], topic: str, number: int) -> list[Step]:
    """Steps that draw the logs of one partition."""
    changes: list[tuple[tuple[Moment, ...], PartitionChange]] = []
    before: State | None = None
    for group in groups:
        state = group[-1].state
        if any((p.topic, p.number) == (topic, number) for p in state.partitions):
            changes.append((group, change(before, state, topic, number)))
            before = state
    columns = log_drawing.columns(partition_change for _, partition_change in changes)
    epochs = sorted({run.epoch for _, c in changes for row in c.rows for run in row.log.runs})
    letters = few_enough_for_letters(changes[-1][0][-1].state.next_value)
    steps = []
    for group, partition_change in changes:
        words = log_change.description(partition_change, _command(group), letters)
        svg = log_drawing.draw(partition_change, columns, epochs, letters, words)
        headline = log_change.headline(partition_change)
        loss = log_change.loss(partition_change, letters)
        steps.append(
            Step(group, Picture(svg, words), f"{headline[:1].upper()}{headline[1:]}.", loss)
        )
    return steps


def _placements(groups: Sequence[tuple[Moment, ...]]) -> Iterator[Step]:
    """Steps that draw who leads and follows in every partition."""
    for group in groups:
        placement = placement_drawing.placement_of(group[-1].state)
        if placement.replicas:
            words = placement_drawing.describe(placement)
            yield Step(group, Picture(placement_drawing.draw(placement, words), words))


def _command(group: tuple[Moment, ...]) -> str:
    """The command that made the step: not the looks after it."""
    acts = [moment for moment in group if moment.verb not in _LOOKS]
    return (acts or list(group))[-1].command


def _said(moment: Moment) -> Html:
    """Return a command and its output as HTML; refusals are highlighted."""
    lines = [markup("<b>{}</b>", html(moment.command))]
    for text in moment.printed:
        failed = text.startswith(("acked 0 ", "lost "))
        lines.append(html(f"{'✗' if failed else '→'} {text}"))
    return html_joined(lines, "\n")
