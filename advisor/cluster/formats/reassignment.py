"""Parse what `kafka-reassign-partitions.sh` prints: the two plans of `--generate`.

The tool prints the current assignment and a proposed one, both as JSON
(`org.apache.kafka.tools.reassign.ReassignPartitionsCommand`, and its predecessor in Scala). The
current one is the cluster. `--execute` prints the assignment that was current before, and
`--verify` and `--list` no assignment of all partitions: these are declined.
"""

from __future__ import annotations

import re

from advisor.cluster.formats.json_format import parse_json
from advisor.cluster.formats.literals import LiteralError, read_literal
from advisor.cluster.model import Cluster
from advisor.errors import InputError
from advisor.formatting import counted

_CURRENT = re.compile(r"Current partition replica assignment\s*")
_PROPOSED = re.compile(r"Proposed partition reassignment configuration\s*")
_EXECUTED = re.compile(
    r"Save this to use as the --reassignment-json-file|Successfully started (partition )?reassign"
)


def is_generated_plan(beginning: str) -> bool:
    """Whether a text is what `--generate` prints, and not what `--execute` prints."""
    return _CURRENT.search(beginning) is not None and not _EXECUTED.search(beginning)


def parse_generated_plan(text: str, source: str) -> Cluster:
    """Return the cluster as the current assignment of `--generate` has it.

    source: name for error messages, usually the file name.
    Raises InputError if the current assignment is cut or not valid.
    """
    current = _plan_after(_CURRENT, text, source)
    if current is None:
        raise InputError(f"{source}: the current assignment is not in it; run --generate again")
    note = "The proposed assignment is not in it."
    proposed = _plan_after(_PROPOSED, text, source)
    if proposed is not None:
        replicas = _replicas(proposed)
        moves = sum(replicas.get(key, own) != own for key, own in _replicas(current).items())
        note = (
            f"The current assignment was read; the proposed one would change "
            f"{counted(moves, 'partition')} of {len(_replicas(current))} and was not taken into "
            "account."
        )
    brokers = {*current.brokers, *(proposed.brokers if proposed is not None else ())}
    return Cluster(
        brokers=dict.fromkeys(sorted(brokers)),
        topics=current.topics,
        source=source,
        notes=(*current.notes, note),
    )


def _plan_after(heading: re.Pattern[str], text: str, source: str) -> Cluster | None:
    """Return the assignment below a heading; None if the heading is not there."""
    begin = heading.search(text)
    if begin is None:
        return None
    line = text.count("\n", 0, begin.end()) + 1
    start = text.find("{", begin.end())
    try:
        if start < 0 or text[begin.end() : start].strip():
            raise LiteralError("it is not there", begin.end())
        _, end = read_literal(text, start)
    except LiteralError as error:
        raise InputError(
            f"{source}:{line}: the assignment that should follow here cannot be read ({error}); "
            "run --generate again and save all of it"
        ) from None
    return parse_json(text[start:end], f"{source}:{line}")


def _replicas(cluster: Cluster) -> dict[tuple[str, int], tuple[int, ...]]:
    return {
        (topic.name, partition.index): partition.replicas
        for topic in cluster.topics
        for partition in topic.partitions
    }
