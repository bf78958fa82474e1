"""Kafka's znodes, compared with output published from real clusters."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import ConfigError
from advisor.lessons.zookeeper.requests import Connect, Create
from advisor.lessons.zookeeper.scala_hash_order import (
    SCALA_2_12,
    SCALA_2_13,
    immutable_order,
    mutable_order,
)
from advisor.lessons.zookeeper.service import Znode, step, with_paths
from advisor.lessons.zookeeper.shell import get, ls, server_order
from advisor.lessons.zookeeper.znodes import (
    BrokerInfo,
    TopicInfo,
    broker_json,
    cluster_znodes,
    controller_json,
    state_json,
    topic_json,
)
from advisor.protocol.rules.partition_registration import Registration

BROKER_2 = BrokerInfo(2, "192.168.192.147", 9092, 1492054322225)

# From the project's first source text, section "It can also be looked at through ZooKeeper".
SEED_BROKER = """\
{"jmx_port":-1,"timestamp":"1492054322225","endpoints":["PLAINTEXT://192.168.192.147:9092"],\
"host":"192.168.192.147","version":3,"port":9092}
cZxid = 0xd000004ea
ctime = Thu Apr 13 11:44:20 CST 2017
mZxid = 0xd000004ea
mtime = Thu Apr 13 11:44:20 CST 2017
pZxid = 0xd000004ea
cversion = 0
dataVersion = 0
aclVersion = 0
ephemeralOwner = 0x35b64e7c2560003
dataLength = 141
numChildren = 0"""
SEED_STATE = """\
{"controller_epoch":17,"leader":0,"version":1,"leader_epoch":1,"isr":[0,1]}
cZxid = 0xd000003b0
ctime = Thu Apr 13 11:24:05 CST 2017
mZxid = 0xd0000044d
mtime = Thu Apr 13 11:24:53 CST 2017
pZxid = 0xd000003b0
cversion = 0
dataVersion = 2
aclVersion = 0
ephemeralOwner = 0x0
dataLength = 75
numChildren = 0"""
SEED_TOPICS = (
    "[testp5, input_channel, testp4, output_channel, testp3, lighthouse.config.inform, testp2, "
    "netshoesProducts, testp, springcloudtest, __consumer_offsets, testp6]"
)


def test_seed_looking_through_zookeeper_get_broker():
    """A broker of 0.10.1 registers; the shell prints the published text."""
    server = with_paths(["/brokers/ids"])
    session = 0x35B64E7C2560003
    server, _ = step(server, Connect(6_000, session))
    # 2017-04-13 11:44:20 in China, and the last transaction before.
    at = {"now_ms": 1492055060000, "zxid": 0xD000004E9}
    server = type(server)(server.nodes, server.sessions, {}, {}, at["zxid"], 1, at["now_ms"])
    data = broker_json(BROKER_2, "0.10.1")
    server, _ = step(server, Create(session, "/brokers/ids/2", data, ephemeral=True))
    assert get(server.nodes["/brokers/ids/2"], "CST", 8) == SEED_BROKER


def test_seed_looking_through_zookeeper_get_partition_state():
    """Broker 0 leads, broker 1 follows: the registration gives the published text."""
    registration = Registration((0, 1), (0, 1), 0, leader_epoch=1)
    node = Znode(
        data=state_json(registration, 17, "0.10.1"),
        czxid=0xD000003B0,
        mzxid=0xD0000044D,
        pzxid=0xD000003B0,
        ctime_ms=1492053845000,
        mtime_ms=1492053893000,
        data_version=2,
    )
    assert get(node, "CST", 8) == SEED_STATE


def test_seed_looking_through_zookeeper_ls():
    """The server's hash set gives each published list; broker ids in Java 7's order."""
    assert ls(server_order(["0", "1", "2"], java=7)) == "[2, 1, 0]"
    assert ls(server_order([str(p) for p in range(5)])) == "[0, 1, 2, 3, 4]"
    topics = SEED_TOPICS[1:-1].split(", ")
    assert ls(server_order(sorted(topics))) == SEED_TOPICS
    # Three names in one bucket: the versions differ in the direction of the chain.
    assert server_order(["a", "i", "q"], java=8) == ["a", "i", "q"]
    assert server_order(["a", "i", "q"], java=7) == ["q", "i", "a"]


@pytest.mark.parametrize(
    ("kafka_version", "scala", "order"),
    [
        ("0.8.2", None, "jmx_port timestamp host version port"),
        ("0.9.0", None, "jmx_port timestamp endpoints host version port"),
        ("0.10.0", None, "jmx_port timestamp endpoints host version port rack"),
        (
            "2.1.0",
            None,
            "listener_security_protocol_map endpoints rack jmx_port host timestamp port version",
        ),
        (
            "3.0.0",
            "2.12",
            "listener_security_protocol_map endpoints rack jmx_port features host timestamp "
            "port version",
        ),
        (
            "3.9",
            None,
            "features listener_security_protocol_map endpoints rack jmx_port port host version "
            "timestamp",
        ),
    ],
)
def test_broker_fields_by_version(kafka_version, scala, order):
    """Fields and their order, for registration versions 1 to 5."""
    broker = BrokerInfo(1, "h", 9092, 5, rack="a")
    text = broker_json(broker, kafka_version, scala)
    assert list(json.loads(text)) == order.split()


@pytest.mark.parametrize(
    ("kafka_version", "number"),
    [
        ("0.8.2", 1),
        ("0.9.0", 2),
        ("0.10.0", 3),
        ("0.10.1", 3),
        ("0.10.2", 4),
        ("2.6", 4),
        ("2.7", 5),
        ("3.9", 5),
    ],
)
def test_broker_version_number(kafka_version, number):
    """The registration's version number; racks are included since version 3."""
    written = json.loads(broker_json(BrokerInfo(1, "h", 9092, 5, rack="a"), kafka_version))
    assert written["version"] == number
    assert ("rack" in written) == (number >= 3)


@pytest.mark.parametrize(
    ("kafka_version", "scala", "text"),
    [
        (
            "2.1.0",
            None,
            '{"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
            '"endpoints":["PLAINTEXT://h:9092"],"jmx_port":-1,"host":"h","timestamp":"5",'
            '"port":9092,"version":4}',
        ),
        (
            "2.6.0",
            None,
            '{"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
            '"endpoints":["PLAINTEXT://h:9092"],"jmx_port":-1,"port":9092,"host":"h",'
            '"version":4,"timestamp":"5"}',
        ),
        (
            "3.1.0",
            "2.12",
            '{"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
            '"endpoints":["PLAINTEXT://h:9092"],"jmx_port":-1,"features":{},"host":"h",'
            '"timestamp":"5","port":9092,"version":5}',
        ),
        (
            "3.6",
            "2.13",
            '{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
            '"endpoints":["PLAINTEXT://h:9092"],"jmx_port":-1,"port":9092,"host":"h",'
            '"version":5,"timestamp":"5"}',
        ),
        (
            "0.8.0",
            None,
            '{ "host":"h", "jmx_port":-1, "port":9092, "timestamp":"5", "version":1 }',
        ),
    ],
)
def test_broker_as_people_printed_it(kafka_version, scala, text):
    """Registrations published from brokers of these builds, with names replaced."""
    assert broker_json(BrokerInfo(1, "h", 9092, 5), kafka_version, scala) == text


def test_a_broker_without_plaintext_has_no_host():
    """Host is null for old clients, which support only plaintext (published, a 2018 cluster)."""
    broker = BrokerInfo(0, None, -1, 5, ("SSL://h:9092",), jmx_port=9091, rack="TC-I-2")
    assert broker_json(broker, "2.0.0") == (
        '{"listener_security_protocol_map":{"SSL":"SSL"},"endpoints":["SSL://h:9092"],'
        '"rack":"TC-I-2","jmx_port":9091,"host":null,"timestamp":"5","port":-1,"version":4}'
    )
    with pytest.raises(ConfigError, match="no listener"):
        broker_json(BrokerInfo(0, None, -1, 5), "2.0.0")


def topic(count, replicas=(1,), **more):
    rows = {p: Registration(replicas, replicas, replicas[0], **more) for p in range(count)}
    return TopicInfo("t", rows, topic_id="qCqvWVu9Q6OJ_udtfKYegA")


@pytest.mark.parametrize(
    ("kafka_version", "scala", "count", "text"),
    [
        ("0.8.0", None, 1, '{ "partitions":{ "0":[ 1 ] }, "version":1 }'),
        ("1.0.0", None, 3, '{"version":1,"partitions":{"2":[1],"1":[1],"0":[1]}}'),
        (
            "2.3.0",
            None,
            6,
            '{"version":1,"partitions":{"4":[1],"5":[1],"1":[1],"0":[1],"2":[1],"3":[1]}}',
        ),
        (
            "2.7.0",
            "2.12",
            4,
            '{"version":2,"partitions":{"2":[1],"1":[1],"0":[1],"3":[1]},'
            '"adding_replicas":{},"removing_replicas":{}}',
        ),
        (
            "3.3.0",
            "2.12",
            4,
            '{"removing_replicas":{},"partitions":{"2":[1],"1":[1],"0":[1],"3":[1]},'
            '"topic_id":"qCqvWVu9Q6OJ_udtfKYegA","adding_replicas":{},"version":3}',
        ),
        (
            "3.3.0",
            None,
            2,
            '{"partitions":{"0":[1],"1":[1]},"topic_id":"qCqvWVu9Q6OJ_udtfKYegA",'
            '"adding_replicas":{},"removing_replicas":{},"version":3}',
        ),
    ],
)
def test_topic_as_people_printed_it(kafka_version, scala, count, text):
    """The assignment, before and after KIP-455 and KIP-516, in the order of both Scala versions."""
    assert topic_json(topic(count), kafka_version, scala) == text


def test_kip_455_a_reassignment_stands_in_the_topic():
    """Adding and removing replicas are written for partitions that have any."""
    moving = topic(1, (3, 1), adding=(3,), removing=(1,))
    written = json.loads(topic_json(moving, "2.7.0"))
    assert written["partitions"] == {"0": [3, 1]}
    assert (written["adding_replicas"], written["removing_replicas"]) == ({"0": [3]}, {"0": [1]})


def test_kip_704_recovery_stands_in_the_state_only_while_it_lasts():
    """Since 3.2, and only for a partition that recovers from an unclean election."""
    registration = Registration((0, 1), (1,), 1, recovering=True)
    assert json.loads(state_json(registration, 2, "3.2.0"))["leader_recovery_state"] == 1
    assert "leader_recovery_state" not in state_json(registration, 2, "3.1.0")
    clean = Registration((0, 1), (1,), 1)
    assert "leader_recovery_state" not in state_json(clean, 2, "3.9")


@pytest.mark.parametrize(
    ("kafka_version", "text"),
    [
        ("0.8.0", '{ "brokerid":0, "timestamp":"9", "version":1 }'),
        ("2.8.0", '{"version":1,"brokerid":0,"timestamp":"9"}'),
        ("3.4.0", '{"version":2,"brokerid":0,"timestamp":"9","kraftControllerEpoch":-1}'),
    ],
)
def test_controller_by_version(kafka_version, text):
    """Version 2 came with the migration to KRaft (KIP-866)."""
    assert controller_json(0, 9, kafka_version) == text


def test_a_state_of_kafka_0_8_0_has_spaces():
    """0.8.0 writes sorted JSON with spaces."""
    assert state_json(Registration((0, 1), (0, 1), 0), 1, "0.8.0") == (
        '{ "controller_epoch":1, "isr":[ 0, 1 ], "leader":0, "leader_epoch":0, "version":1 }'
    )


def test_all_znodes_of_a_cluster():
    """Every broker, topic and partition has its path."""
    brokers = [BrokerInfo(b, f"h{b}", 9092, 7) for b in range(3)]
    znodes = cluster_znodes(
        brokers, [topic(5)], controller=brokers[1], controller_epoch=17, kafka_version="0.10.1"
    )
    assert znodes["/controller"] == '{"version":1,"brokerid":1,"timestamp":"7"}'
    assert znodes["/controller_epoch"] == "17"
    assert {path for path in znodes if path.startswith("/brokers/ids/")} == {
        f"/brokers/ids/{b}" for b in range(3)
    }
    states = [path for path in znodes if path.endswith("/state")]
    assert states == [f"/brokers/topics/t/partitions/{p}/state" for p in range(5)]
    assert json.loads(znodes["/brokers/topics/t"])["version"] == 1


def test_listeners_keep_their_names_and_protocols():
    """KIP-103: a listener's name may differ from its protocol."""
    broker = BrokerInfo(
        1, "h", 9092, 5, ("IN://h:9092", "OUT://h:9093"), {"IN": "PLAINTEXT", "OUT": "SSL"}
    )
    written = json.loads(broker_json(broker, "3.9"))
    assert written["listener_security_protocol_map"] == {"IN": "PLAINTEXT", "OUT": "SSL"}
    assert written["endpoints"] == ["IN://h:9092", "OUT://h:9093"]


def test_kafka_4_has_no_znodes():
    """ZooKeeper mode ended with 3.9."""
    with pytest.raises(ConfigError, match="no ZooKeeper mode"):
        broker_json(BROKER_2, "4.0")
    with pytest.raises(ConfigError, match="scala="):
        broker_json(BROKER_2, "3.9", "3")


def test_scala_2_12_map_after_it_grew():
    """Fifty partitions of __consumer_offsets in an order published from a broker (first 25)."""
    printed = "30 39 45 2 5 48 33 27 12 8 15 42 36 21 18 24 35 41 7 17 1 44 23 38 47"
    assert " ".join(mutable_order([str(p) for p in range(50)])[:25]) == printed


def test_scala_2_12_map_grows_with_its_thirteenth_key():
    """Up to twelve keys a further key keeps the order of the others; the thirteenth does not."""
    orders = {n: mutable_order([str(p) for p in range(n)]) for n in (11, 12, 13)}
    assert [key for key in orders[12] if key != "11"] == orders[11]
    assert [key for key in orders[13] if key != "12"] != orders[12]


def mixed(key):
    """The hash that orders Scala's immutable maps, implemented independently."""
    code = 0
    for letter in key:
        code = (31 * code + ord(letter)) % 2**32
    code = (code - (code << 9) - 1) % 2**32
    code ^= code >> 14
    code = code * 17 % 2**32
    return code ^ (code >> 10)


def test_scala_2_13_walks_a_node_s_own_keys_first():
    """Keys alone in their slot of the root precede those in shared slots; in 2.12 they do not."""
    keys = [f"k{number}" for number in range(20)]
    slots = [mixed(key) % 32 for key in keys]
    alone = [key for key, slot in zip(keys, slots, strict=True) if slots.count(slot) == 1]
    assert 0 < len(alone) < len(keys)
    assert set(immutable_order(keys, SCALA_2_13)[: len(alone)]) == set(alone)
    assert set(immutable_order(keys, SCALA_2_12)[: len(alone)]) != set(alone)


def test_the_server_s_set_doubles_with_its_seventh_child():
    """Eight slots hold six children; after doubling, "8" no longer shares the slot of "0"."""
    assert server_order(["0", "1", "2", "3", "4", "8"]) == ["0", "8", "1", "2", "3", "4"]
    seven = server_order(["0", "1", "2", "3", "4", "8", "5"])
    assert seven == ["0", "1", "2", "3", "4", "5", "8"]


KEYS = st.lists(st.text(min_size=1, max_size=6), unique=True, max_size=60)


@given(KEYS, st.sampled_from([SCALA_2_12, SCALA_2_13]))
def test_scala_maps_lose_and_repeat_nothing(keys, scala):
    """Every order is a permutation of the keys."""
    assert sorted(immutable_order(keys, scala)) == sorted(keys)
    assert sorted(mutable_order(keys, scala)) == sorted(keys)


@given(KEYS.filter(lambda keys: len(keys) > 4), st.randoms())
def test_an_immutable_map_forgets_the_order_of_insertion(keys, random):
    """Above four keys the order depends only on the hashes, unless two are equal."""
    shuffled = random.sample(keys, len(keys))
    assert immutable_order(keys) == immutable_order(shuffled)
