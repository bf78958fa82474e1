"""Which configurations the twins live through, and in how many ways."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from advisor.protocol.rules.config import Config
from advisor.reliability.partition.effects import Effect
from agreement_cluster import DivergedError
from agreement_twin import Experiment, Twin

# name -> version, controller, eligible leader replicas
RULES: dict[str, tuple[str, str, bool]] = {
    "0.8.2": ("0.8.2", "zookeeper", False),
    "0.10": ("0.10", "zookeeper", False),
    "1.0": ("1.0", "zookeeper", False),
    "2.0": ("2.0", "zookeeper", False),
    "2.1": ("2.1", "zookeeper", False),
    "2.8": ("2.8", "zookeeper", False),
    "3.6": ("3.6", "kraft", False),
    "3.9 with ZooKeeper": ("3.9", "zookeeper", False),
    "3.9": ("3.9", "kraft", False),
    "4.0": ("4.0", "kraft", False),
    "4.0 with ELR": ("4.0", "kraft", True),
    "4.2": ("4.2", "kraft", True),
}
# Those whose in-sync replicas may differ after a loss.
DIVERGING = {"0.8.2", "0.10", "1.0", "2.0"}


def configuration(
    rules: str, replicas: int, min_isr: int, acks: str | int, unclean: bool
) -> Config:
    """A configuration under one of the rule sets."""
    version, mode, elr = RULES[rules]
    return Config(
        kafka_version=version,
        mode=mode,
        eligible_leader_replicas=elr,
        replication_factor=replicas,
        min_insync_replicas=min_isr,
        acks=acks,
        unclean_leader_election_enable=unclean,
    )


@dataclass
class Seen:
    """What a search met.

    Attributes
    ----------
    traces : int
        Traces compared to their end, those that begin others too.
    diverged : int
        Traces that ended with `DivergedError`.
    losses : Counter
        How often the reduction reported each kind of loss.
    """

    traces: int = 0
    diverged: int = 0
    losses: Counter[int] = field(default_factory=Counter)


def exhaust(experiment: Experiment, depth: int, together: bool = False) -> Seen:
    """Every trace of up to ``depth`` events, compared after each.

    Raises
    ------
    AssertionError
        At the first difference.
    """
    seen = Seen()
    _follow(experiment, experiment.start(), depth, together, seen)
    return seen


def _follow(experiment: Experiment, twin: Twin, depth: int, together: bool, seen: Seen) -> None:
    for move in experiment.moves(twin, together) if depth else ():
        seen.traces += 1
        losses = experiment.transition_table.step(twin.number, *move)[1].losses
        seen.losses.update(
            bit
            for bit in (
                Effect.MEDIA_LOSS,
                Effect.PAGE_CACHE_LOSS,
                Effect.ELECTION_LOSS,
                Effect.TAIL,
            )
            if losses & bit
        )
        try:
            following = experiment.step(twin, move)
        except DivergedError:
            seen.diverged += 1
            continue
        _follow(experiment, following, depth - 1, together, seen)


def walk(experiment: Experiment, choices: list[int], together: bool = True) -> Twin:
    """One trace: each choice picks among the moves that are possible then."""
    twin = experiment.start()
    for choice in choices:
        moves = experiment.moves(twin, together)
        try:
            twin = experiment.step(twin, moves[choice % len(moves)])
        except DivergedError:
            break
    return twin
