"""Checks of topics that Kafka is still to create: their replicas, and the brokers for them."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.advice.findings.catalogue import Finding, finding
from advisor.advice.phrases import listed
from advisor.cluster import Cluster
from advisor.parsing import whole_number

_AUTO = "auto.create.topics.enable"
_DEFAULT_FACTOR = "default.replication.factor"
# Topics that Kafka creates when they are first used, with three replicas unless set otherwise.
_FACTOR_OF = {
    "__consumer_offsets": "offsets.topic.replication.factor",
    "__transaction_state": "transaction.state.log.replication.factor",
}
_USUAL = 3


def check_created_topics(cluster: Cluster) -> Iterator[Finding]:
    """Yield findings about topics that do not exist yet, where the description has topics."""
    if not cluster.topics:
        return
    names = {topic.name for topic in cluster.topics}
    absent = {name: key for name, key in _FACTOR_OF.items() if name not in names}
    brokers = len(cluster.brokers)
    lowest = {key: factor for key in absent.values() if (factor := _lowest(cluster, key))}
    single = [key for key, factor in lowest.items() if factor == 1]
    if _lowest(cluster, _DEFAULT_FACTOR) == 1 and _created_by_clients(cluster):
        single.insert(0, _DEFAULT_FACTOR)
    if single and brokers > 1:
        plural = "are" if len(single) > 1 else "is"
        auto = f", and {_AUTO} is true" if single[0] == _DEFAULT_FACTOR else ""
        yield finding("KRA207", f"{listed(single)} {plural} 1{auto}.")
    lacking = [name for name, key in absent.items() if lowest.get(key, _USUAL) > brokers]
    if lacking:
        number = "1 broker" if brokers == 1 else f"{brokers} brokers"
        plural = "are" if len(lacking) > 1 else "is"
        yield finding(
            "KRA208",
            f"there {'is' if brokers == 1 else 'are'} {number}, and "
            f"{listed(lacking)} {plural} not in the description.",
        )


def _lowest(cluster: Cluster, key: str) -> int | None:
    """The lowest value that a running broker reports; None if none does."""
    if cluster.observed is None:
        return None
    values = [whole_number(text) for text in cluster.observed.broker_values(key).values()]
    return min((value for value in values if value is not None), default=None)


def _created_by_clients(cluster: Cluster) -> bool:
    """Whether a running broker reports that it creates topics that clients name."""
    observed = cluster.observed
    return observed is not None and "true" in observed.broker_values(_AUTO).values()
