"""What Kafka writes to ZooKeeper, and what ZooKeeper's shell prints of it, byte for byte.

Kafka writes JSON straight from Scala's maps, and ``ls`` of ZooKeeper 3.4 lists a Java hash set, so
that hash codes decide the order of fields and names.
Sources: ``kafka.zk.ZkData``, ``kafka.utils.ZkUtils``; ``scala.collection.immutable.HashMap`` of
Scala 2.12 and 2.13; ZooKeeper's ``DataNode`` and ``StatPrinter``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from advisor.errors import ConfigError
from advisor.lessons.zookeeper.service import Znode
from advisor.protocol.jvm import string_hash
from advisor.protocol.rules.partition_registration import Registration
from advisor.protocol.rules.versions import parse_version

_MASK = 0xFFFFFFFF
_LARGEST_UNHASHED = 4
_BITS_PER_LEVEL = 5
_HASH_BITS = 32
_CHILDREN_EXPECTED = 8


def broker_json(host: str, port: int, timestamp_ms: int) -> str:
    """Data of ``/brokers/ids/N``, as 0.10.0 and 0.10.1 write it for a plaintext listener."""
    fields: dict[str, object] = {
        "version": 3,
        "host": host,
        "port": port,
        "endpoints": [f"PLAINTEXT://{host}:{port}"],
        "jmx_port": -1,
        "timestamp": str(timestamp_ms),
    }
    return _json(fields)


def state_json(registration: Registration, controller_epoch: int, kafka_version: str) -> str:
    """Data of ``/brokers/topics/T/partitions/P/state``, from 0.8.1 to 3.9."""
    version = parse_version(kafka_version)
    if version >= (4, 0):
        raise ConfigError(f"Kafka {kafka_version} has no ZooKeeper mode; it ended with 3.9")
    fields: dict[str, object] = {
        "version": 1,
        "leader": registration.leader,
        "leader_epoch": registration.leader_epoch,
        "controller_epoch": controller_epoch,
        "isr": list(registration.isr),
    }
    if registration.recovering and version >= (3, 2):  # KIP-704
        fields["leader_recovery_state"] = 1
    # Kafka's download is built with Scala 2.13 since 2.6.
    return _json(fields, scala_2_13=version >= (2, 6))


def _json(fields: Mapping[str, object], scala_2_13: bool = False) -> str:
    ordered = {key: fields[key] for key in scala_map_order(list(fields), scala_2_13)}
    return json.dumps(ordered, separators=(",", ":"))


def scala_map_order(keys: list[str], scala_2_13: bool) -> list[str]:
    """The iteration order of Scala's ``immutable.Map``, from the order of insertion.

    Up to four keys keep their order; more form a trie of 32-way nodes. Scala 2.13 visits a node's
    own keys before its subtrees.
    """
    return keys if len(keys) <= _LARGEST_UNHASHED else _trie_order(keys, 0, scala_2_13)


def _trie_order(keys: list[str], level: int, own_first: bool) -> list[str]:
    if level * _BITS_PER_LEVEL >= _HASH_BITS:
        return keys  # Their hashes are equal.
    slots: dict[int, list[str]] = {}
    for key in keys:
        slot = (_improved(string_hash(key)) >> (_BITS_PER_LEVEL * level)) & 31
        slots.setdefault(slot, []).append(key)
    order = sorted(slots, key=lambda slot: (own_first and len(slots[slot]) > 1, slot))
    result: list[str] = []
    for slot in order:
        members = slots[slot]
        result += members if len(members) == 1 else _trie_order(members, level + 1, own_first)
    return result


def _improved(code: int) -> int:
    """A hash code as Scala's maps mix it."""
    code = (code + (~(code << 9) & _MASK)) & _MASK
    code ^= code >> 14
    code = (code + (code << 4)) & _MASK
    return code ^ (code >> 10)


def ls(children: Sequence[str], java: int = 8) -> str:
    """Output of ``ls`` before ZooKeeper 3.5, for children in order of creation.

    Before Java 8, ``HashMap`` spread hashes differently and inserted at the head of a bucket.
    """
    spread = _spread_java_8 if java >= 8 else _spread_java_7
    size = _CHILDREN_EXPECTED
    table: dict[int, list[str]] = {}

    def put(name: str) -> None:
        bucket = table.setdefault(spread(string_hash(name)) & (size - 1), [])
        bucket.insert(len(bucket) if java >= 8 else 0, name)

    for count, child in enumerate(children, start=1):
        put(child)
        if count > size * 3 // 4:
            size *= 2
            moved = [name for slot in sorted(table) for name in table[slot]]
            table.clear()
            for name in moved:
                put(name)
    return "[" + ", ".join(name for slot in sorted(table) for name in table[slot]) + "]"


def _spread_java_8(code: int) -> int:
    return code ^ (code >> 16)


def _spread_java_7(code: int) -> int:
    code ^= (code >> 20) ^ (code >> 12)
    return code ^ (code >> 7) ^ (code >> 4)


def get(node: Znode, zone: str, utc_offset_hours: float) -> str:
    """Output of ``get``: data and stat, with times in the given zone."""
    return "\n".join(
        [
            node.data,
            f"cZxid = {node.czxid:#x}",
            f"ctime = {_date(node.ctime_ms, zone, utc_offset_hours)}",
            f"mZxid = {node.mzxid:#x}",
            f"mtime = {_date(node.mtime_ms, zone, utc_offset_hours)}",
            f"pZxid = {node.pzxid:#x}",
            f"cversion = {node.cversion}",
            f"dataVersion = {node.data_version}",
            "aclVersion = 0",
            f"ephemeralOwner = {node.ephemeral_owner:#x}",
            f"dataLength = {len(node.data.encode())}",
            f"numChildren = {len(node.children)}",
        ]
    )


def _date(at_ms: int, zone: str, utc_offset_hours: float) -> str:
    """Format of ``java.util.Date.toString``, independent of the locale."""
    local = datetime.fromtimestamp(at_ms // 1000, UTC) + timedelta(hours=utc_offset_hours)
    day = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[local.weekday()]
    names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    month = names[local.month - 1]
    return f"{day} {month} {local.day:02} {local:%H:%M:%S} {zone} {local.year}"
