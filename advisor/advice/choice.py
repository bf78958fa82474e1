"""One configuration with what it does, held against the goals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
from advisor.protocol.rules.config import Config
from advisor.reliability.results.reliability import Reliability

# More powers of ten than any limit leaves room for: what a measure of exactly 0 counts.
_FARTHEST = 20.0
# Five per cent: no card is known so well that less could tell one setting from another.
_ALIKE_DECADES = 0.02


@dataclass(frozen=True)
class Choice:
    """A configuration, its reliability, and which goals it meets.

    Attributes
    ----------
    config : Config
    reliability : Reliability
    meets : mapping of str to bool
        By goal: a measure's name, "survive_without_loss", "survive_writable".
    survival : Survival or None
        What losing one rack does; None when a rack is not known.
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
        """The goals that are not met."""
        return tuple(goal for goal, met in self.meets.items() if not met)

    @property
    def name(self) -> str:
        """The setting in short: "RF 3, min.insync.replicas 2, acks=all"."""
        c = self.config
        return (
            f"RF {c.replication_factor}, min.insync.replicas {c.min_insync_replicas}, acks={c.acks}"
        )

    def row(self, intervals: bool = True) -> dict[str, object]:
        """Return one line of the table: settings, measures, goals, and intervals if wanted."""
        line: dict[str, object] = {
            "replication_factor": self.config.replication_factor,
            "min_insync_replicas": self.config.min_insync_replicas,
            "acks": self.config.acks,
            "retries": self.config.retries,
            "delivery_timeout_ms": self.config.delivery_timeout_ms,
        }
        for measure, value in measures_of(self.reliability).items():
            line[measure] = value
            if intervals:
                ends = self.reliability.interval(measure)
                line[f"{measure}_low"], line[f"{measure}_high"] = ends
        line |= {f"meets_{goal}": met for goal, met in self.meets.items()}
        return line | {"meets_all": self.meets_all}


def measures_of(reliability: Reliability) -> dict[str, float]:
    """Return the measures that goals can be set for, as far as the card yields them."""
    found = {}
    for name in MEASURES:
        try:
            found[name] = float(getattr(reliability, name))
        except NotComputedError:
            continue
    return found


def choose(
    config: Config, reliability: Reliability, goals: Goals, rack_share: int | None
) -> Choice:
    """Hold a configuration's reliability against the goals.

    Parameters
    ----------
    config : Config
    reliability : Reliability
    goals : Goals
    rack_share : int or None
        Most replicas of a partition in one rack; None when a rack is not known.

    Raises
    ------
    InputError
        A rack is to be survived, and the racks are not known.
    """
    losing_rack = None if rack_share is None else survival(rack_share, config)
    wanted = survival(1, config) if goals.survive == "broker" else None
    if goals.survive == "rack":
        if losing_rack is None:
            raise InputError(
                'survive="rack" needs the rack of every broker: give the racks (--racks), or ask '
                'for survive="broker".'
            )
        wanted = losing_rack
    meets = judge(goals, measures_of(reliability), wanted)
    return Choice(config, reliability, meets, losing_rack)


def ranked(choices: Sequence[Choice], goals: Goals) -> list[Choice]:
    """Return the choices, best first.

    Those that meet every goal come first: fewest replicas, then the producer's default patience,
    then furthest inside the goal that it meets most narrowly. Of the others, those that miss
    fewest goals; where losses are among these, what a broker may leave without loss and with
    writes; then those that miss them by fewest powers of ten, durability before the rest.
    The nearest of these are alike where they differ by a few hundredths: then again fewest
    replicas, and the min ISR with which most brokers may go without loss and with writes.
    """
    nearest = min(map(_missed, choices))
    least = min(_short(choice, goals) for choice in choices if _missed(choice) == nearest)
    return sorted(choices, key=lambda choice: _rank(choice, goals, least + _ALIKE_DECADES))


def _rank(choice: Choice, goals: Goals, alike: float) -> tuple[object, ...]:
    config, margin = choice.config, _margin(goals, measures_of(choice.reliability))
    patience = config.delivery_timeout_ms or 0 if "delivery_timeout_ms" in config.explicit else 0
    settings = (config.replication_factor, patience)
    rest = (-margin, config.acks != "all")
    if choice.meets_all:
        return (0, 0.0, 0, *settings, *rest)
    durable, both = _durable(choice), _may_go(choice)
    short = max(_short(choice, goals), alike)
    return (*_missed(choice), short, not durable, *settings, -both, *rest)


def _missed(choice: Choice) -> tuple[int, bool]:
    """Return how many goals are missed, and whether losses are and no broker may go either."""
    return (len(choice.unmet), not _durable(choice) and _may_go(choice) < 1)


def _durable(choice: Choice) -> bool:
    """Whether it meets what is asked of losses."""
    kept = choice.meets.get(SURVIVE_WITHOUT_LOSS, True)
    return kept and choice.meets.get("loss_probability_per_year", True)


def _may_go(choice: Choice) -> int:
    """Return how many brokers may go without a loss and with writes going on."""
    brokers = choice.reliability.tolerates
    return min(brokers.without_loss, brokers.while_writable)


def _short(choice: Choice, goals: Goals) -> float:
    return decades_short(goals, measures_of(choice.reliability))


def _margin(goals: Goals, measures: Mapping[str, float]) -> float:
    """Powers of ten between the tightest goal and its measure."""
    margins = [
        math.log10(limit / measures[name]) if limit > 0 < measures[name] else _FARTHEST
        for name, limit in goals.limits.items()
    ]
    return min(margins, default=_FARTHEST)


GOAL_WORDS = {
    "loss_probability_per_year": "lost records",
    "write_unavailability": "time without writes",
    "read_unavailability": "time without reads",
    "records_refused_per_year": "refused records",
    SURVIVE_WITHOUT_LOSS: "losses in one failure",
    SURVIVE_WRITABLE: "writes after one failure",
}
"""What each goal is for, to stand after "the goals for" and after "missed:" alike."""

BRIEF_GOALS = {
    **GOAL_WORDS,
    "loss_probability_per_year": "losses",
    "write_unavailability": "writes",
    "read_unavailability": "reads",
}
"""The same in fewer words, where a column has to be narrow."""


def goals_for(choice: Choice) -> str:
    """Return what a choice misses: "the goal for lost records", "the goals for a, b and c"."""
    words = [GOAL_WORDS[goal] for goal in choice.unmet]
    return f"the goal{'s' if len(words) > 1 else ''} for {listed(words)}"
