"""What further files say of a cluster whose partitions another file has.

`kafka-configs.sh --describe` has settings, `kafka-metadata-quorum.sh describe` the voters,
`kafka-features.sh describe` whether eligible leader replicas are on, and
`kafka-broker-api-versions.sh` the brokers with their racks. Each is read as an `Addition`;
`added` puts them to a cluster and says what contradicts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from advisor.cluster.model import Cluster
from advisor.cluster.observed import ELR_FEATURE, REPLICATION_SETTINGS
from advisor.cluster.racks import MAX_ID
from advisor.cluster.topic import Topic
from advisor.errors import InputError
from advisor.formatting import counted
from advisor.parsing import whole_number

_KEPT = REPLICATION_SETTINGS | {
    *("cleanup.policy", "retention.ms", "retention.bytes", "segment.bytes"),
    *("remote.storage.enable", "local.retention.ms", "local.retention.bytes"),
    *("diskless.enable", "inkless.enable", "confluent.tier.enable"),
    "confluent.placement.constraints",
}
_OF = re.compile(r"^(?:Dynamic|All) configs for (topic|broker) '?([^\s']+)'? are:")
_OLD = re.compile(r"^Configs for (topic|broker) '?([^\s']+)'? are (.*)$")
_SETTING = re.compile(r"^\s+([\w.-]+)=(.*?) sensitive=(?:true|false) synonyms=\{")
_VOTERS = re.compile(r"^CurrentVoters:\s*\[(.*)\]\s*$", re.MULTILINE)
_NODE = re.compile(r"^(\d+)\s.*\b(Leader|Follower|Observer)\s*$")
_FEATURE = re.compile(r"^Feature:\s*(\S+)\s.*\bFinalizedVersionLevel:\s*(\S+)", re.MULTILINE)
_BROKER = re.compile(r"^\S+:\d+ \(id: (\d+) rack: ([^()]*?)(?: isFenced: (\w+))?\) -> (\(|ERROR)")


@dataclass(frozen=True)
class Addition:
    """What one file adds.

    Attributes
    ----------
    source : str
        Name of the file.
    topics, brokers : mapping
        Settings by topic, and by broker id.
    voters : tuple of int
        Nodes of the controller quorum; empty: not said.
    racks : mapping of int to (str or None), or None
        Every broker that answered, with its rack; None: not said.
    features : mapping of str to int, or None
        Finalized levels; None: not said.
    """

    source: str
    topics: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    brokers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    voters: tuple[int, ...] = ()
    racks: Mapping[int, str | None] | None = None
    features: Mapping[str, int] | None = None


def read_configs(text: str, source: str) -> Addition:
    """Return the settings that `kafka-configs.sh --describe` prints, with `--all` or without.

    Raises
    ------
    InputError
        If a line is no setting.
    """
    settings: dict[str, dict[str, dict[str, str]]] = {"topic": {}, "broker": {}}
    current: dict[str, str] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _OF.match(line):
            current = settings[match[1]].setdefault(match[2], {})
        elif match := _OLD.match(line):
            pairs = [part.partition("=") for part in re.split(r",(?=[\w.-]+=)", match[3]) if part]
            settings[match[1]][match[2]] = {key.strip(): value for key, _, value in pairs}
        elif (match := _SETTING.match(line)) and current is not None:
            current[match[1]] = match[2]
        elif current is not None and re.match(r"\s+[\w.-]+=", line):
            raise InputError(f"{source}:{number}: the line is cut; save the whole output again")
    return Addition(source, topics=settings["topic"], brokers=settings["broker"])


def read_quorum(text: str, source: str) -> Addition:
    """Return the voters that `kafka-metadata-quorum.sh describe` prints, in either form.

    Raises
    ------
    InputError
        If there are none.
    """
    status = _VOTERS.search(text)
    if status is not None:
        ids = re.findall(r'"id":\s*(\d+)', status[1]) if "{" in status[1] else status[1].split(",")
        voters = [whole_number(text.strip(), MAX_ID) for text in ids]
    else:
        rows = [match for line in text.splitlines() if (match := _NODE.match(line.rstrip()))]
        voters = [whole_number(row[1], MAX_ID) for row in rows if row[2] != "Observer"]
    numbers = tuple(sorted({voter for voter in voters if voter is not None}))
    if not numbers or len(numbers) < len(voters):
        raise InputError(
            f"{source}: its voters cannot be read; run kafka-metadata-quorum.sh describe --status"
        )
    return Addition(source, voters=numbers)


def read_features(text: str, source: str) -> Addition:
    """Return the finalized levels that `kafka-features.sh describe` prints."""
    levels = {name: whole_number(level) or 0 for name, level in _FEATURE.findall(text)}
    return Addition(source, features=levels)


def read_api_versions(text: str, source: str) -> Addition:
    """Return the brokers that answered `kafka-broker-api-versions.sh`, with their racks."""
    racks: dict[int, str | None] = {}
    for line in text.splitlines():
        match = _BROKER.match(line)
        if match is not None and match[4] == "(" and whole_number(match[1], MAX_ID) is not None:
            racks[int(match[1])] = None if match[2] == "null" else match[2]
    return Addition(source, racks=racks)


def added(cluster: Cluster, additions: Sequence[Addition]) -> Cluster:
    """Return the cluster with what further files say, and a note on each.

    Parameters
    ----------
    cluster : Cluster
        With the partitions.
    additions : sequence of Addition

    Raises
    ------
    InputError
        If a file says that the cluster has KRaft and another that it has ZooKeeper.
    """
    for addition in additions:
        for add in (_with_settings, _with_broker_settings, _with_voters, _with_racks, _with_elr):
            cluster = add(cluster, addition)
    return cluster


def _noted(cluster: Cluster, *notes: str, **fields: object) -> Cluster:
    return replace(cluster, notes=(*cluster.notes, *notes), **fields)  # type: ignore[arg-type]


def _with_settings(cluster: Cluster, addition: Addition) -> Cluster:
    if not addition.topics:
        return cluster
    notes, topics = [], []
    for topic in (*cluster.topics, *cluster.set_aside):
        stated = {
            key: value for key, value in addition.topics.get(topic.name, {}).items() if key in _KEPT
        }
        for key in sorted(stated.keys() & topic.configs.keys()):
            if stated[key] != topic.configs[key]:
                notes.append(
                    f"{key} of {topic.name} is {topic.configs[key]} in {cluster.source} and "
                    f"{stated[key]} in {addition.source}, which was taken."
                )
        topics.append(replace(topic, configs={**topic.configs, **stated}) if stated else topic)
    names = {topic.name for topic in topics}
    used = len(names & addition.topics.keys())
    notes.append(f"Settings of {counted(used, 'topic')} are from {addition.source}.")
    unknown = sorted(addition.topics.keys() - names)
    if unknown:
        notes.append(
            f"{addition.source} has settings of {counted(len(unknown), 'topic')} that is not in "
            f"{cluster.source}: {unknown[0]}."
        )
    return _noted(cluster, *notes, topics=tuple(topics), set_aside=())


def _with_broker_settings(cluster: Cluster, addition: Addition) -> Cluster:
    """Add the settings that are the same on all of its brokers."""
    described = list(addition.brokers.values())
    if not described:
        return cluster
    common = {
        key: value
        for key, value in described[0].items()
        if key in REPLICATION_SETTINGS and all(row.get(key) == value for row in described)
    }
    note = f"Settings of {counted(len(described), 'broker')} are from {addition.source}."
    return _noted(cluster, note, broker_settings={**cluster.broker_settings, **common})


def _with_voters(cluster: Cluster, addition: Addition) -> Cluster:
    if not addition.voters:
        return cluster
    if cluster.mode == "zookeeper":
        raise InputError(
            f"{addition.source} has the voters of KRaft, and {cluster.source} is a cluster with "
            "ZooKeeper; give files of one cluster"
        )
    stated = cluster.controllers
    notes = [f"The controllers are from {addition.source}."]
    if stated is not None and {*stated} != {*addition.voters}:
        notes.append(
            f"{cluster.source} has other controllers, {', '.join(map(str, stated))}: those of "
            f"{addition.source} were taken."
        )
    racks = {**cluster.brokers, **(stated or {})}
    controllers = {voter: racks.get(voter) for voter in addition.voters}
    return _noted(cluster, *notes, controllers=controllers, mode="kraft")


def _with_racks(cluster: Cluster, addition: Addition) -> Cluster:
    if addition.racks is None:
        return cluster
    notes = [f"The brokers that answered are from {addition.source}."]
    silent = sorted(set(cluster.brokers) - set(addition.racks))
    if silent:
        notes.append(
            f"Of the brokers in {cluster.source}, {', '.join(map(str, silent[:5]))} did not answer "
            f"in {addition.source}."
        )
    for broker, rack in addition.racks.items():
        before = cluster.brokers.get(broker)
        if None not in (before, rack) and before != rack:
            notes.append(
                f"Broker {broker} is in {before} in {cluster.source} and in {rack} in "
                f"{addition.source}, which was taken."
            )
    stated = {b: rack for b, rack in addition.racks.items() if rack or b not in cluster.brokers}
    return _noted(cluster.with_racks(stated) if stated else cluster, *notes)


def _with_elr(cluster: Cluster, addition: Addition) -> Cluster:
    if addition.features is None:
        return cluster
    is_on = addition.features.get(ELR_FEATURE, 0) > 0
    notes = [
        f"Eligible leader replicas are {'on' if is_on else 'off'}, as {addition.source} has it."
    ]
    if not is_on and any(map(_shows_elr, cluster.topics)):
        notes.append(
            f"{cluster.source} shows eligible leader replicas all the same: the files may be of "
            "two clusters, or of two times."
        )
    return _noted(cluster, *notes, eligible_leader_replicas=is_on, mode="kraft")


def _shows_elr(topic: Topic) -> bool:
    return any(partition.elr for partition in topic.partitions)
