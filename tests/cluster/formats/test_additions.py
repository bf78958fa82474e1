from pathlib import Path

import pytest

from advisor.cluster import load_cluster
from advisor.errors import InputError

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


def test_a_cut_setting_is_refused(tmp_path):
    """A line of a setting that ends early is not read as a shorter value."""
    with pytest.raises(InputError, match=r"1\.txt:2: the line is cut"):
        together(tmp_path, "All configs for topic orders are:\n  min.insync.replicas=2 sens\n")
