"""Rack assignments in the forms that users write them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from advisor.errors import InputError, shown
from advisor.files import read_input
from advisor.parsing import read_toml, whole_number

Racks = Mapping[int, str | None] | Mapping[str, object] | str | os.PathLike[str]
"""`{1: "a", 2: "b"}`, `{"a": [1, 2]}`, `"1=a,2=b"`, TOML text or the path of a TOML file."""

MAX_ID = 2**31 - 1
_MOST_BYTES = 1_000_000
_LONGEST_RACK = 1_000


def broker_id(value: object, where: str, noun: str = "broker") -> int:
    """Convert an int or its digits to a node id (a non-negative Java int)."""
    if isinstance(value, str):
        number = whole_number(value, MAX_ID)
        value = value if number is None else number
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_ID:
        return value
    raise InputError(f"{where}: {shown(value)} is not a {noun} id; ids are whole numbers from 0")


def rack_mapping(
    mapping: Mapping[Any, Any], where: str = "racks", noun: str = "broker"
) -> dict[int, str | None]:
    """Return broker id to rack, from `{id: rack}`, `{rack: [ids]}` or a mix of both.

    mapping: a list value is the brokers of the rack named by its key; any other value is the rack
        of the broker with that id. None or "" means unknown.
    """
    if not isinstance(mapping, Mapping):
        raise InputError(f"{where}: {shown(mapping)} is not a mapping; give {{id: rack}}")
    result: dict[int, str | None] = {}
    for key, value in mapping.items():
        if isinstance(value, list | tuple | set | frozenset):
            pairs = [(broker_id(item, where, noun), key) for item in value]
        else:
            pairs = [(broker_id(key, where, noun), value)]
        for node, rack in pairs:
            name = _rack_name(rack, f"{where}: {noun} {node}")
            if result.setdefault(node, name) != name:
                raise InputError(
                    f"{where}: {noun} {node} is put into the racks {result[node]} and {name}; "
                    "name one"
                )
    return result


def moved(
    brokers: Mapping[int, str | None],
    controllers: Mapping[int, str | None] | None,
    new_racks: Mapping[int, str | None],
) -> tuple[dict[int, str | None], dict[int, str | None] | None]:
    """Return brokers and controllers with the racks named, by id.

    A controller whose id is also a broker's moves with that broker if both stood in the same rack:
    a ZooKeeper server may have the id of a broker elsewhere. Ids of neither are new brokers.
    """
    voters = controllers or {}
    hosts = {id_: rack for id_, rack in new_racks.items() if id_ in brokers or id_ not in voters}
    follow = {
        id_: new_racks[id_]
        for id_, rack in voters.items()
        if id_ in new_racks and brokers.get(id_, rack) == rack
    }
    return {**brokers, **hosts}, None if controllers is None else {**controllers, **follow}


def read_racks(racks: Racks, name: str = "racks", noun: str = "broker") -> dict[int, str | None]:
    """Return id to rack from any form of `Racks`, in a file from the table of that name if any."""
    if isinstance(racks, Mapping):
        return rack_mapping(racks, name, noun)
    if not isinstance(racks, str | os.PathLike):
        raise InputError(f"{name}: {shown(racks)} is neither a mapping, nor a file, nor 1=a,2=b")
    text = os.fspath(racks)
    if not isinstance(text, str):
        raise InputError(f"{name}: the path is bytes; give it as text")
    if "\n" in text:
        return _from_toml(text, name, name, noun)
    if "=" in text and not _exists(text):
        return _from_pairs(text, name, noun)
    try:
        content = read_input(text, _MOST_BYTES).decode("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not UTF-8"
        raise InputError(
            f"{name}: cannot read {shown(text)} ({reason}); give a TOML file with [{name}], or "
            "1=a,2=b"
        ) from None
    return _from_toml(content, text, name, noun)


def _rack_name(rack: object, node_words: str) -> str | None:
    if rack is None or rack == "":
        return None
    if isinstance(rack, str) and is_rack(rack):
        return rack.strip()
    raise InputError(
        f"{node_words} has the rack {shown(rack)}; a rack is a printable name in quotes"
    )


def is_rack(name: object) -> bool:
    """Whether a value can be the name of a rack."""
    has_name = isinstance(name, str) and bool(name.strip())
    return has_name and len(str(name)) <= _LONGEST_RACK and str(name).isprintable()


def _exists(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False


def _from_pairs(text: str, where: str, noun: str) -> dict[int, str | None]:
    result: dict[object, object] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        key, equals, rack = pair.partition("=")
        if not equals:
            raise InputError(f"{where}: {shown(pair)} is not of the form 1=a")
        node = broker_id(key.strip(), where, noun)
        rack = rack.strip()
        if result.setdefault(node, rack) != rack:
            raise InputError(f"{where}: {noun} {node} is put into two racks; name one")
    if not result:
        raise InputError(f"{where}: {shown(text)} names no {noun}; write 1=a,2=a,3=b")
    return rack_mapping(result, where, noun)


def _from_toml(text: str, where: str, name: str, noun: str) -> dict[int, str | None]:
    try:
        document = read_toml(text)
    except ValueError as error:
        raise InputError(f"{where}: this is not TOML: {error}") from None
    # "rack" for "racks": as a broker's id it would only be said to be none.
    single = name.removesuffix("s")
    if name not in document and isinstance(document.get(single), dict):
        raise InputError(f"{where}: there is a table [{single}]; write [{name}]")
    table = document.get(name, document)
    if not isinstance(table, dict) or not table:
        raise InputError(
            f"{where}: no {name} here; write a table [{name}] with lines like a = [1, 2]"
        )
    return rack_mapping(table, where, noun)
