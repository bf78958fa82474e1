"""The commands play (run a scenario) and explore (search for a shortest loss)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from advisor.cli.terminal import emit, say
from advisor.errors import InputError
from advisor.files import replace_file
from advisor.protocol.rules.versions import NEWEST_KNOWN
from advisor.protocol.scenario.language import GRAMMAR, MEANINGS
from advisor.rendering import terminal_text

EXIT_DIFFERENCES = 1
# Enough for two faults of any kind on three replicas: about two minutes and 2 GB.
DEFAULT_MAX_STATES = 1_500_000
_REPORT_INTERVAL_S = 5.0


def _verbs() -> str:
    """Return the commands of a scenario for --help, each with what it does."""
    lines = [f"{usage}\n    {MEANINGS[verb]}" for verb, (usage, _, _) in GRAMMAR.items()]
    begin = "A scenario has one command a line:"
    end = (
        "Each waits until the cluster is quiet, unless it begins with '!'. Lines that begin with "
        "'>' are what the command above must print; '#' begins a comment."
    )
    return f"{begin}\n\n\b\n" + "\n".join(lines) + f"\n\n{end}"


@click.command(short_help="Run a scenario file and print its transcript.", epilog=_verbs())
@click.argument("scenario")
@click.option("--rewrite", is_flag=True, help="Fill the file's expectations in.")
@click.option(
    "--engine", default="model", show_default=True, help="model, or kafka for real brokers."
)
def play(scenario: str, rewrite: bool, engine: str) -> int:
    """Run a scenario file and print its transcript; exit code 1 where an expectation differs.

    With --engine kafka real brokers are started for it, which takes a minute, Java and Maven;
    progress is printed on stderr.
    """
    from advisor.kafka_lab.engines import play as run
    from advisor.protocol.scenario.player import rewrite as rewritten

    path = Path(scenario)
    if path.is_dir():
        raise InputError(f"{scenario} is a folder; name a scenario file in it.")
    if not path.is_file():
        raise InputError(f"{scenario}: there is no such scenario file.")
    if rewrite:
        if engine != "model":
            raise InputError("--rewrite fills in what the model prints; leave --engine out")
        with _errors_with_file_name(scenario):
            # The user's own lines, which are written back as they are.
            replace_file(path, rewritten(path).encode())
        return 0
    with _errors_with_file_name(scenario):
        played = run(path, engine, say)
    emit(terminal_text(played.transcript), newline=False)
    for line, expected, printed in played.differences:
        say(f"{scenario}:{line}: expected {expected!r}, printed {printed!r}")
    return 0 if played.ok else EXIT_DIFFERENCES


@click.command()
@click.option("--rf", type=int, default=3, show_default=True, help="replication.factor.")
@click.option("--min-isr", type=int, default=2, show_default=True, help="min.insync.replicas.")
@click.option("--acks", default="all", show_default=True, help="all, 1 or 0.")
@click.option("--unclean/--clean", default=None, help="unclean.leader.election.enable.")
@click.option("--kafka-version", default=NEWEST_KNOWN, show_default=True)
@click.option("--faults", type=int, default=2, show_default=True, help="Faults to try at most.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    help="kill, stop, power-off, destroy, isolate or lag; repeatable, all unless given.",
)
@click.option(
    "--writes", type=int, help="Records to write at most; one more than faults unless given."
)
@click.option(
    "--max-states",
    type=int,
    default=DEFAULT_MAX_STATES,
    show_default=True,
    help="Stop after this many states; a million take about 1.4 GB.",
)
def explore(
    faults: int, kinds: tuple[str, ...], writes: int | None, max_states: int, **options: Any
) -> int:
    """Search for the fewest faults that lose an acknowledged record.

    Prints a scenario that `advisor play` runs, or how far the search looked without finding one;
    progress, and at the end the number of faults, is printed on stderr.
    """
    from advisor.protocol.exploration.shortest_loss import FAULTS, Loss, shortest_loss
    from advisor.protocol.rules.config import Config

    config = Config(
        kafka_version=options["kafka_version"],
        replication_factor=options["rf"],
        min_insync_replicas=options["min_isr"],
        acks=options["acks"],
        unclean_leader_election_enable=options["unclean"],
    )
    result = shortest_loss(
        config,
        faults=faults,
        kinds=kinds or FAULTS,
        writes=writes,
        max_states=max_states,
        progress=_Progress(),
    )
    if isinstance(result, Loss):
        emit(terminal_text(result.scenario), newline=False)
        say(f"{str(result).splitlines()[0]}.")
    else:
        emit(terminal_text(str(result)))
    return 0


@contextmanager
def _errors_with_file_name(scenario: str) -> Iterator[None]:
    """Prefix an error that names a line with the file name."""
    try:
        yield
    except InputError as error:
        if not str(error).startswith("line "):
            raise
        raise InputError(f"{scenario}, {error}") from None


class _Progress:
    """Prints the progress of a search on stderr, every few seconds."""

    def __init__(self) -> None:
        self._next_s = time.monotonic() + _REPORT_INTERVAL_S

    def __call__(self, faults: int, states: int) -> None:
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + _REPORT_INTERVAL_S
            count = f"{faults} fault{'' if faults == 1 else 's'}"
            say(f"{states:,} states seen, now with {count}; no loss so far.")
