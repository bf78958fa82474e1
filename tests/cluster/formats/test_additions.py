import json
import re
from pathlib import Path

import pytest

import advisor
from advisor.__main__ import main
from advisor.advice import recommend
from advisor.cluster import load_cluster
from advisor.cluster.broker_presence import presence_of
from advisor.errors import InputError
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.results.cost import in_bytes

CARD = (
    "[broker.destroyed]\nper_year = { value = 1e-3, low = 5e-4, high = 2e-3, evidence = "
    '"broker-destroyed-cloud" }\nhours = { value = 12, low = 6, high = 24, evidence = '
    '"broker-destroyed-cloud-hours" }\n'
)

DESCRIBED = """\
Topic: orders\tTopicId: lED9sW0yRFu76ZK5JKO2KA\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: \
min.insync.replicas=1,segment.bytes=1073741824
\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tElr: \tLastKnownElr:
\tTopic: orders\tPartition: 1\tLeader: 2\tReplicas: 2,3,1\tIsr: 2,3,1\tElr: \tLastKnownElr:
Topic: bills\tTopicId: mED9sW0yRFu76ZK5JKO2KA\tPartitionCount: 1\tReplicationFactor: 3\tConfigs:
\tTopic: bills\tPartition: 0\tLeader: 3\tReplicas: 3,1,2\tIsr: 3,1,2\tElr: \tLastKnownElr:
"""
# Forms as printed by core/src/main/scala/kafka/admin/ConfigCommand.scala (2.5 and later; with
# --zookeeper: to 2.4), tools/.../MetadataQuorumCommand.java (3.3; with directories: 3.9),
# FeatureCommand.java and BrokerApiVersionsCommand.java of Apache Kafka.
SETTINGS = """\
All configs for topic orders are:
  compression.type=producer sensitive=false synonyms={DEFAULT_CONFIG:compression.type=producer}
  min.insync.replicas=2 sensitive=false synonyms={STATIC_BROKER_CONFIG:min.insync.replicas=2, \
DEFAULT_CONFIG:min.insync.replicas=1}
  retention.ms=7200000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=7200000}
Dynamic configs for topic gone are:
  retention.ms=1 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1}
"""
OLD_SETTINGS = (
    "Configs for topic 'orders' are min.insync.replicas=2,cleanup.policy=compact,delete\n"
)
BROKERS = """\
All configs for broker 1 are:
  min.insync.replicas=2 sensitive=false synonyms={STATIC_BROKER_CONFIG:min.insync.replicas=2}
  num.partitions=6 sensitive=false synonyms={STATIC_BROKER_CONFIG:num.partitions=6}
All configs for broker 2 are:
  min.insync.replicas=2 sensitive=false synonyms={STATIC_BROKER_CONFIG:min.insync.replicas=2}
  num.partitions=1 sensitive=false synonyms={DEFAULT_CONFIG:num.partitions=1}
"""
QUORUM = """\
ClusterId:              fMCL8kv1SWm87L_Md-I2hg
LeaderId:               3002
LeaderEpoch:            2
HighWatermark:          10
MaxFollowerLag:         0
CurrentVoters:          {voters}
CurrentObservers:       [1,2,3]
"""
PLAIN, DIRECTORIES = (
    "[3000,3001,3002]",
    (
        '[{"id": 3000, "directoryId": "DYDwSq5sSnCjFjGzwO2jSw", "endpoints": ["C://a:9"]}, '
        '{"id": 3001, "directoryId": null}, {"id": 3002, "directoryId": null}]'
    ),
)
HEADS = "NodeId DirectoryId LogEndOffset Lag LastFetchTimestamp LastCaughtUpTimestamp Status"
REPLICATION = HEADS.replace(" ", "\t") + "".join(
    f"\n{node}  \tDYDwSq5sSnCjFjGzwO2jSw\t10 \t0 \t1700000000000\t1700000000000\t{status}\t"
    for node, status in (
        (3002, "Leader  "),
        (3000, "Follower"),
        (3001, "Follower"),
        (1, "Observer"),
    )
)
FEATURES = (
    "Feature: eligible.leader.replicas.version\tSupportedMinVersion: 0\tSupportedMaxVersion: 1\t"
    "FinalizedVersionLevel: {level}\tEpoch: 5\n"
    "Feature: metadata.version\tSupportedMinVersion: 3.3-IV3\tSupportedMaxVersion: 4.1-IV1\t"
    "FinalizedVersionLevel: 4.1-IV1\tEpoch: 5\n"
)
API_VERSIONS = """\
kafka-1:9092 (id: 1 rack: a isFenced: false) -> (
\tProduce(0): 0 to 12 [usable: 12],
)
kafka-2:9092 (id: 2 rack: b isFenced: false) -> (
)
kafka-3:9092 (id: 3 rack: null isFenced: false) -> ERROR: org.apache.kafka.common.errors.Disconnect
kafka-4:9092 (id: 4 rack: null isFenced: false) -> (
)
"""


# `LogDirsCommand.java`: one line of JSON after two of prose, as pasted into many tutorials.
LOG_DIRS = """\
Querying brokers for log directories information
Received log directory information from brokers 1,2,3
{"version":1,"brokers":[{"broker":1,"logDirs":[{"logDir":"/d","error":null,"partitions":[\
{"partition":"orders-0","size":1000,"offsetLag":0,"isFuture":false},\
{"partition":"orders-1","size":3000,"offsetLag":0,"isFuture":false},\
{"partition":"orders-1","size":9000,"offsetLag":0,"isFuture":true}]}]},\
{"broker":2,"logDirs":[{"logDir":"/d","error":null,"partitions":[\
{"partition":"orders-0","size":1000,"offsetLag":0,"isFuture":false}]},\
{"logDir":"/e","error":"org.apache.kafka.common.errors.KafkaStorageException","partitions":[]}]},\
{"broker":3,"logDirs":[{"logDir":"/d","error":null,"partitions":[\
{"partition":"orders-0","size":900,"offsetLag":0,"isFuture":false},\
{"partition":"orders-1","size":2000,"offsetLag":0,"isFuture":false}]}]}]}
"""
VERIFIED = """\
Status of partition reassignment:
Reassignment of partition orders-0 is completed.
Reassignment of partition orders-1 is still in progress.
"""
LISTED = "Current partition reassignments:\norders-1: replicas: 2,3,1. adding: 1. removing: 3.\n"


def together(folder: Path, *texts: str, **options: object):
    """Return the cluster of a describe output and further files."""
    paths = []
    for number, text in enumerate((DESCRIBED, *texts)):
        paths.append(folder / f"{number}.txt")
        paths[-1].write_text(text)
    return load_cluster(paths, **options)


def test_settings_are_those_that_hold_whatever_their_source(tmp_path):
    """A value of the brokers counts as one of the topic does; a contradiction is said."""
    cluster = together(tmp_path, SETTINGS)
    assert cluster.topic("orders").configs == {
        "min.insync.replicas": "2",
        "segment.bytes": "1073741824",
        "retention.ms": "7200000",
    }
    assert cluster.topic("bills").configs == {}
    said = " ".join(cluster.notes)
    assert "min.insync.replicas of orders is 1 in" in said
    assert "Settings of 1 topic are from" in said
    assert said.endswith("0.txt: gone.")


def test_settings_of_the_old_tool_are_read(tmp_path):
    """Up to 2.4 they stand in one line, and a value may have a comma."""
    configs = together(tmp_path, OLD_SETTINGS).topic("orders").configs
    assert configs["min.insync.replicas"] == "2"
    assert configs["cleanup.policy"] == "compact,delete"


def test_settings_that_all_brokers_have_alike_are_the_cluster_s(tmp_path):
    """One that differs between brokers is none of the cluster's."""
    assert together(tmp_path, BROKERS).broker_settings == {"min.insync.replicas": "2"}


def test_the_default_of_all_brokers_is_the_cluster_s(tmp_path):
    """It holds for topics without a value, and gives way to what one broker has of its own."""
    default = (
        "Default configs for brokers in the cluster are:\n  min.insync.replicas=3 sensitive=false "
        "synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:min.insync.replicas=3}\n"
    )
    alone = together(tmp_path, default)
    assert alone.broker_settings == {"min.insync.replicas": "3"}
    assert "by default is from" in " ".join(alone.notes)
    both = together(tmp_path, default + BROKERS)
    assert both.broker_settings == {"min.insync.replicas": "2"}
    own = BROKERS.replace(
        "broker 2 are:\n  min.insync.replicas=2 sens", "broker 2 are:\n  x.y=2 sens"
    )
    assert together(tmp_path, default + own).broker_settings == {}


@pytest.mark.parametrize(
    "text",
    [QUORUM.format(voters=PLAIN), QUORUM.format(voters=DIRECTORIES), REPLICATION],
    ids=["status", "status of 3.9", "replication"],
)
def test_voters_are_the_controllers(tmp_path, text):
    """Leader and followers are voters, observers are none; it is KRaft then."""
    cluster = together(tmp_path, text)
    assert cluster.controllers == dict.fromkeys([3000, 3001, 3002])
    assert cluster.mode == "kraft"


@pytest.mark.parametrize(("level", "is_on"), [(0, False), (1, True)])
def test_features_say_whether_eligible_leader_replicas_are_on(tmp_path, level, is_on):
    """The level of the feature decides, not the columns that the tool prints."""
    assert together(tmp_path, FEATURES.format(level=level)).eligible_leader_replicas is is_on


def test_brokers_that_answer_have_their_racks_and_the_others_are_said(tmp_path):
    """An idle broker is added; of one that did not answer it is said; racks of the user win."""
    cluster = together(tmp_path, API_VERSIONS)
    assert cluster.brokers == {1: "a", 2: "b", 3: None, 4: None}
    assert "3 did not answer" in " ".join(cluster.notes)
    assert together(tmp_path, API_VERSIONS, racks="1=x").brokers[1] == "x"


APIS = {
    "Produce": 0,
    "Fetch": 1,
    "ListOffsets": 2,
    "Metadata": 3,
    "OffsetFetch": 9,
    "JoinGroup": 11,
    "AddPartitionsToTxn": 24,
    "DescribeAcls": 29,
    "DescribeLogDirs": 35,
    "DescribeClientQuotas": 48,
    "LeaderAndIsr": 4,
}
# Newest version of each request: those of Apache Kafka at its tags, LeaderAndIsr under ZooKeeper.
RELEASES = {
    "2.1": (7, 10, 4, 7, 5, 3, 1, 1, 1, None, 1),
    "2.8": (9, 12, 6, 11, 7, 7, 3, 2, 2, 1, 5),
    "3.4": (9, 13, 7, 12, 8, 9, 3, 3, 4, 1, 7),
    "3.7": (10, 16, 8, 12, 9, 9, 4, 3, 4, 1, None),
    "3.9": (11, 17, 9, 12, 9, 9, 5, 3, 4, 1, None),
    "4.1": (13, 18, 10, 13, 9, 9, 5, 3, 4, 1, None),
}


def api_versions(broker, release):
    """Return what a broker of a release answers."""
    newest = zip(APIS.items(), RELEASES[release], strict=True)
    apis = [f"\t{n}({key}): 0 to {v} [usable: {v}],\n" for (n, key), v in newest if v is not None]
    return f"kafka-{broker}:9092 (id: {broker} rack: a) -> (\n{''.join(apis)})\n"


@pytest.mark.parametrize("release", RELEASES)
def test_the_requests_that_brokers_answer_show_the_version(tmp_path, release):
    """The newest release that has each of them; with brokers of several, the oldest."""
    text = api_versions(1, release)
    assert together(tmp_path, text).kafka_version == release
    assert together(tmp_path, api_versions(2, "4.1") + text).kafka_version == release
    assert together(tmp_path, text, kafka_version="3.5").kafka_version == "3.5"


def test_lines_with_brokers_alone_say_nothing_of_the_version(tmp_path):
    """Many keep only these of the output."""
    assert together(tmp_path, API_VERSIONS).kafka_version is None


def test_the_newest_supported_level_is_the_version(tmp_path):
    """The finalized one may be older: of an upgrade that was not finished."""
    older = FEATURES.format(level=0).replace(
        "FinalizedVersionLevel: 4.1", "FinalizedVersionLevel: 3.9"
    )
    assert together(tmp_path, older).kafka_version == "4.1"


def test_what_brokers_set_holds_for_topics_without_a_value(tmp_path):
    """It is not judged with Kafka's default, unless the description shows that it is that."""
    (tmp_path / "b.txt").write_text(BROKERS)
    (tmp_path / "d.txt").write_text(re.sub(r"\tTopicId: \S+", "", DESCRIBED))
    orders, bills = load_cluster([tmp_path / "d.txt", tmp_path / "b.txt"]).topics
    assert (orders.min_insync_replicas, bills.min_insync_replicas) == (1, 2)
    contradicted = together(tmp_path / "", BROKERS)
    assert contradicted.topic("bills").min_insync_replicas is None
    assert "shows no value of bills" in " ".join(contradicted.notes)


def test_bytes_of_replicas_are_those_of_the_longest_copy(tmp_path):
    """On average over partitions; copies on their way to another directory do not count."""
    cluster = together(tmp_path, LOG_DIRS)
    assert cluster.replica_bytes == {"orders": (1000 + 3000) / 2}
    again = load_cluster(json.dumps(cluster.to_dict()) + "\n")
    assert again.replica_bytes == cluster.replica_bytes


def test_the_bytes_that_a_plan_copies_are_the_measured_ones(tmp_path):
    """Not those of the load that is assumed."""
    single = DESCRIBED.replace("1,2,3", "1").replace("2,3,1", "2").replace("Factor: 3", "Factor: 1")
    (tmp_path / "d.txt").write_text(single.replace("3,1,2", "3"))
    (tmp_path / "l.txt").write_text(LOG_DIRS)
    card = {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
    files = [tmp_path / "d.txt", tmp_path / "l.txt"]
    advice = recommend(files, FailureModel.from_dict(card), topics=["orders"])
    copies = sum(move.copies for move in advice.plan.moves)
    assert copies > 0
    (size,) = [line for line in advice.commands() if "were measured" in line]
    assert f"measured: that is {in_bytes(copies * 2000)}" in size


def test_replicas_in_no_directory_that_works_are_offline(tmp_path):
    """Of the broker with a failed one, and only of partitions that the file lists."""
    cluster = together(tmp_path, LOG_DIRS)
    assert [p.offline for p in cluster.topic("orders").partitions] == [(), (2,)]
    assert cluster.topic("bills").partitions[0].offline == ()
    assert presence_of(cluster).failed_directories == (2,)
    assert "log directory has failed on broker 2" in " ".join(cluster.notes)


@pytest.mark.parametrize("text", [LOG_DIRS[:-3], LOG_DIRS.replace('"size":1000,', "")])
def test_log_directories_that_are_cut_are_refused(tmp_path, text):
    """Half of a line says nothing of the other half."""
    with pytest.raises(InputError, match=r"log directories cannot be read .*run kafka-log-dirs"):
        together(tmp_path, text)


@pytest.mark.parametrize("text", [VERIFIED, LISTED])
def test_what_is_being_moved_is_said(tmp_path, text):
    """A finished reassignment is none; what is added and removed is known from --list."""
    cluster = together(tmp_path, text)
    assert "orders-1 is being reassigned, as" in " ".join(cluster.notes)
    moving = [(p.adding, p.removing) for p in cluster.topic("orders").partitions]
    assert moving == [((), ()), ((1,), (3,)) if text is LISTED else ((), ())]


def test_each_file_is_named_with_what_it_was_taken_for(tmp_path):
    """In the sentence that names the description."""
    said = together(tmp_path, LOG_DIRS, VERIFIED, racks="1=a,2=b,3=c").taken_for
    assert "; racks as given; " in said
    assert "1.txt for the output of kafka-log-dirs.sh --describe, " in said
    assert said.endswith("2.txt for the output of kafka-reassign-partitions.sh.")


def test_several_files_are_read_at_every_door(tmp_path, capsys):
    """The Python functions take a list, and the commands several names."""
    (tmp_path / "d.txt").write_text(DESCRIBED)
    (tmp_path / "s.txt").write_text(SETTINGS)
    (tmp_path / "card.toml").write_text(CARD)
    files = [tmp_path / "d.txt", tmp_path / "s.txt"]
    for door in (advisor.audit, advisor.recommend):
        cluster = door(files, tmp_path / "card.toml").cluster
        assert cluster.topic("orders").min_insync_replicas == 2
    for command in ("audit", "recommend", "evaluate", "report"):
        output = ["--output", str(tmp_path / "page.html")] if command == "report" else []
        line = [command, *map(str, files), "--model", str(tmp_path / "card.toml"), *output]
        assert main(line) in (0, 1)
        shown = " ".join(capsys.readouterr().out.split())
        assert "s.txt for the output of kafka-configs.sh --describe" in shown


def test_racks_that_contradict_are_said(tmp_path):
    """The brokers know best where they are; that another file says otherwise is not hidden."""
    text = '[brokers]\n1 = "x"\n2 = "b"\n3 = "c"\n[[topic]]\nname = "t"\nreplicas = [[1, 2, 3]]\n'
    (tmp_path / "c.toml").write_text(text)
    (tmp_path / "brokers.txt").write_text(API_VERSIONS)
    cluster = load_cluster([tmp_path / "c.toml", tmp_path / "brokers.txt"])
    assert cluster.brokers == {1: "a", 2: "b", 3: "c", 4: None}
    assert "Broker 1 is in x in" in " ".join(cluster.notes)


def test_a_folder_is_its_files(tmp_path):
    """Its files together describe one cluster, in whatever order; hidden ones are left out."""
    together(tmp_path, QUORUM.format(voters=PLAIN), SETTINGS)
    (tmp_path / ".notes").write_text("nothing")
    cluster = load_cluster(tmp_path)
    assert cluster.controllers == dict.fromkeys([3000, 3001, 3002])
    assert cluster.topic("orders").min_insync_replicas == 2


def test_two_files_with_partitions_and_none_are_refused(tmp_path):
    """One file has the partitions: which of two is the cluster is not guessed."""
    with pytest.raises(InputError, match="both have partitions"):
        together(tmp_path, DESCRIBED)
    (tmp_path / "settings").write_text(SETTINGS)
    (tmp_path / "voters").write_text(REPLICATION)
    with pytest.raises(InputError, match="none of them has replicas"):
        load_cluster([tmp_path / "settings", tmp_path / "voters"])


def test_voters_of_kraft_contradict_a_cluster_with_zookeeper(tmp_path):
    """Files of two clusters are not made one."""
    text = "brokers = 3\nmode = 'zookeeper'\n[[topic]]\nname='t'\nreplicas = [[1, 2, 3]]\n"
    (tmp_path / "c.toml").write_text(text)
    (tmp_path / "q.txt").write_text(REPLICATION)
    assert load_cluster(tmp_path / "c.toml").mode == "zookeeper"
    with pytest.raises(InputError, match="give files of one cluster"):
        load_cluster([tmp_path / "c.toml", tmp_path / "q.txt"])


def test_settings_without_the_line_that_says_whose_they_are_are_refused(tmp_path):
    """What grep leaves of kafka-configs.sh may be of any topic or broker."""
    with pytest.raises(InputError, match=r"1\.txt:1: no line before .* not what grep leaves"):
        together(tmp_path, "\n".join(SETTINGS.splitlines()[1:4]) + "\n")


def test_a_cut_setting_is_refused(tmp_path):
    """A line of a setting that ends early is not read as a shorter value."""
    with pytest.raises(InputError, match=r"1\.txt:2: the line is cut"):
        together(tmp_path, "All configs for topic orders are:\n  min.insync.replicas=2 sens\n")
