"""What `recommend` returns: the best settings, everything they were compared with, and the way."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from advisor import plotting
from advisor.advice.choice import Choice, measures_of
from advisor.advice.findings.catalogue import Finding
from advisor.advice.findings.checks import check_cluster, check_producer, check_replacement
from advisor.advice.goals import Goals
from advisor.advice.migration.plan import DEFAULT_THROTTLE, Plan, make_plan
from advisor.advice.phrases import count
from advisor.advice.recommendations import reasons
from advisor.advice.recommendations.loss_story import Story, tell
from advisor.advice.tolerance import ToleranceRow, rack_rule, tolerance_table
from advisor.cluster import Cluster
from advisor.formatting import as_given, significant
from advisor.protocol.rules.config import Config
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.workload import Workload
from advisor.tables import RowTable, html_list, html_table, html_verdict


@dataclass(frozen=True, repr=False)
class Recommendation(RowTable):
    """The settings that meet the goals at least cost, or the best compromise.

    Attributes
    ----------
    cluster, model, load, goals
        What was asked.
    choices : tuple of Choice
        Everything that was compared, best first.
    current : Choice or None
        What runs today.
    topics : tuple of str
        The topics that the commands bring there.
    notes : tuple of str
        What was assumed or left out, one sentence each.
    """

    cluster: Cluster
    model: FailureModel
    load: Workload
    goals: Goals
    choices: tuple[Choice, ...]
    current: Choice | None = None
    topics: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    _INTERVALS = True

    @property
    def best(self) -> Choice:
        """The recommended choice."""
        return self.choices[0]

    @property
    def verdict(self) -> str:
        """The answer in one or two sentences."""
        missing = reasons.shortfall(self.best, self.goals, self.rack_rule)
        text = reasons.verdict(self.best, self.where)
        return f"{text} {missing}" if missing else text

    @property
    def where(self) -> str:
        """The cluster in words: "your six brokers in three racks"."""
        brokers = count(len(self.cluster.brokers), "broker")
        racks = len(self.cluster.racks)
        return f"your {brokers}" + (f" in {count(racks, 'rack')}" if racks else "")

    @property
    def tolerances(self) -> str:
        """How many brokers may be lost: the three numbers, in one sentence."""
        return reasons.tolerances(self.best)

    @property
    def rack_rule(self) -> str:
        """What the racks at hand allow when one of them goes."""
        return rack_rule(self.cluster.brokers, str(self.best.config.mode))

    @property
    def why(self) -> tuple[str, ...]:
        """What dominates, and what the neighbours of the recommended setting would do."""
        return reasons.reasons(self.best, self.choices, self.cluster.brokers)

    @cached_property
    def stories(self) -> tuple[tuple[Config, Story], ...]:
        """How the recommended settings, and today's, would lose a record; some seconds each."""
        configs = [self.best.config, *([self.current.config] if self.current else [])]
        return tuple((config, tell(config)) for config in dict.fromkeys(configs))

    @cached_property
    def plan(self) -> Plan:
        """How to get there and back."""
        throttle = int(self.model.get("copy.bytes_per_second", DEFAULT_THROTTLE))
        return make_plan(self.cluster, self.best.config, self.load, throttle, self.topics)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is worth saying about the cluster and the recommended or current producer."""
        producer = self.current or self.best
        return (
            *check_cluster(self.cluster),
            *check_replacement(self.best.reliability),
            *check_producer(producer.config, self.model, self._given_up),
        )

    @property
    def _given_up(self) -> dict[int, float]:
        """Records given up a year with the best setting, by how long the producer waits."""
        return {
            choice.config.delivery_timeout_ms: choice.reliability.records_refused_per_year
            for choice in self.choices
            if choice.name == self.best.name and choice.config.delivery_timeout_ms is not None
        }

    def commands(self) -> list[str]:
        """Return the lines for a shell that make the change, comments included.

        The way back is `plan.rollback`; files that the lines name are in `files()`.
        """
        return self.plan.lines

    def files(self) -> dict[str, str]:
        """Return the files to go with the commands, content by name."""
        return {
            **self.plan.files,
            "commands.sh": _script(self.plan.lines),
            "rollback.sh": _script(self.plan.rollback),
        }

    def tolerance_table(self) -> tuple[ToleranceRow, ...]:
        """Return what losing a rack does for each RF and min ISR; empty if racks are unknown."""
        return tolerance_table(self.cluster.brokers, kafka_version=self.best.config.kafka_version)

    def _entries(self) -> tuple[Choice, ...]:
        return self.choices

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "verdict": self.verdict,
            "meets_all_goals": self.best.meets_all,
            "best": _choice_dict(self.best),
            "current": None if self.current is None else _choice_dict(self.current),
            "tolerates": _tolerates(self.best),
            "rack_rule": self.rack_rule,
            "why": list(self.why),
            "goals": self.goals.to_dict(),
            "load": self.load.to_dict(),
            "model": self.model.name,
            "notes": list(self.notes),
            "findings": [finding.to_dict() for finding in self.findings],
            "commands": self.commands(),
            "rollback": list(self.plan.rollback),
            "files": self.files(),
            "choices": self.rows(intervals=False),
        }

    def report(self, path: str | os.PathLike[str]) -> Any:
        """Write everything as one HTML file that needs nothing from outside.

        Raises
        ------
        MissingExtraError
            The libraries that draw are not installed.
        """
        return plotting.draw("report", self, path)

    def plot(self, ax: Any = None) -> Any:
        """Draw durability against availability, with the current and recommended settings.

        Raises
        ------
        MissingExtraError
            The libraries that draw are not installed.
        """
        return plotting.draw("recommendation", self, ax)

    def explain(self) -> str:
        """Return the whole reasoning as text."""
        parts = [self.verdict, self.tolerances, self.rack_rule, *self.why, *self.notes]
        if self.current is not None and self.current.config != self.best.config:
            parts.insert(1, f"Today: {reasons.verdict(self.current, self.where)}")
        return "\n".join(parts)

    def __repr__(self) -> str:
        return "\n".join([self.verdict, self.tolerances, *self.why])

    def _repr_html_(self) -> str:
        rows = [_short_row(choice) for choice in self.choices]
        head = html_verdict(self.verdict, self.tolerances)
        return f"{head}{html_list(self.why)}{html_table(rows)}"


def _choice_dict(choice: Choice) -> dict[str, Any]:
    measures = {}
    for name, value in measures_of(choice.reliability).items():
        low, high = choice.reliability.interval(name)
        measures[name] = {"value": value, "low": low, "high": high}
    return {
        "name": choice.name,
        "config": choice.config.to_dict(),
        "measures": measures,
        "meets": dict(choice.meets),
        "meets_all": choice.meets_all,
    }


def _tolerates(choice: Choice) -> Mapping[str, int]:
    t = choice.reliability.tolerates
    return {
        "without_loss": t.without_loss,
        "while_writable": t.while_writable,
        "while_readable": t.while_readable,
    }


def _short_row(choice: Choice) -> dict[str, object]:
    patience = choice.config.delivery_timeout_ms
    return {
        "RF": choice.config.replication_factor,
        "min ISR": choice.config.min_insync_replicas,
        "acks": choice.config.acks,
        "delivery timeout, s": "none" if patience is None else as_given(patience / 1000.0),
        **{name: significant(value) for name, value in measures_of(choice.reliability).items()},
        "goals": "met" if choice.meets_all else f"{len(choice.unmet)} missed",
    }


def _script(lines: list[str] | tuple[str, ...]) -> str:
    return "".join(f"{line}\n" for line in ("#!/bin/sh", "set -e", *lines))
