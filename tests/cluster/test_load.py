import json

import pytest

from advisor.catalog import data_dir
from advisor.cluster import Cluster, load_cluster
from advisor.errors import InputError

SAMPLES = data_dir() / "clusters"
LINE = "Topic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1\n"
SEED = {
    "testp3-1-created.txt": [(0, {0, 1}), (1, {0, 1}), (2, {0, 1, 2}), (0, {0, 1}), (1, {0, 1})],
    "testp3-2-broker-2-killed.txt": [
        (0, {0, 1}),
        (1, {0, 1}),
        (0, {0, 1}),
        (0, {0, 1}),
        (1, {0, 1}),
    ],
    "testp3-3-broker-1-killed.txt": [(0, {0})] * 5,
    "testp3-4-all-restarted.txt": [(0, {0, 1})] * 5,
}


@pytest.mark.parametrize("name", SEED)
def test_the_published_outputs_load(name):
    """The blog post's outputs keep their leaders and ISR, with and without a header line."""
    cluster = load_cluster(SAMPLES / name)
    (topic,) = cluster.topics
    assert list(cluster.brokers) == [0, 1, 2]
    assert [(p.leader, set(p.isr)) for p in topic.partitions] == SEED[name]
    assert topic.partitions[3].replicas == (0, 2, 1)


@pytest.mark.parametrize(
    ("name", "brokers", "racks", "factors"),
    [
        (
            "three-az-six-brokers",
            6,
            3,
            {
                "__consumer_offsets": (1, 1),
                "__transaction_state": (3, 2),
                "audit": (3, 3),
                "clickstream": (2, 1),
                "orders": (3, 2),
                "payments": (3, 1),
            },
        ),
        (
            "two-az-four-brokers",
            4,
            2,
            {
                "__consumer_offsets": (3, None),
                "inventory": (4, 2),
                "ledger": (4, 3),
                "orders": (3, 2),
                "sessions": (2, None),
            },
        ),
    ],
)
def test_made_up_outputs_are_placed_like_kafka(name, brokers, racks, factors):
    """Replicas cover as many zones as possible, and leaders are spread over all brokers."""
    cluster = load_cluster(SAMPLES / f"{name}.txt", racks=SAMPLES / f"{name}.racks.toml")
    assert (len(cluster.brokers), len(cluster.racks)) == (brokers, racks)
    found = {t.name: (t.replication_factor, t.min_insync_replicas) for t in cluster.topics}
    assert found == factors
    for topic in cluster.topics:
        for partition in topic.partitions:
            zones = {cluster.brokers[broker] for broker in partition.replicas}
            assert len(zones) == min(len(partition.replicas), racks)
            assert partition.isr == partition.replicas
    leaders = {p.leader for topic in cluster.topics for p in topic.partitions}
    assert leaders == set(cluster.brokers)


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*")), ids=lambda path: path.name)
def test_every_sample_says_where_it_comes_from(path):
    """The first line says whether a sample is published or made up."""
    first = path.read_text(encoding="utf-8").split("\n", 1)[0]
    assert first.startswith(("# Published: ", "# Made up: ", "# Sample clusters"))


def test_the_example_shows_every_form_of_toml():
    """The example has every form of racks and topics."""
    cluster = load_cluster(SAMPLES / "example.toml")
    assert cluster.kafka_version == "4.1"
    assert cluster.brokers == {1: "a", 2: "b", 3: "c", 4: None, 5: "b", 6: "c"}
    assert cluster.controllers == {1: "a", 2: "b", 9: "c"}
    orders, clicks, audit = cluster.topics
    assert (len(orders.partitions), orders.replication_factor) == (6, 3)
    assert orders.configs["cleanup.policy"] == "compact,delete"
    assert (len(clicks.partitions), clicks.replication_factor) == (12, 2)
    assert [t.min_insync_replicas for t in cluster.topics] == [2, 1, 2]
    assert [(p.leader, p.isr) for p in audit.partitions] == [(1, (1, 2, 3)), (3, (3, 5))]
    assert "orders, clickstream" in cluster.notes[0]


def test_bare_metal_counts_are_placed_over_the_racks():
    """Topics given by counts get one replica per rack."""
    cluster = load_cluster(SAMPLES / "bare-metal-3.9.toml")
    assert (cluster.kafka_version, len(cluster.brokers)) == ("3.9", 9)
    for partition in cluster.topic("machine-telemetry").partitions:
        assert len({cluster.brokers[broker] for broker in partition.replicas}) == 3
    assert cluster.topic("quality-records").replication_factor == 4


def test_round_robin_toml_is_the_uniform_cluster():
    """`brokers = 5` with `racks = 2` is Cluster.uniform; racks may be named."""
    uniform = Cluster.uniform(5, 2)
    assert load_cluster("brokers = 5\nracks = 2\n").brokers == uniform.brokers
    named = load_cluster('brokers = 3\nracks = ["x", "y"]\n')
    assert named.brokers == {1: "x", 2: "y", 3: "x"}
    assert load_cluster("brokers = 2\n\n").racks == ()


def test_toml_has_controllers_in_both_forms():
    """By id or by rack; "" is an unknown rack, and no table is unknown controllers."""
    by_id = load_cluster('brokers = 2\n[controllers]\n1 = "a"\n8 = ""\n9 = "b"\n')
    assert by_id.controllers == {1: "a", 8: None, 9: "b"}
    by_rack = load_cluster("brokers = 2\n[controllers]\na = [1, 2]\nb = [9]\n")
    assert by_rack.voters_by_rack == {"a": 2, "b": 1}
    assert load_cluster("brokers = 2\n\n").controllers is None
    first = load_cluster('[controllers]\n9 = "a"\n[brokers]\n1 = ""\n', racks={9: "c"})
    assert (first.controllers, first.brokers) == ({9: "c"}, {1: None})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[controllers]\n", r"\[controllers\] is empty; write a line like"),
        ("[controllers]\nx = 'a'\n", r"\[controllers\]: 'x' is not a controller id"),
        ("[controllers]\n1 = 5\n", r"\[controllers\]: controller 1 has the rack 5"),
        ("[controllers]\na = [1]\nb = [1]\n", r"controller 1 is put into the racks a and b"),
        ("[[controllers]]\nid = 1\n", r"\[controllers\] is not a table"),
    ],
)
def test_invalid_controllers_in_toml_are_rejected(text, said):
    """The error names the table."""
    with pytest.raises(InputError, match=said) as caught:
        load_cluster("brokers = 2\n" + text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[brokers]\n1 = a\n", r"not TOML: .*line 2"),
        ("kafka_version = 4.1\n[brokers]\n1 = 'a'\n", r":1: 4.1 is not a Kafka version"),
        ("kafka_version = '4.1'\n", r"there are no brokers"),
        ("[brokers]\n1 = 'a'\n[brokerz]\n", r"'brokerz' is not known"),
        ("[brokers]\nx = 'a'\n", r"'x' is not a broker id"),
        ("[brokers]\n1 = 5\n", r"broker 1 has the rack 5"),
        ("[brokers]\n1 = 'a'\n[racks]\nb = [1]\n", r"broker 1 is put into the racks a and b"),
        ("[brokers]\n1 = 'a'\n[[broker]]\nid = 1\n", r"broker 1 is there twice"),
        ("brokers = 0\n", r"brokers = 0"),
        ("brokers = 2\nracks = 3\n", r"1 to 2 racks"),
        ("brokers = 2\n[topic]\nname = 't'\n", r"two brackets"),
        ("brokers = 2\n[[topic]]\n", r":2: a \[\[topic\]\] needs a name"),
        ("brokers = 2\n[[topic]]\nname = 't'\nrf = 1\n", r":2: 'rf' is not known"),
        ("brokers = 2\n[[topic]]\nname = 't'\n", r":2: topic t has no partitions"),
        (
            "brokers = 2\n[[topic]]\nname = 't'\npartitions = 1\nreplication_factor = 3\n",
            r":2: topic t has replication_factor 3 but there are only 2 brokers",
        ),
        (
            "brokers = 2\n[[topic]]\nname = 't'\npartitions = 0\nreplication_factor = 1\n",
            r"partitions 0",
        ),
        (
            "brokers = 2\n[[topic]]\nname = 't'\npartitions = 1\nreplication_factor = -1\n",
            r"replication_factor -1",
        ),
        ("brokers = 2\n[[topic]]\nname = 't'\nreplicas = [[1, 3]]\n", r"broker 3, which is not"),
        ("brokers = 2\n[[topic]]\nname = 't'\nreplicas = [[1, 1]]\n", r"twice in Replicas"),
        ("brokers = 2\n[[topic]]\nname = 't'\nreplicas = [1, 2]\n", r"one list of broker ids"),
        ("brokers = 2\n[[topic]]\nname = 't'\nreplicas = [[]]\n", r"no replicas"),
        (
            "brokers = 2\n[[topic]]\nname = 't'\nreplicas = [[1]]\nreplication_factor = 2\n",
            r"replication_factor 2 but its replicas say 1",
        ),
        ("brokers = 2\n[[topic]]\nname = 't'\nreplicas = [[1]]\nisr = [[2]]\n", r"2 as Isr"),
        (
            "brokers = 2\n[[topic]]\nname = 't'\nreplicas = [[1]]\nleaders = [1, 2]\n",
            r"as many leaders",
        ),
        (
            "brokers = 2\n" + "[[topic]]\nname = 't'\nreplicas = [[1]]\n" * 2,
            r"topic t is there twice",
        ),
    ],
)
def test_invalid_toml_is_rejected(text, said):
    """The error says what is wrong, with the line if known."""
    with pytest.raises(InputError, match=said) as caught:
        load_cluster(text)
    assert "\n" not in str(caught.value)


def test_min_isr_above_the_factor_loads():
    """It blocks writes in some versions: a finding, not a parse error."""
    text = "brokers = 3\n[[topic]]\nname='t'\nreplicas=[[1, 2]]\nmin_insync_replicas=3\n"
    (topic,) = load_cluster(text).topics
    assert (topic.replication_factor, topic.min_insync_replicas) == (2, 3)


@pytest.mark.parametrize(
    "name", ["three-az-six-brokers.txt", "example.toml", "testp3-1-created.txt"]
)
def test_json_round_trip(name, tmp_path):
    """A round trip through JSON loses only the source name."""
    cluster = load_cluster(SAMPLES / name)
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(cluster.to_dict()))
    again = load_cluster(path)
    assert again.to_dict() == {**cluster.to_dict(), "source": str(path)}
    assert load_cluster(path.read_text() + "\n").topics == cluster.topics


@pytest.mark.parametrize("left_out", ["kafka_version", "brokers"])
def test_a_saved_cluster_with_a_key_left_out_is_no_other_tool_s(left_out):
    """Without a version it keeps its racks; without brokers it is refused, not read as topics."""
    saved = load_cluster(SAMPLES / "example.toml").to_dict()
    del saved[left_out]
    if left_out == "brokers":
        with pytest.raises(InputError, match="neither brokers"):
            load_cluster(json.dumps(saved) + "\n")
    else:
        read = load_cluster(json.dumps(saved, indent=2) + "\n")
        assert "a cluster saved as JSON" in read.taken_for
        assert read.racks == ("a", "b", "c")


def test_a_reassignment_plan_is_read_with_its_assumptions():
    """A plan has replicas only: the first leads, all are in sync, with a note."""
    plan = {
        "version": 1,
        "partitions": [
            {"topic": "foo1", "partition": 0, "replicas": [5, 6], "log_dirs": ["any", "any"]}
        ],
    }
    cluster = load_cluster(json.dumps(plan) + "\n")
    (partition,) = cluster.topic("foo1").partitions
    assert (partition.leader, partition.isr, list(cluster.brokers)) == (5, (5, 6), [5, 6])
    assert "reassignment plan" in cluster.notes[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"version": 1,\n', r"not JSON: .*line 2"),
        ('{"topics": [{"topic": "foo1"}],\n"version": 1}', r"neither brokers"),
        ('{"partitions": []\n}', r"moves no partition"),
        ('{"partitions": [{"topic": "t"}]\n}', r"needs topic, partition and replicas"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]\n}', r"twice"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [NaN]}]\n}', r"not a broker"),
        ('{"brokers": []\n}', r"brokers is \[\]"),
        ('{"brokers": {"1": "a"}, "topics": [1]\n}', r"a topic is 1"),
        ('{"brokers": {"1": "a"}, "kafka_version": "x"\n}', r"'x' is not a Kafka version"),
        ('{"brokers": {"1": "a"}, "controllers": [1]\n}', r"controllers is \[1\]"),
        ('{"brokers": {"1": "a"}, "controllers": {}\n}', r"controllers={}: give the rack"),
        ('{"brokers": {"1": "a"}, "controllers": {"x": "a"}\n}', r"not a controller id"),
        ('{"brokers": {"1": "a"}, "controllers": {"1": 5}\n}', r"controller 1 has the rack 5"),
        (
            '{"brokers": {"1": "a", "1": "b"}\n}',
            r"not JSON: an object has the key '1' more",
        ),
        ('{"brokers": {"1": "a"}, "brokers": {}\n}', r"has the key 'brokers' more than once"),
        ('{"partitions": [{"topic": "t", "topic": "u"}]\n}', r"has the key 'topic' more than once"),
        ("[" * 100_000 + "\n", r"not known here which tool"),
        ('{"a":' + "[" * 100_000 + "\n", r"not JSON"),
    ],
)
def test_invalid_json_is_rejected(text, said):
    """Invalid or unrelated JSON is one sentence."""
    with pytest.raises(InputError, match=said):
        load_cluster(text)


def test_a_file_with_the_name_of_an_address_is_read(tmp_path, monkeypatch):
    """An existing file takes precedence over an address."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kafka:9092").write_text(LINE)
    assert load_cluster("kafka:9092").topic("t").partitions[0].isr == (1,)


def test_client_properties_are_for_addresses(tmp_path):
    """Client properties with a file are an error."""
    with pytest.raises(InputError, match="for the address of a running cluster, host:9092"):
        load_cluster(LINE, client_properties=tmp_path / "client.properties")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b" \n\t\n", "the file is empty"),
        (b"\x00\x01\x02\xff", "this is not text"),
        (b"\xff\xfe\x00", "this is not text"),
        (bytes(range(1, 256)) * 3, "not known here which tool wrote this"),
        (b"orders\npayments\n", "kafka-topics.sh --list prints: it has no replicas; run kafka-t"),
        (LINE[:-6].encode(), "bad.txt:1: the line is cut, it has no Isr"),
    ],
)
def test_bad_files_are_refused(content, said, tmp_path):
    """Empty, binary, truncated or unrelated files: one sentence starting with the file name."""
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said) as caught:
        load_cluster(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("", "empty text"),
        ("nowhere.txt", "nowhere.txt: there is no such file"),
        (".", "this is a directory"),
        ("x\0y", "cannot be read"),
        ("x" * 5000, "cannot be read"),
        (7, "not from int"),
        (None, "not from NoneType"),
        (b"x", "not from bytes"),
    ],
)
def test_an_unreadable_source_is_rejected(source, said):
    """A missing file, a directory, an invalid path or another type is an error."""
    with pytest.raises(InputError, match=said):
        load_cluster(source)


def test_a_file_or_topic_that_is_too_large_is_refused(tmp_path, monkeypatch):
    """The limit is named, and what to do."""
    monkeypatch.setattr("advisor.cluster.load._MOST_BYTES", len(LINE) - 1)
    path = tmp_path / "large.txt"
    path.write_text(LINE)
    for source in (path, f"{LINE}\n"):
        with pytest.raises(InputError, match=rf"more than {len(LINE) - 1} bytes.*; describe fewer"):
            load_cluster(source)
    monkeypatch.undo()
    counts = "partitions = 200000\nreplication_factor = 11"
    with pytest.raises(InputError, match="give at most 2,000,000 replicas"):
        load_cluster(f'brokers = 11\n[[topic]]\nname = "t"\n{counts}')


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "gb18030"])
def test_text_is_read_in_the_encodings_of_shells(encoding, tmp_path):
    """UTF-16 (PowerShell), byte order marks and invalid bytes in prose are accepted."""
    path = tmp_path / "describe"
    path.write_bytes(("分区\n" + LINE).encode(encoding))
    assert load_cluster(path).topic("t").partitions[0].isr == (1,)


def test_the_given_version_overrides_the_source():
    """kafka_version overrides the source, and must be a version."""
    assert load_cluster(LINE).kafka_version is None
    assert load_cluster(LINE, kafka_version="2.1").kafka_version == "2.1"
    assert load_cluster(SAMPLES / "example.toml", kafka_version="4.2").kafka_version == "4.2"
    with pytest.raises(InputError, match="'new' is not a Kafka version"):
        load_cluster(LINE, kafka_version="new")
