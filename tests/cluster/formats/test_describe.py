import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.cluster import Cluster, Partition, Topic, format_describe, load_cluster
from advisor.cluster.formats import describe
from advisor.cluster.formats.describe import parse_configs, read_describe
from advisor.errors import InputError

SAMPLES = {
    "0.8.0": "topic: test\tpartition: 0\tleader: 0\treplicas: 0,1,2\tisr: 0,1,2\n",
    "2.1": (
        "Topic:foo\tPartitionCount:1\tReplicationFactor:3\tConfigs:min.insync.replicas=2,"
        "retention.ms=1\n\tTopic: foo\tPartition: 0\tLeader: 5\tReplicas: 5,6,7\tIsr: 5,6,7\n"
    ),
    "2.7": (
        "Topic: foo\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2\n"
        "\tTopic: foo\tPartition: 0\tLeader: 5\tReplicas: 5,6,7\tIsr: 5,6,7"
        "\tAdding Replicas: 8\tRemoving Replicas: 5\n"
    ),
    "3.7": (
        "Topic: foo\tTopicId: lED9sW0yRFu76ZK5JKO2KA\tPartitionCount: 1\tReplicationFactor: 3\t"
        "Configs: min.insync.replicas=2\n"
        "\tTopic: foo\tPartition: 0\tLeader: 2\tReplicas: 2,3,1\tIsr: 2,3,1\n"
    ),
    "3.9": (
        "Topic: orders\tTopicId: lED9sW0yRFu76ZK5JKO2KA\tPartitionCount: 1\tReplicationFactor: 3\t"
        "Configs: min.insync.replicas=2,unclean.leader.election.enable=false\n"
        "\tTopic: orders\tPartition: 0\tLeader: 2\tReplicas: 2,3,1\tIsr: 2,3,1"
        "\tElr: \tLastKnownElr: \n"
    ),
    "4.1": (
        "Topic: orders\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: \n"
        "\tTopic: orders\tPartition: 0\tLeader: none\tReplicas: 1,2,3\tIsr: "
        "\tElr: 1,2\tLastKnownElr: 1\n"
        "\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 2,3,1\tIsr: 2"
        "\tElr: N/A\tLastKnownElr: N/A\n"
    ),
}


def parse_describe(text, source):
    return read_describe(text, source).topics


def only(text):
    (topic,) = parse_describe(text, "x.txt")
    return topic


def test_0_8_0_output_is_lower_case_without_header():
    """0.8.0's kafka-list-topic.sh prints one lower-case line for each partition."""
    topic = only(SAMPLES["0.8.0"])
    assert topic == Topic("test", (Partition(0, 0, (0, 1, 2), (0, 1, 2)),))


def test_the_header_without_spaces_is_read():
    """0.8.1 to 2.3 have no space after the colons of the header."""
    topic = only(SAMPLES["2.1"])
    assert topic.configs == {"min.insync.replicas": "2", "retention.ms": "1"}
    assert topic.partitions == (Partition(0, 5, (5, 6, 7), (5, 6, 7)),)


def test_a_running_reassignment_is_read():
    """2.6 and later list added and removed replicas; their brokers exist."""
    topic = only(SAMPLES["2.7"])
    assert topic.partitions[0].adding == (8,)
    assert topic.partitions[0].removing == (5,)
    assert list(load_cluster(SAMPLES["2.7"]).brokers) == [5, 6, 7, 8]


def test_the_topic_id_is_read():
    """2.8 and later print the topic's id."""
    assert only(SAMPLES["3.7"]).topic_id == "lED9sW0yRFu76ZK5JKO2KA"


def test_the_elr_is_a_list_or_empty_or_unknown():
    """3.8 and later print a list, nothing (empty ELR) or N/A (unknown)."""
    assert only(SAMPLES["3.9"]).partitions[0].elr == ()
    first, second = only(SAMPLES["4.1"]).partitions
    assert (first.isr, first.elr, first.last_known_elr) == ((), (1, 2), (1,))
    assert (second.isr, second.elr, second.last_known_elr) == ((2,), None, None)
    assert first.leader is second.leader is None


@pytest.mark.parametrize("version", SAMPLES)
def test_the_writer_prints_each_sample_byte_for_byte(version):
    """Parsed output is written again identically."""
    assert format_describe(only(SAMPLES[version]), version) == SAMPLES[version]


def test_a_pending_deletion_is_read_in_both_spellings():
    """0.11 to 2.3 print MarkedForDeletion:true, later versions add a space."""
    for version in ("2.1", "2.7"):
        text = SAMPLES[version].replace("\n\t", "\tMarkedForDeletion:true\n\t", 1)
        topic = only(text)
        assert topic.marked_for_deletion
        assert "MarkedForDeletion" not in str(topic.configs)
        assert only(format_describe(topic, "2.1")).marked_for_deletion
        assert only(format_describe(topic, "3.0")).marked_for_deletion


@pytest.mark.parametrize("version", SAMPLES)
@pytest.mark.parametrize(
    "paste",
    [
        lambda text: text.replace("\t", "    "),
        lambda text: text.replace("\t", " "),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.rstrip("\n"),
        lambda text: "$ bin/kafka-topics.sh --describe --topic foo\n# ours\n\n" + text + "$ \n",
        lambda text: text.replace("\t", "\t", 1).replace("Isr:", "\n   Isr:"),
        lambda text: "\n".join("kafka-1  | " + line for line in text.split("\n")),
        lambda text: "\x1b[1m" + text.replace("\n", "\x1b[0m\n"),
        lambda text: text.replace("Leader: none", "Leader: -1"),
    ],
)
def test_pasted_output_is_read(version, paste):
    """Spaces for tabs, wrapped lines, prompts and prose do not change the result."""
    assert parse_describe(paste(SAMPLES[version]), "x") == parse_describe(SAMPLES[version], "x")


def test_columns_of_confluent_are_read():
    """Replicas on failed disks, and observers, stand behind the ISR."""
    line = "Topic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2{more}\n"
    plain = parse_describe(line.format(more=""), "x")
    assert parse_describe(line.format(more="\tOffline: "), "x") == plain
    (topic,) = parse_describe(line.format(more="\tOffline: 3"), "x")
    assert (topic.partitions[0].replicas, topic.partitions[0].offline) == ((1, 2, 3), (3,))
    for label in ("Observers", "LiveObservers"):
        (topic,) = parse_describe(line.format(more=f"\tOffline: \t{label}: 3"), "x")
        (partition,) = topic.partitions
        assert (partition.replicas, partition.observers, partition.offline) == ((1, 2), (3,), ())


# https://github.com/confluentinc/examples/blob/6.1.0-post/multiregion/docs/multiregion.rst
CONSTRAINTS = (
    'confluent.placement.constraints={"version":1,"replicas":[{"count":2,"constraints":'
    '{"rack":"west"}}],"observers":[{"count":2,"constraints":{"rack":"east"}}]}'
)


@pytest.mark.parametrize(
    ("rest", "leader", "replicas", "observers", "offline"),
    [
        ("Isr: 2,1\tOffline: \tObservers: 3,4", 2, (2, 1), (3, 4), ()),
        ("Isr: 1\tOffline: 2,1\tLiveObservers: 3,4", None, (2, 1), (3, 4), (2, 1)),
        ("Isr: 2,1,3\tOffline: \tObservers: 3,4", 2, (2, 1, 3), (4,), ()),
        ("Isr: 3,4\tOffline: 2,1\tObservers: 3,4", 3, (2, 1, 3, 4), (), (2, 1)),
        ("Isr: 2,1", 2, (2, 1), (3, 4), ()),
        ("Isr: 2,1\tOffline: ", 2, (2, 1), (3, 4), ()),
        ("Isr: 2,1\tOffline: 4\tObservers: 3,4", 2, (2, 1), (3, 4), (4,)),
    ],
)
def test_observers_are_no_replicas(rest, leader, replicas, observers, offline):
    """By their column or by the constraints; one in the ISR was promoted. It is written back."""
    head = f"Topic: t\tPartitionCount: 1\tReplicationFactor: 4\tConfigs: {CONSTRAINTS}\n"
    text = f"{head}\tTopic: t\tPartition: 0\tLeader: {leader or 'none'}\tReplicas: 2,1,3,4\t{rest}"
    (topic,) = parse_describe(text + "\n", "x")
    (partition,) = topic.partitions
    assert (partition.leader, partition.replicas) == (leader, replicas)
    assert (partition.observers, partition.offline) == (observers, offline)
    assert topic.brokers() == {1, 2, 3, 4}
    assert topic.placed_by_rules
    (again,) = parse_describe(format_describe(topic, "2.7"), "x")
    assert set(again.partitions[0].replicas) == set(replicas)
    assert set(again.partitions[0].observers) == set(observers)


@pytest.mark.parametrize("version", ["0.8.0", "2.1", "2.7", "3.7", "3.9", "4.1"])
@pytest.mark.parametrize(
    "prefix",
    [
        "2025-01-02T10:00:00.000Z stdout F ",
        "[2025-01-02 10:00:00,000] INFO ",
        "kafka-0 | ",
        "Jan 02 10:00:00 host kafka[812]: ",
        "> ",
    ],
)
def test_the_version_is_guessed_behind_a_prefix_too(version, prefix):
    """A log's or container's prefix changes neither the columns nor what they prove."""
    text = SAMPLES[version]
    prefixed = "".join(prefix + line.lstrip() + "\n" for line in text.splitlines())
    log = "[2025-01-02 10:00:00] started\n" * 5_000
    plain = load_cluster(text)
    for other in (load_cluster(prefixed), load_cluster(log + prefixed)):
        assert (other.layout, other.topics) == (plain.layout, plain.topics)


def test_several_topics_and_any_order_are_read():
    """Topics keep their order, partitions are sorted, headers are optional."""
    lines = [
        "Topic: b\tPartition: 1\tLeader: 2\tReplicas: 2,1\tIsr: 2,1",
        "Topic: a\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: cleanup.policy=compact,delete",
        "Topic: a\tPartition: 0\tLeader: 3\tReplicas: 3\tIsr: 3",
        "Topic: b\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1",
    ]
    b, a = parse_describe("\n".join(lines), "x")
    assert (b.name, [p.index for p in b.partitions], a.name) == ("b", [0, 1], "a")
    assert a.configs == {"cleanup.policy": "compact,delete"}


@pytest.mark.parametrize(
    ("written", "behind"),
    [
        ("1,2", "  <-- broker 3 is down"),
        ("1,2", " # 3, which is down"),
        ("1,2", " \u2190 3"),
        ("**1,2**", ""),
        ("`1,2`", ""),
    ],
)
def test_what_an_author_adds_to_a_line_is_no_part_of_it(written, behind):
    """Comments behind a partition's line and emphasis in it are not read as brokers."""
    line = "Topic: t\tPartition: {}\tLeader: 1\tReplicas: 1,2,3\tIsr: {}{}\n"
    text = line.format(0, written, behind) + line.format(1, "1,2", "")
    first, second = load_cluster(text).topics[0].partitions
    assert first.isr == second.isr == (1, 2)


@pytest.mark.parametrize(
    ("text", "configs"),
    [
        ("", {}),
        ("a=1", {"a": "1"}),
        ("cleanup.policy=compact,delete", {"cleanup.policy": "compact,delete"}),
        ("a=1,2,b.c=x,y,z,d=", {"a": "1,2", "b.c": "x,y,z", "d": ""}),
        ("a=1,**min.insync.replicas=2**,b=3", {"a": "1", "min.insync.replicas": "2", "b": "3"}),
        ("a=1, *min.insync.replicas=2*", {"a": "1", "min.insync.replicas": "2"}),
        ("**a=1,min.insync.replicas=2**", {"a": "1", "min.insync.replicas": "2"}),
        ("`min.insync.replicas=2`,b=*", {"min.insync.replicas": "2", "b": "*"}),
        (
            "follower.replication.throttled.replicas=0:1,0:2,retention.ms=5",
            {"follower.replication.throttled.replicas": "0:1,0:2", "retention.ms": "5"},
        ),
    ],
)
def test_config_values_may_hold_commas(text, configs):
    """Only a comma before `key=` separates settings."""
    assert parse_configs(text, "x") == configs


GOOD = (
    "Topic: t\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: \n"
    "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\n"
    "\tTopic: t\tPartition: 1\tLeader: 2\tReplicas: 2,3,1\tIsr: 2,3,1\n"
)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Partition: 1", "Partition: 0", r"x\.txt:3: partition 0 of topic t was already .*txt:2"),
        ("Replicas: 1,2,3", "Replicas: 1,2,2", r"x\.txt:2: .*twice in Replicas"),
        ("Replicas: 1,2,3", "Replicas: 1,b,3", r"x\.txt:2: Replicas '1,b,3' is not a list"),
        ("Replicas: 1,2,3", "Replicas: 1,2,", r"x\.txt:2: Replicas '1,2,' is not a list"),
        ("Replicas: 1,2,3", "Replicas: 1,99999999999", r"larger than Kafka allows \(2147483647\)"),
        ("Replicas: 1,2,3", "Replicas: ", r"x\.txt:2: partition 0 has no replicas"),
        ("Partition: 1", "Partition: one", r"x\.txt:3: Partition 'one' is not a number"),
        ("Partition: 1", "Partition: 4000000000", r"'4000000000' has a number larger than Kafka"),
        ("Leader: 1", "Leader: x", r"x\.txt:2: Leader 'x' is not a number"),
        ("Isr: 1,2,3", "Isr: ", r"x\.txt:2: .*leader 1 and an empty Isr"),
        ("Count: 2", "Count: 1", r"x\.txt:1: .*PartitionCount 1 but 2 partition lines"),
        ("Count: 2", "Count: two", r"x\.txt:1: PartitionCount 'two' is not a number"),
        ("Factor: 3", "Factor: 2", r"x\.txt:1: .*ReplicationFactor 2 but .* 3 replicas"),
        ("\tReplicas: 1,2,3", "", r"x\.txt:2: the line has no Replicas, which"),
        ("\tIsr: 1,2,3", "", r"x\.txt:2: the line has no Isr, which"),
        ("\tConfigs: ", "", r"x\.txt:1: the line has no Configs, which"),
        ("Isr: 1,2,3", "Isr: 1,2,3\tElr: 1", r"x\.txt:2: the line has no LastKnownElr, which"),
        ("Isr: 2,3,1", "Isr: 2,3,1\tElr: \tLastKnownElr: ", r"x\.txt:3: some lines .* have Elr"),
        ("Leader: 1", "Leader: 1\tLeader: 1", r"x\.txt:2: this line has Leader twice"),
        ("\tTopic: t\tPartition: 0", "\tion: 0", r"x\.txt:2: this line has Leader but no Topic"),
        ("Topic: t\tPartition: 0", "Topic: t t\tPartition: 0", r"x\.txt:2: 't t' is not the name"),
        ("Configs: ", "Configs: a=1,>min.insync.replicas=2", r"x\.txt:1: Configs has 'a=1,>min"),
        ("Configs: ", "Configs: a=1 min.insync.replicas = 2", r"x\.txt:1: Configs has 'a=1 min"),
        ("Configs: ", "Configs: nonsense", r"x\.txt:1: Configs has 'nonsense'"),
        ("Configs: ", "Configs: min.insync.replicas=x", r"x\.txt:1: .*min\.insync\.replicas='x'"),
    ],
)
def test_a_broken_output_is_refused_with_its_line(old, new, said):
    """The error has file, line, reason and remedy."""
    assert old in GOOD
    assert len(only(GOOD).partitions) == 2
    with pytest.raises(InputError, match=said) as caught:
        parse_describe(GOOD.replace(old, new, 1), "x.txt")
    assert "\n" not in str(caught.value)
    assert "--describe" in str(caught.value) or "keep one" in str(caught.value)


ODD = ["\n", "\t", "\r", "none", "-1", "N/A", "Isr: ", "Topic: ", "Elr: ", "#", ",", "1", "\u0663"]


@settings(max_examples=300)
@given(st.sampled_from([*SAMPLES.values(), GOOD]), st.data())
def test_lines_in_the_usual_form_mean_the_same(text, data):
    """They are read by one expression; the readers of every form agree, also on what is wrong."""
    for _ in range(data.draw(st.integers(0, 3))):
        start = data.draw(st.integers(0, len(text)))
        put, end = data.draw(st.sampled_from(["", *ODD])), start + data.draw(st.integers(0, 2))
        text = text[:start] + put + text[end:]

    def read():
        try:
            return parse_describe(text, "x.txt")
        except InputError as error:
            return str(error)

    usual = read()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(describe, "_plain_line", lambda *_: None)
        assert usual == read()


def test_labels_are_of_ascii_letters():
    """Without case, the long s equals an s: such a line used to end in a KeyError."""
    with pytest.raises(InputError, match=r"x\.txt:2: the line has no Isr, which"):
        parse_describe(GOOD.replace("Isr", "I\u017fr", 1), "x.txt")


def test_two_outputs_in_one_file_are_refused():
    """Two outputs of the same topic in one file are ambiguous."""
    with pytest.raises(InputError, match=r"x\.txt:4: topic t is described a second time"):
        parse_describe(GOOD + GOOD, "x.txt")


def test_partitions_may_differ_in_replication_factor():
    """Partitions may differ in replication factor; the header has that of one."""
    text = GOOD.replace("Replicas: 2,3,1\tIsr: 2,3,1", "Replicas: 2,3\tIsr: 2,3")
    assert [p.replication_factor for p in only(text).partitions] == [3, 2]


@pytest.mark.parametrize("version", ["0.8.0", "2.1", "2.7", "3.7", "3.9", "4.1"])
def test_truncated_output_is_rejected_or_equal(version):
    """Truncated output is rejected or equal, except for the tail of the last ISR."""
    text = SAMPLES[version]
    whole = parse_describe(text, "x")
    for end in range(len(text)):
        try:
            read = parse_describe(text[:end], "x")
        except InputError:
            continue
        if len(read[0].partitions) < len(whole[0].partitions):
            assert read[0].stated_partitions == len(whole[0].partitions)
        elif read != whole:
            # An old line has no label after the ISR (or the list of removing replicas, or the
            # ELR) that could be found missing.
            assert text[:end].rstrip()[-1].isdigit() or text[:end].endswith((" ", ":"))
            assert len(read) == len(whole)
            for one, two in zip(read[0].partitions, whole[0].partitions, strict=True):
                assert (one.index, one.leader, one.replicas) == (
                    two.index,
                    two.leader,
                    two.replicas,
                )


IDS = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=5, unique=True)
NAMES = st.from_regex(r"[A-Za-z0-9._-]{1,40}", fullmatch=True).filter(
    lambda name: name not in (".", "..")
)
KEYS = st.from_regex(r"[a-z][a-z.]{0,20}", fullmatch=True).filter(lambda k: "min.insync" not in k)
VALUES = st.from_regex(r"([a-z0-9:]+(,[a-z0-9:]+)*)?", fullmatch=True)


@st.composite
def partitions(draw, index, elr):
    replicas = tuple(draw(IDS))
    isr = draw(st.lists(st.sampled_from(replicas), unique=True))
    out = tuple(broker for broker in replicas if broker not in isr)
    known = draw(st.sampled_from([(), out[:1], out])) if elr else None
    return Partition(index, isr[0] if isr else None, replicas, tuple(isr), known, known)


@st.composite
def topics(draw, elr):
    count = draw(st.integers(1, 4))
    return Topic(
        name=draw(NAMES),
        partitions=tuple(draw(partitions(index, elr)) for index in range(count)),
        configs=draw(st.dictionaries(KEYS, VALUES, max_size=3)),
        topic_id=draw(st.none() | st.just("lED9sW0yRFu76ZK5JKO2KA")),
    )


@settings(max_examples=150, deadline=None)
@given(topic=topics(elr=True), version=st.sampled_from(["3.8", "4.0", "4.1", "4.2.1"]))
def test_round_trip_is_lossless(topic, version):
    """The columns of 3.8 and later are a lossless round trip."""
    assert only(format_describe(topic, version)) == topic


@settings(max_examples=100, deadline=None)
@given(topic=topics(elr=False), version=st.sampled_from(["0.8.0", "0.8.2", "2.3", "2.4", "3.7"]))
def test_older_columns_round_trip(topic, version):
    """Older columns preserve partitions; ids since 2.8, configs since 0.8.1."""
    numbers = tuple(map(int, version.split(".")))
    expected = Topic(
        topic.name,
        topic.partitions,
        topic.configs if numbers >= (0, 8, 1) else {},
        topic.topic_id if numbers >= (2, 8) else None,
    )
    assert only(format_describe(topic, version)) == expected


def test_the_writer_has_the_columns_of_each_version():
    """Elr since 3.8, TopicId 2.8, reassignment 2.6, spaces in the header 2.4."""
    moving = Partition(0, 1, (1, 2, 3), (1, 2), (), (), adding=(3,), removing=(1,))
    topic = Topic("t", (moving,), {"a": "1"}, "id")
    printed = {
        v: format_describe(topic, v)
        for v in ["2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "3.7", "3.8"]
    }
    assert [v for v in printed if "Topic: t\tPartitionCount" in printed[v]] == [
        "2.4",
        "2.5",
        "2.6",
        "2.7",
    ]
    assert [v for v in printed if "Adding Replicas: 3" not in printed[v]] == ["2.3", "2.4", "2.5"]
    assert [v for v in printed if "TopicId: id" in printed[v]] == ["2.8", "3.7", "3.8"]
    assert [v for v in printed if "Elr" in printed[v]] == ["3.8"]
    assert [v for v in printed if "Factor:3" in printed[v] or "Factor: 3" in printed[v]] == [
        "2.3",
        "2.4",
    ]
    assert format_describe(Cluster({1: None}), "4.1") == ""
    with pytest.raises(InputError, match="'four' is not a Kafka version"):
        format_describe(topic, "four")


OLD = (
    "topic: t\tpartition: 0\tleader: 1\treplicas: 1,2\tisr: 1,2\n"
    "topic: t\tpartition: 1\tleader: 2\treplicas: 1,2\tisr: 1,2\n"
)


@pytest.mark.parametrize("rest", ["t", "Top", "\ttopic", "topic:", "topic: t", "topic: t\tpart"])
def test_a_truncated_last_line_is_rejected_without_a_header(rest):
    """Without a header, a truncated last line is detected by its first letters."""
    assert len(only(OLD).partitions) == 2
    with pytest.raises(InputError, match=r"x:3: the (output|line) is cut"):
        parse_describe(OLD + rest, "x")


def test_an_isr_without_its_leader_is_truncated():
    """The leader is always in the ISR, so a last line without it is truncated."""
    with pytest.raises(InputError, match=r"x:2: the line is cut in its Isr"):
        parse_describe(OLD.removesuffix(",2\n"), "x")
    assert only(OLD.removesuffix("\n")) == only(OLD)


@pytest.mark.parametrize("label", ["Offline", "Observers"])
def test_a_line_without_the_columns_of_the_others_is_cut(label):
    """Confluent's tool prints them for every partition of a topic: a shorter line lost them."""
    row = "\tTopic: t\tPartition: {}\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2\tOffline: \tObservers: 3"
    head = "Topic: t\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: \n"
    whole = f"{head}{row.format(0)}\n{row.format(1)}\n"
    assert [p.observers for p in parse_describe(whole, "x")[0].partitions] == [(3,), (3,)]
    cut = f"{head}{row.format(0)[: row.index(label) - 2]}\n{row.format(1)}\n"
    with pytest.raises(InputError, match=rf"some lines .*have {label} and others do not"):
        parse_describe(cut, "x")


def test_observers_that_the_constraints_state_and_a_line_does_not_show_are_said():
    """They were promoted, or the line was cut before them."""
    rules = 'confluent.placement.constraints={"version":2,"observers":[{"count":1}]}'
    text = (
        f"Topic: t\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: {rules}\n"
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2\tOffline: \tObservers: "
    )
    assert not read_describe(f"{text}3\n", "x").notes
    (note,) = read_describe(f"{text}\n", "x").notes
    assert note.startswith("t-0 shows no observer")
