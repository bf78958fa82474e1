"""Evaluates what the explorer shows: a setting, its curve, the present and the best setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from typing import Any

from advisor import catalog
from advisor.advice.candidate import Candidate, choose
from advisor.advice.goals import Goals
from advisor.advice.recommendations.recommend import recommend
from advisor.advice.tolerance import largest_share
from advisor.advice.topic_settings import load_of
from advisor.cluster.model import Cluster
from advisor.errors import AdvisorError
from advisor.present.interactive.commands import blocks
from advisor.present.interactive.controls import (
    CONTEXT,
    EVERY_ACKS,
    MOST_REPLICAS,
    NEW_TOPIC,
    SMALL_REPLICAS,
    STILL,
    capped,
    config_of,
    controls,
    left_out,
    min_isr_refusal,
    precomputed,
    refusal,
    values_of,
)
from advisor.present.interactive.settings_grid import (
    mark_json,
    page_json,
    setting_json,
    setting_key,
)
from advisor.present.outcome import point_of
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import evaluate, prepare
from advisor.reliability.failures.failure_model import FailureModel, load_model
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.workload import Workload

Values = Mapping[str, str]
_shipped = lru_cache(load_model)  # a card is read once
_LONG_TIMEOUT_MS = 600_000


@dataclass(frozen=True)
class Answer:
    """Computed settings and marks, as JSON.

    Attributes
    ----------
    settings : mapping of str to dict
        Settings as JSON, by their keys.
    marks : mapping of str to list of dict
        Present and recommended settings, by the controls that decide them.
    """

    settings: Mapping[str, dict[str, Any]]
    marks: Mapping[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class ExplorerModel:
    """A cluster, a card, a load and goals, with the settings evaluated for them so far.

    Settings and marks that were computed are cached.

    Attributes
    ----------
    cluster : Cluster
    model : FailureModel
        The initial card; `values["card"]` may name another.
    load : Workload
    goals : Goals
    start : Config
        Initial settings; options without a control stay as they are here.
    topic : str
        Initial topic; `NEW_TOPIC` for none of the cluster's.
    loads : mapping of str to Workload
        Traffic of topics, by name. Default: `load` with the partitions and retention of the topic.
    """

    cluster: Cluster
    model: FailureModel
    load: Workload
    goals: Goals
    start: Config
    topic: str = NEW_TOPIC
    loads: Mapping[str, Workload] = field(default_factory=dict)
    _settings: dict[str, dict[str, Any]] = field(default_factory=dict, compare=False, repr=False)
    _marks: dict[str, list[dict[str, Any]]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def most_replicas(self) -> int:
        """The largest replication factor offered."""
        return min(len(self.cluster.brokers), MOST_REPLICAS)

    @property
    def chosen(self) -> dict[str, str]:
        """Initial value of each control."""
        return values_of(self.start, self.topic, self.model.name)

    @property
    def controls(self) -> list[dict[str, Any]]:
        """Every control with its choices."""
        return controls(self.cluster, self.most_replicas, catalog.model_names(), self.chosen)

    def same_picture(self, values: Values) -> dict[str, str]:
        """Return the setting with the same curve and verdict: its producers retry as at first."""
        return {**values, **{name: self.chosen[name] for name in STILL}}

    def key(self, values: Values) -> str:
        """Return the name under which `explorer.js` finds a setting."""
        return setting_key(list(self.chosen), values)

    def setting(self, values: Values, intervals: bool = False) -> dict[str, Any]:
        """Return one setting as JSON, or why it has no answer; cached.

        Parameters
        ----------
        values : mapping of str to str
            Value of each control.
        intervals : bool
            Whether to compute 95 % intervals, which takes seconds.
        """
        key = self.key(values)
        if key not in self._settings or (intervals and not self.has_intervals(values)):
            try:
                self._settings[key] = self._computed(values, intervals)
            except AdvisorError as error:
                self._settings[key] = {"refusal": refusal(error)}
        return self._settings[key]

    def prepare(self, values: Values) -> None:
        """Solve a setting's chains in this process; other retries and timeouts then reuse them."""
        with suppress(AdvisorError):
            config = config_of(values, self.start)
            if not min_isr_refusal(config):
                prepare(self.cluster, config, self._card(values), self.load_of_topic(values))

    def load_of_topic(self, values: Values) -> Workload:
        """Return the traffic of a setting's topic."""
        if values["topic"] == NEW_TOPIC:
            return self.load
        given = self.loads.get(values["topic"])
        return given or load_of(self.cluster.topic(values["topic"]), self.load)

    def without_cache(self) -> ExplorerModel:
        """Return a copy with an empty cache, to be sent to another process."""
        return replace(self, _settings={}, _marks={})

    def store(self, answer: Answer) -> Answer:
        """Cache what another process computed; return it with the intervals cached here."""
        for key, setting in answer.settings.items():
            if key not in self._settings or _has_intervals(setting):
                self._settings[key] = setting
        self._marks.update(answer.marks)
        return replace(answer, settings={key: self._settings[key] for key in answer.settings})

    def context(self, values: Values) -> str:
        """Return the name under which `explorer.js` finds the marks of a setting's topic."""
        return setting_key(CONTEXT, values)

    def is_marked(self, values: Values) -> bool:
        """Whether the marks of a setting's topic were computed."""
        return self.context(values) in self._marks

    def is_answered(self, values: Values) -> bool:
        """Whether a setting was computed, with or without its marks and intervals."""
        return self.key(values) in self._settings

    def has_intervals(self, values: Values) -> bool:
        """Whether a setting was computed with its intervals."""
        return _has_intervals(self._settings.get(self.key(values), {}))

    def answer(self, values: Values) -> Answer:
        """Return a setting, the settings of its curve and the marks of its topic."""
        settings = {
            self.key(each): self.setting(each) for each in (values, *self.curve_settings(values))
        }
        context, marked = self.marks(values)
        return Answer(settings, {context: marked})

    def with_intervals(self, values: Values) -> Answer:
        """Return a setting with its intervals, which takes seconds."""
        return Answer({self.key(values): self.setting(values, intervals=True)}, {})

    def curve_settings(self, values: Values) -> Iterator[dict[str, str]]:
        """Yield the settings of the same curve: other replication factors and min ISRs.

        Chains grow steeply with the replication factor, so it goes up to `SMALL_REPLICAS` only.
        """
        for factor in range(1, min(self.most_replicas, SMALL_REPLICAS) + 1):
            for least in range(1, factor + 1):
                place = {"replication_factor": str(factor), "min_insync_replicas": str(least)}
                yield {**values, **place}

    def computed_curve(self, values: Values) -> Answer:
        """Return the computed part of a curve, without the setting itself, and its marks."""
        own, context = self.key(values), self.context(values)
        keys = [key for key in map(self.key, self.curve_settings(values)) if key != own]
        settings = {key: self._settings[key] for key in keys if key in self._settings}
        return Answer(settings, {c: self._marks[c] for c in (context,) if c in self._marks})

    def missing_settings(self, values: Values) -> list[dict[str, str]]:
        """Return the settings of the same curve that are not computed."""
        return [each for each in self.curve_settings(values) if not self.is_answered(each)]

    def marks(self, values: Values) -> tuple[str, list[dict[str, Any]]]:
        """Return the present and the recommended setting of a topic, under their key; cached."""
        context = self.context(values)
        if context not in self._marks:
            try:
                self._marks[context] = self._marked(values)
            except AdvisorError:
                # The setting itself says what is wrong with the card, topic or version.
                self._marks[context] = []
        return context, self._marks[context]

    def curves(self) -> Iterator[list[dict[str, str]]]:
        """Compute what a page without a kernel offers for the topic, card and version of the start.

        Up to three replicas with every min ISR, acks, unclean election or not, eligible leader
        replicas or not, two timeouts; and the intervals of the start.

        Yields
        ------
        list of dict of str to str
            The settings computed since, which differ in replication factor and min ISR.
        """
        for curve in self.offered():
            for values in curve:
                self.setting(values)
            yield curve
        self.setting(self.chosen, intervals=True)
        yield [self.chosen]

    def page(self, elsewhere: Sequence[Values] = ()) -> dict[str, Any]:
        """Return a page without a kernel, with what was computed so far.

        Parameters
        ----------
        elsewhere : sequence of mapping of str to str
            Settings of other topics, cards and Kafka versions, which have a curve each.
        """
        own = [values for curve in self.offered() for values in curve]
        every = [self.chosen, *(each for each in own if self.key(each) in self._settings)]
        every += [each for values in elsewhere for each in self.curve_settings(values)]
        return page_json(
            precomputed(self.controls, every),
            self.chosen,
            [(values, self.setting(values)) for values in every],
            dict(self.marks(values) for values in (self.chosen, *elsewhere)),
            self.goals,
            CONTEXT,
            note=left_out(elsewhere, list(self.chosen)),
            capped=capped(self.start),
        )

    def offered(self) -> Iterator[list[dict[str, str]]]:
        """Yield the settings of `curves`; those one change away from the start come first."""
        start, places = self.chosen, list(self._places())
        timeouts = dict.fromkeys([start["delivery_timeout_ms"], str(_LONG_TIMEOUT_MS)])
        for timeout, unclean, acks in product(timeouts, ("false", "true"), EVERY_ACKS):
            choice = {"acks": acks, "unclean_leader_election_enable": unclean}
            choice["delivery_timeout_ms"] = timeout
            yield [{**start, **choice, **place} for place in places]
        for elr, acks in product(("default", "false", "true"), EVERY_ACKS):
            other = {**start, "eligible_leader_replicas": elr, "acks": acks}
            if elr != start["eligible_leader_replicas"]:
                yield list(self.curve_settings(other))

    def _places(self) -> Iterator[dict[str, str]]:
        """Yield replication factors with min ISRs; also above it, where that is another setting."""
        start = self.chosen
        numbers = [str(n) for n in range(1, min(self.most_replicas, SMALL_REPLICAS) + 1)]
        factors = dict.fromkeys([*numbers, start["replication_factor"]])
        least = dict.fromkeys([*numbers, start["min_insync_replicas"]])
        same = capped(self.start) != ""
        for rf, min_isr in product(factors, least):
            if not (same and int(min_isr) > int(rf) and rf != start["replication_factor"]):
                yield {"replication_factor": rf, "min_insync_replicas": min_isr}

    def _computed(self, values: Values, intervals: bool) -> dict[str, Any]:
        config = config_of(values, self.start)
        refused = min_isr_refusal(config)
        if refused:
            return {"refusal": refused, "by": "min_insync_replicas"}
        card, load, topic = self._card(values), self.load_of_topic(values), values["topic"]
        choice = self._choice(config, evaluate(self.cluster, config, card, load))
        commands = blocks(self.cluster, config, load, topic)
        return setting_json(choice, self.goals, commands, intervals)

    def _choice(self, config: Config, result: Reliability) -> Candidate:
        factor, mode = config.replication_factor or 1, str(config.mode)
        share = largest_share(self.cluster.brokers, factor, mode)
        return choose(config, result, self.goals, share)

    def _card(self, values: Values) -> FailureModel:
        return self.model if values["card"] == self.model.name else _shipped(values["card"])

    def _marked(self, values: Values) -> list[dict[str, Any]]:
        cluster, topics = self.cluster, [values["topic"]]
        if values["topic"] == NEW_TOPIC:
            cluster, topics = replace(cluster, topics=()), []
        asked = cluster, self._card(values), self.load_of_topic(values), self.goals
        advice = recommend(*asked, kafka_version=values["kafka_version"], topics=topics or None)
        found = [("today", advice.current), ("best", advice.best)]
        # Beyond what was compared, another number of replicas may be better still.
        sure = advice.best.meets_all or self.most_replicas <= SMALL_REPLICAS
        return [
            {"mark": kind, **mark_json(point_of(choice.reliability, intervals=False))}
            for kind, choice in found
            if choice is not None and (kind == "today" or sure)
        ]


def _has_intervals(setting: Mapping[str, Any]) -> bool:
    loss = setting.get("loss", (0.0, 0.0, 0.0))
    return bool(loss[1] < loss[2])
