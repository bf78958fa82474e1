"""From cluster, configuration, card and workload to a plan: every input read once, as numbers."""

from __future__ import annotations

from dataclasses import replace

from advisor.protocol.rules.config import Config
from advisor.reliability.calendar import Calendar
from advisor.reliability.common_cause.placement import Brokers, place
from advisor.reliability.failures import transition_rates
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.fault_processes import Replicas
from advisor.reliability.failures.mechanisms import BrokerEvent, Mechanism, table
from advisor.reliability.failures.times.card_times import CREWS_PATH, DURATION, LIFETIME
from advisor.reliability.failures.transition_rates import DECISION_HOURS, racks_at_once
from advisor.reliability.sampler.plan import FailureParameters, Lifetime, Plan, RollingRestarts
from advisor.reliability.workload import Workload


def plan_for(
    cluster: Brokers,
    config: Config,
    model: FailureModel,
    load: Workload,
    placement: tuple[Replicas, ...] | None = None,
) -> Plan:
    """Make a plan of the arguments of `evaluate`; raise InputError if Kafka could not place it."""
    # Workers read plans and make none; they need not import scipy.
    from advisor.reliability.case import IsrStalls, ProducerTimeouts, chain_constants

    assert config.mode is not None
    model = model.under(config.mode)
    placed = place(cluster, config, load.partitions, placement, racks_at_once(model))
    if placement is not None:
        load = replace(load, partitions=placed.partitions)
    brokers = list(placed.rack_of)
    racks = list(dict.fromkeys((*placed.rack_of.values(), *placed.voters)))
    copy_hours = transition_rates.copy_hours(config, model, load, placed.brokers)
    patience, waits = ProducerTimeouts.of(config), IsrStalls.of(config, model)
    return Plan(
        constants=chain_constants(config, model, load, placed.brokers),
        racks=tuple(racks.index(placed.rack_of[broker]) for broker in brokers),
        sets=tuple(tuple(map(brokers.index, replicas)) for replicas, _ in placed.sets),
        partitions=tuple(count for _, count in placed.sets),
        mechanisms=_mechanisms(model, placed.brokers),
        rolling=None if model.calendar is None else _rolling(model.calendar, model, cluster),
        traffic=load.hourly_traffic,
        copies_per_hour=1.0 / copy_hours if copy_hours else 0.0,
        records_per_hour=load.records_per_hour_per_partition,
        retained_records=load.retained_records_per_partition,
        unflushed_hours=model.get("flush.seconds", 0.0) / 3600.0,
        tail_hours=load.replication_delay_ms / 3_600_000.0,
        failovers=transition_rates.failovers(
            config, model, load, placed.brokers, placed.brokers_per_rack
        ),
        budget_hours=patience.outage_hours,
        waiting_budget_hours=patience.waiting_hours,
        delivery_hours=patience.delivery_hours,
        stall_hours=(waits.dead_hours, waits.hung_hours),
        lag_hours=waits.lag_hours,
        voters=tuple(placed.voters.get(rack, 0) for rack in racks) if placed.voters else (),
        decisions_per_hour=1.0 / hours if (hours := model.get(DECISION_HOURS, 0.0)) else 0.0,
        lifetimes=_lifetimes(model, placed.brokers),
        crews=int(model.get(CREWS_PATH, 0.0)),
        needed_for=model.needed_for,
    )


def _lifetimes(model: FailureModel, brokers: int) -> dict[str, Lifetime]:
    lifetimes = {}
    for name in model.mechanisms:
        distribution, entry = model.times.get(f"{name}.{LIFETIME}"), table()[name]
        if distribution is not None and model.rate_per_hour(name) > 0.0:
            hours = 1.0 / model.rate_per_hour(name)
            if entry.exclusive:
                hours = transition_rates.hours_between_turns(entry, model, brokers)
            lifetimes[name] = Lifetime(hours, distribution)
    return lifetimes


def _mechanisms(model: FailureModel, brokers: int) -> dict[str, FailureParameters]:
    mechanisms = {}
    for kind in table().kinds:
        happens = kind.name in model.mechanisms
        if not happens and not _lasts(kind, model):
            continue
        rate = 0.0
        if happens and (model.calendar is None or kind.name != _planned().name):
            rate = transition_rates.strikes_per_hour(kind, model, brokers, brokers)
        chances = (kind.share, kind.every, kind.spreads, kind.overlaps, kind.dies)
        share, every, spreads, overlaps, dies = (model.get(kind.path(c), 0.0) for c in chances)
        hard = model.get(kind.path(kind.hard), 1.0)
        # Where another mechanism's duration counts, it has none of its own.
        hours = model.outage_hours(kind) if kind.condition else 0.0
        shape = model.shape(kind.name)
        duration = model.times.get(f"{kind.name}.{DURATION}")
        mechanisms[kind.full_name] = FailureParameters(
            rate, hours, shape, share, spreads, overlaps, dies, duration, hard, every
        )
    return mechanisms


def _planned() -> Mechanism:
    """The mechanism of planned restarts."""
    (entry,) = table().with_effect(BrokerEvent.STOP)
    return entry


def _rolling(calendar: Calendar, model: FailureModel, cluster: Brokers) -> RollingRestarts:
    entry = _planned()
    (hard,) = entry.variants
    hours = model.repair_hours(entry.name)
    return RollingRestarts(
        batches=_batches(calendar, cluster),
        waits=calendar.wait_for_isr,
        period_hours=calendar.period_hours,
        hour_of_week=calendar.hour_of_week,
        mean_hours=hours,
        up_hours=hours * (1.0 - calendar.catch_up_share(60.0 * hours)),
        pause_hours=calendar.pause_minutes / 60.0,
        unclean=model.get(entry.path(hard.chance), 0.0),
    )


def _batches(calendar: Calendar, cluster: Brokers) -> tuple[tuple[int, ...], ...]:
    """Brokers by their place in the cluster: rack by rack, as `rolling-restart.sh` goes, or by id.

    Brokers whose rack is not known form one group, and come first.
    """
    place = {broker: number for number, broker in enumerate(cluster.brokers)}
    by_rack = calendar.order == "rack"
    rack_of = {broker: (rack or "") if by_rack else "" for broker, rack in cluster.brokers.items()}
    groups: dict[str, list[int]] = {}
    for broker in sorted(place, key=lambda broker_id: (rack_of[broker_id], broker_id)):
        groups.setdefault(rack_of[broker], []).append(place[broker])
    size = calendar.at_once
    return tuple(
        tuple(group[start : start + size])
        for group in groups.values()
        for start in range(0, len(group), size)
    )


def _lasts(kind: Mechanism, model: FailureModel) -> bool:
    """Whether other mechanisms may leave brokers in its condition.

    The brokers of a destroyed rack take the hours of one that is destroyed alone, even if none is.
    """
    dying = (
        transition_rates.death_chance(entry, death, model)
        for entry in table().entries
        for death in entry.deaths
        if death.outage == kind.name and not kind.variant
    )
    return any(chance > 0.0 for chance in dying) or kind.duration[0] in model.quantities
