"""Read Kubernetes resources: YAML of any number of documents, JSON, and lists of resources.

Scalars are read as text: 3.10 is not 3.1. What operators make of the resources is in `strimzi` and
`confluent_operator`.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import yaml

from advisor.cluster.model import Cluster
from advisor.errors import InputError
from advisor.parsing import MOST_DEPTH, check_document, read_json, without_duplicates

MAX_BROKERS = 10_000
_IMAGE = re.compile(r"/(cp-|confluent-)?[\w-]+:(?:[\d.]+-kafka-|v|[\d.]+-)?(\d{1,2})\.(\d{1,2})\b")
_FIRST_OF_CONFLUENT = 5
_MOST_CHARACTERS = 4_000_000


def resources_in(text: str, source: str) -> Iterator[Mapping[str, Any]]:
    """Yield the resources of a text, also those inside of lists."""
    try:
        documents = _of_json(text) if _is_json(text) else list(documents_in(text))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f":{mark.line + 1}" if mark is not None else ""
        raise InputError(f"{source}{line}: this is not YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        first = str(error).split("\n", 1)[0]
        raise InputError(f"{source}: this is not YAML: {first}") from None
    for document in documents:
        if document in ("", None):
            continue
        items = document.get("items") if isinstance(document, Mapping) else None
        for item in items if isinstance(items, list) else [document]:
            if not isinstance(item, Mapping) or not isinstance(item.get("kind"), str):
                raise InputError(
                    f"{source}: a document has no kind; give the resources Kafka, "
                    "KafkaNodePool and KafkaTopic"
                )
            yield item


def cluster_in(
    text: str,
    source: str,
    api: str,
    read: Callable[[list[Mapping[str, Any]], str], Cluster],
) -> Cluster:
    """Return the cluster of the resources of an API; what `read` refuses names the source."""
    resources = [r for r in resources_in(text, source) if str(r.get("apiVersion")).startswith(api)]
    try:
        cluster = read(resources, source)
        return replace(cluster, notes=(*cluster.notes, *cut_note(text)))
    except InputError as error:
        prefix = "" if str(error).startswith(source) else f"{source}: "
        raise InputError(f"{prefix}{error}") from None


def of_kind(resources: Iterable[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    """Return the resources of a kind."""
    return [resource for resource in resources if resource["kind"] == kind]


def yaml_in(text: str, source: str, aliases: bool = True) -> list[Any]:
    """Return the documents of YAML, as `documents_in` reads them."""
    try:
        return list(documents_in(text, aliases))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"{source}: this is not YAML: {str(error).splitlines()[0]}") from None


def documents_in(text: str, aliases: bool = False) -> Iterator[Any]:
    """Yield the documents with scalars as text; aliases (&, *, <<) could grow without end."""
    if len(text) > _MOST_CHARACTERS:
        raise ValueError(f"it has more than {_MOST_CHARACTERS:,} characters")
    # libyaml is ten times faster.
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    nodes = _Nodes(aliases)
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.AliasEvent):
            nodes.add(nodes.under(event.anchor))
        elif isinstance(event, yaml.DocumentStartEvent | yaml.CollectionStartEvent):
            nodes.open(type(event), getattr(event, "anchor", None))
        elif isinstance(event, yaml.ScalarEvent):
            nodes.add(event.value, event.anchor)
        elif isinstance(event, yaml.CollectionEndEvent):
            nodes.close()
        elif isinstance(event, yaml.DocumentEndEvent):
            document = nodes.end()
            check_document(document)
            yield document


class _Nodes:
    """The values that are open while YAML is read, and those that have an anchor (&)."""

    def __init__(self, aliases: bool) -> None:
        self._aliases = aliases
        self._open: list[tuple[str | None, list[Any]]] = []
        self._anchors: dict[str, Any] = {}
        self._taken = 0

    def under(self, anchor: str | None) -> Any:
        """Return the value that an alias stands for."""
        if not self._aliases or anchor is None or anchor not in self._anchors:
            raise ValueError("an alias (*) is not supported")
        self._taken += len(repr(self._anchors[anchor]))
        if self._taken > _MOST_CHARACTERS:
            raise ValueError("its aliases (*) stand for too much text")
        return self._anchors[anchor]

    def open(self, kind: type, anchor: str | None) -> None:
        """Begin a document, a table or a list."""
        self._open.append((anchor, [kind]))
        if len(self._open) > MOST_DEPTH:
            raise ValueError(f"nested more than {MOST_DEPTH} levels deep")

    def add(self, value: Any, anchor: str | None = None) -> None:
        """Add a value to what is open."""
        self._open[-1][1].append(value)
        if anchor is not None:
            self._anchors[anchor] = value

    def close(self) -> None:
        """End a table or a list."""
        anchor, (kind, *values) = self._open.pop()
        if kind is not yaml.MappingStartEvent:
            self.add(values, anchor)
            return
        keys = values[::2]
        if not all(isinstance(key, str) for key in keys):
            raise ValueError("a key is not a text")
        table = without_duplicates(list(zip(keys, values[1::2], strict=True)))
        self.add(_merged(table) if self._aliases else table, anchor)

    def end(self) -> Any:
        """End a document, and return it."""
        return self._open.pop()[1][1]


def _merged(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table with the keys of those under `<<`, which its own come before."""
    under = table.pop("<<", None)
    for merged_in in under if isinstance(under, list) else [under]:
        if isinstance(merged_in, Mapping):
            table = {**merged_in, **table}
    return table


def cut_note(text: str) -> tuple[str, ...]:
    """Say that the last resource of YAML may be cut, where the last line has no end."""
    if _is_json(text) or "\n" not in text or text.endswith(("\n", "\r")):
        return ()
    return ("The text ends without a line end: its last resource may be cut.",)


def _is_json(text: str) -> bool:
    return text.lstrip().startswith(("{", "["))


def _of_json(text: str) -> list[Any]:
    try:
        document = read_json(text)
    except ValueError as error:
        raise ValueError(f"as JSON, {error}") from None
    texts = _as_text(document)
    return texts if isinstance(texts, list) else [texts]


def _as_text(value: Any) -> Any:
    """Return JSON as YAML is read here: numbers and truth values are texts."""
    if isinstance(value, Mapping):
        return {key: _as_text(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_as_text(inner) for inner in value]
    if isinstance(value, bool):
        return str(value).lower()
    return value if value is None else str(value)


def nested(table: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """Return the mapping under nested keys; empty if absent."""
    for key in keys:
        below = table.get(key)
        if below in (None, ""):
            return {}
        if not isinstance(below, Mapping):
            raise InputError(f"{key} is {reprlib.repr(below)}, which is not a mapping")
        table = below
    return table


def name_of(resource: Mapping[str, Any]) -> str:
    """Return the name of a resource."""
    name = nested(resource, "metadata").get("name")
    if not isinstance(name, str) or not name:
        raise InputError(f"a {resource['kind']} has no metadata.name")
    return name


def settings_of(config: Mapping[str, Any]) -> dict[str, str]:
    """Return settings as texts."""
    return {str(key): str(value) for key, value in config.items()}


def node_count(value: object, where: str) -> int:
    """Return a number of nodes, 0 to `MAX_BROKERS`."""
    count = integer(value, f"{where}: replicas")
    if not 0 <= count <= MAX_BROKERS:
        raise InputError(f"{where}: replicas is {count}; give 0 to {MAX_BROKERS}")
    return count


def version_of_image(image: str) -> str | None:
    """Return the Kafka version of an image's tag, if any; Confluent Platform 7.9 has Kafka 3.9."""
    match = _IMAGE.search(image)
    if match is None:
        return None
    major, minor = int(match[2]), int(match[3])
    if match[1] is None:
        return f"{major}.{minor}" if major < _FIRST_OF_CONFLUENT else None
    if not _FIRST_OF_CONFLUENT <= major <= 9:
        return None
    if major == 6:
        return f"2.{minor + 6}"
    return f"2.{minor}" if major == _FIRST_OF_CONFLUENT else f"{major - 4}.{minor}"


def integer(value: object, where: str) -> int:
    """Return a whole number from its digits."""
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,9}", value):
        return int(value)
    raise InputError(f"{where} is {reprlib.repr(value)}, which is not a whole number")
