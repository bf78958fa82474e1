"""Evaluates what the explorer shows: a setting, its curve, today's setting, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

from advisor import catalog
from advisor.advice.deciding import MIDDLE, Decision, surviving
from advisor.advice.goals import Goals
from advisor.advice.migration.plan import make_plan
from advisor.advice.migration.planned_changes import refusal as refusal_to_lower
from advisor.advice.migration.planned_changes import replicas_needed
from advisor.advice.migration.properties import java_producer
from advisor.advice.situation import Situation
from advisor.cluster.model import Cluster
from advisor.decision import (
    Depth,
    ExactEvaluator,
    Setting,
    TopicQuestion,
    Verdict,
    decide_topic,
)
from advisor.decision.decide import verdict_of
from advisor.decision.evaluator import DRAWS
from advisor.decision.settings import Placement
from advisor.errors import AdvisorError, ConfigError
from advisor.learning.learned import Learned
from advisor.present.interactive import seen
from advisor.present.interactive.controls import (
    CONTEXT,
    EVERY_ACKS,
    MOST_REPLICAS,
    MOST_TOPICS,
    NEW_TOPIC,
    PRICE,
    SMALL_REPLICAS,
    STILL,
    as_text,
    capped,
    config_of,
    controls,
    left_out,
    min_isr_refusal,
    precomputed,
    refusal,
    refused_by,
    steps,
    values_of,
)
from advisor.present.interactive.settings_grid import (
    mark_json,
    page_json,
    setting_json,
    setting_key,
    verdict_json,
)
from advisor.present.outcome import point_of
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel, load_model
from advisor.reliability.failures.uncertainty import MANY_PARTITIONS
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.workload import Workload

Values = Mapping[str, str]
Verdicts = Mapping[str, Verdict]
"""Verdicts on one setting, by the price of a loss."""
_shipped = lru_cache(load_model)  # a card is read once
_LONG_TIMEOUT_MS = 600_000
# A result holds its placement and what it was asked since.
_MOST_RESULTS = 256
_DRAWN = Depth(draws=True, sensitivity=False, others=False)
# Controls that may change and leave the chain, or change it by the rules of elections alone.
_SAME_CHAIN = {"acks", "eligible_leader_replicas", "kafka_version", PRICE, *STILL}


@dataclass(frozen=True)
class Answer:
    """Settings and marks as JSON, by their keys, and verdicts by setting and price of a loss."""

    settings: Mapping[str, dict[str, Any]]
    marks: Mapping[str, list[dict[str, Any]]]
    verdicts: Mapping[str, Verdicts] = field(default_factory=dict)


@dataclass(frozen=True)
class ExplorerModel:
    """A cluster, a card, a load and goals, with the settings evaluated for them so far, cached.

    `values["card"]` may name another card. `load` is that of all topics together, and of a new one.
    `start` is a new topic's setting; options without a control stay as they are there.
    """

    cluster: Cluster
    model: FailureModel
    load: Workload | None
    goals: Goals
    start: Config
    topic: str = NEW_TOPIC
    situation: Situation | None = None
    topics: tuple[str, ...] = ()
    _settings: dict[str, dict[str, Any]] = field(default_factory=dict, compare=False, repr=False)
    _marks: dict[str, list[dict[str, Any]]] = field(default_factory=dict, compare=False, repr=False)
    _verdicts: dict[str, Verdicts] = field(default_factory=dict, compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs: not what was computed here."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @property
    def most_replicas(self) -> int:
        """The largest replication factor offered."""
        return min(len(self.cluster.brokers), MOST_REPLICAS)

    @cached_property
    def chosen(self) -> dict[str, str]:
        """Initial value of each control: the topic as it is today."""
        return self.today(self.topic)

    @cached_property
    def controls(self) -> list[dict[str, Any]]:
        """Every control with its choices."""
        settings = controls(
            self.topics or [topic.name for topic in self.cluster.topics][:MOST_TOPICS],
            self.most_replicas,
            catalog.model_names(),
            self.chosen,
            steps(self.goals.minutes_per_loss),
        )
        return [*settings, *seen.seen_controls(self.cluster)]

    @property
    def prices(self) -> dict[str, float]:
        """Minutes without writes that a loss may be as bad as, by the control's value."""
        return {as_text(price): price for price, _ in steps(self.goals.minutes_per_loss)}

    def today(self, topic: str) -> dict[str, str]:
        """Return what the controls show for a topic as it is today."""
        config = self.config_today(topic)
        shown_values = values_of(config, topic, self.model.name, self.goals.minutes_per_loss)
        return {**shown_values, **seen.UNCOUNTED}

    def config_today(self, topic: str) -> Config:
        """Return the settings of a topic; of a new one the initial settings."""
        return self.start if topic == NEW_TOPIC else self._questions[topic].today.config

    def config(self, values: Values) -> Config:
        """Return the setting that the controls show."""
        return config_of(values, self.config_today(values["topic"]))

    def same_picture(self, values: Values) -> dict[str, str]:
        """Return the setting with the same curve: its producers retry as the topic's do today."""
        today = self.today(values["topic"])
        return {**values, **{name: today[name] for name in STILL}}

    def key(self, values: Values) -> str:
        """Return the name under which `explorer.js` finds a setting."""
        return setting_key(list(self.chosen), values)

    def chain_key(self, values: Values) -> tuple[object, ...]:
        """What settings with the same Markov chain share, as a guess: a wrong one costs time."""
        try:
            rules = self.config(values).rules
        except ConfigError:
            return (self.key(values),)
        lasting = rules.eligible_leader_replicas and rules.last_known_leader_must_be_active
        elections = rules.mode, rules.eligible_leader_replicas, lasting, values["acks"] == "all"
        return *elections, *(values[key] for key in values if key not in _SAME_CHAIN)

    def setting(self, values: Values, intervals: bool = False) -> dict[str, Any]:
        """Return one setting as JSON, or why it has no answer; cached. Intervals take seconds."""
        key = self.key(values)
        if key not in self._settings or (intervals and not self.has_intervals(values)):
            try:
                self._settings[key], self._verdicts[key] = self._computed(values, intervals)
            except AdvisorError as error:
                self._settings[key] = {"refusal": refusal(error), "by": refused_by(error)}
        return self._settings[key]

    def numbers(self, values: Values) -> Answer:
        """Return one setting without a verdict, for which others must be evaluated."""
        try:
            config = self.config(values)
            if min_isr_refusal(config):
                return self.answers([values])
            return Answer({self.key(values): setting_json(self._result(values, config))}, {})
        except AdvisorError:
            return self.answers([values])

    def verdicts(self, values: Values) -> Verdicts:
        """Return the verdicts on a setting at every price of a loss; empty if it is refused."""
        self.setting(values)
        return self._verdicts.get(self.key(values), {})

    def question(self, values: Values, config: Config) -> TopicQuestion:
        """Return what is asked of the decision: the topic, as if it had the setting shown."""
        if values["topic"] == NEW_TOPIC:
            load = self.load or Workload()
            return TopicQuestion("", Setting(config), load, self.cluster.brokers, _as_kafka)
        topic_question = self._questions[values["topic"]]
        return replace(
            topic_question, today=Setting(config, self._placement(topic_question, config))
        )

    def load_of_topic(self, values: Values) -> Workload:
        """Return the traffic of a setting's topic: its share of the load."""
        if values["topic"] == NEW_TOPIC:
            return self.load or Workload()
        return self._questions[values["topic"]].load

    def is_long(self, values: Values) -> bool:
        """Whether a setting takes seconds: many replicas, or very many partitions."""
        many_partitions = self.load_of_topic(values).partitions > MANY_PARTITIONS
        return many_partitions or int(values["replication_factor"]) > SMALL_REPLICAS

    def without_cache(self) -> ExplorerModel:
        """Return a copy with an empty cache, to be sent to another process."""
        return replace(self, _settings={}, _marks={}, _verdicts={})

    def store(self, answer: Answer) -> Answer:
        """Cache what another process computed; return it with the intervals cached here."""
        for key, setting in answer.settings.items():
            if key not in self._settings or _has_intervals(setting):
                self._settings[key] = setting
                if key in answer.verdicts:
                    self._verdicts[key] = answer.verdicts[key]
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
        settings = self.answers([values, *self.curve_settings(values)])
        return replace(settings, marks=self.marked(values).marks)

    def answers(self, several: Sequence[Values]) -> Answer:
        """Return some settings."""
        settings = {self.key(values): self.setting(values) for values in several}
        verdicts = {key: self._verdicts[key] for key in settings if key in self._verdicts}
        return Answer(settings, {}, verdicts)

    def with_intervals(self, values: Values) -> Answer:
        """Return a setting with its intervals, which takes seconds."""
        self.setting(values, intervals=True)
        return self.answers([values])

    def curve_settings(self, values: Values) -> Iterator[dict[str, str]]:
        """Yield the settings of the same curve, with up to `SMALL_REPLICAS` replicas."""
        for factor in range(1, min(self.most_replicas, SMALL_REPLICAS) + 1):
            for min_isr in range(1, factor + 1):
                place = {"replication_factor": str(factor), "min_insync_replicas": str(min_isr)}
                yield {**values, **place}

    def computed_curve(self, values: Values) -> Answer:
        """Return the computed part of a curve, without the setting itself, and its marks."""
        own_key, context = self.key(values), self.context(values)
        keys = [key for key in map(self.key, self.curve_settings(values)) if key != own_key]
        settings = {key: self._settings[key] for key in keys if key in self._settings}
        return Answer(settings, {c: self._marks[c] for c in (context,) if c in self._marks})

    def missing_settings(self, values: Values) -> list[dict[str, str]]:
        """Return the settings of the same curve that are not computed."""
        return [setting for setting in self.curve_settings(values) if not self.is_answered(setting)]

    def marked(self, values: Values) -> Answer:
        """Return today's setting of a topic; cached. A new topic has none."""
        context = self.context(values)
        if context not in self._marks:
            try:
                self._marks[context] = self._marked(values)
            except AdvisorError:
                # The setting itself says what is wrong with the card, topic or version.
                self._marks[context] = []
        return Answer({}, {context: self._marks[context]})

    def curves(self) -> Iterator[list[dict[str, str]]]:
        """Compute, curve by curve, what a page without a kernel offers of the first topic."""
        for curve in self.offered():
            for values in curve:
                self.setting(values)
            yield curve
        for values in self.looked_at_first():
            self.setting(values, intervals=True)
            yield [values]

    def looked_at_first(self) -> Iterator[dict[str, str]]:
        """Yield the start, and what its verdict would set; on a page these get intervals."""
        yield self.chosen
        verdicts = self.setting(self.chosen).get("verdicts", {})
        better = verdicts.get(self.chosen[PRICE], {}).get("better")
        if better is not None:
            yield {**self.chosen, **better["values"]}

    def page(self, elsewhere: Sequence[Values] = (), only_choices: bool = False) -> dict[str, Any]:
        """Return a page without a kernel, with what was computed so far.

        `elsewhere` has a setting of each curve of other topics, cards and versions.
        """
        on_curves = [values for curve in self.offered() for values in curve]
        stored: list[Values] = [self.chosen]
        stored += [values for values in on_curves if self.key(values) in self._settings]
        stored += [
            place for values in elsewhere for place in (values, *self.curve_settings(values))
        ]
        controls = precomputed(self.controls, stored)
        topics = [option[0] for option in controls[0]["options"]]
        settings = [(values, self.setting(values)) for values in stored]
        if only_choices:
            controls = [control for control in controls if len(control["options"]) > 1]
            settings = [(values, _without_commands(setting)) for values, setting in settings]
        keys = [control["key"] for control in controls]
        context = [key for key in CONTEXT if key in keys]
        return page_json(
            controls,
            {key: self.chosen[key] for key in keys},
            settings,
            {
                setting_key(context, v): self.marked(v).marks[self.context(v)]
                for v in (self.chosen, *elsewhere)
            },
            self.goals,
            {topic: self.of_topic(topic) for topic in topics},
            note=left_out(elsewhere, keys),
            capped=self._capped(stored),
        )

    def _capped(self, settings: Sequence[Values]) -> dict[str, str]:
        """What Kafka makes of a min ISR above the replication factor, by version where it does."""
        start = self.config_today(self.topic)
        versions = dict.fromkeys(values["kafka_version"] for values in settings)
        sentences = {version: capped(start.changed(kafka_version=version)) for version in versions}
        return {version: words for version, words in sentences.items() if words}

    def live_page(self, page: dict[str, Any]) -> dict[str, Any]:
        """Return a page for the widget, whose kernel computes every other choice."""
        topics = [option[0] for option in self.controls[0]["options"]]
        return {
            **page,
            "controls": self.controls,
            "chosen": {key: self.chosen[key] for key in (c["key"] for c in self.controls)},
            "context": list(CONTEXT),
            "today": {topic: self.of_topic(topic) for topic in topics},
        }

    def of_topic(self, topic: str) -> dict[str, str]:
        """Return what choosing a topic sets: its settings, not the failure model or the price."""
        today = self.today(topic)
        return {key: value for key, value in today.items() if key not in _NOT_OF_TOPIC}

    def offered(self) -> Iterator[list[dict[str, str]]]:
        """Yield the settings of `curves`; those one change away from the start come first."""
        start = self.chosen
        timeouts = dict.fromkeys([start["delivery_timeout_ms"], str(_LONG_TIMEOUT_MS)])
        for timeout, unclean, acks in product(timeouts, ("false", "true"), EVERY_ACKS):
            choice = {"acks": acks, "unclean_leader_election_enable": unclean}
            choice["delivery_timeout_ms"] = timeout
            yield list(self.places({**start, **choice}))
        for elr, acks in product(("default", "false", "true"), EVERY_ACKS):
            start_of_curve = {**start, "eligible_leader_replicas": elr, "acks": acks}
            if elr != start["eligible_leader_replicas"]:
                yield list(self.curve_settings(start_of_curve))

    def places(self, values: Values) -> Iterator[dict[str, str]]:
        """Yield settings with other replication factors and min ISRs, and those of the start."""
        start = self.chosen
        numbers = [str(n) for n in range(1, min(self.most_replicas, SMALL_REPLICAS) + 1)]
        factors = dict.fromkeys([*numbers, start["replication_factor"]])
        min_isrs = dict.fromkeys([*numbers, start["min_insync_replicas"]])
        is_capped = capped(self.config_today(self.topic)) != ""
        for rf, min_isr in product(factors, min_isrs):
            if not (is_capped and int(min_isr) > int(rf) and rf != start["replication_factor"]):
                yield {**values, "replication_factor": rf, "min_insync_replicas": min_isr}

    def _computed(self, values: Values, intervals: bool) -> tuple[dict[str, Any], Verdicts]:
        config = self.config(values)
        refused = min_isr_refusal(config)
        if refused:
            return {"refusal": refused, "by": ["min_insync_replicas", "replication_factor"]}, {}
        result = self._result(values, config)
        learned = self.learned(values)
        commands = blocks(self.cluster, config, result.load, values["topic"])
        if learned is not None:
            commands.append((_LEARNED_CARD, learned.as_toml(), True))
        verdicts = self._decided(values, config, DRAWS if intervals else 0)
        has_ranges = bool(result.model.uncertain)
        judged = {
            price: verdict_json(verdict, self._better(values, verdict), has_ranges)
            for price, verdict in verdicts.items()
        }
        data = setting_json(result, intervals, commands, judged)
        data["notes"] += self._unchanged(values, config)
        if learned is not None:
            data["notes"] += map(list, seen.unused(learned))
        if any(values[key] for key in seen.KEYS):
            uncounted = self._result({**values, **seen.UNCOUNTED}, config)
            points = (
                point_of(shown_result, intervals=intervals) for shown_result in (uncounted, result)
            )
            data["learned"] = seen.moved_words(learned, *points)
        return data, verdicts

    def _decided(self, values: Values, config: Config, draws: int) -> dict[str, Verdict]:
        """The verdict at each price, with the setting shown as the one that runs today."""
        question = self.question(values, config)
        card = self._card(values).under(str(config.mode))
        evaluator = ExactEvaluator(self.cluster, card, draws, self._evaluate)
        survives = surviving(self.goals.survive, self.cluster)
        verdicts = {}
        for text, price in self.prices.items():
            requirements = replace(self.goals.requirements, minutes_per_loss=price)
            depth = _DRAWN if draws else MIDDLE
            action = decide_topic(question, evaluator, requirements, survives=survives, depth=depth)
            verdicts[text] = verdict_of([action], [question], self._broken(values["topic"]))
        return verdicts

    def _better(self, values: Values, verdict: Verdict) -> dict[str, Any] | None:
        """What is drawn of the setting that a verdict would set, and chosen for it."""
        (action,) = verdict.actions
        if action.set_to is None:
            return None
        config = action.set_to.config
        # The decision has evaluated it on these replicas.
        result = self._evaluate(
            *(self.cluster, config, self._card(values).under(str(config.mode))),
            self.load_of_topic(values),
            placement=action.set_to.placement,
        )
        values_after = values_of(config, values["topic"], values["card"])
        keys = ("replication_factor", "min_insync_replicas", "acks")
        change = {key: values_after[key] for key in (*keys, "unclean_leader_election_enable")}
        return {**mark_json(point_of(result, intervals=False)), "values": change}

    def _unchanged(self, values: Values, config: Config) -> list[list[str]]:
        """What a control shows that Kafka's version does not have or sets otherwise."""
        used = values_of(config, values["topic"], values["card"])
        return [
            [name, f"Kafka {config.kafka_version} uses its default: {used[name]}."]
            for name in STILL
            if used[name] != values[name]
        ]

    def _result(self, values: Values, config: Config) -> Reliability:
        question = self.question(values, config)
        return self._evaluate(
            *(self.cluster, config, self._card(values).under(str(config.mode)), question.load),
            placement=question.today.placement,
        )

    @cached_property
    def _evaluate(self) -> Callable[..., Reliability]:
        """`evaluate`, whose latest results are remembered."""
        remembered: Callable[..., Reliability] = lru_cache(_MOST_RESULTS)(evaluate)
        return remembered

    def learned(self, values: Values) -> Learned | None:
        """Return what follows from what the cluster has seen; None if nothing was counted."""
        return seen.learned_from(values, self._prior(values), self.cluster)

    def _prior(self, values: Values) -> FailureModel:
        return self.model if values["card"] == self.model.name else _shipped(values["card"])

    def _card(self, values: Values) -> FailureModel:
        learned = self.learned(values)
        return self._prior(values) if learned is None else learned.model

    @cached_property
    def _situation(self) -> Situation:
        return self.situation or Situation.read(self.cluster, self.load)

    @cached_property
    def _decision(self) -> Decision:
        return Decision(self._situation, self.model, self.goals.requirements)

    @cached_property
    def _questions(self) -> dict[str, TopicQuestion]:
        return {question.topic: question for question in self._decision.questions}

    def _broken(self, topic: str) -> tuple[str, ...]:
        """What does not work at this moment of a topic."""
        if topic == NEW_TOPIC:
            return ()
        situation = replace(self._situation, topics=(self.cluster.topic(topic),))
        return replace(self._decision, situation=situation).broken

    def _placement(self, question: TopicQuestion, config: Config) -> Placement | None:
        factor = config.replication_factor or 1
        today = question.today
        return today.placement if factor == today.replication_factor else question.planned(factor)

    def _marked(self, values: Values) -> list[dict[str, Any]]:
        if values["topic"] == NEW_TOPIC:
            return []
        today = {**self.today(values["topic"]), **{key: values[key] for key in CONTEXT}}
        point = point_of(self._result(today, self.config(today)), intervals=False)
        return [{"mark": "today", **mark_json(point)}]


def worst_first(decision: Decision) -> tuple[str, ...]:
    """Return the topics of a decision, the worst first; Kafka's own come last."""
    if not decision.situation.topics:
        return ()
    cluster = decision.situation.cluster
    names = [action.topic for action in decision.at_middle.actions]
    return tuple(sorted(names, key=lambda name: cluster.topic(name).internal))


_NOT_OF_TOPIC = (*CONTEXT, PRICE)
_LEARNED_CARD = "my_card.toml: the card with these counts, for --model"


def _as_kafka(_replication_factor: int) -> None:
    """No placement of its own: Kafka places a new topic."""


def _without_commands(setting: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in setting.items() if name != "commands"}


def _has_intervals(setting: Mapping[str, Any]) -> bool:
    return bool(setting.get("complete", False))


# A longer file is left to `advisor recommend --files`.
_MOST_CHARACTERS = 6_000
_ELSEWHERE = "# Too long to show here: advisor recommend --files DIR writes it.\n"
_FEWER = (
    "{topic} has {today} replicas today, more than this setting. The advisor writes no commands "
    "that take replicas away."
)


def blocks(
    cluster: Cluster, config: Config, load: Workload, topic: str = NEW_TOPIC
) -> list[tuple[str, str, bool]]:
    """Return what brings a topic to a setting: title, text, and whether that is to be copied."""
    producer = ("producer.properties", java_producer(config).text, True)
    if topic == NEW_TOPIC:
        plan = make_plan(replace(cluster, topics=()), config, load)
    else:
        today = replicas_needed(cluster.topic(topic))
        if today > (config.replication_factor or 1):
            return [("No commands", _FEWER.format(topic=topic, today=today), False), producer]
        plan = make_plan(cluster, config, load, topics=[topic])
    if plan.lowered:
        return [("No commands", refusal_to_lower(plan.lowered), False), producer]
    files = [
        (name, text if len(text) <= _MOST_CHARACTERS else _ELSEWHERE, True)
        for name, text in plan.files.items()
        if name.endswith(".json") and not name.startswith("rollback")
    ]
    return [("Commands", "\n".join(plan.lines), True), *files, producer]
