"""Whether a description shows a whole cluster, as far as one sees, or a part of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from advisor.cluster.topic import Topic
from advisor.formatting import counted

DESCRIBE = "kafka-topics.sh --bootstrap-server HOST:9092 --describe"
"""What shows all of a cluster, and what to run in place of a text that has no replicas."""

_COMMAND = re.compile(r"kafka-topics[^\n]{1,1000}")
_ADDRESS = re.compile(r"--(?:bootstrap-server|zookeeper)[ =]+([\w.:/,-]+)")
_REPLICAS = re.compile(r"(?<!\S)Replicas:\s*([\d,]+)", re.IGNORECASE)
_LABELLED = re.compile(r"(?<!\S)(?:Topic|PartitionCount|Isr|Elr):", re.IGNORECASE)
_TWO_CLUSTERS = "This may be of two clusters ({}): if it is, give each its own file."


def part_shown(
    topics: Sequence[Topic],
    with_headers: bool,
    empty: Sequence[str] = (),
    brokers_listed: bool = False,
    headless: Sequence[str] = (),
) -> str:
    """Say which part of a cluster is shown; "" for all of it.

    empty: topics without a partition; headless: those without the line of their settings, where
        other topics have it.
    """
    hidden = _not_shown(topics, with_headers, empty)
    if headless:
        more = f" and {len(headless) - 1:,} more" if len(headless) > 1 else ""
        settings = f"the settings of {headless[0]}{more} not shown, so that min ISR 1 is assumed"
        hidden = "; ".join(filter(None, (hidden, settings)))
    if hidden:
        return (
            f"This is a part of the cluster ({hidden}): nothing is concluded about what does not "
            f"occur in it; give the output of {DESCRIBE}."
        )
    if len(topics) > 1:
        return ""
    if brokers_listed:
        return "One topic is shown: a broker that is in no ISR of it may be in sync elsewhere."
    return (
        "One topic is shown: brokers without a replica of it are not judged, unless --racks names "
        "them."
    )


def clusters_shown(text: str, brokers_of_topics: Sequence[set[int]]) -> str:
    """Say that a text may have topics of two clusters; "" if nothing speaks for it.

    A command in it names no host that the first one names, or no topic has replicas on brokers both
    before and after a line that somebody else than the tool wrote.
    """
    first, *others = dict.fromkeys(_addresses(text)) or [frozenset()]
    for other in others:
        if not first & other:
            names = " and ".join(",".join(sorted(brokers)) for brokers in (first, other))
            return _TWO_CLUSTERS.format(f"its commands name {names}")
    if _split(brokers_of_topics) and (sides := _split(_by_heading(text))):
        before, after = (", ".join(map(str, sorted(brokers)[:3])) for brokers in sides)
        return _TWO_CLUSTERS.format(f"no topic is on brokers of both {before} and {after}")
    return ""


def _addresses(text: str) -> Iterator[frozenset[str]]:
    """Yield the brokers that each command names which describes topics."""
    for match in _COMMAND.finditer(text) if "--describe" in text else ():
        if "--describe" in match[0] and (named := _ADDRESS.search(match[0])):
            yield frozenset(named[1].split(","))


def _split(groups: Sequence[set[int]]) -> tuple[set[int], set[int]] | None:
    """Return the brokers before and after the first place where none is on both sides."""
    groups = [group for group in groups if group]
    last = {broker: place for place, group in enumerate(groups) for broker in group}
    end = 0
    for place, group in enumerate(groups[:-1]):
        end = max(end, max(last[broker] for broker in group))
        if end == place:
            return set().union(*groups[: place + 1]), set().union(*groups[place + 1 :])
    return None


def _by_heading(text: str) -> list[set[int]]:
    """Return the brokers in the lines of the tool between each two other lines."""
    groups: list[set[int]] = [set()]
    for line in text.splitlines():
        if match := _REPLICAS.search(line):
            groups[-1].update(map(int, re.findall(r"\d{1,9}", match[1])))
        elif line.strip() and not _LABELLED.search(line):
            groups.append(set())
    return groups


def _not_shown(topics: Sequence[Topic], with_headers: bool, empty: Sequence[str]) -> str:
    incomplete = [(topic, partitions) for topic in topics if (partitions := _missing(topic))]
    healthy = any(partition.healthy for topic in topics for partition in topic.partitions)
    if not with_headers and not healthy:
        return "only partitions that are not in sync, as with --under-replicated-partitions"
    if incomplete:
        topic, partitions = incomplete[0]
        whole_topic = counted(len(topic.partitions) + len(topic.broken) + partitions, "partition")
        more = f" and so with {len(incomplete) - 1:,} more" if len(incomplete) > 1 else ""
        return f"{partitions:,} of {whole_topic} of {topic.name} not shown{more}"
    if empty:
        more = f" and {len(empty) - 1:,} more" if len(empty) > 1 else ""
        return f"no partition of {empty[0]}{more}"
    return ""


def _missing(topic: Topic) -> int:
    """How many partitions are not shown, by the topic's stated size or gaps in their numbers."""
    numbers = {*topic.broken, *(partition.index for partition in topic.partitions)}
    return max(topic.stated_partitions or 0, max(numbers) + 1) - len(numbers)
