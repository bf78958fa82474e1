"""Output of ZooKeeper's shell: ``ls``, and ``get`` with its stat.

Up to ZooKeeper 3.4 ``ls`` prints children in the iteration order of the server's
``java.util.HashSet``; since 3.5 it sorts them, and ``get`` prints the stat only with ``-s``.

Source: ZooKeeper's ``DataNode`` (initial capacity of eight), ``LsCommand`` and ``StatPrinter``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from advisor.lessons.zookeeper.service import Znode
from advisor.protocol.jvm.java_hash import string_hash

_CHILDREN_EXPECTED = 8


def ls(children: Sequence[str]) -> str:
    """Output of ``ls`` for children in the given order."""
    return "[" + ", ".join(children) + "]"


def server_order(children: Sequence[str], java: int = 8) -> list[str]:
    """Children in the order in which a server before 3.5 lists them.

    children: in order of creation, without deletions.
    java: version of the server's Java. Before 8, ``HashMap`` spread hashes differently and inserted
        entries at the head of a bucket.
    """
    spread = _spread_java_8 if java >= 8 else _spread_java_7
    size = _CHILDREN_EXPECTED
    table: dict[int, list[str]] = {}
    for count, child in enumerate(children, start=1):
        bucket = table.setdefault(spread(string_hash(child)) & (size - 1), [])
        bucket.insert(len(bucket) if java >= 8 else 0, child)
        if count > size * 3 // 4:
            size *= 2
            moved = [name for slot in sorted(table) for name in table[slot]]
            table = {}
            for name in moved:
                bucket = table.setdefault(spread(string_hash(name)) & (size - 1), [])
                bucket.insert(len(bucket) if java >= 8 else 0, name)
    return [name for slot in sorted(table) for name in table[slot]]


def get(node: Znode, zone: str = "UTC", utc_offset_hours: float = 0.0) -> str:
    """Output of ``get``: data and stat, with times in the given zone."""
    return "\n".join([node.data, *stat_lines(node, zone, utc_offset_hours)])


def stat_lines(node: Znode, zone: str = "UTC", utc_offset_hours: float = 0.0) -> list[str]:
    """Lines of a znode's stat, in the shell's order."""
    return [
        f"cZxid = {node.czxid:#x}",
        f"ctime = {_date(node.ctime_ms, zone, utc_offset_hours)}",
        f"mZxid = {node.mzxid:#x}",
        f"mtime = {_date(node.mtime_ms, zone, utc_offset_hours)}",
        f"pZxid = {node.pzxid:#x}",
        f"cversion = {node.cversion}",
        f"dataVersion = {node.data_version}",
        f"aclVersion = {node.acl_version}",
        f"ephemeralOwner = {node.ephemeral_owner:#x}",
        f"dataLength = {len(node.data.encode())}",
        f"numChildren = {len(node.children)}",
    ]


def _date(at_ms: int, zone: str, utc_offset_hours: float) -> str:
    """Format of ``java.util.Date.toString``, independent of the locale."""
    local = datetime.fromtimestamp(at_ms // 1000, UTC) + timedelta(hours=utc_offset_hours)
    day = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[local.weekday()]
    names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    month = names[local.month - 1]
    return f"{day} {month} {local.day:02} {local:%H:%M:%S} {zone} {local.year}"


def _spread_java_8(code: int) -> int:
    return code ^ (code >> 16)


def _spread_java_7(code: int) -> int:
    code ^= (code >> 20) ^ (code >> 12)
    return code ^ (code >> 7) ^ (code >> 4)
