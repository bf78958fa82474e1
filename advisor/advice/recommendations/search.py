"""The search for the cheapest configuration that meets the goals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from advisor.advice.choice import Choice, choose, ranked
from advisor.advice.goals import Goals
from advisor.advice.kafka_version import controller_of, version_of
from advisor.advice.phrases import sentence
from advisor.advice.recommendations.recommendation import Recommendation
from advisor.advice.tolerance import largest_share
from advisor.advice.topic_settings import amount_of
from advisor.cluster import Cluster, Topic
from advisor.errors import NotComputedError
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.versions import MAX_INT, default, parse_version
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.workload import Workload

USUAL_REPLICAS, MOST_REPLICAS = 3, 5
"""Always compared up to the first; up to the second only while nothing meets every goal."""
PATIENT_MS = (600_000, 1_800_000)
"""Delivery timeouts tried beside the default: ten minutes and half an hour."""

Evaluate = Callable[[Cluster, Config, FailureModel, Workload], Reliability]


def recommend(
    cluster: Cluster,
    model: FailureModel,
    load: Workload | None = None,
    goals: Goals | None = None,
    current: Config | None = None,
    kafka_version: str | None = None,
    topics: Sequence[str] | None = None,
) -> Recommendation:
    """Find the replication settings that meet the goals at least cost.

    Up to three replicas, every min ISR with acks "all", and acks 1, are evaluated exactly; four
    and five only while nothing meets every goal, for their chains take long to build. Fewest
    replicas win, then what keeps furthest from every limit. If nothing meets all goals, the best
    compromise is returned and says what it gives up.

    Parameters
    ----------
    cluster : Cluster
    model : FailureModel
    load : Workload, optional
        Of all topics concerned together; unless given, a thousand records a second over as many
        partitions as the described topics have.
    goals : Goals, optional
        The defaults of `Goals` unless given.
    current : Config, optional
        What runs today, for comparison; unless given, the settings that most partitions have.
    kafka_version : str, optional
        Unless given, the cluster's, or the newest that fits its description.
    topics : sequence of str, optional
        The topics to bring there; all of them unless given.

    Raises
    ------
    AdvisorError
        A topic that is not there, goals that cannot be judged, or settings that Kafka refuses.
    """
    return search(evaluate, cluster, model, load, goals, current, kafka_version, topics)


def search(
    evaluated: Evaluate,
    cluster: Cluster,
    model: FailureModel,
    load: Workload | None = None,
    goals: Goals | None = None,
    current: Config | None = None,
    kafka_version: str | None = None,
    topics: Sequence[str] | None = None,
) -> Recommendation:
    """Do what `recommend` does with any function that evaluates."""
    goals = goals or Goals()
    chosen = tuple(cluster.topics) if topics is None else tuple(map(cluster.topic, topics))
    version, note = version_of(cluster, kafka_version)
    notes = [note] if note else []
    if load is None:
        load, note = assumed_load(chosen)
        notes.append(note)
    current = current or usual_config(chosen, version)

    controller = controller_of(cluster, version)

    def tried(config: Config) -> Choice:
        config = config.changed(**controller)
        share = largest_share(cluster.brokers, config.replication_factor or 1, str(config.mode))
        return choose(config, evaluated(cluster, config, model, load), goals, share)

    choices, left_out = _all_choices(version, len(cluster.brokers), goals, tried)
    notes += left_out
    best_first = tuple(ranked(choices, goals))
    today = tried(current) if current is not None else None
    # The recommended setting's own come first; some hold for others only, such as acks=1.
    shown = best_first if today is None else (*best_first, today)
    assumed = dict.fromkeys(text for each in shown for text in each.reliability.assumptions)
    return Recommendation(
        cluster=cluster,
        model=model,
        load=load,
        goals=goals,
        choices=best_first,
        current=today,
        topics=tuple(topic.name for topic in chosen),
        notes=(*notes, *map(sentence, assumed), *cluster.notes),
    )


def _all_choices(
    version: str, brokers: int, goals: Goals, tried: Callable[[Config], Choice]
) -> tuple[list[Choice], list[str]]:
    choices: list[Choice] = []
    notes: list[str] = []
    for factor in range(1, min(brokers, MOST_REPLICAS) + 1):
        if factor > USUAL_REPLICAS and any(choice.meets_all for choice in choices):
            break
        try:
            choices += [tried(config) for config in candidates(version, factor)]
        except NotComputedError as error:
            # The exact model has its limits; say so, and answer for what it can compute.
            notes.append(f"RF {factor} was left out: {error}.")
    if not choices:
        raise NotComputedError(notes[0])
    best = ranked(choices, goals)[0]
    choices += [tried(config) for config in _patient(best.config)]
    return choices, notes


def candidates(kafka_version: str, replication_factor: int) -> Iterator[Config]:
    """Yield the settings to compare, everything else at Kafka's defaults for the version.

    Unclean election is off wherever it can be (0.8.2), and the producer retries where its default
    is not to (before 2.1). Beyond three replicas a min ISR of 1 or of
    all of them, and acks=1, are left out: fewer replicas do the same or better.
    """
    version = parse_version(kafka_version)
    base = Config(
        kafka_version=kafka_version,
        replication_factor=replication_factor,
        unclean_leader_election_enable=False if version >= (0, 8, 2) else None,
        retries=MAX_INT if default("retries", kafka_version) == 0 else None,
    )
    settings: list[tuple[int, str | int]] = [(1, "all"), (1, 1)]
    if base.rules.min_isr_supported:
        settings += [(min_isr, "all") for min_isr in range(2, replication_factor + 1)]
        if replication_factor > USUAL_REPLICAS:
            settings = [(min_isr, "all") for min_isr in range(2, replication_factor)]
    for min_isr, acks in settings:
        yield base.changed(min_insync_replicas=min_isr, acks=acks)


def _patient(config: Config) -> Iterator[Config]:
    """Yield the same settings with a producer that waits longer (KIP-91, 2.1)."""
    usual = config.delivery_timeout_ms
    if usual is not None:
        yield from (config.changed(delivery_timeout_ms=ms) for ms in PATIENT_MS if ms > usual)


def assumed_load(topics: Sequence[Topic]) -> tuple[Workload, str]:
    """Return the load where none was given, over the users' partitions, and a sentence on it."""
    ours = [topic for topic in topics if not topic.internal]
    partitions = sum(len(topic.partitions) for topic in ours) or 1
    load = replace(Workload(), partitions=partitions)
    return load, (
        f"No load was given: {amount_of(load)} over {partitions:,} "
        f"partition{'s' if partitions > 1 else ''} were assumed."
    )


def usual_config(topics: Sequence[Topic], kafka_version: str) -> Config | None:
    """Return the settings that most partitions have, with acks=all; None without topics.

    Kafka's own topics are left aside.
    """
    settings: Counter[tuple[int, int | None]] = Counter()
    for topic in topics:
        if not topic.internal:
            key = (topic.replication_factor, topic.min_insync_replicas)
            settings[key] += len(topic.partitions)
    if not settings:
        return None
    factor, min_isr = settings.most_common(1)[0][0]
    fallback = default("min_insync_replicas", kafka_version)
    if min_isr is None and isinstance(fallback, int):
        min_isr = fallback
    return Config(
        kafka_version=kafka_version,
        replication_factor=factor,
        min_insync_replicas=min_isr,
        acks="all",
    )
