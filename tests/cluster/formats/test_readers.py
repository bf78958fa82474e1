"""What the readers of other tools' outputs refuse, or say, where something may be missing."""

import pytest

from advisor.cluster import load_cluster
from advisor.cluster.formats.literals import LiteralError, read_literal
from advisor.errors import InputError
from corpus import FOLDER


def text_of(file: str) -> str:
    return (FOLDER / file).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, null, true], "b": {}}', {"a": [1, None, True], "b": {}}),
        ("{'a': (1, None), u'b': b'x\\'y'}", {"a": [1, None], "b": "x'y"}),
        ("{ a: [ 1, 2, ], b: undefined }", {"a": [1, 2], "b": None}),
        ("Part(topic = t, isr = [1,2])", {"": "Part", "topic": "t", "isr": [1, 2]}),
        (
            "{t=(name=t, ids=List(1, 2))}",
            {"t": {"name": "t", "ids": {"": "List", "items": [1, 2]}}},
        ),
    ],
)
def test_values_of_every_language_are_read(text, value):
    """Lists, tables, objects with a name, texts and numbers of five languages."""
    assert read_literal(text) == (value, len(text))


@pytest.mark.parametrize(
    "text", ["[1 2", "[1\n2]", "[1, 2)", "{a: 1, a: 2}", "{a: 1, 2}", "", "[" * 40 + "]" * 40]
)
def test_what_is_no_value_is_refused(text):
    """A comma, a bracket or a name that is missing, a key that is there twice, and too deep."""
    with pytest.raises(LiteralError):
        read_literal(text)


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("kafka-python-describe.txt", "'leader': 1,", "", "a partition has no leader"),
        ("kafka-python-describe.txt", "'partition': 0,", "", "a partition has no partition"),
        ("kafka-python-describe.txt", "'leader': 1", "'leader': 2", "broker 2 as Leader"),
        ("kafka-python-describe.txt", "'isr': [1]", "'isr': []", "not in its ISR"),
        ("cruise-control-verbose.txt", "Other Partitions:", "", "without verbose=true"),
        ("cruise-control-verbose.txt", "[1, 2]", "[1, 0]", "is said to have"),
        ("cruise-control-verbose.json", '"2":1', '"2":7', "broker 2 is said to have 7 replicas"),
        ("ccloud-2019.txt", "| [2 3]", "| [2 3", "not a list of brokers in brackets"),
        ("ccloud-2019.txt", "|         1 |", "|", "has 4 columns and its table 5"),
        (
            "confluent-replica-list.txt",
            "| true   | false    |",
            "| false  | false    |",
            "no leader",
        ),
        ("kcat-one-behind.txt", "  broker 4 at 10.0.0.68:9092\n", "", "5 brokers are said"),
        ("kcat-one-behind.txt", ", isrs: 4\n", "\n", "the line is cut"),
        ("kcat-one-behind.txt", ", isrs: 4\n", ", isrs: \n", "the line is cut"),
        ("cfk.yaml", "  partitionCount: 1\n", "", "has no partitionCount"),
        ("reassign-generate-2.8.txt", '"replicas":[4,2]', '"replicas":[4,2', "cannot be read"),
    ],
)
def test_a_damaged_output_is_refused_with_what_is_wrong(file, old, new, words):
    """A field, bracket, column or line that is gone is named; no half of a cluster is read."""
    text = text_of(file)
    assert old in text
    with pytest.raises(InputError) as caught:
        load_cluster(text.replace(old, new, 1))
    assert words in str(caught.value)


def test_another_line_in_the_settings_of_a_header_is_refused():
    """What a paste has put behind the settings is none of them."""
    text = "Topic: t\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: a=1 Isr: 1,2\n"
    text += "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1\n"
    with pytest.raises(InputError, match="another line runs into the Configs"):
        load_cluster(text)


@pytest.mark.parametrize(
    ("file", "end", "words"),
    [
        ("describe-strimzi-6275.txt", "Isr: 2,1", "the ISR of hm-topic-2 may be cut"),
        ("kcat-one-behind.txt", "isrs: 1,2,3", None),
        ("kcat-wrapped.txt", "isrs: 1002\n", "-that-is-rather-long-1 may be cut"),
        ("kcat-one-behind.txt", "isrs: 1,2", "refused"),
        ("strimzi-list.yaml", "partitions: 3", "its last resource may be cut"),
    ],
)
def test_a_text_that_ends_in_a_line_says_what_may_be_cut(file, end, words):
    """Only if something can be missing: an ISR of all replicas is whole."""
    text = text_of(file)
    text = text[: text.rindex(end) + len(end)]
    if words == "refused":
        with pytest.raises(InputError, match="not in its ISR"):
            load_cluster(text)
        return
    notes = " ".join(load_cluster(text).notes)
    assert ("may be cut" in notes) is (words is not None)
    assert words is None or words in notes


def test_a_line_of_the_summary_is_no_setting():
    """Where another output of the Confluent CLI runs into a table of settings."""
    text = text_of("ccloud-2019.txt").rstrip("\n")
    (topic,) = load_cluster(f"{text}\n| Internal | false |\n").topics
    assert topic.configs["min.insync.replicas"] == "2"
    assert "Internal" not in topic.configs


def test_resources_are_the_same_as_json_and_as_yaml():
    """Numbers and truth values are texts in both, as Kafka has them."""
    as_json = load_cluster(FOLDER / "strimzi-node-ids.json")
    assert as_json.topics[0].configs == {
        "retention.ms": "7200000",
        "min.insync.replicas": "2",
        "unclean.leader.election.enable": "false",
    }
    both = [load_cluster(FOLDER / f"strimzi-list.{suffix}") for suffix in ("json", "yaml")]
    assert both[0].topics == both[1].topics
    assert both[0].brokers == both[1].brokers


def test_a_second_tool_in_one_text_is_said():
    """Only one reader reads a text: what it leaves is named."""
    text = text_of("kcat-one-behind.txt") + text_of("describe-strimzi-6275.txt")
    cluster = load_cluster(text)
    assert [topic.name for topic in cluster.topics] == ["shop.install-check"]
    assert "It also has the output of kafka-topics.sh --describe" in " ".join(cluster.notes)


def test_an_observer_in_a_list_of_replicas_is_no_replica():
    """Confluent's replica-status says which replicas are observers; one in the ISR was promoted."""
    row = (
        '{{"kind":"KafkaReplicaStatus","topic_name":"t","partition_id":0,"broker_id":{},'
        '"is_leader":{},"is_observer":{},"is_isr_eligible":true,"is_in_isr":{}}}'
    )
    rows = [
        row.format(*each)
        for each in (
            (1, "true", "false", "true"),
            (2, "false", "true", "true"),
            (3, "false", "true", "false"),
        )
    ]
    cluster = load_cluster('{"data":[\n' + ",\n".join(rows) + "\n]}\n")
    (partition,) = cluster.topics[0].partitions
    assert (partition.replicas, partition.isr, partition.observers) == ((1, 2), (1, 2), (3,))


def test_a_table_in_markdown_is_read_and_called_what_it_is():
    """Bars all around and lists without brackets, as in a ticket; a cut list is refused."""
    table = (
        "h3. the state\r\n\r\n| Topic | Partition | Leader | Replicas | ISR |\r\n"
        "|:---|---:|---|---|---|\r\n| orders | 0 | 1 | 1,2,3 | 1, 2 |\r\n"
    )
    cluster = load_cluster(table)
    assert cluster.taken_for.startswith("Taken for a table of partitions in Markdown ")
    (partition,) = cluster.topics[0].partitions
    assert (partition.leader, partition.replicas, partition.isr) == (1, (1, 2, 3), (1, 2))
    for cut in ("1,2,", "1,..", "1;2"):
        with pytest.raises(InputError, match="is not a list of brokers; give the whole table"):
            load_cluster(table.replace("1,2,3", cut))
    with pytest.raises(InputError, match="columns and its table 5"):
        load_cluster(table.replace("| 1, 2 |", "|"))
