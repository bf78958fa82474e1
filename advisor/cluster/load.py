"""Find out what kind of description somebody brings, and read it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from advisor.cluster.formats.describe import looks_like_describe, parse_describe
from advisor.cluster.formats.describe_format import version_numbers
from advisor.cluster.formats.json_format import parse_json, seen_brokers
from advisor.cluster.formats.strimzi import parse_strimzi
from advisor.cluster.formats.toml_format import parse_toml
from advisor.cluster.live.reachability import looks_like_addresses
from advisor.cluster.live.reader import read_live
from advisor.cluster.model import Cluster
from advisor.cluster.racks import Racks, read_racks
from advisor.errors import InputError

_KINDS = {".json": "json", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml"}
_TOML = re.compile(
    r"^\s*(\[\[?\s*(brokers|broker|racks|defaults|topic)\b|(kafka_version|brokers|racks)\s*=)",
    re.MULTILINE,
)
_YAML = re.compile(r"^(apiVersion|kind|items):", re.MULTILINE)
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


def load_cluster(
    source: str | os.PathLike[str],
    racks: Racks | None = None,
    kafka_version: str | None = None,
    client_properties: str | os.PathLike[str] | None = None,
    timeout_ms: int | None = None,
) -> Cluster:
    """Read a cluster from what its users have at hand.

    Parameters
    ----------
    source : str or path
        The path of a file, or the text itself (it holds a newline). Understood are the output of
        `kafka-topics.sh --describe` of any version, our TOML (`advisor.cluster.formats.toml_format` says how
        it is written), `Cluster.to_dict` as JSON, the JSON plan of `kafka-reassign-partitions.sh`,
        and Strimzi's YAML.
    racks : mapping, str or path, optional
        Racks, where the source does not tell them: `{1: "a"}`, `{"a": [1, 2]}`, `"1=a,2=b"`, or a
        TOML file with a table `[racks]`. Brokers that only `racks` names are added; brokers that
        it does not name keep what the source says.
    kafka_version : str, optional
        Such as "4.1"; goes before what the source says.
    client_properties : str or path, optional
        A Java client's properties file, for a running cluster that wants TLS or a login.
    timeout_ms : int, optional
        For a running cluster, everything together, in milliseconds; 30 000 unless given.

    Returns
    -------
    Cluster
        A describe output shows no broker without replicas and no rack. Of a running cluster,
        `notes` says what it did not tell, and `observed` holds what a describe output lacks.

    Raises
    ------
    InputError
        If the source cannot be read or understood, or contradicts itself; the message is one
        sentence that names the file and, where there is one, the line.
    MissingExtraError
        If a running cluster is to be read and the extra `live` is not installed.
    """
    if kafka_version is not None:
        version_numbers(kafka_version)
    given = None if racks is None else read_racks(racks)
    if _is_address(source):
        cluster = read_live(str(source), client_properties, timeout_ms).with_racks(given or {})
        return cluster if kafka_version is None else replace(cluster, kafka_version=kafka_version)
    if client_properties is not None:
        raise InputError("client properties are for the address of a running cluster, host:9092")
    text, name, suffix = _read(source)
    kind = _KINDS.get(suffix) or _kind(text)
    if kind in _PLACING:
        cluster = _PLACING[kind](text, name, given)  # racks decide where replicas are put
    else:
        read = parse_json if kind == "json" else _from_describe
        cluster = _with_racks(read(text, name), given or {})
    return cluster if kafka_version is None else replace(cluster, kafka_version=kafka_version)


def _with_racks(cluster: Cluster, racks: dict[int, str | None]) -> Cluster:
    """Put brokers into racks, and say which of them nothing was described on: a slip or a spare."""
    spare = sorted(set(racks) - set(cluster.brokers))
    found = cluster.with_racks(racks)
    if not spare:
        return found
    who = f"Broker{'s' if len(spare) > 1 else ''} {', '.join(map(str, spare))}"
    note = f"{who} stood in the racks alone: counted as running, without a replica as yet."
    return replace(found, notes=(*found.notes, note))


def _is_address(source: object) -> bool:
    """Say whether to ask a cluster; a file that happens to have such a name goes first."""
    return isinstance(source, str) and looks_like_addresses(source) and not os.path.exists(source)


def _from_describe(text: str, source: str) -> Cluster:
    topics = parse_describe(text, source)
    try:
        return Cluster(brokers=seen_brokers(topics), topics=topics, source=source)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


_PLACING: dict[str, Callable[[str, str, dict[int, str | None] | None], Cluster]] = {
    "toml": parse_toml,
    "yaml": parse_strimzi,
}


def _kind(text: str) -> str:
    if text.lstrip().startswith("{"):
        return "json"
    if looks_like_describe(text):
        return "describe"
    if _YAML.search(text):
        return "yaml"
    return "toml" if _TOML.search(text) else "describe"


def _read(source: object) -> tuple[str, str, str]:
    """Return the text, what to call it in messages, and the file's suffix."""
    if not isinstance(source, str | os.PathLike):
        raise InputError(
            f"a cluster is read from a path or a text, not from {type(source).__name__}"
        )
    given = os.fspath(source)
    if not isinstance(given, str):
        raise InputError("the path of a cluster file is bytes; give it as text")
    if not given.strip():
        raise InputError(
            "the cluster is an empty text; give a path or the output of kafka-topics.sh --describe"
        )
    if "\n" in given or looks_like_describe(given):
        text, name, suffix = given.removeprefix("\ufeff"), "the text", ""
    else:
        text, name, suffix = _decoded(_bytes(given), given), given, Path(given).suffix.lower()
    if "\0" in text:
        raise InputError(f"{name}: this is not text; {_WANTED}")
    if not text.strip():
        raise InputError(f"{name}: the file is empty; {_WANTED}")
    return text, name, suffix


_WANTED = (
    "give the output of kafka-topics.sh --describe, or TOML, JSON or Strimzi YAML, or the address "
    "of a running cluster, host:9092"
)


def _bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; {_WANTED}") from None
    except IsADirectoryError:
        raise InputError(f"{path}: this is a directory; {_WANTED}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise InputError(f"{path!r}: this cannot be read ({reason}); {_WANTED}") from None


def _decoded(content: bytes, name: str) -> str:
    """Return the text; what is not UTF-8 can only be prose, which is passed over.

    PowerShell's `>` writes UTF-16 with a byte order mark.
    """
    for mark, encoding in _BOMS:
        if content.startswith(mark):
            try:
                return content.decode(encoding)
            except UnicodeDecodeError:
                raise InputError(f"{name}: this is not text; {_WANTED}") from None
    return content.decode("utf-8", errors="replace")
