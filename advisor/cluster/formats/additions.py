"""What further files say of a cluster whose partitions another file has.

`kafka-configs.sh --describe` has settings, `kafka-metadata-quorum.sh describe` the voters,
`kafka-features.sh describe` whether eligible leader replicas are on and which version runs,
`kafka-broker-api-versions.sh` the brokers with their racks and version, `kafka-log-dirs.sh` the
bytes of replicas and the log directories that failed, and `kafka-reassign-partitions.sh` with
`--verify`, `--list` or `--execute` what is being moved. Each is read as an `Addition`; `added` puts
them to a cluster and says what contradicts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from advisor.cluster.formats.describe_format import version_numbers
from advisor.cluster.model import Cluster
from advisor.cluster.observed import ELR_FEATURE, METADATA_FEATURE, REPLICATION_SETTINGS
from advisor.cluster.racks import MAX_ID
from advisor.cluster.topic import Partition
from advisor.errors import InputError
from advisor.formatting import counted
from advisor.parsing import read_json, whole_number

_API = re.compile(r"\b([A-Za-z]+)\(\d+\): (?:\d+ to )?(\d{1,5})\b", re.ASCII)
# The first release that takes a request in a version: `clients/src/main/resources/common/message`
# of Apache Kafka, by release. LeaderAndIsr is not listed under KRaft, where 3.4 looks like 3.3.
_FIRST_WITH = (
    ("4.3", "DescribeLogDirs", 5),
    ("4.2", "ListOffsets", 11),
    ("4.1", "Produce", 13),
    ("4.0", "ListOffsets", 10),
    ("3.9", "Fetch", 17),
    ("3.8", "Produce", 11),
    ("3.7", "Fetch", 16),
    ("3.6", "AddPartitionsToTxn", 4),
    ("3.5", "Fetch", 15),
    ("3.4", "LeaderAndIsr", 7),
    ("3.3", "DescribeAcls", 3),
    ("3.2", "JoinGroup", 9),
    ("3.1", "Fetch", 13),
    ("3.0", "ListOffsets", 7),
    ("2.8", "Produce", 9),
    ("2.7", "Fetch", 12),
    ("2.6", "DescribeClientQuotas", 0),
    ("2.5", "DescribeAcls", 2),
    ("2.4", "Produce", 8),
    ("2.3", "Fetch", 11),
    ("2.2", "ListOffsets", 5),
    ("2.1", "Fetch", 10),
    ("2.0", "Fetch", 8),
    ("1.1", "Fetch", 7),
    ("1.0", "Metadata", 5),
    ("0.11", "Metadata", 4),
    ("0.10.2", "OffsetFetch", 2),
    ("0.10.1", "Metadata", 2),
)
_LEAST_APIS = 10
TopicPartition = tuple[str, int]
"""Name of a topic, and number of one of its partitions."""
_KEPT = REPLICATION_SETTINGS | {
    *("cleanup.policy", "retention.ms", "retention.bytes", "segment.bytes"),
    *("remote.storage.enable", "local.retention.ms", "local.retention.bytes"),
    *("diskless.enable", "inkless.enable", "confluent.tier.enable"),
    "confluent.placement.constraints",
}
# Options of brokers that topics without a value of their own follow, with Kafka's default.
_FOLLOWED = {"min.insync.replicas": "1", "unclean.leader.election.enable": "false"}
_OF = re.compile(r"^(?:Dynamic|All) configs for (topic|broker) '?([^\s']+)'? are:")
_DEFAULTS = re.compile(r"^Default configs? for (topic|broker)s in the cluster are:")
_OLD = re.compile(r"^Configs for (topic|broker) '?([^\s']+)'? are (.*)$")
_SETTING = re.compile(r"^\s+([\w.-]+)=(.*?) sensitive=(?:true|false) synonyms=\{")
_VOTERS = re.compile(r"^CurrentVoters:\s*\[(.*)\]\s*$", re.MULTILINE)
_NODE = re.compile(r"^(\d+)\s.*\b(Leader|Follower|Observer)\s*$")
_FEATURE = re.compile(r"^Feature:\s*(\S+)\s.*\bFinalizedVersionLevel:\s*(\S+)", re.MULTILINE)
# The newest level that the software knows: a level is named after the version that brought it.
_SUPPORTED = re.compile(
    rf"^Feature:\s*{re.escape(METADATA_FEATURE)}\s.*\bSupportedMaxVersion:\s*(\d+\.\d+)-IV\d", re.M
)
_LOG_DIRS = re.compile(r"^[ \t]*\{(?=[^\n]*\"logDirs\"|\s*\"(?:version|brokers)\")", re.MULTILINE)
_NAMED = re.compile(r"(.+)-(\d{1,9})", re.ASCII)
_UNDER_WAY = re.compile(r"^Reassignment of partition (\S+) is still in progress", re.MULTILINE)
_STARTED = re.compile(r"^Successfully started partition reassignments? for (\S+)", re.MULTILINE)
_LISTED = re.compile(
    r"^(\S+)-(\d{1,9}): replicas: ([\d,]+)\.(?: adding: ([\d,]+)\.)?(?: removing: ([\d,]+)\.)?",
    re.M,
)
_NO_MOVES = re.compile(r"^No partition reassignments found", re.MULTILINE)
_BROKER = re.compile(r"^\S+:\d+ \(id: (\d+) rack: ([^()]*?)(?: isFenced: (\w+))?\) -> (\(|ERROR)")


def version_of_apis(text: str) -> str | None:
    """Return the Kafka version of a broker; None if its requests are not listed, or not all."""
    newest = {name: int(version) for name, version in _API.findall(text)}
    if len(newest) < _LEAST_APIS:
        return None
    for version, name, least in _FIRST_WITH:
        if newest.get(name, -1) >= least:
            return version
    return None


def mode_of_apis(text: str) -> str | None:
    """Return the controller: ZooKeeper sends UpdateMetadata, KRaft answers DescribeQuorum."""
    names = {name for name, _ in _API.findall(text)}
    if "UpdateMetadata" in names:
        return "zookeeper"
    return "kraft" if "DescribeQuorum" in names else None


@dataclass(frozen=True)
class Addition:
    """What one file adds.

    defaults: what all brokers have that say nothing else.
    voters: nodes of the controller quorum; empty: not said.
    racks: every broker that answered, or was deployed, with its rack; None: not said.
    is_deployed: whether it says how brokers are started, and not which of them answer.
    bytes_of: bytes of each replica that was listed, by partition.
    held_by: of each broker with a failed log directory, the partitions in its directories that
        work.
    """

    source: str
    topics: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    brokers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    voters: tuple[int, ...] = ()
    racks: Mapping[int, str | None] | None = None
    is_deployed: bool = False
    features: Mapping[str, int] | None = None
    kafka_version: str | None = None
    mode: str | None = None
    bytes_of: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    held_by: Mapping[int, frozenset[TopicPartition]] = field(default_factory=dict)
    moving: tuple[TopicPartition, ...] = ()
    moves: Mapping[TopicPartition, tuple[tuple[int, ...], ...]] = field(default_factory=dict)


def read_configs(text: str, source: str) -> Addition:
    """Return the settings that `kafka-configs.sh --describe` prints, with `--all` or without."""
    settings: dict[str, dict[str, dict[str, str]]] = {"topic": {}, "broker": {}, "default": {}}
    current: dict[str, str] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _OF.match(line):
            current = settings[match[1]].setdefault(match[2], {})
        elif match := _DEFAULTS.match(line):
            current = settings["default"].setdefault(match[1], {})
        elif match := _OLD.match(line):
            pairs = [pair.partition("=") for pair in re.split(r",(?=[\w.-]+=)", match[3]) if pair]
            settings[match[1]][match[2]] = {key.strip(): value for key, _, value in pairs}
        elif match := _SETTING.match(line):
            if current is None:
                raise InputError(
                    f"{source}:{number}: no line before this setting says whose it is; save the "
                    "whole output of kafka-configs.sh, not what grep leaves of it"
                )
            current[match[1]] = match[2]
        elif current is not None and re.match(r"\s+[\w.-]+=", line):
            raise InputError(f"{source}:{number}: the line is cut; save the whole output again")
    return Addition(
        source,
        topics=settings["topic"],
        brokers=settings["broker"],
        defaults=settings["default"].get("broker", {}),
    )


def read_quorum(text: str, source: str) -> Addition:
    """Return the voters that `kafka-metadata-quorum.sh describe` prints, in either form."""
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
    return Addition(source, voters=numbers, mode="kraft")


def read_features(text: str, source: str) -> Addition:
    """Return the finalized levels that `kafka-features.sh describe` prints, and the version."""
    levels = {name: whole_number(level) or 0 for name, level in _FEATURE.findall(text)}
    supported = _SUPPORTED.search(text)
    version = None if supported is None else supported[1]
    mode = "kraft" if levels else None  # ZooKeeper has none
    return Addition(source, features=levels, kafka_version=version, mode=mode)


def read_api_versions(text: str, source: str) -> Addition:
    """Return the brokers that answered `kafka-broker-api-versions.sh`, and the oldest version."""
    racks: dict[int, str | None] = {}
    apis: list[list[str]] = []
    for line in text.splitlines():
        match = _BROKER.match(line)
        broker = None if match is None else whole_number(match[1], MAX_ID)
        if match is not None and match[4] == "(" and broker is not None:
            racks[broker] = None if match[2] == "null" else match[2]
            apis.append([])
        if apis:
            apis[-1].append(line)
    versions = [version for lines in apis if (version := version_of_apis("\n".join(lines)))]
    oldest = min(versions, key=version_numbers, default=None)
    return Addition(source, racks=racks, kafka_version=oldest, mode=mode_of_apis(text))


def read_log_dirs(text: str, source: str) -> Addition:
    """Return the bytes of replicas and the failed directories that `kafka-log-dirs.sh` prints."""
    begin = _LOG_DIRS.search(text)
    try:
        if begin is None:
            raise ValueError("it is not there")
        brokers = read_json(text[begin.start() : text.rindex("}") + 1])["brokers"]
        return _of_log_dirs(brokers, source)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f"{source}: the line with the log directories cannot be read ({str(error)[:100]}); run "
            "kafka-log-dirs.sh --bootstrap-server HOST:9092 --describe > FILE"
        ) from None


def _of_log_dirs(brokers: Sequence[Mapping[str, Any]], source: str) -> Addition:
    sizes: dict[TopicPartition, list[int]] = {}
    held_by: dict[int, frozenset[TopicPartition]] = {}
    for broker in brokers:
        partitions: set[TopicPartition] = set()
        for directory in broker["logDirs"]:
            for replica in directory["partitions"]:
                named = _NAMED.fullmatch(replica["partition"])
                if named is None or replica["isFuture"]:  # a copy on its way to another directory
                    continue
                partitions.add((named[1], int(named[2])))
                sizes.setdefault((named[1], int(named[2])), []).append(int(replica["size"]))
        if any(directory["error"] for directory in broker["logDirs"]):
            held_by[int(broker["broker"])] = frozenset(partitions)
    return Addition(
        source,
        bytes_of={key: tuple(of_replicas) for key, of_replicas in sizes.items()},
        held_by=held_by,
    )


def read_moves(text: str, source: str) -> Addition:
    """Return what is being moved, as `kafka-reassign-partitions.sh` says it."""
    names = [*_UNDER_WAY.findall(text)]
    for started in _STARTED.findall(text):
        names += started.split(",")
    moving = [(match[1], int(match[2])) for name in names if (match := _NAMED.fullmatch(name))]
    moves = {
        (topic, int(index)): tuple(_ids(ids) for ids in lists)
        for topic, index, *lists in _LISTED.findall(text)
    }
    no_moves = _NO_MOVES.search(text) or re.search(r"^Status of partition reassignment", text, re.M)
    if not (moving or moves or no_moves):
        raise InputError(
            f"{source}: it does not say what is being moved; run kafka-reassign-partitions.sh "
            "--bootstrap-server HOST:9092 --list"
        )
    return Addition(source, moving=tuple(dict.fromkeys([*moving, *moves])), moves=moves)


def _ids(text: str) -> tuple[int, ...]:
    numbers = [whole_number(number, MAX_ID) for number in text.split(",") if number]
    return tuple(number for number in numbers if number is not None)


def of_deployment(cluster: Cluster) -> Addition:
    """Return what a file says that starts brokers: not the ids that it does not state."""
    are_stated = not any("are assumed" in note for note in cluster.notes)
    return Addition(
        cluster.source,
        brokers=dict.fromkeys(map(str, cluster.brokers), cluster.broker_settings)
        if cluster.broker_settings
        else {},
        voters=tuple(cluster.controllers or ()) if are_stated else (),
        racks=cluster.brokers if are_stated else None,
        is_deployed=True,
        kafka_version=cluster.kafka_version,
        mode=cluster.mode,
    )


def added(cluster: Cluster, additions: Sequence[Addition]) -> Cluster:
    """Return the cluster with what further files say, and a note on each."""
    for addition in additions:
        for add in (
            *(_with_mode, _with_version, _with_settings, _with_broker_settings, _with_racks),
            *(_with_voters, _with_elr, _with_bytes, _with_failed_directories, _with_moves),
        ):
            cluster = add(cluster, addition)
    return _inherited(cluster)


def _noted(cluster: Cluster, *notes: str, **fields: object) -> Cluster:
    return replace(cluster, notes=(*cluster.notes, *notes), **fields)  # type: ignore[arg-type]


def _with_settings(cluster: Cluster, addition: Addition) -> Cluster:
    if not addition.topics:
        return cluster
    notes, topics = [], []
    for topic in (*cluster.topics, *cluster.set_aside):
        settings = {
            key: value for key, value in addition.topics.get(topic.name, {}).items() if key in _KEPT
        }
        for key in sorted(settings.keys() & topic.configs.keys()):
            if settings[key] != topic.configs[key]:
                notes.append(
                    f"{key} of {topic.name} is {topic.configs[key]} in {cluster.source} and "
                    f"{settings[key]} in {addition.source}, which was taken."
                )
        topics.append(replace(topic, configs={**topic.configs, **settings}) if settings else topic)
    names = {topic.name for topic in topics}
    used = len(names & addition.topics.keys())
    notes.append(f"Settings of {counted(used, 'topic')} are from {addition.source}.")
    unknown = sorted(addition.topics.keys() - names)
    if unknown:
        verb = "is" if len(unknown) == 1 else "are"
        notes.append(
            f"{addition.source} has settings of {counted(len(unknown), 'topic')} that {verb} not "
            f"in {cluster.source}: {unknown[0]}{', ...' if len(unknown) > 1 else ''}."
        )
    return _noted(cluster, *notes, topics=tuple(topics), set_aside=())


def _with_broker_settings(cluster: Cluster, addition: Addition) -> Cluster:
    """Add the settings that are the same on all of its brokers."""
    described = [{**addition.defaults, **row} for row in addition.brokers.values()]
    if not described and not addition.defaults:
        return cluster
    notes = []
    if described:
        notes.append(f"Settings of {counted(len(described), 'broker')} are from {addition.source}.")
    if addition.defaults:
        notes.append(f"What all brokers have by default is from {addition.source}.")
    described = described or [{**addition.defaults}]
    common = {
        key: value
        for key, value in described[0].items()
        if key in REPLICATION_SETTINGS and all(row.get(key) == value for row in described)
    }
    return _noted(cluster, *notes, broker_settings={**cluster.broker_settings, **common})


def _inherited(cluster: Cluster) -> Cluster:
    """Give topics what their brokers have, where neither file has a value of their own.

    Where kafka-topics.sh has asked the brokers, which topic ids show, a missing value is Kafka's.
    """
    values = {key: v for key, v in cluster.broker_settings.items() if key in _FOLLOWED}
    if not values:
        return cluster
    topics, contradicting = [], dict[str, str]()
    for topic in (*cluster.topics, *cluster.set_aside):
        inherited = {key: value for key, value in values.items() if key not in topic.configs}
        if cluster.layout is None or topic.topic_id is None:
            topic = replace(topic, configs={**inherited, **topic.configs})
        else:
            differing = [key for key, value in inherited.items() if value != _FOLLOWED[key]]
            contradicting |= dict.fromkeys(differing, topic.name)
        topics.append(topic)
    notes = [
        f"{key} is {values[key]} on the brokers, and {cluster.source} shows no value of {topic}, "
        f"which there means Kafka's default, {_FOLLOWED[key]}: that was taken."
        for key, topic in contradicting.items()
    ]
    return _noted(cluster, *notes, topics=tuple(topics), set_aside=())


def _with_voters(cluster: Cluster, addition: Addition) -> Cluster:
    if not addition.voters:
        return cluster
    stated = cluster.controllers
    notes = [f"The controllers are from {addition.source}."]
    if stated is not None and {*stated} != {*addition.voters}:
        notes.append(
            f"{cluster.source} has other controllers, {', '.join(map(str, stated))}: those of "
            f"{addition.source} were taken."
        )
    racks = {**cluster.brokers, **(stated or {})}
    controllers = {voter: racks.get(voter) for voter in addition.voters}
    return _noted(cluster, *notes, controllers=controllers)


def _with_racks(cluster: Cluster, addition: Addition) -> Cluster:
    if addition.racks is None:
        return cluster
    verb = "are started" if addition.is_deployed else "answered"
    notes = [f"The brokers that {verb} are from {addition.source}."]
    silent = sorted(set(cluster.brokers) - set(addition.racks))
    if silent:
        did = "are not started" if addition.is_deployed else "did not answer"
        notes.append(
            f"Of the brokers in {cluster.source}, {', '.join(map(str, silent[:5]))} {did} in "
            f"{addition.source}."
        )
    for broker, rack in addition.racks.items():
        described = cluster.brokers.get(broker)
        if None not in (described, rack) and described != rack:
            notes.append(
                f"Broker {broker} is in {described} in {cluster.source} and in {rack} in "
                f"{addition.source}, which was taken."
            )
    racks = {b: rack for b, rack in addition.racks.items() if rack or b not in cluster.brokers}
    return _noted(cluster.with_racks(racks) if racks else cluster, *notes)


def _with_elr(cluster: Cluster, addition: Addition) -> Cluster:
    if addition.features is None:
        return cluster
    is_on = addition.features.get(ELR_FEATURE, 0) > 0
    notes = [
        f"Eligible leader replicas are {'on' if is_on else 'off'}, as {addition.source} has it."
    ]
    if not is_on and any(p.elr for topic in cluster.topics for p in topic.partitions):
        notes.append(
            f"{cluster.source} shows eligible leader replicas all the same: the files may be of "
            "two clusters, or of two times."
        )
    return _noted(cluster, *notes, eligible_leader_replicas=is_on)


def _with_mode(cluster: Cluster, addition: Addition) -> Cluster:
    if addition.mode is None or cluster.mode == addition.mode:
        return cluster
    if cluster.mode is not None:
        names = {"kraft": "KRaft", "zookeeper": "ZooKeeper"}
        raise InputError(
            f"{addition.source} is of a cluster with {names[addition.mode]}, and {cluster.source} "
            f"of one with {names[cluster.mode]}; give files of one cluster"
        )
    return replace(cluster, mode=addition.mode)


def _with_version(cluster: Cluster, addition: Addition) -> Cluster:
    version = addition.kafka_version
    if version is None:
        return cluster
    described = cluster.kafka_version
    if described is None:
        note = f"Kafka's version is {version}, as {addition.source} shows."
        return _noted(cluster, note, kafka_version=version)
    if version_numbers(described)[:2] == version_numbers(version)[:2]:
        return cluster
    return _noted(
        cluster,
        f"Kafka's version is {described} in {cluster.source} and {version} in {addition.source}: "
        f"{described} was taken.",
    )


def _with_bytes(cluster: Cluster, addition: Addition) -> Cluster:
    if not addition.bytes_of:
        return cluster
    of_topic: dict[str, list[int]] = {}
    for (topic, _), sizes in addition.bytes_of.items():
        of_topic.setdefault(topic, []).append(max(sizes))
    names = {topic.name for topic in (*cluster.topics, *cluster.set_aside)}
    means = {name: sum(s) / len(s) for name, s in of_topic.items() if name in names}
    note = f"Bytes of {counted(len(means), 'topic')} are from {addition.source}."
    return _noted(cluster, note, replica_bytes={**cluster.replica_bytes, **means})


def _with_failed_directories(cluster: Cluster, addition: Addition) -> Cluster:
    """Mark the replicas that are listed somewhere, but in no directory that works."""
    if not addition.held_by:
        return cluster

    def marked(topic: str, partition: Partition) -> Partition:
        key = (topic, partition.index)
        offline = {
            broker
            for broker, held_partitions in addition.held_by.items()
            if broker in (*partition.replicas, *partition.observers) and key not in held_partitions
        }
        if key not in addition.bytes_of or not offline:
            return partition
        return replace(partition, offline=tuple(sorted({*partition.offline, *offline})))

    names = ", ".join(map(str, sorted(addition.held_by)))
    note = f"A log directory has failed on broker {names}, as {addition.source} shows."
    return _noted(_with_partitions(cluster, marked), note)


def _with_moves(cluster: Cluster, addition: Addition) -> Cluster:
    if not addition.moving:
        return cluster

    def moved(topic: str, partition: Partition) -> Partition:
        replicas, adding, removing = addition.moves.get((topic, partition.index), ((), (), ()))
        is_shown = partition.adding or partition.removing or {*replicas} != {*partition.replicas}
        if is_shown or not {*replicas}.issuperset((*adding, *removing)):
            return partition
        return replace(partition, adding=adding, removing=removing)

    names = [f"{topic}-{index}" for topic, index in addition.moving]
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    verb = "is" if len(names) == 1 else "are"
    note = (
        f"{', '.join(names[:3])}{more} {verb} being reassigned, as {addition.source} has it: let "
        "that end before you begin another reassignment."
    )
    return _noted(_with_partitions(cluster, moved), note)


def _with_partitions(cluster: Cluster, change: Callable[[str, Partition], Partition]) -> Cluster:
    topics = tuple(
        replace(topic, partitions=tuple(change(topic.name, p) for p in topic.partitions))
        for topic in (*cluster.topics, *cluster.set_aside)
    )
    return replace(cluster, topics=topics, set_aside=())
