"""`load_cluster`: detect the format of a cluster description and read it."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from advisor.arguments import names_checked
from advisor.cluster.addresses import looks_like_addresses
from advisor.cluster.completeness import DESCRIBE
from advisor.cluster.describe_layouts import LAYOUTS
from advisor.cluster.formats.additions import Addition, added, of_deployment
from advisor.cluster.formats.describe import looks_like_describe
from advisor.cluster.formats.describe_format import version_numbers
from advisor.cluster.formats.sources import BEGINNING, Source, not_read, source_of
from advisor.cluster.live.reader import read_live
from advisor.cluster.managed_services import EVENT_HUBS, EVENT_HUBS_WORDS, service_of
from advisor.cluster.model import Cluster
from advisor.cluster.other_systems import refuse_other_systems
from advisor.cluster.racks import Racks, read_racks
from advisor.cluster.topic import is_id
from advisor.errors import InputError, shown
from advisor.files import read_input
from advisor.formatting import counted
from advisor.parsing import is_unicode

_MOST_TIMEOUT_MS = 86_400_000
# A million partitions, described.
_MOST_BYTES = 160_000_000
_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


@names_checked
def load_cluster(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    racks: Racks | None = None,
    kafka_version: str | None = None,
    client_properties: str | os.PathLike[str] | None = None,
    timeout_ms: int | None = None,
    controllers: Racks | None = None,
) -> Cluster:
    """Read a cluster from a file, a text or a running cluster.

    Parameters
    ----------
    source : str, path, or a list of them
        Path of a regular file ("-" for standard input), the text itself (if it contains a
        newline), or `host:port` of a running cluster (several separated by commas). Formats: the
        output of `kafka-topics.sh --describe` of any version, TOML (see
        `advisor.cluster.formats.toml_format`), `Cluster.to_dict` as JSON, the JSON plan of
        `kafka-reassign-partitions.sh`, Strimzi YAML, and what else
        `advisor.cluster.formats.sources` lists. A list, or a folder, is several files of one
        cluster: one has its partitions, others its settings (`kafka-configs.sh --describe --all`),
        controllers (`kafka-metadata-quorum.sh describe --status`), features or brokers.
    racks : mapping, str or path, optional
        Racks, where the source has none: `{1: "a"}`, `{"a": [1, 2]}`, `"1=a,2=b"`, or a TOML file
        with a table `[racks]`. Brokers named only here are added; brokers and controllers not
        named here keep their rack from the source.
    kafka_version : str, optional
        Such as "4.1"; overrides the version in the source.
    client_properties : str or path, optional
        A Java client's properties file, for a running cluster that requires TLS or SASL.
    timeout_ms : int, optional
        Time limit in milliseconds for reading a running cluster. Default: 30 000.
    controllers : mapping, str or path, optional
        Rack of each voter of the controller quorum, in the forms of `racks` (a TOML file has a
        table `[controllers]`), instead of what the source says of them.

    Returns
    -------
    Cluster
        A describe output has no racks, no controllers and no brokers without replicas. `remarks`
        says what a text was taken for, whether it shows a part of a cluster, and which topics are
        set aside (diskless and tiered ones). For a running cluster, `notes` lists what could not
        be read and `observed` has what a describe output lacks.

    Raises
    ------
    InputError
        If the source cannot be read, parsed, or contradicts itself; the message names the file
        and, if known, the line. If it is the output of another tool or of another system than
        Apache Kafka, such as Redpanda; the message names that, and what to run instead.
    MissingExtraError
        If a running cluster is to be read and the extra `live` is not installed.

    See Also
    --------
    Cluster : The result, and how to build one directly.
    Cluster.to_dict : JSON data that this function reads back.

    Examples
    --------
    >>> import advisor
    >>> text = "Topic: t Partition: 0 Leader: 1 Replicas: 1,2 Isr: 1,2"
    >>> advisor.load_cluster(text, racks="1=a,2=b")
    Cluster(2 brokers in 2 racks (a, b); 1 topic, 1 partition)
    >>> advisor.load_cluster(text, controllers="1=a,2=b,9=c").voters_by_rack
    {'a': 1, 'b': 1, 'c': 1}
    """
    if kafka_version is not None:
        version_numbers(kafka_version)
    rack_of = None if racks is None else read_racks(racks)
    options: dict[str, Any] = {}
    if kafka_version is not None:
        options["kafka_version"] = kafka_version
    if controllers is not None:
        options["controllers"] = read_racks(controllers, "controllers", "controller")
    if timeout_ms is not None and not (is_id(timeout_ms) and 1 <= timeout_ms <= _MOST_TIMEOUT_MS):
        raise InputError(
            f"timeout_ms={shown(timeout_ms)}: give milliseconds, 1 or more, at most a day"
        )
    if not isinstance(client_properties, str | os.PathLike | None):
        raise InputError(f"client_properties={shown(client_properties)}: give a path")
    if _is_address(source):
        cluster = read_live(str(source), client_properties, timeout_ms).with_racks(rack_of or {})
    elif client_properties is not None:
        raise InputError("client_properties are for the address of a running cluster, host:9092")
    else:
        cluster = _from_files(_files(source), rack_of or {})
    if cluster.set_aside and not cluster.topics:
        raise InputError(
            f"{cluster.source}: there is no topic to judge. {' '.join(cluster.remarks[1:])} Give a "
            "description that also has topics that are replicated by the brokers"
        )
    if cluster.racks:
        options["taken_for"] = cluster.taken_for.replace("no racks", _racks_as_given(cluster))
    return replace(cluster, **options)


def _racks_as_given(cluster: Cluster) -> str:
    """What was given of racks, and who was left out: a number may be misspelt there."""
    without = sorted(broker for broker, rack in cluster.brokers.items() if rack is None)
    if not without:
        return "racks as given"
    if len(without) > 1:
        return f"racks as given, but none for {len(without):,} brokers"
    return f"racks as given, but none for broker {without[0]}"


def _files(source: object) -> list[object]:
    """Return the files that a source names: a list of them, or those of a folder by name."""
    if isinstance(source, list | tuple):
        if not 1 <= len(source) <= _MOST_FILES:
            raise InputError(f"a cluster is read from 1 to {_MOST_FILES} files, not {len(source)}")
        return list(source)
    paths = _in_folder(source)
    if paths is None:
        return [source]
    if not 1 <= len(paths) <= _MOST_FILES:
        raise InputError(
            f"{source}: this is a directory of {len(paths)} files; give those that describe the "
            "cluster"
        )
    for path in paths:
        text, name, suffix = _read(path)
        if source_of(text, suffix) is None:
            raise InputError(
                f"{source}: this is a directory, and it is not known which tool wrote {name} in "
                "it; give the files that describe the cluster"
            )
    return list(paths)


def _in_folder(source: object) -> list[Path] | None:
    """Return the files of a folder, without hidden ones; None if it is no folder."""
    if not isinstance(source, str | os.PathLike):
        return None
    try:
        folder = Path(os.fspath(source))
        if not str(source).strip() or not folder.is_dir():
            return None
        return [p for p in sorted(folder.iterdir()) if p.is_file() and p.name[0] != "."]
    except (OSError, ValueError, TypeError):
        return None


def _from_files(files: list[object], rack_of: dict[int, str | None]) -> Cluster:
    """Read the one file that has the partitions, and what the others say of the same cluster."""
    texts = [_read(file) for file in files]
    if len(texts) == 1:
        return _from_text(*texts[0], rack_of)
    kinds = [source_of(text, suffix) for text, _, suffix in texts]
    read = list(zip(kinds, texts, strict=True))
    beside = [(kind, text) for kind, text in read if kind is not None and kind.add is not None]
    descriptions = [(kind, text) for kind, text in read if kind is None or kind.add is None]
    joining = [(kind, text) for kind, text in descriptions if kind is not None and kind.joins]
    if len(joining) < len(descriptions):
        beside += joining
        descriptions = [row for row in descriptions if row not in joining]
    if len(descriptions) > 1:
        # A file that is not read at all says so first.
        clusters = [_from_text(*text, rack_of) for _, text in descriptions]
        raise InputError(
            f"{clusters[0].source} and {clusters[1].source} both have partitions: give the files of"
            " one cluster, of which one has its partitions"
        )
    if not descriptions:
        raise InputError(
            f"{', '.join(name for _, name, _ in texts)}: none of them has replicas; add the output "
            f"of {DESCRIBE}"
        )
    additions = [_addition(kind, text) for kind, text in beside]
    ((kind, text),) = descriptions
    # Racks that the user gives are set last, unless replicas are placed by them.
    known_racks = {}
    if kind is not None and kind.place is not None:
        brokers = [addition.racks for addition in additions if addition.is_deployed]
        known_racks = {
            **(brokers[0] if kind.needs_racks and brokers and brokers[0] else {}),
            **rack_of,
        }
    described = _with_racks(added(_from_text(*text, known_racks), additions), rack_of)
    beside_words = ", ".join(f"{name} for {kind.name}" for kind, (_, name, _) in beside)
    return replace(described, taken_for=f"{described.taken_for.removesuffix('.')}; {beside_words}.")


def _addition(kind: Source, text: tuple[str, str, str]) -> Addition:
    """What a file says of a cluster whose partitions another file has."""
    if kind.add is not None:
        return kind.add(text[0], text[1])
    return of_deployment(_from_text(*text, {}))


def _from_text(text: str, name: str, suffix: str, rack_of: dict[int, str | None]) -> Cluster:
    source = source_of(text, suffix)
    if source is None:
        begins = shown(text.strip().split("\n", 1)[0][:60])
        raise InputError(
            f"{name}: it is not known here which tool wrote this (it begins with {begins}); "
            f"{_ACCEPTED_SOURCES}"
        )
    hosts = "" if source.place is not None else text[:BEGINNING]
    if EVENT_HUBS.search(hosts):
        raise InputError(f"{name}: {EVENT_HUBS_WORDS}")
    cluster = _with_racks(source.cluster_in(text, name, rack_of), rack_of)
    described = (*cluster.topics, *cluster.set_aside)
    settings = chain(cluster.broker_settings, *(topic.configs for topic in described))
    names = tuple(topic.name for topic in described)
    refuse_other_systems(settings, names, name)
    return replace(
        cluster,
        taken_for=_taken_for(source, cluster, text),
        notes=tuple(filter(None, (*cluster.notes, not_read(text, source)))),
        managed=cluster.managed or service_of(hosts, names),
    )


def _taken_for(source: Source, cluster: Cluster, text: str) -> str:
    """Say in one sentence what a text was taken for, and how much of it was read."""
    topics = (*cluster.topics, *cluster.set_aside)
    partitions = counted(sum(len(topic.partitions) for topic in topics), "partition")
    size = f"{counted(len(topics), 'topic')}, {partitions}, " if topics else ""
    size += counted(len(cluster.brokers), "broker")
    layout = LAYOUTS.get(cluster.layout or "")
    version = "" if layout is None else f" of Kafka {layout.span}"
    carries = source.carries
    if cluster.layout is not None and "partitioncount:" not in text.lower():
        # Lines of partitions alone, as grep leaves them.
        carries = re.sub(r", ([\w ]+) and settings", r" and \1; no settings", carries)
    return f"Taken for {source.name}{version} ({size}), which has {carries}."


def _with_racks(cluster: Cluster, racks: dict[int, str | None]) -> Cluster:
    """Set racks; note the brokers that only the racks name (a typo or an idle broker)."""
    result = cluster.with_racks(racks)
    added = sorted(set(result.brokers) - set(cluster.brokers))
    if not added:
        return result
    brokers = f"Broker{'s' if len(added) > 1 else ''} {', '.join(map(str, added))}"
    note = f"{brokers} stood in the racks alone: counted as running, without a replica as yet."
    return replace(result, notes=(*result.notes, note))


def _is_address(source: object) -> bool:
    """Whether the source is an address; an existing file of that name takes precedence."""
    return isinstance(source, str) and looks_like_addresses(source) and not os.path.exists(source)


def _read(source: object) -> tuple[str, str, str]:
    """Return the text, its name for messages, and the file suffix."""
    if not isinstance(source, str | os.PathLike):
        raise InputError(
            f"a cluster is read from a path or a text, not from {type(source).__name__}"
        )
    path_or_text = os.fspath(source)
    if not isinstance(path_or_text, str):
        raise InputError("the path of a cluster file is bytes; give it as text")
    if not path_or_text.strip():
        raise InputError(
            "the cluster (source) is an empty text; give a path or the output of kafka-topics.sh "
            "--describe"
        )
    if "\n" in path_or_text or looks_like_describe(path_or_text):
        text, name, suffix = path_or_text.removeprefix("\ufeff"), "the text", ""
    else:
        name, suffix = path_or_text, Path(path_or_text).suffix.lower()
        text = _decode(_bytes(name), name)
    if len(text) > _MOST_BYTES:
        raise InputError(f"{name}: it has more than {_MOST_BYTES:,} bytes; {_IN_PARTS}")
    if not is_unicode(text):
        raise InputError(f"{name}: this is not Unicode; {_ACCEPTED_SOURCES}")
    if "\0" in text:
        raise InputError(f"{name}: this is not text; {_ACCEPTED_SOURCES}")
    if not text.strip():
        raise InputError(f"{name}: the file is empty; {_ACCEPTED_SOURCES}")
    return text, name, suffix


_MOST_FILES = 100
_ACCEPTED_SOURCES = (
    f"give the output of {DESCRIBE}, or TOML, JSON or Strimzi YAML, or the address of a running "
    "cluster, host:9092"
)
_IN_PARTS = "describe fewer topics at a time (--topic takes a regular expression)"


def _bytes(path: str) -> bytes:
    try:
        return read_input(path, _MOST_BYTES)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; {_ACCEPTED_SOURCES}") from None
    except IsADirectoryError:
        raise InputError(f"{path}: this is a directory; {_ACCEPTED_SOURCES}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        too_large = getattr(error, "errno", None) == errno.EFBIG
        advice = _IN_PARTS if too_large else _ACCEPTED_SOURCES
        raise InputError(f"{shown(path)}: this cannot be read ({reason}); {advice}") from None


def _decode(content: bytes, name: str) -> str:
    """Decode by byte order mark (PowerShell has UTF-16), else UTF-8; what is invalid is prose."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            try:
                return content.decode(encoding)
            except UnicodeDecodeError:
                raise InputError(f"{name}: this is not text; {_ACCEPTED_SOURCES}") from None
    return content.decode("utf-8", errors="replace")
