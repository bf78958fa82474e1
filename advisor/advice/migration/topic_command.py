"""The command that makes one topic's change: one text to paste into a shell, files included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor.advice.migration.moves import Move
from advisor.advice.migration.plan import make_plan
from advisor.advice.migration.planned_changes import PlannedChanges, batches
from advisor.advice.situation import Situation
from advisor.decision import Action

# What is longer belongs into the plan's own files.
_MOST_CHARACTERS = 10_000
_END = "END_OF_FILE"


def topic_command(
    situation: Situation, action: Action, moves: tuple[Move, ...], bytes_per_second: int
) -> str:
    """Return the lines that make a topic's change; "" where nothing may be run, or too much.

    moves: the replicas that it moves.
    bytes_per_second: replication throttle per broker.
    """
    if action.set_to is None or action.held_back or not situation.topics:
        return ""
    config, cluster, name = action.set_to.config, situation.cluster, action.topic
    planned = PlannedChanges.to(cluster, {name: config}, moves)
    plan = make_plan(cluster, config, situation.load, bytes_per_second, [name], planned)
    if not (planned.changes or planned.moves):
        return ""
    shell = plan.shell
    lines = [
        *(line.text for line in shell.variables),
        *_files(plan.files, planned.moves),
        *(line.text for line in shell.steps),
    ]
    command = "\n".join(lines) + "\n"
    return command if len(command) <= _MOST_CHARACTERS else ""


def _files(texts: dict[str, str], moves: Sequence[Move]) -> Iterator[str]:
    """Yield what writes the files that the lines read."""
    for batch in batches(moves) if moves else ():
        for name in (batch.there, batch.election):
            yield f"cat > {name} <<'{_END}'\n{texts[name].rstrip()}\n{_END}"
