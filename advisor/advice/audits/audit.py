"""Every topic of a described cluster, as it is and where it stands, worst first."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from advisor.advice.audits.copyset_spread import spread_numbers, spread_words
from advisor.advice.choice import BRIEF_GOALS, Choice, choose, goals_for, measures_of
from advisor.advice.findings.catalogue import BROKEN, Finding, by_weight
from advisor.advice.findings.checks import (
    check_cluster,
    check_producer,
    check_replacement,
    check_topic,
)
from advisor.advice.goals import Goals, decades_short
from advisor.advice.kafka_version import controller_of, version_of
from advisor.advice.phrases import every, first_of, listed, sentence
from advisor.advice.tolerance import share_of
from advisor.advice.topic_settings import amount_of, config_of, kept_for_ever, load_of
from advisor.cluster import Cluster, Partition, Topic
from advisor.formatting import as_given, time_per_year
from advisor.protocol.rules.config import Config
from advisor.reliability.common_cause.copysets import Copysets, copysets
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.workload import Workload
from advisor.tables import RowTable, html_list, html_table, html_verdict

Evaluate = Callable[..., Reliability]
WITHOUT_INTERVALS = (
    "These values have no 95 % intervals, which would take hours for hundreds of topics: "
    "advisor evaluate gives them for one setting."
)


@dataclass(frozen=True)
class TopicAudit:
    """One topic and what its settings and its placement do.

    Attributes
    ----------
    topic : Topic
    partitions : tuple of int
        Those judged here: a topic whose partitions differ in their replicas is judged in parts.
    choice : Choice
        Its settings, reliability and goals.
    findings : tuple of Finding
    """

    topic: Topic
    partitions: tuple[int, ...]
    choice: Choice
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether it meets every goal and nothing of it is broken now."""
        return self.choice.meets_all and not self.broken

    @property
    def broken(self) -> tuple[str, ...]:
        """What of it does not work at the moment: "2 of 3 partitions without a leader"."""
        found = [f for f in self.findings if f.rule.weight == BROKEN]
        return tuple(f.detail.rstrip(".") for f in found)

    @property
    def missed(self) -> str:
        """What it falls short of, in few words: "losses, writes"; "" when it is well."""
        return ", ".join([*self.broken, *(BRIEF_GOALS[goal] for goal in self.choice.unmet)])

    @property
    def sentence(self) -> str:
        """What is to be expected of it, in one sentence."""
        r = self.choice.reliability
        text = (
            f"{self.topic.name} ({self.choice.name}): an acknowledged record is lost "
            f"{every(r.mean_years_to_loss)}, writes are refused "
            f"{time_per_year(r.write_unavailability)}"
        )
        if self.broken:
            text += f"; now {listed(self.broken)}"
        if self.choice.unmet:
            text += f"; misses {goals_for(self.choice)}"
        return f"{text}."

    def row(self, intervals: bool = False) -> dict[str, object]:
        """Return one line of the table."""
        line: dict[str, object] = {"topic": self.topic.name, "partitions": len(self.partitions)}
        line |= self.choice.row(intervals)
        line["ok"] = self.ok
        line["findings"] = " ".join(dict.fromkeys(finding.code for finding in self.findings))
        return line


@dataclass(frozen=True, repr=False)
class Audit(RowTable):
    """All topics of a cluster, worst first.

    First come those that do not work now, then those that miss a goal, by how far, then the
    others; among equals what loses most records, then what is longest without writes.

    Attributes
    ----------
    cluster, model, goals
        What was asked.
    topics : tuple of TopicAudit
    general : tuple of Finding
        About the cluster and the producers.
    copysets : Copysets
        The sets of brokers that hold every replica of some partition.
    notes : tuple of str
        What was assumed.
    """

    cluster: Cluster
    model: FailureModel
    goals: Goals
    topics: tuple[TopicAudit, ...]
    general: tuple[Finding, ...]
    copysets: Copysets
    notes: tuple[str, ...] = field(default=())

    _INTERVALS = False

    @property
    def ok(self) -> bool:
        """Whether every topic meets every goal and nothing is broken now."""
        return all(topic.ok for topic in self.topics)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything found: what is broken now, then risks, then notes; worst topics first."""
        return by_weight([*self.general, *(f for topic in self.topics for f in topic.findings)])

    @property
    def verdict(self) -> str:
        """The answer in one or two sentences: what is broken now before what is to be feared."""
        broken = [f"{t.topic.name} ({listed(t.broken)})" for t in self.topics if t.broken]
        broken = list(dict.fromkeys(broken))
        if not broken:
            return self._outlook
        return f"Not working when this was described: {first_of(broken)}. {self._outlook}"

    @property
    def _outlook(self) -> str:
        short = list(dict.fromkeys(t.topic.name for t in self.topics if not t.ok))
        total = len({t.topic.name for t in self.topics})
        topics = "the only topic" if total == 1 else f"{total:,} topics"
        if not short:
            text = f"{'' if total == 1 else 'all '}{topics} meet{'s' if total == 1 else ''}"
            return f"{text[0].upper()}{text[1:]} the goals."
        names = first_of(short)
        if total == 1:
            return f"The only topic falls short of the goals: {names}."
        falls = "falls" if len(short) == 1 else "fall"
        who = f"All {topics}" if len(short) == total else f"{len(short):,} of {topics}"
        return f"{who} {falls} short of the goals: {names}."

    @property
    def spread(self) -> str:
        """On how many sets of brokers the partitions stand, and what that means, in sentences."""
        return spread_words(self.copysets)

    def _entries(self) -> tuple[TopicAudit, ...]:
        return self.topics

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "verdict": self.verdict,
            "ok": self.ok,
            "goals": self.goals.to_dict(),
            "model": self.model.name,
            "topics": self.rows(),
            "spread": spread_numbers(self.copysets),
            "findings": [finding.to_dict() for finding in self.findings],
            "notes": list(self.notes),
        }

    def explain(self) -> str:
        """Return the verdict, every topic's sentence and every finding as text."""
        lines = [self.verdict, *(topic.sentence for topic in self.topics)]
        lines += [str(finding) for finding in self.findings]
        return "\n".join([*lines, self.spread, self.goals.sentence, *self.notes])

    def __repr__(self) -> str:
        return "\n".join([self.verdict, *(f"  {topic.sentence}" for topic in self.topics)])

    def _repr_html_(self) -> str:
        rows = [
            {
                "topic": t.topic.name,
                "partitions": len(t.partitions),
                "setting": t.choice.name,
                "a record is lost": every(t.choice.reliability.mean_years_to_loss),
                "refused a year": time_per_year(t.choice.reliability.write_unavailability),
                "goals": "met" if t.ok else f"missed: {t.missed}",
                "findings": " ".join(dict.fromkeys(f.code for f in t.findings)),
            }
            for t in self.topics
        ]
        return (
            f"{html_verdict(self.verdict)}{html_table(rows)}"
            f"<p>{html.escape(self.spread)}</p>{html_list(self.findings)}"
        )


def audit(
    cluster: Cluster,
    model: FailureModel,
    load: Workload | None = None,
    goals: Goals | None = None,
    kafka_version: str | None = None,
    producer: Mapping[str, Any] | None = None,
    evaluated: Evaluate = evaluate,
) -> Audit:
    """Judge every topic with its own settings, on the brokers that really hold its replicas.

    Parameters
    ----------
    cluster : Cluster
        With topics.
    model : FailureModel
    load : Workload, optional
        What is written to each topic; its number of partitions is the topic's own. A thousand
        records a second unless given.
    goals : Goals, optional
        The defaults of `Goals` unless given; they hold for each topic by itself.
    kafka_version : str, optional
        Unless given, the cluster's, or the newest that fits its description.
    producer : mapping of str to object, optional
        Producer settings as in `Config`; acks="all" and Kafka's defaults unless given.
    evaluated : callable, optional
        What evaluates; `advisor.evaluate` unless given.

    Raises
    ------
    AdvisorError
        Settings that Kafka refuses, or goals that cannot be judged.
    """
    goals = goals or Goals()
    version, note = version_of(cluster, kafka_version)
    notes = [note] if note else []
    if load is None:
        load = Workload()
        notes.append(f"No load was given: {amount_of(load)} to each topic were assumed.")
    settings = {"acks": "all", **controller_of(cluster, version), **(producer or {})}
    if "acks" not in (producer or {}):
        notes.append("Producers were taken to use acks=all.")
    endless = [topic.name for topic in cluster.topics if kept_for_ever(topic)]
    if endless:
        hours = as_given(load.retention_hours)
        notes.append(
            f"Records that retention.ms keeps for ever were taken to be kept {hours} hours: "
            f"{first_of(endless)}."
        )
    judged = []
    for topic in cluster.topics:
        findings = tuple(check_topic(topic, cluster, config_of(topic, version, settings)))
        for factor, members in _by_factor(topic).items():
            config = config_of(topic, version, settings).changed(replication_factor=factor)
            choice = _judged(
                cluster, members, config, model, load_of(topic, load), goals, evaluated
            )
            judged.append(TopicAudit(topic, tuple(p.index for p in members), choice, findings))
    judged.sort(key=lambda topic: _worst_first(topic, goals))
    assumed = dict.fromkeys(a for t in judged for a in t.choice.reliability.assumptions)
    return Audit(
        cluster=cluster,
        model=model,
        goals=goals,
        topics=tuple(judged),
        general=(
            *check_cluster(cluster),
            *_replacement(judged),
            *check_producer(Config(kafka_version=version, **settings), model),
        ),
        copysets=copysets(
            (p.held for t in cluster.topics for p in t.partitions), len(cluster.brokers)
        ),
        notes=(*notes, *map(sentence, assumed), *cluster.notes),
    )


def _replacement(judged: Sequence[TopicAudit]) -> Iterator[Finding]:
    """Yield what is to be said of replaced brokers: once, of the worst topic that it concerns."""
    for topic in judged:
        held = {p.index: p.held for p in topic.topic.partitions}
        placement = tuple(held[index] for index in topic.partitions)
        found = list(check_replacement(topic.choice.reliability, topic.topic.name, placement))
        if found:
            yield from found
            return


def _by_factor(topic: Topic) -> dict[int, list[Partition]]:
    parts: dict[int, list[Partition]] = {}
    for partition in topic.partitions:
        parts.setdefault(partition.replication_factor, []).append(partition)
    return parts


def _judged(
    cluster: Cluster,
    members: list[Partition],
    config: Config,
    model: FailureModel,
    load: Workload,
    goals: Goals,
    evaluated: Evaluate,
) -> Choice:
    held = tuple(p.held for p in members)
    share = len(members) / load.partitions
    part = replace(
        load, partitions=len(members), records_per_second=load.records_per_second * share
    )
    r = evaluated(cluster, config, model, part, placement=held)
    racks = dict(cluster.brokers)
    known = None not in racks.values()
    largest = max(share_of(replicas, racks) for replicas in set(held)) if known else None
    return choose(config, r, goals, largest)


def _worst_first(judged: TopicAudit, goals: Goals) -> tuple[object, ...]:
    choice, r = judged.choice, judged.choice.reliability
    measures = measures_of(r)
    return (
        not judged.broken,
        choice.meets_all,
        # A goal of surviving something is missed or not, and has no distance.
        -decades_short(goals, measures),
        -len(choice.unmet),
        -r.acked_records_lost_per_year,
        -measures.get("loss_probability_per_year", math.inf),
        -r.write_unavailability,
        judged.topic.name,
        judged.partitions,
    )
