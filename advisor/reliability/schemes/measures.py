"""A scheme's chain filled with a card's numbers: what one partition loses and refuses.

Each measure has the meaning that it has for Kafka (:mod:`advisor.reliability.measures.solved_chain`), and what
is lost is followed in the same way: gaps along the chain while the retention's clock runs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from advisor.protocol.clients.retry_budget import retry_budget_ms
from advisor.protocol.rules.config import Config
from advisor.reliability.case import possible_mechanisms
from advisor.reliability.common_cause.first_loss import SetLosses
from advisor.reliability.common_cause.outage_class import outage_classes, shared_loss_rates
from advisor.reliability.failures import fault_processes, transition_rates
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR, FailureModel
from advisor.reliability.measures import records_lost
from advisor.reliability.partition.log_levels import GAP_LOST
from advisor.reliability.schemes.quorum_rules import Quorums
from advisor.reliability.schemes.state_space import SchemeChain, explored
from advisor.reliability.solver import first_passage, generator, regenerative
from advisor.reliability.solver.generator import Vector
from advisor.reliability.solver.sojourn_time import SojournTime
from advisor.reliability.statespace.flush_window import flush_window_loss
from advisor.reliability.workload import Workload


class SchemeMeasures(NamedTuple):
    """What one partition loses and refuses.

    Attributes
    ----------
    losses : SetLosses
    amounts : dict of measure to float
        Events and records a year, and shares of time.
    """

    losses: SetLosses
    amounts: dict[str, float]


@dataclass(frozen=True)
class Filled:
    """A chain with numbers in it.

    Attributes
    ----------
    chain : SchemeChain
    per_hour : array, shape (names,)
        Rates of the chain's names.
    rate : array, shape (transitions,)
        Per hour.
    share : array, shape (states,)
        Long-run fraction of time.
    rough : bool
        A few digits are enough.
    unflushed_hours : float
        Of what was written last, not on disk yet and still kept.
    early, early_lost_hours : arrays, shape (transitions,)
        Chance that power loses some of that, though the transition stops the writing; and hours
        of writing lost so, times the chance.
    """

    chain: SchemeChain
    per_hour: Vector
    rate: Vector
    share: Vector
    rough: bool
    unflushed_hours: float
    early: Vector
    early_lost_hours: Vector

    @cached_property
    def flux(self) -> Vector:
        """How often each transition happens, per hour."""
        flux: Vector = self.share[self.chain.source] * self.rate
        return flux

    def flow(
        self, kept: Vector | float = 1.0, absorbed: Vector | None = None
    ) -> generator.Generator:
        """The moves between states, or the part of them that is kept."""
        chain, rate = self.chain, self.rate * kept
        moving = (chain.source != chain.target) & (rate > 0)
        ends = np.zeros(len(chain.keys)) if absorbed is None else absorbed
        return generator.Generator.of(
            chain.source[moving], chain.target[moving], rate[moving], ends
        )


def measures(
    scheme: Quorums,
    pattern: tuple[int, ...],
    config: Config,
    model: FailureModel,
    load: Workload,
    brokers: int,
    brokers_per_rack: float,
    precision: float,
) -> SchemeMeasures:
    """Solve the chain of one replica set.

    Parameters
    ----------
    scheme : Quorums
    pattern : tuple of int
        Rack number of each replica.
    config : Config
        Only its replication factor and how long its producers retry count.
    model, load
    brokers : int
        Of the whole cluster.
    brokers_per_rack : float
        Those whose leaders move together when a rack fails.
    precision : float
        Relative accuracy asked of the solver.
    """
    filled = _filled(scheme, pattern, config, model, load, brokers, precision)
    chain, flux = filled.chain, filled.flux
    dropping = _dropping(filled, scheme)
    some = -math.expm1(-_tail_records(load))
    losing = chain.losses + (1.0 - chain.losses) * some * dropping
    losing = losing + (1.0 - losing) * filled.early
    absorbed = generator.sums(chain.source, filled.rate * losing, len(chain.keys))
    first = first_passage.first_loss(filled.flow(1.0 - losing, absorbed), HOURS_PER_YEAR, precision)
    moves = transition_rates.failovers(model, load, brokers, brokers_per_rack)
    outage = moves.by_name(chain.rate_names)[chain.rate]
    records = load.records_per_hour_per_partition * HOURS_PER_YEAR
    lost = _lost_hours(filled, load.retention_hours) * records
    tail = min(_tail_records(load), load.retained_records_per_partition)
    amounts = {
        "loss_events_per_year": math.fsum((flux * losing).tolist()) * HOURS_PER_YEAR,
        "acked_records_lost_per_year": lost + float(flux @ dropping) * tail * HOURS_PER_YEAR,
        "write_unavailability": math.fsum(filled.share[~chain.writable].tolist())
        + _reactions(filled, outage, writing=True),
        "read_unavailability": math.fsum(filled.share[~chain.readable].tolist())
        + _reactions(filled, outage, writing=False),
        "records_refused_per_year": _refused_share(filled, config, outage) * records,
    }
    events = _by_mechanism(chain, flux * losing * HOURS_PER_YEAR, model)
    own = np.array([key[0] for key in chain.keys])
    shared = shared_loss_rates(
        chain,
        outage_classes(own, np.broadcast_to(pattern, own.shape), began_together=False),
        transition_rates.shares_of_destruction(model),
        filled.per_hour,
        flux * chain.losses,
        flux * (1.0 - chain.losses) * filled.early,
    )
    together = {key: amount * HOURS_PER_YEAR for key, amount in shared.items()}
    dropped = flux * (1.0 - chain.losses) * some * dropping * HOURS_PER_YEAR
    tails = _by_mechanism(chain, dropped, model)
    return SchemeMeasures(SetLosses(first, events, together, tails), amounts)


def _filled(
    scheme: Quorums,
    pattern: tuple[int, ...],
    config: Config,
    model: FailureModel,
    load: Workload,
    brokers: int,
    precision: float,
) -> Filled:
    copying = transition_rates.copy_hours(config, model, load, brokers) > 0
    page_cache = model.get("flush.seconds", 0.0) > 0 and not scheme.flushed
    chain = explored(
        scheme, fault_processes.Setting(pattern, possible_mechanisms(model)), copying, page_cache
    )
    per_hour = np.array(
        [
            transition_rates.rate_per_hour(name, config, model, load, brokers)
            for name in chain.rate_names
        ]
    )
    rate = per_hour[chain.rate] * chain.weight
    unflushed_hours = 0.0 if scheme.flushed else model.get("flush.seconds", 0.0) / 3600.0
    unflushed_hours = min(unflushed_hours, load.retention_hours)
    nobody = np.zeros(len(chain.keys))
    never = np.zeros(len(rate))
    rough = precision > generator.EXACT
    bare = Filled(chain, per_hour, rate, nobody, rough, unflushed_hours, never, never)
    flow = bare.flow()
    stops = chain.writable[chain.source] & ~chain.writes
    unflushed: Vector = np.where(stops, unflushed_hours, 0.0)
    cuts = chain.cuts.per_hour(per_hour, len(chain.keys))[chain.target]
    early, lost_hours = flush_window_loss(cuts, flow.out[chain.target], unflushed)
    share = regenerative.stationary(flow, precision)
    return replace(bare, share=share, early=early, early_lost_hours=lost_hours)


def _tail_records(load: Workload) -> float:
    """How many records only the leader has, on average."""
    return load.records_per_second / load.partitions * load.replication_delay_ms / 1000.0


def _dropping(filled: Filled, scheme: Quorums) -> Vector:
    """Chance of each transition that what only the leader had is lost: once another leads."""
    chain = filled.chain
    going = np.minimum(chain.failed + chain.moved, 1.0)
    return scheme.tail * going * (chain.writable[chain.source] & chain.reads)


def _reactions(filled: Filled, hours: Vector, writing: bool) -> float:
    """Share of time until a new leader serves, where service goes on.

    Parameters
    ----------
    filled : Filled
    hours : array, shape (transitions, 2)
        For each failure of a leader, and for each that hands over.
    writing : bool
        Of writes rather than of reads.
    """
    chain, flux = filled.chain, filled.flux
    before, after = (chain.writable, chain.writes) if writing else (chain.readable, chain.reads)
    changes = flux * (chain.failed * hours[:, 0] + chain.moved * hours[:, 1])
    return math.fsum(changes[before[chain.source] & after].tolist())


def _refused_share(filled: Filled, config: Config, outage: Vector) -> float:
    """Share of the records whose producer gives up, by the distribution of outages.

    No wait comes before an outage as in Kafka, where a laggard has to leave the ISR first: a
    synchronous scheme strikes nobody off and stops when he does, and the others need not wait.
    Where retries are limited, a producer that gets no answer is taken for one that gets an error.
    """
    # A scheme answers its producers, and one that asks for answers tries again.
    answered = config if config.acks != 0 else config.changed(acks=1)
    budget_hours = retry_budget_ms(answered) / 3_600_000.0
    if math.isinf(budget_hours):
        return 0.0
    waits = SojournTime(filled.flow(), ~filled.chain.writable).after(budget_hours)
    beyond = np.maximum(outage - budget_hours, 0.0)
    return float(filled.share @ waits) + _reactions(filled, beyond, writing=True)


def _lost_hours(filled: Filled, most: float) -> float:
    """Hours of writing lost per hour, but for what only a leader had; none twice.

    Nothing older than the retention, ``most``, counts. A partition that loses all loses its whole
    log.
    """
    chain, flux = filled.chain, filled.flux
    gone = (chain.gap_map == GAP_LOST) & ~chain.total[:, None]
    gaps = _gaps(filled).mean_hours(filled.share, most, filled.rough)
    in_gaps = (gaps[chain.source] * gone).sum(axis=1) * filled.rate
    cached = (chain.losses > 0) & ~chain.total & ~gone.any(axis=1)
    whole = float(flux[chain.total].sum()) * _whole_log_hours(filled, most)
    unflushed = float(flux[cached].sum()) * filled.unflushed_hours
    return float(in_gaps.sum()) + whole + unflushed + float(flux @ filled.early_lost_hours)


def _gaps(filled: Filled) -> records_lost.LogGaps:
    """What becomes of gaps. A gap grows while the partition is written.

    One that power leaves, taking some members' page caches, begins with what was in them; that
    they may have been part of an older gap is neglected.
    """
    chain = filled.chain
    return records_lost.LogGaps(
        source=chain.source,
        target=chain.target,
        rate=filled.rate,
        onto=chain.gap_map,
        count=chain.gaps,
        growing=chain.writable,
        begins=chain.unflushed,
        begun=filled.flux * filled.unflushed_hours,
    )


def _whole_log_hours(filled: Filled, retention_hours: float) -> float:
    """Mean hours of writing that a log holds when all of it is lost.

    Such losses come as a Poisson process, as far as the chain starts anew after each.
    """
    chain = filled.chain
    written = float(filled.share @ chain.writable)
    losses = float(filled.flux[chain.total].sum()) / written if written else 0.0
    if losses * retention_hours == 0.0:
        return retention_hours
    return -math.expm1(-losses * retention_hours) / losses


def _by_mechanism(chain: SchemeChain, amounts: Vector, model: FailureModel) -> dict[str, float]:
    """Sums by mechanism; what a new disk sets off is the doing of what destroyed the old one."""
    sums: dict[str, float] = defaultdict(float)
    destruction = transition_rates.shares_of_destruction(model)
    by_rate = generator.sums(chain.rate, amounts, len(chain.rate_names))
    for name, amount in zip(chain.rate_names, by_rate.tolist(), strict=True):
        for mechanism, share in transition_rates.causes_of(name, destruction).items():
            sums[mechanism] += amount * share
    return {mechanism: amount for mechanism, amount in sums.items() if amount > 0}
