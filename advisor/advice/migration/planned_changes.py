"""The changes of a plan: target settings, replica moves, topic options, and what they make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from advisor.advice.migration.moves import Move, election_json, plan_moves, reassignment_json
from advisor.advice.migration.properties import strimzi_topics
from advisor.advice.phrases import first_of
from advisor.cluster import Cluster, Topic
from advisor.cluster.broker_presence import presence_of
from advisor.cluster.observed import Observed
from advisor.cluster.placing import healthy_partition
from advisor.decision.settings import USUAL_MIN_ISR, USUAL_REPLICAS
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.versions import default
from advisor.rendering import FileText

MIN_ISR = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"
UNCLEAN_OPTION = "unclean_leader_election_enable"
ALLOW = "--allow-lower-durability"
# KRaft takes 10,000 partitions in one request (`MAX_RECORDS_PER_USER_OP` in `QuorumController`),
# ZooKeeper about 1 MB. Smaller reassignments can also be cancelled sooner.
MOST_MOVES = 2_000
"""Upper limit on the partitions of one reassignment."""


def with_usual_floor(config: Config, brokers: int) -> Config:
    """Return the settings with at least RF 3 and min ISR 2, as far as the brokers allow.

    For internal topics and for topics that do not exist yet, to which the goals of other topics do
    not apply. Min ISR stays below the replication factor, so that a restart stops no writes.
    """
    assert config.replication_factor is not None
    assert config.min_insync_replicas is not None
    factor = max(config.replication_factor, min(USUAL_REPLICAS, brokers))
    min_isr = min(max(config.min_insync_replicas, USUAL_MIN_ISR), max(factor - 1, 1))
    return config.changed(replication_factor=factor, min_insync_replicas=min_isr)


def target_of(topic: Topic, config: Config, brokers: int) -> Config:
    """Return the settings that a plan gives a topic; internal ones have a floor.

    Where only some partitions have fewer replicas than that, all get as many as the largest has:
    no partition gives one up.
    """
    target = with_usual_floor(config, brokers) if topic.internal else config
    factors = topic.by_replication_factor
    if min(factors) < (target.replication_factor or 1) < max(factors):
        return target.changed(replication_factor=max(factors))
    return target


def stated_min_isr(topic: Topic, config: Config) -> int:
    """Return the present min ISR of a topic; Kafka's default if it has none of its own."""
    if topic.min_insync_replicas is not None:
        return topic.min_insync_replicas
    fallback = default("min_insync_replicas", config.kafka_version)
    return fallback if isinstance(fallback, int) else 1


def lowered_min_isr(topic: Topic, target: Config) -> str:
    """Return how a plan lowers a topic's min ISR, at most its RF, for a list; "" if it does not."""
    factor, target_min_isr = target.replication_factor, target.min_insync_replicas
    assert factor is not None
    assert target_min_isr is not None
    min_isr_today = min(stated_min_isr(topic, target), max(topic.by_replication_factor))
    if min(target_min_isr, factor) >= min_isr_today:
        return ""
    return f"topic {topic.name}: {MIN_ISR} from {stated_min_isr(topic, target)} to {target_min_isr}"


def in_words(lowered: Sequence[str]) -> str:
    """Return what a plan lowers as a sentence; "" for nothing."""
    return f"This plan lowers durability ({first_of(lowered)})." if lowered else ""


def held_back_words(lowered: Sequence[str]) -> str:
    """Return which changes a plan leaves out until they are allowed; "" for none."""
    if not lowered:
        return ""
    return f"Held back, because it lowers durability ({first_of(lowered)}): add {ALLOW} for it."


def refusal(lowered: tuple[str, ...]) -> str:
    """Return why a plan has no commands and files, and the option that allows them."""
    return (
        f"{in_words(lowered)} Its commands and files are only written with {ALLOW} "
        "(in Python allow_lower_durability=True)."
    )


@dataclass(frozen=True)
class Batch:
    """Replicas that are moved together, and the names of their files."""

    moves: Sequence[Move]
    number: str

    @property
    def there(self) -> str:
        """Name of the reassignment JSON."""
        return f"reassign{self.number}.json"

    @property
    def back(self) -> str:
        """Name of the reassignment JSON that undoes it."""
        return f"rollback{self.number}.json"

    @property
    def election(self) -> str:
        """Name of the JSON that lists its partitions."""
        return f"election{self.number}.json"


def batches(moves: Sequence[Move]) -> list[Batch]:
    """Return the moves in batches of at most `MOST_MOVES`."""
    slices = [moves[start : start + MOST_MOVES] for start in range(0, len(moves), MOST_MOVES)]
    if len(slices) == 1:
        return [Batch(moves, "")]
    return [Batch(batch, f"-{number}") for number, batch in enumerate(slices, 1)]


@dataclass(frozen=True)
class OptionChange:
    """Change of one topic option; `before` is None if the topic has no value of its own."""

    topic: Topic
    key: str
    before: str | None
    after: str


@dataclass(frozen=True)
class PlannedChanges:
    """Topics to change, with target settings, moves and options.

    Those of `by_rules` are to be changed by their placement constraints. The names in `unguarded`
    are those whose producers wait for fewer replicas than min ISR asks for: it guards nothing.
    """

    topics: tuple[Topic, ...]
    targets: Mapping[str, Config]
    moves: tuple[Move, ...]
    changes: tuple[OptionChange, ...]
    by_rules: tuple[Topic, ...] = ()
    unguarded: frozenset[str] = frozenset()

    @classmethod
    def of(cls, cluster: Cluster, chosen: Sequence[Topic], config: Config) -> PlannedChanges:
        """Bring the chosen topics to the same settings; none gives up a replica."""
        targets = {t.name: target_of(t, config, len(cluster.brokers)) for t in chosen}
        factors = {name: target.replication_factor or 1 for name, target in targets.items()}
        missing = presence_of(cluster).missing
        moves = plan_moves(chosen, cluster.brokers, factors, cluster.topics, avoided=missing)
        return cls.to(cluster, targets, moves)

    @classmethod
    def to(
        cls, cluster: Cluster, targets: Mapping[str, Config], moves: tuple[Move, ...]
    ) -> PlannedChanges:
        """Give each named topic its own settings, and make the moves decided on.

        Without topics that constraints place: a reassignment would make replicas of observers.
        """
        moving = {move.topic for move in moves}
        topics = tuple(topic for topic in cluster.topics if topic.name in targets)
        by_rules = tuple(t for t in topics if t.placed_by_rules and t.name in moving)
        left_out = {topic.name for topic in by_rules}
        topics = tuple(topic for topic in topics if topic.name not in left_out)
        moves = tuple(move for move in moves if move.topic not in left_out)
        observed = cluster.observed
        changes = [change for t in topics for change in _changes(t, targets[t.name], observed)]
        return cls(topics, targets, moves, tuple(changes), by_rules)

    @property
    def settings(self) -> dict[str, dict[str, str]]:
        """Every changed topic's options after the changes."""
        settings = {t.name: dict(t.configs) for t in self.topics}
        for change in self.changes:
            settings[change.topic.name][change.key] = change.after
        return settings

    def lowered(self) -> Iterator[str]:
        """Yield each change that lowers durability, for a list."""
        for topic in self.topics:
            words = lowered_min_isr(topic, self.targets[topic.name])
            if words and topic.name not in self.unguarded:
                yield words

    def files(self) -> dict[str, FileText]:
        """Reassignment JSON, and Strimzi resources.

        None of an internal topic: deleting the resource would delete the topic.
        """
        sizes = [(t.name, len(t.partitions)) for t in self.topics if not t.internal]
        files: dict[str, FileText] = {}
        if sizes:
            files["kafka-topics.yaml"] = strimzi_topics(sizes, self.targets, self.settings)
        for batch in batches(self.moves):
            files[batch.there] = reassignment_json(batch.moves)
            files[batch.back] = reassignment_json(batch.moves, back=True)
            files[batch.election] = election_json(batch.moves)
        return files


def _changes(topic: Topic, config: Config, observed: Observed | None) -> Iterator[OptionChange]:
    def own_value(key: str) -> str | None:
        """The value that the topic itself has: of a describe output, every one that it shows."""
        is_override = None if observed is None else observed.is_topic_override(topic.name, key)
        return topic.configs.get(key) if is_override in (None, True) else None

    min_isr = str(config.min_insync_replicas)
    if config.rules.min_isr_supported and topic.configs.get(MIN_ISR) != min_isr:
        yield OptionChange(topic, MIN_ISR, own_value(MIN_ISR), min_isr)
    unclean = topic.configs.get(UNCLEAN)
    by_default = bool(default(UNCLEAN_OPTION, config.kafka_version))
    is_unclean = by_default if unclean is None else unclean.lower() == "true"
    if is_unclean and not config.unclean_leader_election_enable:
        yield OptionChange(topic, UNCLEAN, own_value(UNCLEAN), "false")


def replicas_needed(topic: Topic) -> int:
    """Return the largest number of replicas of a topic's partitions."""
    return max(topic.by_replication_factor)


def topics_after(
    topics: Sequence[Topic], moves: Iterable[Move], settings: Mapping[str, Mapping[str, str]]
) -> tuple[Topic, ...]:
    """Return the topics with the replicas that the moves give them, all in sync, and new options.

    settings: topic name to all of its options; topics that are not named keep theirs.
    """
    replicas = {(move.topic, move.partition): move.after for move in moves}
    return tuple(
        replace(
            topic,
            partitions=tuple(
                healthy_partition(p.index, replicas.get((topic.name, p.index), p.held))
                for p in topic.partitions
            ),
            configs=settings.get(topic.name, topic.configs),
        )
        for topic in topics
    )


def crowded_broker_words(topics: Sequence[Topic], cluster: Cluster, config: Config) -> str:
    """Return in words which broker holds a replica of every partition; "" if none does.

    As the third site of "two and a half" data centres: its only broker gets a copy of everything.

    topics: as they are after the change; none for a topic that Kafka places with `config`.
    """
    sizes = Counter(cluster.brokers.values())
    if None in sizes or len(sizes) < 2 or max(sizes.values()) == 1:
        return ""
    only_of_rack = [broker for broker, rack in cluster.brokers.items() if sizes[rack] == 1]
    if topics:
        replica_sets = [
            set(p.held) for topic in topics for p in topic.partitions if len(p.held) > 1
        ]
        full = [
            broker
            for broker in only_of_rack
            if replica_sets and all(broker in replicas for replicas in replica_sets)
        ]
    else:
        full = only_of_rack if (config.replication_factor or 1) >= len(sizes) else []
    if not full:
        return ""
    broker = full[0]
    return (
        f"Every partition then has a replica on broker {broker}, the only one of rack "
        f"{cluster.brokers[broker]}: it stores and receives a copy of everything and can become "
        "the leader of anything, so it needs the disk and network for that; an arbiter without "
        "them is not enough."
    )
