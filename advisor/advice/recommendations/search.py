"""`recommend`: the search for the cheapest setting without risks that meets the goals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from os import PathLike

from advisor.advice.arguments import check_arguments
from advisor.advice.choice import Choice, choose
from advisor.advice.goals import Goals
from advisor.advice.kafka_version import controller_note, controller_of, version_of
from advisor.advice.phrases import first_of, sentence
from advisor.advice.recommendations.ranking import fewest_replicas, has_replicas, ranked
from advisor.advice.recommendations.recommendation import Recommendation
from advisor.advice.tolerance import largest_share
from advisor.advice.topic_settings import amount_of, retained_bytes
from advisor.arguments import cluster_of, model_of, names_checked
from advisor.cluster import Cluster, Topic
from advisor.errors import NotComputedError, expect
from advisor.formatting import as_given
from advisor.progress import progress_bar
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.versions import MAX_INT, default, parse_version
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.workload import Workload

USUAL_REPLICAS, MOST_REPLICAS = 3, 5
"""Replication factors always compared, and compared only while no setting meets every goal."""
_MANY_PARTITIONS = 20_000
LONG_DELIVERY_TIMEOUTS_MS = (600_000, 1_800_000)
"""Delivery timeouts compared with the default: ten minutes and half an hour."""

Evaluate = Callable[[Cluster, Config, FailureModel, Workload], Reliability]


@names_checked
def recommend(
    cluster: Cluster | str | PathLike[str],
    model: FailureModel | str | PathLike[str],
    load: Workload | None = None,
    goals: Goals | None = None,
    current: Config | None = None,
    kafka_version: str | None = None,
    topics: Sequence[str] | None = None,
    allow_lower_durability: bool = False,
) -> Recommendation:
    """Find the replication settings that meet the goals at least cost.

    For up to three replicas, every min ISR with acks="all", and acks=1, is evaluated exactly; four
    and five replicas only while no setting meets every goal, because their Markov chains take long
    to build. Among settings that meet all goals, those with fewest risks win (what an audit would
    call one), then the cheapest, then the largest margin. More replicas or risks need a goal that
    they improve by 5 % in 95 % of the draws of the card. If no setting meets all goals, the result
    is the best compromise, and its verdict says so.

    Settings with fewer replicas than run today, or with one where there are two brokers, are
    compared but never recommended.

    Parameters
    ----------
    cluster : Cluster, str or path
        Brokers, racks and, if described, topics; a text or path is read by `advisor.load_cluster`.
    model : FailureModel, str or path
        Failure and repair rates; a card's name or path is read by `advisor.load_model`.
    load : Workload, optional
        Traffic of all topics in question together. Default: 1,000 records per second over the
        partitions of the described topics.
    goals : Goals, optional
        Limits to meet. Default: ``Goals()``.
    current : Config, optional
        Present settings, for comparison. Default: the settings that most partitions have.
    kafka_version : str, optional
        Kafka version, such as "4.1". Default: the cluster's, or the newest that fits its
        description.
    topics : sequence of str, optional
        Names of the topics that the commands change. Default: all, and the brokers' defaults.
    allow_lower_durability : bool, default False
        Whether commands and files may lower a topic's min ISR or the producers' acks. Otherwise
        they are refused, with what would be lowered.

    Returns
    -------
    Recommendation
        The best setting, the settings compared, the reasons and the commands.

    Raises
    ------
    AdvisorError
        If a topic does not exist, if a goal needs racks that are unknown, or if Kafka refuses the
        settings.

    See Also
    --------
    audit : Compare the topics that exist with goals.
    evaluate : Evaluate one setting.

    Examples
    --------
    >>> import advisor
    >>> cluster = advisor.Cluster.uniform(brokers=3, racks=3)
    >>> model = advisor.FailureModel.from_dict(
    ...     {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
    ... )
    >>> goals = advisor.Goals(loss_probability_per_year=1e-3, survive="rack")
    >>> advice = advisor.recommend(cluster, model, advisor.Workload(partitions=1), goals)
    >>> advice.best.name
    'RF 3, min.insync.replicas 2, acks=all'
    >>> advice.best.meets_all
    True
    """
    cluster, model = cluster_of(cluster), model_of(model)
    return search(
        *(evaluate, cluster, model, load, goals, current, kafka_version, topics),
        allow_lower_durability,
    )


def search(
    evaluated: Evaluate,
    cluster: Cluster,
    model: FailureModel,
    load: Workload | None = None,
    goals: Goals | None = None,
    current: Config | None = None,
    kafka_version: str | None = None,
    topics: Sequence[str] | None = None,
    allow_lower_durability: bool = False,
) -> Recommendation:
    """Do what `recommend` does, with `evaluated` in place of `evaluate`; tests inject one."""
    check_arguments(cluster, model, load, goals, kafka_version)
    expect("current", current, Config | None, "a Config, or None")
    expect("topics", topics, tuple | list | None, "a list of topics' names, or None")
    expect("allow_lower_durability", allow_lower_durability, bool, "True or False")
    goals = goals or Goals()
    chosen = tuple(cluster.topics) if topics is None else tuple(map(cluster.topic, topics))
    version, note = version_of(cluster, kafka_version)
    notes = [text for text in (note, controller_note(cluster, version)) if text]
    if load is None:
        load, note = assumed_load(chosen)
        notes.append(note)
    current = current or usual_config(chosen, version)

    controller, kept = controller_of(cluster, version), retained_bytes(chosen, load)

    def choice_of(config: Config) -> Choice:
        config = config.changed(**controller)
        share = largest_share(cluster.brokers, config.replication_factor or 1, str(config.mode))
        choice = choose(config, evaluated(cluster, config, model, load), goals, share)
        return replace(choice, retained_bytes=kept)

    fewest = fewest_replicas(len(cluster.brokers), current)
    most, not_compared = _most_replicas(len(cluster.brokers), load.partitions, fewest)
    choices, omitted = _all_choices(version, (fewest, most), goals, choice_of)
    notes += [*not_compared, *omitted]
    best_first = tuple(ranked(choices, goals, fewest))
    today = choice_of(current) if current is not None else None
    # Assumptions of the recommended setting first; some apply only to others, such as acks=1.
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
        stated_version=kafka_version or cluster.kafka_version or "",
        whole_cluster=topics is None,
        allow_lower_durability=allow_lower_durability,
    )


def _most_replicas(brokers: int, partitions: int, fewest: int) -> tuple[int, list[str]]:
    """Return the largest replication factor to compare, and a note if a larger one takes long."""
    most = max(min(brokers, MOST_REPLICAS), fewest)
    quick = max(USUAL_REPLICAS, fewest)
    if most <= quick or partitions <= _MANY_PARTITIONS:
        return most, []
    return quick, [
        f"RF {quick + 1} and more were not compared: with more than {_MANY_PARTITIONS:,} "
        "partitions they take minutes. evaluate computes one of them."
    ]


def _all_choices(
    version: str, replicas: tuple[int, int], goals: Goals, evaluated: Callable[[Config], Choice]
) -> tuple[list[Choice], list[str]]:
    """Evaluate what may be recommended (from the fewest to the most replicas), and what may not.

    Up to `USUAL_REPLICAS` are compared in any case.
    """
    fewest, most = replicas
    choices: list[Choice] = []
    notes: list[str] = []

    def compare(*factors: int) -> None:
        settings = {factor: [*candidates(version, factor)] for factor in factors}
        number = sum(map(len, settings.values()))
        with progress_bar(number, " settings", "Comparing settings") as done:
            for factor, configs in settings.items():
                try:
                    found = []
                    for config in configs:
                        found.append(evaluated(config))
                        done(1)
                    choices.extend(found)
                except NotComputedError as error:
                    # Beyond the limits of the exact model: say so, and go on with the others.
                    notes.append(f"RF {factor} was left out: {error}.")

    compare(*range(1, min(most, USUAL_REPLICAS) + 1))

    def enough() -> list[Choice]:
        return [choice for choice in choices if has_replicas(choice, fewest)]

    for factor in range(max(USUAL_REPLICAS + 1, fewest), most + 1):
        if not any(choice.meets_all for choice in enough()):
            compare(factor)
    if not enough():
        raise NotComputedError(notes[-1])
    best = ranked(enough(), goals)[0]
    choices += [evaluated(config) for config in _with_longer_delivery_timeout(best.config)]
    return choices, notes


def candidates(kafka_version: str, replication_factor: int) -> Iterator[Config]:
    """Yield the settings to compare; all others are Kafka's defaults for the version.

    Unclean election is off where the version allows it (0.8.2), and the producer retries where the
    default is not to (before 2.1). Beyond three replicas, min ISR 1, min ISR equal to RF, and
    acks=1 are omitted: fewer replicas do as well or better.
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


def _with_longer_delivery_timeout(config: Config) -> Iterator[Config]:
    """Yield the same settings with longer delivery timeouts (KIP-91, since 2.1)."""
    usual, longer = config.delivery_timeout_ms, LONG_DELIVERY_TIMEOUTS_MS
    if usual is not None:
        yield from (config.changed(delivery_timeout_ms=ms) for ms in longer if ms > usual)


def assumed_load(topics: Sequence[Topic]) -> tuple[Workload, str]:
    """Return the default load times the number of non-internal topics, and a note on it.

    In total that is what an audit assumes, which gives each topic the default load; here partitions
    share it evenly.
    """
    user_topics = [topic for topic in topics if not topic.internal]
    partitions = sum(len(topic.partitions) for topic in user_topics) or 1
    usual, many = Workload(), len(user_topics) or 1
    rate = usual.records_per_second * many
    load = replace(usual, records_per_second=rate, partitions=partitions)
    each = f" (on average {as_given(usual.records_per_second)} a topic)" if many > 1 else ""
    return load, (
        f"No load was given: {amount_of(load)} over {partitions:,} "
        f"partition{'s' if partitions > 1 else ''} were assumed{each}."
    )


def usual_config(topics: Sequence[Topic], kafka_version: str) -> Config | None:
    """Return the settings of most partitions, with acks=all; None without topics.

    Internal topics do not count.
    """
    settings = _partitions_by_setting(topics)
    if not settings:
        return None
    factor, min_isr = _most_frequent(settings)
    fallback = default("min_insync_replicas", kafka_version)
    if min_isr is None and isinstance(fallback, int):
        min_isr = fallback
    return Config(
        kafka_version=kafka_version,
        replication_factor=factor,
        min_insync_replicas=min_isr,
        acks="all",
    )


def usual_setting_words(topics: Sequence[Topic]) -> str:
    """Return whose settings `usual_config` returns, in one sentence; "" without topics."""
    settings = _partitions_by_setting(topics)
    if not settings:
        return ""
    setting = _most_frequent(settings)
    partitions = settings[setting]
    whose = [t.name for t in topics if not t.internal and _setting(t) == setting]
    users = len([t for t in topics if not t.internal])
    names = f"topic{'s' if len(whose) > 1 else ''} {first_of(whose)}"
    if len(whose) == users:
        return f"The settings are those of {names}."
    return (
        f"The settings are those of {names}, the most frequent: {partitions:,} of "
        f"{settings.total():,} partitions have them."
    )


def _most_frequent(settings: Counter[tuple[int, int | None]]) -> tuple[int, int | None]:
    """Return the most frequent setting; of those as frequent, the first with fewest replicas."""
    return max(settings, key=lambda setting: (settings[setting], -setting[0]))


def _setting(topic: Topic) -> tuple[int, int | None]:
    return (topic.replication_factor, topic.min_insync_replicas)


def _partitions_by_setting(topics: Sequence[Topic]) -> Counter[tuple[int, int | None]]:
    """Number of partitions with each replication factor and stated min ISR."""
    settings: Counter[tuple[int, int | None]] = Counter()
    for topic in topics:
        if not topic.internal:
            settings[_setting(topic)] += len(topic.partitions)
    return settings
