"""What is asked of the decision about a cluster: its topics, its plan, what is broken.

A `Decision` answers at the card's middle values first, which settles settings and words. How sure
they are takes draws of the card, which are taken when someone asks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from advisor.advice.findings.catalogue import BROKEN, Finding
from advisor.advice.findings.checks import check_topic
from advisor.advice.migration.moves import Move, plan_moves
from advisor.advice.migration.plan import DEFAULT_THROTTLE, topic_command
from advisor.advice.phrases import first_of
from advisor.advice.situation import Situation
from advisor.advice.tolerance import fatal_racks, share_of, survival
from advisor.cluster import Cluster, Topic
from advisor.decision import (
    Action,
    Depth,
    ExactEvaluator,
    Requirements,
    Setting,
    TopicQuestion,
    Verdict,
    decide_cluster,
)
from advisor.decision.evaluator import DRAWS
from advisor.decision.settings import Placement, as_kafka_places, candidate_factor
from advisor.errors import InputError
from advisor.protocol.rules.assignment import Algorithm, assign
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import forget_chains, forget_draws, topic_evaluator
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.workload import Workload

Evaluate = Callable[..., Reliability]
MIDDLE = Depth(draws=False, sensitivity=False, others=False)
"""The rule at the card's middle values, and nothing beside it."""
SURE = Depth(sensitivity=False, others=False)
"""How sure it is as well; not what it depends on."""


def evaluated_once(evaluated: Evaluate) -> Evaluate:
    """Evaluate the same settings, load and replicas once, for one cluster and card."""
    results: dict[tuple[Config, Workload, Placement | None], Reliability] = {}

    def remembered(
        cluster: Cluster,
        config: Config,
        model: FailureModel,
        load: Workload,
        *,
        placement: Placement | None = None,
    ) -> Reliability:
        key = config, load, placement
        if key not in results:
            placed = {} if placement is None else {"placement": placement}
            results[key] = evaluated(cluster, config, model, load, **placed)
        return results[key]

    return remembered


@dataclass(frozen=True)
class Decision:
    """The question what every topic of a situation should be set to, and its answers.

    evaluated: `advisor.evaluate`, or what replaces it; what it answered once should cost nothing
        again.
    new_topic: without topics: the setting that runs today. Default: none does, the topic is new.
    """

    situation: Situation
    model: FailureModel
    requirements: Requirements
    allow_lower_durability: bool = False
    evaluated: Evaluate = field(default_factory=lambda: evaluated_once(topic_evaluator()))
    new_topic: Config | None = None

    @cached_property
    def at_middle(self) -> Verdict:
        """The verdict at the card's middle values: all but how sure it is."""
        return self.answered(self.exactly(0), MIDDLE)

    @cached_property
    def sure(self) -> Verdict:
        """The verdict with how sure it is."""
        return self._drawn(SURE)

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict with how sure it is, what it depends on, and what to measure."""
        return self._drawn(None)

    def _drawn(self, depth: Depth | None) -> Verdict:
        verdict = self.answered(self._drawing, depth)
        # The measures are kept, and the chains are on disk.
        forget_draws()
        forget_chains()
        return verdict

    @cached_property
    def _drawing(self) -> ExactEvaluator:
        return self.exactly(DRAWS)

    def exactly(self, draws: int) -> ExactEvaluator:
        """Return what answers with `advisor.evaluate`, under the card of the cluster's mode."""
        card = self.model.under(self.situation.mode)
        return ExactEvaluator(self.situation.cluster, card, draws, self.evaluated)

    def answered(self, evaluator: ExactEvaluator, depth: Depth | None) -> Verdict:
        """Return the verdict to some depth."""
        if self.situation.topics or self.new_topic is not None:
            return self._of(self.questions, evaluator, depth)
        # A new topic has no setting today: it is asked whether the usual one is to be kept.
        (question,) = self.questions
        verdict = self._of((question,), evaluator, depth)
        setting = verdict.actions[0].after
        if setting is not question.today:
            verdict = self._of((replace(question, today=setting),), evaluator, depth)
        return replace(verdict, headline=f"Set {setting}.")

    def _of(
        self, questions: Sequence[TopicQuestion], evaluator: ExactEvaluator, depth: Depth | None
    ) -> Verdict:
        verdict = decide_cluster(
            questions,
            evaluator,
            self.requirements,
            survives=surviving(self.requirements.survive, self.situation.cluster),
            allow_lower_durability=self.allow_lower_durability,
            now=self.broken,
            depth=depth,
        )
        return replace(verdict, command_of=self._command)

    def _command(self, action: Action) -> str:
        throttle = int(self.model.get("copy.bytes_per_second", DEFAULT_THROTTLE))
        return topic_command(self.situation, action, self.moves(action), throttle)

    def evaluate(
        self, config: Config, load: Workload, placement: Placement | None = None
    ) -> Reliability:
        """Return what a setting is worth on the cluster; placed as Kafka does by default."""
        return self.evaluated(self.situation.cluster, config, self.model, load, placement=placement)

    def action(self, topic: str) -> Action:
        """Return what to do about a topic."""
        return self._actions[topic]

    @cached_property
    def _actions(self) -> Mapping[str, Action]:
        return {action.topic: action for action in self.at_middle.actions}

    @property
    def of_new_topic(self) -> Decision:
        """The same question about a new topic, which Kafka places."""
        return replace(self, situation=replace(self.situation, topics=()), new_topic=None)

    @cached_property
    def questions(self) -> tuple[TopicQuestion, ...]:
        """One for each topic, or one about a new topic where there is none."""
        situation = self.situation
        brokers = situation.cluster.brokers
        if not situation.topics:
            config = self.new_topic or _usual(situation)
            return (TopicQuestion("", Setting(config), situation.load, brokers, as_kafka_places),)
        return tuple(
            TopicQuestion(
                topic=topic.name,
                today=Setting(self._configs[topic.name], self._planned.today(topic)),
                load=situation.load_of(topic),
                brokers=brokers,
                planned=self._planned.of(topic),
                internal=topic.internal,
                load_is_given=situation.load_is_given,
                has_observers=topic.has_observers and topic.replication_factor > 1,
            )
            for topic in situation.topics
        )

    def moves(self, action: Action) -> tuple[Move, ...]:
        """Return the replicas that an action moves, as the decision counted them."""
        if action.set_to is None:
            return ()
        topic = self.situation.cluster.topic(action.topic)
        return self._planned.moves(topic, action.set_to.replication_factor)

    @cached_property
    def _planned(self) -> _Planned:
        return _Planned(self.situation, self._configs)

    @cached_property
    def _configs(self) -> Mapping[str, Config]:
        situation = self.situation
        return {
            topic.name: _smallest(topic, situation.config_of(topic)) for topic in situation.topics
        }

    @cached_property
    def findings(self) -> Mapping[str, tuple[Finding, ...]]:
        """What is wrong with each topic, by its name."""
        return {
            topic.name: tuple(check_topic(topic, self.situation)) for topic in self.situation.topics
        }

    @cached_property
    def broken(self) -> tuple[str, ...]:
        """What does not work at this moment, a text for each topic."""
        texts = []
        for topic, findings in self.findings.items():
            details = [f.detail.rstrip(".") for f in findings if f.rule.weight == BROKEN]
            if details:
                texts.append(f"{topic}: {first_of(details)}")
        return tuple(texts)


class Decided:
    """Mixin of what has a decision behind it: its verdict, with how sure that is and without."""

    decision: Decision

    @property
    def verdict(self) -> Verdict:
        """What every topic should be set to, and how sure that is; takes draws of the card."""
        return self.decision.verdict

    @property
    def sure_verdict(self) -> Verdict:
        """The verdict with how sure it is, but not what it depends on; takes fewer seconds."""
        return self.decision.sure

    @property
    def quick_verdict(self) -> Verdict:
        """The verdict without how sure it is: the same settings and words, at no further cost."""
        return self.decision.at_middle

    @property
    def below_verdict(self) -> tuple[str, ...]:
        """The sentences below the verdict, without how sure it is."""
        return self.quick_verdict.below


def _usual(situation: Situation) -> Config:
    """What operators give a new topic: RF 3 and min ISR 2, as far as there are brokers."""
    factor = candidate_factor(1, len(situation.cluster.brokers))
    config = Config(kafka_version=situation.version, **situation.settings)
    if not config.rules.unclean_only:
        config = config.changed(unclean_leader_election_enable=False)
    min_isr = max(factor - 1, 1) if config.rules.min_isr_supported else 1
    return config.changed(replication_factor=factor, min_insync_replicas=min_isr)


def _smallest(topic: Topic, config: Config) -> Config:
    """The settings with the smallest RF of the topic's partitions, as which a mixed one counts."""
    factor = min(topic.by_replication_factor)
    return (
        config if factor == config.replication_factor else config.changed(replication_factor=factor)
    )


@dataclass(frozen=True)
class _Planned:
    """The replicas that the plan creates, for the candidates' RF and for others.

    A partition with more replicas than the candidates keeps them; the others are counted.
    """

    situation: Situation
    configs: Mapping[str, Config]

    def today(self, topic: Topic) -> Placement:
        """The replicas that hold the topic, as many of each partition as of the smallest."""
        factor = self._factor(topic)
        return tuple(partition.held[:factor] for partition in topic.partitions)

    def of(self, topic: Topic) -> Callable[[int], Placement]:
        """RF to replicas."""

        def planned(factor: int) -> Placement:
            moved = {move.partition: move.after for move in self.moves(topic, factor)}
            return tuple(
                moved.get(partition.index, partition.held)[:factor]
                for partition in topic.partitions
            )

        return planned

    def moves(self, topic: Topic, factor: int) -> tuple[Move, ...]:
        """What moves so that every partition of a topic has that many replicas."""
        if factor == self._candidate_factor(topic):
            return self._usual.get(topic.name, ())
        return self._moves((topic,), {topic.name: factor})

    def _factor(self, topic: Topic) -> int:
        return self.configs[topic.name].replication_factor or 1

    def _candidate_factor(self, topic: Topic) -> int:
        return candidate_factor(self._factor(topic), len(self.situation.cluster.brokers))

    @cached_property
    def _usual(self) -> Mapping[str, tuple[Move, ...]]:
        """What moves so that all topics have the RF of their candidates, in one plan."""
        factors = {topic.name: self._candidate_factor(topic) for topic in self.situation.topics}
        by_topic: dict[str, list[Move]] = {}
        for move in self._moves(self.situation.topics, factors):
            by_topic.setdefault(move.topic, []).append(move)
        return {name: tuple(moves) for name, moves in by_topic.items()}

    def _moves(self, topics: Sequence[Topic], factors: Mapping[str, int]) -> tuple[Move, ...]:
        cluster, missing = self.situation.cluster, self.situation.presence.missing
        return plan_moves(topics, cluster.brokers, factors, cluster.topics, avoided=missing)


def surviving(survive: str | None, cluster: Cluster) -> Callable[[Setting], bool] | None:
    """Return whether a setting survives a rack or broker; None if nothing is to be survived."""
    if survive is None:
        return None
    if survive == "rack" and None in cluster.brokers.values():
        raise InputError(
            'survive="rack" needs the rack of every broker: give the racks (--racks), or ask for '
            'survive="broker".'
        )

    def survives(setting: Setting) -> bool:
        share = 1
        if survive == "rack":
            placed = setting.placement or _placed_by_kafka(setting, cluster)
            share = max(share_of(replicas, cluster.brokers) for replicas in set(placed))
            racks = {cluster.brokers[broker] for replicas in placed for broker in replicas}
            if fatal_racks(cluster.controllers, racks):
                return False
        effect = survival(share, setting.config)
        return effect.without_loss and effect.writable

    return survives


def _placed_by_kafka(setting: Setting, cluster: Cluster) -> Collection[tuple[int, ...]]:
    brokers = dict(cluster.brokers)
    factor = setting.replication_factor
    kraft = setting.config.mode == "kraft"
    algorithm: Algorithm = "striped" if kraft else "rack_alternated"
    placed = assign(brokers, len(brokers), factor, algorithm=algorithm)
    return [tuple(replicas) for replicas in placed.values()]
