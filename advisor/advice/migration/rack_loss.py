"""The runbook of a lost rack: lower min.insync.replicas by hand, and raise it again.

For settings that keep every acknowledged record when a rack goes, but refuse writes until it is
back, as all do that keep records over two racks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.advice.migration.planned_changes import MIN_ISR
from advisor.advice.migration.tools import Tools
from advisor.advice.tolerance import largest_share, survival
from advisor.cluster import Topic
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.versions import parse_version
from advisor.rendering import (
    FileText,
    ShellScript,
    shell,
    shell_comment,
    shell_lines,
    shell_quoted,
    shell_script,
)

FILE = "rack-loss.sh"


def rack_loss_files(
    config: Config,
    brokers: Mapping[int, str | None],
    tools: Tools,
    topics: Sequence[Topic],
) -> dict[str, FileText]:
    """Return `rack-loss.sh`, or nothing if losing a rack needs no command or none helps.

    brokers: broker id to rack.
    topics: as they are after the change; none for a topic still to be made.
    """
    factor = config.replication_factor or 1
    if parse_version(config.kafka_version) < (0, 9):  # kafka-configs.sh came later
        return {}
    share = largest_share(brokers, factor, str(config.mode))
    if share is None or len(set(brokers.values())) < 2 or share >= factor:
        return {}
    after = survival(share, config)
    if after.writable or not after.without_loss:
        return {}
    names = [topic.name for topic in topics if _is_like(topic, config)]
    if topics and not names:
        return {}
    return {FILE: _script(config, factor - share, tools, names or ["my-topic"])}


def _is_like(topic: Topic, config: Config) -> bool:
    same = topic.replication_factor == config.replication_factor
    return same and topic.min_insync_replicas == config.min_insync_replicas


def _script(config: Config, left: int, tools: Tools, names: Sequence[str]) -> ShellScript:
    usual = str(config.effective_min_insync_replicas)
    lower = tools.alter_topic(shell('"$topic"'), {MIN_ISR: str(left)})
    higher = tools.alter_topic(shell('"$topic"'), {MIN_ISR: usual})
    copies = "one copy" if left == 1 else f"{left} copies"
    cleared = (
        (
            f"Changing {MIN_ISR} clears the eligible leader replicas (KIP-966): do it only while",
            "the partitions have a leader.",
        )
        if config.eligible_leader_replicas
        else ()
    )
    comments = [
        f"Runbook: a rack is lost. With RF {config.replication_factor} and min ISR {usual} no "
        "acknowledged record is lost, but",
        "acks=all writes are refused until the rack is back.",
        f"  {FILE} lower    writes go on, acknowledged with {copies} instead of {usual}",
        f"  {FILE} restore  once the rack is back, and every replica is in sync",
        "Be sure that the rack is down, and not only cut off from you. The controllers that are",
        "left must be a majority.",
        *cleared,
    ]
    lines = [
        shell("#!/bin/sh"),
        *map(shell_comment, comments),
        shell("set -e"),
        *tools.variables,
        # Quoted whatever they are: a list of names is one word.
        shell("topics={}", shell_quoted(" ".join(names))),
        *shell_lines(_LOWER_OR_RESTORE, lower, tools.out_of_sync(), higher),
    ]
    return shell_script(lines)


_LOWER_OR_RESTORE = """\
case "${{1:-}}" in
  lower) for topic in $topics; do {}; done ;;
  restore)
    until lagging=$({}) && [ -z "$lagging" ]; do
      sleep 10
    done
    for topic in $topics; do {}; done ;;
  *) echo 'usage: rack-loss.sh lower, or rack-loss.sh restore' >&2; exit 2 ;;
esac
"""
