"""Target settings of each topic, and where they lower durability."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.advice.phrases import first_of
from advisor.cluster import Topic
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.versions import default

MIN_ISR = "min.insync.replicas"
USUAL_REPLICAS, USUAL_MIN_ISR = 3, 2
ALLOW = "--allow-lower-durability"


def with_usual_floor(config: Config, brokers: int) -> Config:
    """Return the settings with at least RF 3 and min ISR 2, as far as the brokers allow.

    For internal topics and for topics that do not exist yet, to which the goals of other topics do
    not apply. Min ISR stays below the replication factor, so that a restart stops no writes.

    brokers: number of brokers of the cluster.
    """
    assert config.replication_factor is not None
    assert config.min_insync_replicas is not None
    factor = max(config.replication_factor, min(USUAL_REPLICAS, brokers))
    least = min(max(config.min_insync_replicas, USUAL_MIN_ISR), max(factor - 1, 1))
    return config.changed(replication_factor=factor, min_insync_replicas=least)


def target_of(topic: Topic, config: Config, brokers: int) -> Config:
    """Return the settings that a plan gives a topic; internal ones have a floor.

    Where only some partitions have fewer replicas than that, all get as many as the largest has:
    no partition gives one up.
    """
    target = with_usual_floor(config, brokers) if topic.internal else config
    factors = [partition.replication_factor for partition in topic.partitions]
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
    """Return how a plan lowers a topic's min ISR, for a list; "" if it does not.

    A min ISR above the replication factor counts as the replication factor.
    """
    factor, wanted = target.replication_factor, target.min_insync_replicas
    assert factor is not None
    assert wanted is not None
    most_replicas = max(partition.replication_factor for partition in topic.partitions)
    before = min(stated_min_isr(topic, target), most_replicas)
    if min(wanted, factor) >= before:
        return ""
    return f"topic {topic.name}: {MIN_ISR} from {stated_min_isr(topic, target)} to {wanted}"


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
