"""Checks of topics that Kafka is still to create: their replicas, and the brokers for them."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.advice.findings.catalogue import Finding, finding
from advisor.advice.findings.owners import owner_of
from advisor.advice.phrases import listed
from advisor.cluster import Cluster
from advisor.parsing import whole_number
from advisor.protocol.rules.versions import parse_version

_AUTO = "auto.create.topics.enable"
_DEFAULT_FACTOR = "default.replication.factor"
# Topics that Kafka creates when they are first used, with three replicas unless set otherwise.
_TRANSACTIONS = "__transaction_state"
_SHARE_GROUPS, _SHARE_GROUPS_SINCE = "__share_group_state", (4, 2)
_FACTOR_OF = {
    name: owner.option
    for name in ("__consumer_offsets", _TRANSACTIONS, _SHARE_GROUPS)
    if (owner := owner_of(name))
}
_TRANSACTION_MIN_ISR = "transaction.state.log.min.isr"
_USUAL, _USUAL_MIN_ISR = 3, 2


def check_created_topics(cluster: Cluster, stated_version: str) -> Iterator[Finding]:
    """Yield findings about topics that do not exist yet, where the description has topics."""
    if not (cluster.topics or cluster.broker_settings):
        return
    absent = {name: key for name, key in _FACTOR_OF.items() if name not in cluster.topic_names}
    if not stated_version or parse_version(stated_version) < _SHARE_GROUPS_SINCE:
        absent.pop(_SHARE_GROUPS, None)
    brokers = len(cluster.brokers)
    lowest = {key: factor for key in absent.values() if (factor := _lowest(cluster, key))}
    single = [key for key, factor in lowest.items() if factor == 1]
    if _lowest(cluster, _DEFAULT_FACTOR) == 1 and _created_by_clients(cluster):
        single.insert(0, _DEFAULT_FACTOR)
    if single and brokers > 1:
        plural = "are" if len(single) > 1 else "is"
        auto = f", and {_AUTO} is true" if single[0] == _DEFAULT_FACTOR else ""
        yield finding("KRA207", f"{listed(single)} {plural} 1{auto}.")
    if _TRANSACTIONS in absent:
        yield from _transaction_log(cluster)
    lacking = [name for name, key in absent.items() if lowest.get(key, _USUAL) > brokers]
    if lacking:
        number = "1 broker" if brokers == 1 else f"{brokers} brokers"
        plural = "are" if len(lacking) > 1 else "is"
        yield finding(
            "KRA208",
            f"there {'is' if brokers == 1 else 'are'} {number}, and "
            f"{listed(lacking)} {plural} not in the description.",
        )


def _transaction_log(cluster: Cluster) -> Iterator[Finding]:
    """Yield a finding if the min ISR that the transaction log is to get does not fit its replicas.

    With two brokers no value fits.
    """
    keys = (_FACTOR_OF[_TRANSACTIONS], _TRANSACTION_MIN_ISR)
    stated = [_lowest(cluster, key) for key in keys]
    factor, least = stated[0] or _USUAL, stated[1] or _USUAL_MIN_ISR
    if stated == [None, None] or factor == 1 or len(cluster.brokers) < _USUAL:
        return
    if least == 1 or least >= factor:
        yield finding("KRA206", f"{keys[1]} is {least}, {keys[0]} {factor}.", _TRANSACTIONS)


def _lowest(cluster: Cluster, key: str) -> int | None:
    """The lowest value that the brokers have; None if it is not known."""
    values = [whole_number(text) for text in _values(cluster, key)]
    return min((value for value in values if value is not None), default=None)


def _created_by_clients(cluster: Cluster) -> bool:
    """Whether it is known that brokers create topics that clients name."""
    return "true" in _values(cluster, _AUTO)


def _values(cluster: Cluster, key: str) -> list[str]:
    """What running brokers report, or the description states for all of them."""
    if cluster.observed is not None:
        return list(cluster.observed.broker_values(key).values())
    return [cluster.broker_settings[key]] if key in cluster.broker_settings else []
