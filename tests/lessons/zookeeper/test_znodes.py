"""Kafka's znodes, compared with output published from real clusters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import ConfigError
from advisor.lessons.zookeeper.service import Connect, Create, Znode, step, with_paths
from advisor.lessons.zookeeper.znodes import broker_json, get, ls, scala_map_order, state_json
from advisor.protocol.jvm import string_hash
from advisor.protocol.rules.partition_registration import Registration

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
    server = type(server)(server.nodes, server.sessions, {}, {}, at["zxid"], at["now_ms"])
    data = broker_json("192.168.192.147", 9092, 1492054322225)
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
    assert ls(["0", "1", "2"], java=7) == "[2, 1, 0]"
    assert ls([str(p) for p in range(5)]) == "[0, 1, 2, 3, 4]"
    topics = SEED_TOPICS[1:-1].split(", ")
    assert ls(sorted(topics)) == SEED_TOPICS
    # Three names in one bucket: the versions differ in the direction of the chain.
    assert ls(["a", "i", "q"], java=8) == "[a, i, q]"
    assert ls(["a", "i", "q"], java=7) == "[q, i, a]"


def test_the_server_s_set_doubles_with_its_seventh_child():
    """Eight slots hold six children; after doubling, "8" no longer shares the slot of "0"."""
    assert ls(["0", "1", "2", "3", "4", "8"]) == "[0, 8, 1, 2, 3, 4]"
    assert ls(["0", "1", "2", "3", "4", "8", "5"]) == "[0, 1, 2, 3, 4, 5, 8]"


def test_kip_704_recovery_stands_in_the_state_only_while_it_lasts():
    """Since 3.2, and only for a partition that recovers from an unclean election."""
    registration = Registration((0, 1), (1,), 1, recovering=True)
    assert '"leader_recovery_state":1' in state_json(registration, 2, "3.2.0")
    assert "leader_recovery_state" not in state_json(registration, 2, "3.1.0")
    clean = Registration((0, 1), (1,), 1)
    assert "leader_recovery_state" not in state_json(clean, 2, "3.9")


def test_kafka_4_has_no_znodes():
    """ZooKeeper mode ended with 3.9."""
    with pytest.raises(ConfigError, match="no ZooKeeper mode"):
        state_json(Registration((0, 1), (0, 1), 0), 1, "4.0")


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
    assert set(scala_map_order(keys, True)[: len(alone)]) == set(alone)
    assert set(scala_map_order(keys, False)[: len(alone)]) != set(alone)


KEYS = st.lists(st.text(min_size=1, max_size=6), unique=True, max_size=60)


@given(KEYS, st.booleans())
def test_scala_maps_lose_and_repeat_nothing(keys, scala_2_13):
    """Every order is a permutation of the keys."""
    assert sorted(scala_map_order(keys, scala_2_13)) == sorted(keys)


@given(KEYS.filter(lambda keys: len({*map(string_hash, keys)}) == len(keys) > 4), st.randoms())
def test_an_immutable_map_forgets_the_order_of_insertion(keys, random):
    """Above four keys the order depends only on the hashes, where no two are equal."""
    shuffled = random.sample(keys, len(keys))
    assert scala_map_order(keys, False) == scala_map_order(shuffled, False)
