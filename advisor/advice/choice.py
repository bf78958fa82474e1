"""A candidate setting: its reliability, the goals that it meets, and its rank among others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from advisor.advice.goals import (
    MEASURES,
    SURVIVE_WITHOUT_LOSS,
    SURVIVE_WRITABLE,
    Goals,
    decades_short,
    judge,
)
from advisor.advice.phrases import listed
from advisor.advice.tolerance import Survival, survival
from advisor.errors import InputError, NotComputedError
from advisor.formatting import as_given, significant
from advisor.protocol.rules.config import Config
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.settings_split import PARTS

# Margin in decades of a measure that is 0 or has no limit; larger than any other.
_LARGEST_MARGIN = 20.0
# Five per cent. Failure rates are not known well enough for a smaller difference to count.
_TIE_DECADES = 0.02


@dataclass(frozen=True)
class Choice:
    """A configuration, its reliability, and the goals that it meets.

    Attributes
    ----------
    config : Config
    reliability : Reliability
    meets : mapping of str to bool
        Goal (a measure, "survive_without_loss" or "survive_writable") to whether what settings
        decide meets it.
    survival : Survival or None
        Effect of losing one rack; None if a broker's rack is unknown.
    """

    config: Config
    reliability: Reliability
    meets: Mapping[str, bool]
    survival: Survival | None

    @property
    def meets_all(self) -> bool:
        """Whether every goal is met."""
        return all(self.meets.values())

    @property
    def unmet(self) -> tuple[str, ...]:
        """Goals that are not met."""
        return tuple(goal for goal, met in self.meets.items() if not met)

    @property
    def name(self) -> str:
        """Short name: "RF 3, min.insync.replicas 2, acks=all"."""
        c = self.config
        return (
            f"RF {c.replication_factor}, min.insync.replicas {c.min_insync_replicas}, acks={c.acks}"
        )

    def row(self, intervals: bool = True) -> dict[str, object]:
        """Return one table row: settings, measures, 95 % intervals if wanted, goals."""
        line: dict[str, object] = {
            "replication_factor": self.config.replication_factor,
            "min_insync_replicas": self.config.min_insync_replicas,
            "acks": self.config.acks,
            "retries": self.config.retries,
            "delivery_timeout_ms": self.config.delivery_timeout_ms,
        }
        for measure, value in measures_of(self.reliability).items():
            line[measure] = value
            line[f"{measure}_beyond_settings"] = self.reliability.beyond_settings(measure)
            if intervals:
                low, high = self.reliability.interval(measure)
                line[f"{measure}_low"], line[f"{measure}_high"] = low, high
        line |= {f"meets_{goal}": met for goal, met in self.meets.items()}
        return line | {"meets_all": self.meets_all}

    def short_row(self) -> dict[str, object]:
        """Return one row of the table shown in notebooks, in words and short numbers."""
        timeout_ms = self.config.delivery_timeout_ms
        measures = measures_of(self.reliability)
        return {
            "RF": self.config.replication_factor,
            "min ISR": self.config.min_insync_replicas,
            "acks": self.config.acks,
            "delivery timeout, s": "none" if timeout_ms is None else as_given(timeout_ms / 1000.0),
            **{name: significant(value) for name, value in measures.items()},
            "goals": "met" if self.meets_all else f"{len(self.unmet)} missed",
        }

    def _part(self, measure: str, part: str) -> dict[str, float]:
        low, high = self.reliability.interval(measure, part)
        value: float = getattr(self.reliability, part)(measure)
        return {"value": value, "low": low, "high": high}

    def to_dict(self) -> dict[str, object]:
        """Return setting, measures and their parts with 95 % intervals, and goals as JSON data."""
        measures = {}
        for name, value in measures_of(self.reliability).items():
            low, high = self.reliability.interval(name)
            parts = {part: self._part(name, part) for part in PARTS}
            measures[name] = {"value": value, "low": low, "high": high, **parts}
        return {
            "name": self.name,
            "config": self.config.to_dict(),
            "measures": measures,
            "meets": dict(self.meets),
            "meets_all": self.meets_all,
        }


def measures_of(reliability: Reliability) -> dict[str, float]:
    """Return the measures that goals can limit, without those that could not be computed."""
    return _computed(lambda name: float(getattr(reliability, name)))


def decided_measures(reliability: Reliability) -> dict[str, float]:
    """Return what settings decide of the measures that goals can limit."""
    return _computed(reliability.by_settings)


def _computed(value: Callable[[str], float]) -> dict[str, float]:
    measures = {}
    for name in MEASURES:
        try:
            measures[name] = value(name)
        except NotComputedError:
            continue
    return measures


def choose(
    config: Config, reliability: Reliability, goals: Goals, rack_share: int | None
) -> Choice:
    """Compare a configuration's reliability with the goals.

    Parameters
    ----------
    config : Config
    reliability : Reliability
    goals : Goals
    rack_share : int or None
        Largest number of replicas of one partition in one rack; None if a rack is unknown.

    Raises
    ------
    InputError
        If the loss of a rack must be survived and a rack is unknown.
    """
    losing_rack = None if rack_share is None else survival(rack_share, config)
    required = survival(1, config) if goals.survive == "broker" else None
    if goals.survive == "rack":
        if losing_rack is None:
            raise InputError(
                'survive="rack" needs the rack of every broker: give the racks (--racks), or ask '
                'for survive="broker".'
            )
        required = losing_rack
    meets = judge(goals, decided_measures(reliability), required)
    return Choice(config, reliability, meets, losing_rack)


def ranked(choices: Sequence[Choice], goals: Goals) -> list[Choice]:
    """Return the choices, best first.

    Choices that meet every goal come first, ordered by number of replicas, then by delivery
    timeout (the default first), then by the margin to the goal that is met most narrowly.

    The others are ordered by number of missed goals; then, among those that miss a durability
    goal, first those that tolerate a broker failure without loss and with writes; then by how many
    decades they miss the goals, durability first. Those within `_TIE_DECADES` of the best count
    as equal, and are ordered by number of replicas, then by tolerated broker failures.
    """
    fewest = min(map(_missed_goals, choices))
    nearest = min(
        _decades_short(choice, goals) for choice in choices if _missed_goals(choice) == fewest
    )
    return sorted(choices, key=lambda choice: _rank(choice, goals, nearest + _TIE_DECADES))


def _rank(choice: Choice, goals: Goals, tie: float) -> tuple[object, ...]:
    config, margin = choice.config, _margin(goals, decided_measures(choice.reliability))
    timeout = config.delivery_timeout_ms or 0 if "delivery_timeout_ms" in config.explicit else 0
    settings = (config.replication_factor, timeout)
    rest = (-margin, config.acks != "all")
    if choice.meets_all:
        return (0, 0.0, 0, *settings, *rest)
    durable, tolerated = _durable(choice), _tolerated_failures(choice)
    decades = max(_decades_short(choice, goals), tie)
    return (*_missed_goals(choice), decades, not durable, *settings, -tolerated, *rest)


def _missed_goals(choice: Choice) -> tuple[int, bool]:
    """Return the number of missed goals, and whether durability is among them without tolerance."""
    return (len(choice.unmet), not _durable(choice) and _tolerated_failures(choice) < 1)


def _durable(choice: Choice) -> bool:
    """Whether every goal about losses is met."""
    losses = (SURVIVE_WITHOUT_LOSS, "loss_probability_per_year", "acked_records_lost_per_year")
    return all(choice.meets.get(goal, True) for goal in losses)


def _tolerated_failures(choice: Choice) -> int:
    """Return how many brokers can fail with neither a loss nor refused writes."""
    tolerates = choice.reliability.tolerates
    return min(tolerates.without_loss, tolerates.while_writable)


def _decades_short(choice: Choice, goals: Goals) -> float:
    return decades_short(goals, decided_measures(choice.reliability))


def _margin(goals: Goals, measures: Mapping[str, float]) -> float:
    """Return the smallest distance, in decades, between a limit and its measure."""
    margins = [
        math.log10(limit / measures[name]) if limit > 0 < measures[name] else _LARGEST_MARGIN
        for name, limit in goals.limits.items()
    ]
    return min(margins, default=_LARGEST_MARGIN)


GOAL_WORDS = {
    "loss_probability_per_year": "lost records",
    "write_unavailability": "time without writes",
    "read_unavailability": "time without reads",
    "records_refused_per_year": "refused records",
    "acked_records_lost_per_year": "the number of lost records",
    SURVIVE_WITHOUT_LOSS: "losses in one failure",
    SURVIVE_WRITABLE: "writes after one failure",
}
"""What each goal is about, for use after "the goals for" and after "missed:"."""

BRIEF_GOALS = {
    **GOAL_WORDS,
    "loss_probability_per_year": "losses",
    "write_unavailability": "writes",
    "read_unavailability": "reads",
}
"""`GOAL_WORDS` for narrow columns."""


def goals_for(choice: Choice) -> str:
    """Return the missed goals: "the goal for lost records", "the goals for a, b and c"."""
    words = [GOAL_WORDS[goal] for goal in choice.unmet]
    return f"the goal{'s' if len(words) > 1 else ''} for {listed(words)}"
