"""Outputs that carry no replicas are named, each in several forms that people paste."""

import pytest

from advisor.cluster import load_cluster
from advisor.cluster.formats.sources import DESCRIBE
from advisor.errors import InputError

# What is declined, a text in the form of the source beside it, and the source.
OUTPUTS = [
    (
        "kafka-consumer-groups.sh",
        "Consumer group 'bill' has no active members.\n\nTOPIC      PARTITION  CURRENT-OFFSET  "
        "LOG-END-OFFSET  LAG        CONSUMER-ID     HOST            CLIENT-ID\n"
        "orders     0          12              14              2          -               -   -\n",
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand 2.0",
    ),
    (
        "kafka-consumer-groups.sh",
        "Group           Topic                          Pid Offset          logSize         Lag"
        "             Owner\nbill            orders                         0   12    14   2   x\n",
        "kafka.tools.ConsumerOffsetChecker 0.8",
    ),
    (
        "kafka-consumer-groups.sh",
        "GROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE           #MEMBERS\n"
        "bill            kafka-1:9092 (1)          range                Stable          2\n",
        "ConsumerGroupCommand --state",
    ),
    (
        "kafka-configs.sh",
        "Configs for topic 'orders' are retention.ms=360000,max.message.bytes=128000\n",
        "kafka.admin.ConfigCommand 0.9 to 2.4",
    ),
    (
        "kafka-configs.sh",
        "All configs for broker 1 are:\n  min.insync.replicas=1 sensitive=false synonyms={}\n",
        "kafka.admin.ConfigCommand --all",
    ),
    (
        "kafka-configs.sh",
        "Default configs for brokers in the cluster are:\n  num.io.threads=8 sensitive=false\n",
        "kafka.admin.ConfigCommand --entity-default",
    ),
    (
        "kafka-metadata-quorum.sh",
        "NodeId\tLogEndOffset\tLag\tLastFetchTimestamp\tLastCaughtUpTimestamp\tStatus    \t\n"
        "3002  \t10          \t0  \t1655758060      \t1655758060           \tLeader    \t\n",
        "KIP-836",
    ),
    (
        "kafka-metadata-quorum.sh",
        "NodeId\tDirectoryId           \tLogEndOffset\tLag\tLastFetchTimestamp\tStatus\n"
        "1     \tpqRzTqvBTsKz1fUpJ4aHXg\t2101        \t0  \t1724              \tLeader\n",
        "KIP-853",
    ),
    (
        "kafka-metadata-quorum.sh",
        "LeaderId:               3002\nLeaderEpoch:            2\nHighWatermark:          10\n",
        "KIP-595",
    ),
    (
        "kafka-features.sh",
        "Feature: kraft.version\tSupportedMinVersion: 0\tSupportedMaxVersion: 1\t"
        "FinalizedVersionLevel: 1\tEpoch: 7\n",
        "KIP-584",
    ),
    (
        "kafka-broker-api-versions.sh",
        "kafka-0.kafka.svc:9092 (id: 0 rack: null) -> (\n\tProduce(0): 0 to 9 [usable: 9],\n",
        "kafka.admin.BrokerApiVersionsCommand",
    ),
    (
        "kafka-log-dirs.sh",
        "Querying brokers for log directories information\nReceived log directory information from "
        'brokers 1,2\n{"version":1,"brokers":[{"broker":1,"logDirs":[{"partitions":[],"error":null,'
        '"logDir":"/data"}]}]}\n',
        "org.apache.kafka.tools.LogDirsCommand",
    ),
    (
        "an error message",
        "Error while executing topic command : Topic 'orders' does not exist as expected\n"
        "[2025-01-02 10:00:00,000] ERROR java.lang.IllegalArgumentException: Topic 'orders' does "
        "not exist as expected\n",
        "kafka.admin.TopicCommand",
    ),
    (
        "an error message",
        'Exception in thread "main" joptsimple.UnrecognizedOptionException: zookeeper is not a '
        "recognized option\n\tat joptsimple.OptionException.unrecognizedOption\n",
        "kafka-topics.sh --zookeeper, 3.0 and newer",
    ),
    (
        "an error message",
        "[2025-01-02 10:00:00,000] WARN [AdminClient clientId=adminclient-1] Connection to node -1 "
        "could not be established. (org.apache.kafka.clients.NetworkClient)\n",
        "org.apache.kafka.clients.NetworkClient",
    ),
    (
        "kafkactl",
        "CONFIG                  VALUE\nretention.ms            604800000\n\n"
        "PARTITION     OLDEST_OFFSET     NEWEST_OFFSET     EMPTY     LEADER         REPLICAS    "
        "IN_SYNC_REPLICAS\n0             0     12     false     kafka1:9092     101,102     101\n",
        "https://github.com/deviceinsight/kafkactl",
    ),
    (
        "kaf topic describe",
        "Name:        orders\nInternal:    false\nCompacted:   false\nPartitions:\n"
        "  Partition  High Watermark  Leader  Replicas  ISR\n"
        "  ---------  --------------  ------  --------  ---\n"
        "  0          0               2       [1 2 3]   [1 2 3]\n",
        "https://github.com/birdayz/kaf",
    ),
    ("kafka-get-offsets.sh", "orders:0:\norders:1:14\n__consumer_offsets:0:5\n", "KIP-635"),
    (
        "kubectl get kafkatopic",
        "$ kubectl get kt -n shop\nNAME           CLUSTER      PARTITIONS   REPLICATION FACTOR   "
        "READY\nnginx.access   lakehouse    3            1                    True\n",
        "https://strimzi.io/docs",
    ),
    (
        "an MSK cluster",
        '{\n    "ClusterInfoList": [\n        {\n            "BrokerNodeGroupInfo": {},\n'
        '            "ClusterArn": "arn:aws:kafka:us-east-1:123456789012:cluster/shop/abc"\n'
        "        }\n    ]\n}\n",
        "https://docs.aws.amazon.com/cli/latest/reference/kafka/list-clusters.html",
    ),
    (
        "server.properties",
        "# The id of the broker.\nbroker.id=0\nlisteners=PLAINTEXT://:9092\nnum.partitions=1\n"
        "offsets.topic.replication.factor=1\n",
        "https://github.com/apache/kafka/blob/trunk/config/server.properties",
    ),
    ("a list of names", "__consumer_offsets\norders\npayments.v1\n", "kafka-topics.sh --list"),
]


@pytest.mark.parametrize(("name", "text", "source"), OUTPUTS)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_an_output_without_replicas_is_named_with_what_to_run(name, text, source, line_end):
    """One sentence: what it is, what it lacks, and the command; never that the file is cut."""
    assert source
    with pytest.raises(InputError) as caught:
        load_cluster(text.replace("\n", line_end))
    said = str(caught.value)
    assert name in said[said.index("this is ") :]
    assert DESCRIBE in said
    assert "again" not in said
    assert "\n" not in said


@pytest.mark.parametrize("text", [text for _, text, _ in OUTPUTS if not text.startswith("{")])
def test_a_describe_beside_it_is_read(text):
    """What a terminal shows before a describe output does not hide it."""
    described = (
        "Topic: shown\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: \n"
        "\tTopic: shown\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n"
    )
    assert [topic.name for topic in load_cluster(text + described).topics] == ["shown"]
