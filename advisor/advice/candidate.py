"""A candidate setting: its reliability, and the goals that it meets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from advisor.advice.findings.catalogue import Finding
from advisor.advice.findings.checks import check_setting
from advisor.advice.goals import Goals, goal_words, judge
from advisor.advice.phrases import listed
from advisor.advice.tolerance import Survival, fatal_racks, survival
from advisor.decision.evaluator import LOSSES, MINUTES, measured
from advisor.errors import InputError, NotComputedError
from advisor.formatting import as_given, once_in, significant, time_per_year
from advisor.protocol.rules.config import Config
from advisor.reliability import measure_table
from advisor.reliability.common_cause.placement import Brokers
from advisor.reliability.results.reliability import Reliability


@dataclass(frozen=True)
class Candidate:
    """A configuration, its reliability, and the goals that it meets.

    meets: goal (a measure, "survive_without_loss" or "survive_writable") to whether it is met, by
        the whole measure.
    survival: effect of losing one rack with its brokers and controllers; None if a broker's rack is
        unknown.
    retained_bytes: bytes of one copy of all topics with their own retention; None: with that of the
        load.
    """

    config: Config
    reliability: Reliability
    meets: Mapping[str, bool]
    survival: Survival | None
    retained_bytes: float | None = None

    @property
    def meets_all(self) -> bool:
        """Whether every goal is met."""
        return all(self.meets.values())

    def cost(self, minutes_per_loss: float) -> float:
        """Return what losses and minutes without writes cost a year, in minutes without writes."""
        amounts = measured(self.reliability)
        return amounts[MINUTES] + minutes_per_loss * amounts[LOSSES]

    @property
    def bytes_stored(self) -> float:
        """Bytes on the disks of all brokers."""
        if self.retained_bytes is None:
            return self.reliability.cost.bytes_stored
        return self.retained_bytes * (self.config.replication_factor or 1)

    @property
    def unmet(self) -> tuple[str, ...]:
        """Goals that are not met."""
        return tuple(goal for goal, is_met in self.meets.items() if not is_met)

    @cached_property
    def risks(self) -> tuple[Finding, ...]:
        """Findings that an audit would give any topic and producer with this configuration."""
        return tuple(check_setting(self.config, self.reliability.model))

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
            if intervals:
                low, high = self.reliability.interval(measure)
                line[f"{measure}_low"], line[f"{measure}_high"] = low, high
        line |= {f"meets_{goal}": is_met for goal, is_met in self.meets.items()}
        return line | {"meets_all": self.meets_all}

    def short_row(self) -> dict[str, object]:
        """Return one row of the table shown in notebooks, in words and short numbers."""
        timeout_ms = self.config.delivery_timeout_ms
        result = self.reliability
        return {
            "RF": self.config.replication_factor,
            "min ISR": self.config.min_insync_replicas,
            "acks": self.config.acks,
            "delivery timeout, s": "none" if timeout_ms is None else as_given(timeout_ms / 1000.0),
            "a record is lost": lost_words(result),
            "records lost a year": significant(result.acked_records_lost_per_year),
            "writes refused a year": time_per_year(result.write_unavailability),
            "failed sends a year": significant(result.records_refused_per_year),
            "goals": self.goals,
        }

    @property
    def goals(self) -> str:
        """Whether the goals are met, in a word or two."""
        if not self.meets:
            return "none"
        return "met" if self.meets_all else f"{len(self.unmet)} missed"

    def to_dict(self) -> dict[str, object]:
        """Return setting, measures with 95 % intervals, and goals as plain JSON data."""
        measures = {}
        for name, value in measures_of(self.reliability).items():
            low, high = self.reliability.interval(name)
            measures[name] = {"value": value, "low": low, "high": high}
        return {
            "name": self.name,
            "config": self.config.to_dict(),
            "measures": measures,
            "meets": dict(self.meets),
            "meets_all": self.meets_all,
        }


def measures_of(reliability: Reliability) -> dict[str, float]:
    """Return the measures that goals can limit, without those that could not be computed."""
    measures = {}
    for name in measure_table.goals():
        try:
            measures[name] = float(measure_table.measure(name).of(reliability))
        except NotComputedError:
            continue
    return measures


def lost_words(result: Reliability) -> str:
    """Return how often a record is lost, for a column."""
    return "none acknowledged" if result.config.acks == 0 else once_in(result.mean_years_to_loss)


def goals_words(candidate: Candidate) -> str:
    """Return which goals are met, for a column: "none", "met", "missed: losses, writes"."""
    if not candidate.unmet:
        return candidate.goals
    return f"missed: {', '.join(goal_words(goal, brief=True) for goal in candidate.unmet)}"


def choose(
    config: Config,
    reliability: Reliability,
    goals: Goals,
    rack_share: int | None,
    racks: Collection[str | None] | None = None,
) -> Candidate:
    """Compare a configuration's reliability with the goals.

    rack_share: largest number of replicas of one partition in one rack; None if a rack is unknown.
    """
    losing_rack = None
    if rack_share is not None:
        losing_rack = _losing_a_rack(config, reliability.cluster, rack_share, racks)
    required = survival(1, config) if goals.survive == "broker" else None
    if goals.survive == "rack":
        if losing_rack is None:
            raise InputError(
                'survive="rack" needs the rack of every broker: give the racks (--racks), or ask '
                'for survive="broker".'
            )
        required = losing_rack
    meets = judge(goals, measures_of(reliability), required)
    return Candidate(config, reliability, meets, losing_rack)


def _losing_a_rack(
    config: Config, cluster: Brokers, rack_share: int, racks: Collection[str | None] | None
) -> Survival:
    """Return the effect of losing a rack; writes stop if its controllers were needed."""
    effect = survival(rack_share, config)
    racks_with_replicas = set(cluster.brokers.values()) if racks is None else racks
    if fatal_racks(getattr(cluster, "controllers", None), racks_with_replicas):
        return replace(effect, writable=False, writable_while_patching=False)
    return effect


def goals_for(candidate: Candidate) -> str:
    """Return the missed goals: "the goal for lost records", "the goals for a, b and c"."""
    words = list(map(goal_words, candidate.unmet))
    return f"the goal{'s' if len(words) > 1 else ''} for {listed(words)}"
