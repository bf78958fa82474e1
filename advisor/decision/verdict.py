"""`Verdict`: what to set, in one object that every screen renders; and what it consists of."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from advisor import plotting
from advisor.decision.comparison import GoalOutcome, SettingChoice
from advisor.decision.settings import Setting
from advisor.errors import MissingExtraError
from advisor.reliability import measure_table
from advisor.rendering import Html
from advisor.tables import html_verdict

CRITICAL, WARNING, OK = "critical", "warning", "ok"
SEVERITIES = (CRITICAL, WARNING, OK)
"""The worst first."""
# Losses above the floor that many times are critical.
AVOIDABLE_TIMES = 10.0


@dataclass(frozen=True)
class Floor:
    """What no setting with as many replicas prevents: each measure's least.

    Attributes
    ----------
    losses_per_year, minutes_without_writes_per_year : float
        What the rule weighs.
    values : mapping of str to float
        The least of every measure over the candidates and today's setting.
    cause : str
        Mechanism with the largest part of the least losses; "" for none.
    drawn : mapping of str to tuple of float
        The least of every measure in each draw of the card; empty without draws.
    """

    losses_per_year: float
    minutes_without_writes_per_year: float
    values: Mapping[str, float] = field(default_factory=dict)
    cause: str = ""
    drawn: Mapping[str, tuple[float, ...]] = field(default_factory=dict, compare=False)

    def beyond_settings(self, measure: str) -> float:
        """Return the part of a measure that no setting with as many replicas prevents."""
        return self.values[measure]

    def by_settings(self, measure: str, whole: float) -> float:
        """Return the rest of a setting's measure; with `beyond_settings` it is the whole.

        Of times between losses the inverse adds up: the time until the rest alone loses.
        """
        return measure_table.measure(measure).rest(whole, self.values[measure])


@dataclass(frozen=True)
class LossSize:
    """How much a loss takes.

    Attributes
    ----------
    records_per_loss : float or None
        Acknowledged records that a loss of the topic takes on average; None where the load of the
        topic was assumed.
    share_of_whole_logs : float
        Share of the partitions' losses that take a whole log, 0 to 1; the others take a few
        seconds of one broker's records.
    """

    records_per_loss: float | None
    share_of_whole_logs: float


@dataclass(frozen=True)
class Alternative:
    """Another setting and what it would change, each as a factor on the chosen one's.

    Attributes
    ----------
    setting : Setting
    losses_factor, minutes_factor : float
        Losses and minutes without writes a year, over the chosen setting's.
    """

    setting: Setting
    losses_factor: float
    minutes_factor: float


@dataclass(frozen=True)
class Action:
    """What to do about one topic.

    Attributes
    ----------
    topic : str
        Its name; "" for a setting that belongs to no topic yet.
    today : Setting
    set_to : Setting or None
        None to keep today's.
    loss_today, loss_after : float
        Moments a year at which the topic loses acknowledged records, as a whole.
    refused_today, refused_after : float
        Minutes a year without writes, as a whole.
    severity : {"critical", "warning", "ok"}
        Critical: it should change, and loses more than ten times what no setting prevents, or one
        broker's restart stops its writes or reads. Warning: the rule would set something else.
    why : str
        One sentence.
    choice : SettingChoice
    held_back : bool
        Whether the command waits for consent, because it lowers durability.
    moves : bool
        Whether replicas move although their number stays.
    floor : Floor
    goals : tuple of GoalOutcome
    loss_size : LossSize
        Under the setting after the change.
    one_more_replica : Alternative or None
        None if there is no broker for it, or it was not computed.
    beside : tuple of Alternative
        Settings that are never chosen: acks 1, unclean elections.
    cause : str
        Mechanism with the largest part of the losses after the change; "" for none.
    """

    topic: str
    today: Setting
    set_to: Setting | None
    loss_today: float
    loss_after: float
    refused_today: float
    refused_after: float
    severity: str
    why: str
    choice: SettingChoice
    held_back: bool
    moves: bool
    floor: Floor
    goals: tuple[GoalOutcome, ...]
    loss_size: LossSize
    one_more_replica: Alternative | None = None
    beside: tuple[Alternative, ...] = ()
    cause: str = ""

    @property
    def after(self) -> Setting:
        """The setting after the change."""
        return self.set_to or self.today

    @property
    def cost_today(self) -> float:
        """Minutes without writes that today's setting is as bad as, a year."""
        return self.refused_today + self.choice.minutes_per_loss * self.loss_today

    @property
    def cost_after(self) -> float:
        """The same after the change."""
        return self.refused_after + self.choice.minutes_per_loss * self.loss_after

    @property
    def urgency(self) -> tuple[object, ...]:
        """Sort key: critical first, then the most costly today."""
        return SEVERITIES.index(self.severity), -self.cost_today, self.topic

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON; what is infinite is "infinite"."""
        return {
            "topic": self.topic,
            "today": str(self.today),
            "set_to": None if self.set_to is None else str(self.set_to),
            "loss_today": plain(self.loss_today),
            "loss_after": plain(self.loss_after),
            "refused_today": plain(self.refused_today),
            "refused_after": plain(self.refused_after),
            "severity": self.severity,
            "why": self.why,
            "held_back": self.held_back,
            "moves": self.moves,
            "choice": choice_dict(self.choice),
            "goals": [
                plain({**vars(goal), "by": None if goal.by is None else str(goal.by)})
                for goal in self.goals
            ],
        }


@dataclass(frozen=True)
class Verdict:
    """What to set, for one topic or a whole cluster; ``str`` gives the headline and the text.

    Attributes
    ----------
    headline : str
        What to do, in at most 25 words.
    text : str
        Why; with the headline at most 60 words for up to six topics, and no statistics.
    actions : tuple of Action
        One for each topic, the worst first.
    now : tuple of str
        What is broken at this moment, first.
    floor : Floor or None
        What no setting prevents, of the topic that is worst after the changes; None without topics.
    choice : SettingChoice or None
        That of the least confident action.
    confidence : str
        "sure", "likely" or "depends"; "" where no draws were taken.
    below : tuple of str
        Sentences for below the text: what no setting prevents, how sure, what is held back.
    undrawn : int
        Topics whose choice was made at the card's middle values only.
    command_of : callable or None
        Returns the shell lines that make an action's change; None where no cluster is known.
    """

    headline: str
    text: str
    actions: tuple[Action, ...]
    now: tuple[str, ...]
    floor: Floor | None
    choice: SettingChoice | None
    confidence: str
    below: tuple[str, ...] = ()
    undrawn: int = 0
    command_of: Callable[[Action], str] | None = field(default=None, compare=False, repr=False)

    @property
    def severity(self) -> str:
        """The worst of the actions."""
        return min((action.severity for action in self.actions), key=SEVERITIES.index, default=OK)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON; what is infinite is "infinite".

        A break-even of "infinite" minutes: however much a loss matters, the setting is no better.
        """
        floor = self.floor
        return {
            "headline": self.headline,
            "text": self.text,
            "now": list(self.now),
            "actions": [action.to_dict() for action in self.actions],
            "floor": None
            if floor is None
            else {
                "losses_per_year": plain(floor.losses_per_year),
                "minutes_without_writes_per_year": plain(floor.minutes_without_writes_per_year),
                "cause": floor.cause,
            },
            "choice": None if self.choice is None else choice_dict(self.choice),
            "confidence": self.confidence,
            "below": list(self.below),
        }

    def __str__(self) -> str:
        return "\n".join(filter(None, (self.headline, self.text)))

    def __repr__(self) -> str:
        return "\n".join([str(self), *self.below])

    def as_html(self, state: Sequence[str] = ()) -> Html:
        """Return the first screen of a page; sentences alone where nothing can be drawn.

        Parameters
        ----------
        state : sequence of str
            The state of the cluster, where something is out of sync.
        """
        try:
            drawn: Html = plotting.draw("verdict", self, state)
        except MissingExtraError:
            return html_verdict(self.headline, self.text, *state, *self.below)
        return drawn

    def _repr_html_(self) -> str:
        return self.as_html().text


INFINITE = "infinite"
"""What stands for an infinite number in plain data: JSON has none."""


def plain(value: Any) -> Any:
    """Return numbers, and mappings of them, with words for what is infinite.

    >>> plain({"low": 0.0, "high": float("inf")})
    {'low': 0.0, 'high': 'infinite'}
    """
    if isinstance(value, Mapping):
        return {name: plain(number) for name, number in value.items()}
    return INFINITE if isinstance(value, float) and math.isinf(value) else value


def choice_dict(choice: SettingChoice) -> dict[str, Any]:
    """Return a choice as plain data."""
    spreads = {name: getattr(choice, name) for name in ("break_even_minutes", "break_even_above")}
    return {
        "setting": str(choice.setting),
        "minutes_per_loss": choice.minutes_per_loss,
        "confidence": choice.confidence,
        "best_in": choice.best_in,
        "kept_in": choice.kept_in,
        "draws": choice.draws,
        "regret": plain(choice.regret._asdict()),
        "runner_up": None if choice.runner_up is None else str(choice.runner_up),
        **{name: prices and plain(prices._asdict()) for name, prices in spreads.items()},
        "pays_from_minutes": plain(choice.pays_from_minutes),
        "pays_to_minutes": plain(choice.pays_to_minutes),
        "depends_on": None if choice.depends_on is None else list(choice.depends_on),
        "measure_next": [
            plain({**vars(number), "then": None if number.then is None else str(number.then)})
            for number in choice.measure_next
        ],
    }
