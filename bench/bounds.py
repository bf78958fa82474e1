"""How near the errors of the exact model come to their stated bounds.

Each setting is solved as `evaluate` does, and on the CTMC of all its states; with unclean elections
on the CTMC without lumping. A line for each setting gives the largest share of its bound that an
error takes: above one the bound does not hold, and the exit code is 1. At the end come the tightest
setting of each measure and those whose losses have no certain digit. Run by hand; it takes half an
hour, or less with ``--part 1/2`` and ``--part 2/2`` side by side.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import islice, product
from typing import Any, NamedTuple
from unittest.mock import patch

from advisor import Config, FailureModel, Workload, load_model
from advisor.reliability.case import ChainParameters, IsrStalls, ProducerTimeouts
from advisor.reliability.chain import ctmc
from advisor.reliability.failures import fault_processes
from advisor.reliability.measures import replica_set
from advisor.reliability.measures.solved_chain import SolvedChain
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.transition_table import partition_transition_table
from advisor.reliability.statespace import lumping, state_graph

LOAD = Workload(partitions=1, records_per_second=100.0, record_bytes=512)
DRAWS = 6
# Mechanisms that are few enough for all states of four to six replicas.
FEW = {
    "crashes and networks": ("broker.crash", "broker.destroyed", "rack.network"),
    "power": ("broker.power", "broker.destroyed", "rack.power"),
    "restarts": ("broker.crash", "broker.restart", "broker.destroyed", "rack.destroyed"),
    "lag and the site": ("broker.lag", "broker.destroyed", "cluster.power"),
}
Patterns = tuple[tuple[int, ...], ...]
PATTERNS: Patterns = (
    (0, 0, 1, 2),
    (0, 0, 1, 1),
    (0, 1, 2, 3),
    (0, 0, 1, 1, 2),
    (0, 1, 2, 3, 4),
)
SIX = (0, 0, 1, 1, 2, 2)
# Where the order decides, chains that merge nothing are small enough up to four replicas.
_SLOT_CLASSES = lumping.slot_classes
ORDERED: Patterns = ((0, 1, 2), (0, 1, 1), (0, 0, 1), (0, 0, 0))
ORDERED_FEW: Patterns = ((0, 1, 2, 3), (0, 0, 1, 1), (0, 1, 2, 0))


class Setting(NamedTuple):
    """One question: a card by its name, racks of the replicas, and what is configured."""

    card: str
    pattern: tuple[int, ...]
    config: Config


def part_of(card: FailureModel, mechanisms: tuple[str, ...]) -> FailureModel:
    """The card with these mechanisms alone."""
    kept: dict[str, Any] = {}
    for table, content in card.to_dict().items():
        if table not in ("broker", "rack", "cluster"):
            kept[table] = content
            continue
        some = {name: one for name, one in content.items() if f"{table}.{name}" in mechanisms}
        kept |= {table: some} if some else {}
    return FailureModel.from_dict(kept)


def cards() -> dict[str, FailureModel]:
    """Parts of the cards, and cards as they are and drawn from their ranges."""
    found = {}
    for name in ("three_az_cloud", "bare_metal_racks"):
        card = load_model(name)
        for what, mechanisms in FEW.items():
            if set(mechanisms) <= set(card.mechanisms):
                found[f"{name}, {what}"] = part_of(card, mechanisms)
        found |= {f"{name} {number}": one for number, one in enumerate(card.draws(DRAWS, seed=0))}
        found[name] = card
    return found


def settings(names: list[str]) -> Iterator[Setting]:
    """The grid: all mechanisms for three replicas, few for more, all for four without ELR."""
    acknowledged: tuple[str | int, ...] = ("all", 1)
    for name, least, elr, acks in product(names, (1, 2, 3), (True, False), acknowledged):
        few = ", " in name
        for pattern in ORDERED_FEW if few else ORDERED:
            yield Setting(name, pattern, _config(len(pattern), least, elr, acks, unclean=True))
        patterns = PATTERNS if few else ((0, 1, 2), (0, 0, 1))
        for pattern in patterns:
            # With ELR and acks=1 beyond min ISR 1 states are a million.
            if acks == "all" or len(pattern) == 3:
                yield Setting(name, pattern, _config(len(pattern), least, elr, acks))
        if acks == "all" and not elr and least < 3:
            if name in ("three_az_cloud", "bare_metal_racks"):
                yield Setting(name, (0, 0, 1, 2), _config(4, least, elr, acks))
            if few and "site" not in name:
                yield Setting(name, SIX, _config(6, least, elr, acks))


def _config(replicas: int, least: int, elr: bool, acks: str | int, unclean: bool = False) -> Config:
    return Config(
        kafka_version="4.2",
        replication_factor=replicas,
        min_insync_replicas=least,
        acks=acks,
        eligible_leader_replicas=elr,
        unclean_leader_election_enable=unclean,
    )


def _kept_apart(
    constants: ChainConstants, environment: fault_processes.FaultEnvironment
) -> tuple[int, ...]:
    """As `lumping.slot_classes`, but for unclean elections every slot is its own class."""
    if constants.policy.unclean:
        return tuple(range(len(environment.racks)))
    return _SLOT_CLASSES(constants, environment)


def _forget() -> None:
    for cache in (
        partition_transition_table,
        state_graph.graph,
        ctmc.structure,
        replica_set.measure,
        replica_set.solve,
    ):
        cache.cache_clear()


def judged(setting: Setting, card: FailureModel) -> dict[str, tuple[float, float, float]]:
    """For each measure: what `evaluate` says, its error, and its stated bound."""
    _forget()
    pattern, config = setting.pattern, setting.config
    numbers = ChainParameters.read(config, card, LOAD, len(pattern))
    producers = ProducerTimeouts.of(config), IsrStalls.of(config, card)
    kept = replica_set.measure(pattern, numbers, *producers)
    if numbers.constants.policy.unclean:
        _forget()
    with patch.object(lumping, "slot_classes", _kept_apart):
        structure = ctmc.whole_structure(numbers.constants, numbers.environment(pattern))
        whole = SolvedChain(structure, numbers).measures(*producers)
    if config.acks == 0:
        whole = whole.dropped
    values = {name: sum(causes.values()) for name, causes in kept.causes.items()}
    exact = {name: sum(causes.values()) for name, causes in whole.causes.items()}
    return {
        name: (values[name], abs(values[name] - exact[name]), bound)
        for name, bound in kept.errors.items()
        if bound > 0.0
    }


def main() -> None:
    """Print the share of every setting, the tightest ones, and those without a certain digit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="1/1", help="I/N: every Nth setting from the Ith on")
    first, step = map(int, parser.parse_args().part.split("/"))
    known, vague = cards(), []
    tightest = dict[str, tuple[float, str]]()
    asked = list(islice(settings(list(known)), first - 1, None, step))
    for number, setting in enumerate(asked, 1):
        found = judged(setting, known[setting.card])
        shares = {name: error / bound for name, (_, error, bound) in found.items()}
        worst = max(shares.values(), default=0.0)
        exceeded = " EXCEEDED" if worst > 1.0 else ""
        print(f"{number}/{len(asked)} {worst:.2f}{exceeded} {_said(setting)}", flush=True)
        for name, share in shares.items():
            tightest[name] = max(tightest.get(name, (0.0, "")), (share, _said(setting)))
        value, _, bound = found.get("loss_events_per_year", (1.0, 0.0, 0.0))
        if value <= 2.0 * bound:
            vague.append(f"{_said(setting)}: {value:.1e} a year, off by {bound:.1e} at most")
    print("The largest share of its bound that an error takes:")
    for name, (share, where) in tightest.items():
        print(f"  {name}: {share:.2f} ({where})")
    print(f"Losses without a certain digit: {len(vague)}", *vague, sep="\n  ")
    sys.exit(any(share > 1.0 for share, _ in tightest.values()))


def _said(setting: Setting) -> str:
    config = setting.config
    elr = "with ELR" if config.eligible_leader_replicas else "without ELR"
    unclean = ", unclean elections" if config.unclean_leader_election_enable else ""
    return (
        f"{setting.card}, racks {setting.pattern}, min ISR {config.min_insync_replicas}, "
        f"acks={config.acks}, {elr}{unclean}"
    )


if __name__ == "__main__":
    main()
