"""A loss event loses a record: closed forms, enumeration, a simulation with single records."""

import heapq
import math
import random
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import integrate, stats

from advisor import Cluster, Config, FailureModel, Workload, evaluate, load_model
from advisor.reliability.case import ChainParameters, possible_mechanisms
from advisor.reliability.chain import ctmc
from advisor.reliability.failures.fault_processes import FaultEnvironment
from advisor.reliability.measures import (
    loss_events,
    records_lost,
    replica_set,
    solved_chain,
)
from advisor.reliability.measures.newest_record import gap_sets, some_record
from replica_sets import measure_set, measured, parameters, solution
from sampled_runs import YEAR, card

PER_HOUR = [1e-6, 1e-2, 3.0, 1e3]
UNCLEAN = Config(
    replication_factor=2,
    min_insync_replicas=1,
    unclean_leader_election_enable=True,
    eligible_leader_replicas=False,
)


def load(per_hour: float, **others: float) -> Workload:
    """Return a workload of so many records an hour, without tails."""
    return Workload(
        **{"records_per_second": per_hour / 3600.0, "replication_delay_ms": 0.0, **others}
    )


@pytest.mark.parametrize("per_hour", PER_HOUR)
def test_power_of_the_only_replica_loses_what_is_not_flushed(per_hour: float) -> None:
    """RF 1: a power failure loses a record with probability 1 - exp(-r F).

    The first that does comes after 1/p failures on average, with an outage after all but it.
    """
    per_year, hours, flush = 3.0, 0.1, 0.01
    model = card(
        broker_power={"per_year": per_year, "minutes": 60.0 * hours},
        flush={"seconds": 3600.0 * flush},
    )
    found = evaluate(Cluster.uniform(1, 1), Config(replication_factor=1), model, load(per_hour))
    loses, up = -math.expm1(-per_hour * flush), 1.0 / (1.0 + per_year * hours / YEAR)
    events = per_year * up * loses
    assert found.loss_events_per_year == pytest.approx(events, rel=1e-12)
    assert found.acked_records_lost_per_year == pytest.approx(
        per_year * up * per_hour * flush, rel=1e-12
    )
    years = (1.0 / loses) / per_year + (1.0 / loses - 1.0) * hours / YEAR
    assert found.mean_years_to_loss == pytest.approx(years, rel=1e-12)
    assert found.loss_probability_per_year == pytest.approx(-math.expm1(-events), rel=1e-4)


@pytest.mark.parametrize("per_hour", PER_HOUR)
def test_a_destroyed_log_is_empty_if_nothing_came_since_the_last_time(per_hour: float) -> None:
    """RF 1 destroyed at rate a: 1 - E[exp(-r min(T, R))] for an exponential time T of rate a."""
    rate, kept = 100.0 / YEAR, 30.0
    model = card(broker_destroyed={"per_year": 100.0, "hours": 1e-6})
    found = evaluate(
        Cluster.uniform(1, 1),
        Config(replication_factor=1),
        model,
        load(per_hour, retention_hours=kept),
    )
    some, _ = integrate.quad(
        lambda t: rate * math.exp(-rate * t) * -math.expm1(-per_hour * t),
        0.0,
        kept,
        epsabs=0.0,
        points=[min(k / per_hour, kept) for k in (1.0, 10.0)],
    )
    some += math.exp(-rate * kept) * -math.expm1(-per_hour * kept)
    assert found.loss_events_per_year == pytest.approx(100.0 * some, rel=1e-7)


@pytest.mark.parametrize("kept", [0.05, 0.5, 100.0])
@pytest.mark.parametrize("per_hour", PER_HOUR)
def test_an_unclean_leader_drops_a_gap_with_a_record(per_hour: float, kept: float) -> None:
    """RF 2, crash rate a, repair rate m: a gap is written for an exponential time of q = a + m.

    A record is in it with probability r / (r + q), and one within the retention R with that times
    1 - exp(-(r + q) R). Terms of order a / m are neglected.
    """
    per_year, minutes = 1.0, 60.0
    model = card(broker_crash={"per_year": per_year, "minutes": minutes})
    found = evaluate(Cluster.uniform(2, 2), UNCLEAN, model, load(per_hour, retention_hours=kept))
    every = evaluate(Cluster.uniform(2, 2), UNCLEAN, model, load(1e12, record_bytes=1))
    ends = per_year / YEAR + 60.0 / minutes
    some = per_hour / (per_hour + ends) * -math.expm1(-(per_hour + ends) * kept)
    share = found.loss_events_per_year / every.loss_events_per_year
    assert share == pytest.approx(some, rel=5.0 * per_year / YEAR * minutes / 60.0)
    # Losses come one by one: a second follows one loss in (a + m) / a.
    first = found.mean_years_to_loss * found.loss_events_per_year
    assert first == pytest.approx(1.0, rel=5.0 * per_year / YEAR * minutes / 60.0)


def test_partitions_on_the_same_replicas_lose_together() -> None:
    """RF 1, 12 partitions on two brokers: of six on a broker any may lose the only record."""
    per_year, per_hour, flush = 1.0, 3.0, 0.01
    model = card(broker_power={"per_year": per_year, "minutes": 1e-3}, flush={"seconds": 36.0})
    found = evaluate(
        Cluster.uniform(2, 2), Config(replication_factor=1), model, load(per_hour, partitions=12)
    )
    one, six = (-math.expm1(-per_hour * n / 12.0 * flush) for n in (1, 6))
    assert found.loss_events_per_year == pytest.approx(12.0 * per_year * one, rel=1e-7)
    anywhere = -math.expm1(-2.0 * per_year * six)
    assert found.loss_probability_per_year == pytest.approx(anywhere, rel=1e-6)


def test_no_year_is_said_to_lose_more_often_than_it_loses_records() -> None:
    """A year that starts healthy loses more than an average one, of which an eleventh is outage."""
    model = card(broker_power={"per_year": 1.0, "minutes": YEAR * 6.0}, flush={"seconds": 36.0})
    found = evaluate(Cluster.uniform(1, 1), Config(replication_factor=1), model, load(1e-6))
    records = 1e-6 * 0.01 / 1.1
    assert found.acked_records_lost_per_year == pytest.approx(records, rel=1e-6)
    assert found.loss_probability_per_year == found.acked_records_lost_per_year
    truth = found.loss_probability_per_year + found.error_bounds["loss_probability_per_year"]
    # Failures at rate 1 and repairs at rate 10, in a year that starts healthy.
    failures = 10.0 / 11.0 + (1.0 / 11.0) ** 2 * -math.expm1(-11.0)
    assert truth == pytest.approx(1e-6 * 0.01 * failures, rel=1e-6)
    assert sum(found.causes["loss_probability_per_year"].values()) == pytest.approx(records)


def test_the_error_of_an_inversion_makes_no_loss_without_records(monkeypatch) -> None:
    """Even if too much is found in gaps, no transition loses more often than it loses records."""
    model = card(broker_crash={"per_year": 10.0, "minutes": 60.0})
    config = ChainParameters.read(UNCLEAN, model, load(1e-6), 2)
    right = replica_set.solve((0, 1), config)
    monkeypatch.setattr(loss_events, "some_record", lambda *given: 2.0 * some_record(*given))
    wrong = solved_chain.SolvedChain(right.chain, config)
    events, records = (float(wrong.flux @ wrong.chances.events), wrong._records_lost().sum())
    assert events == pytest.approx(records, rel=1e-5)
    assert events <= records


@pytest.mark.parametrize("unflushed", [0.0, 0.4])
def test_the_newest_record_is_followed_through_every_set_of_gaps(unflushed: float) -> None:
    """Random chains in which gaps begin, move, merge and end, expanded by what each gap holds.

    The expansion has a flag for each gap: a record or none.
    """
    rng = np.random.default_rng(2)
    count = np.array([0, 1, 3, 2, 1, 2])
    source, target = rng.integers(0, len(count), (2, 80))
    source[: len(count)], target[: len(count)] = range(len(count)), np.roll(range(len(count)), 1)
    width, per_hour = 3, 0.7
    gap_map = np.where(rng.random((80, width)) < 0.8, rng.integers(0, 3, (80, width)), -1)
    # A gap of the source exists, and so does what it becomes.
    exists = np.arange(width) < count[source][:, None]
    gap_map = np.where(exists & (gap_map < count[target][:, None]), gap_map, -1)
    growing = np.array([False, True, True, False, True, True])
    rate = rng.random(80)
    opens = (rng.random(80) < 0.3) & (count[target] > 0) & (unflushed > 0.0)
    begins = -math.expm1(-per_hour * unflushed)
    states = [(s, held) for s, n in enumerate(count) for held in range(1 << n)]
    index = {state: number for number, state in enumerate(states)}
    flow = np.zeros((len(states),) * 2)
    for (state, held), number in index.items():
        if growing[state] and not held & 1:
            flow[number, index[state, held | 1]] += per_hour
        for move in np.flatnonzero(source == state):
            onto = [gap_map[move, g] for g in range(count[state]) if held >> g & 1]
            after = sum(1 << g for g in set(onto) if g >= 0)
            new = begins if opens[move] else 0.0
            flow[number, index[target[move], after]] += rate[move] * (1.0 - new)
            flow[number, index[target[move], after | (1 if new else 0)]] += rate[move] * new
    flow -= np.diag(flow.sum(axis=1))
    balance = np.vstack([flow.T, np.ones(len(states))])
    whole = np.linalg.lstsq(balance, np.append(np.zeros(len(states)), 1.0), rcond=None)[0]
    pi = np.array([sum(whole[index[s, h]] for h in range(1 << n)) for s, n in enumerate(count)])
    lost = rng.integers(0, 8, 80) & ((1 << count[source]) - 1)
    lost[gap_map.max(axis=1) >= 0] = 0
    assert np.count_nonzero(lost) > 5
    sets = gap_sets(source, target, gap_map, count, lost)
    hours = np.where(opens, pi[source] * rate * unflushed, 0.0)
    gaps = records_lost.LogGaps(
        *(source, target, rate[:, None], gap_map, count, growing),
        np.zeros(80, dtype=np.int64),
        hours[:, None],
    )
    asked = per_hour, np.array([unflushed]), records_lost.on_one_card(1e9)
    found = some_record(gaps, sets, pi[:, None], *asked)[:, 0]
    assert len(found) > 8
    for number, (state, members) in enumerate(zip(sets.state, sets.members, strict=True)):
        there = [h for h in range(1 << count[state]) if h & members]
        exact = sum(whole[index[state, held]] for held in there)
        assert found[number] == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("one", [0.0, 1e-9, 0.2, 0.7, 30.0, 1e4])
@pytest.mark.parametrize("other", [0.0, 1e-9, 0.2, 0.7, 30.0, 1e4])
def test_the_second_difference_is_that_of_eighty_digits(one: float, other: float) -> None:
    """The sum of exp at each point over its distances to the others; equal points drawn apart."""
    with localcontext() as digits:
        digits.prec = 80
        points = [Decimal(x) + k * Decimal("1e-25") for k, x in enumerate((0.0, -one, -other))]
        exact = sum(x.exp() / math.prod(x - y for y in points if y is not x) for x in points)
    found = loss_events.second_difference(np.array([one]), np.array([other]))[0]
    assert found == pytest.approx(float(exact), rel=1e-13)


class Pair:
    """Two replicas, crashes only, unclean elections: the numbers of the records in each log."""

    def __init__(self, seed: int, crash: float, hours: float, per_hour: float) -> None:
        self.random, self.crash, self.hours = random.Random(seed), crash, hours
        self.per_hour = per_hour
        self.up, self.logs = [True, True], [set[int](), set[int]()]
        self.leader: int | None = 0
        self.events = self.records = self.numbers = 0

    def run(self, years: int) -> tuple[int, int, int]:
        """Return the years with a loss, losses, and records lost; each year starts healthy."""
        losing = 0
        for _ in range(years):
            self.up, self.logs, self.leader = [True, True], [set(), set()], 0
            before = self.events
            self._year()
            losing += self.events > before
        return losing, self.events, self.records

    def _year(self) -> None:
        draw = self.random.expovariate
        due = [(draw(self.crash), broker) for broker in (0, 1)]
        heapq.heapify(due)
        while due[0][0] < YEAR:
            now, broker = heapq.heappop(due)
            self.up[broker] = not self.up[broker]
            ends = self.crash if self.up[broker] else 1.0 / self.hours
            heapq.heappush(due, (now + draw(ends), broker))
            if self.up[broker] and self.leader is None:
                self._lead(broker)
            elif self.up[broker]:
                self.logs = [set(), set()]
            elif self.leader == broker:
                self.leader = 1 - broker if self.up[1 - broker] else None
            # What both have cannot be lost by crashes, so only what one takes alone is drawn.
            if self.leader is not None and not all(self.up):
                self._take(self.logs[self.leader], now, min(due[0][0], YEAR))

    def _take(self, log: set[int], now: float, until: float) -> None:
        """Write the records that arrive at one replica."""
        while (now := now + self.random.expovariate(self.per_hour)) < until:
            self.numbers += 1
            log.add(self.numbers)

    def _lead(self, broker: int) -> None:
        """Follow a leader that is back first: the other's records are cut off when it returns."""
        lost = self.logs[1 - broker] - self.logs[broker]
        self.events += bool(lost)
        self.records += len(lost)
        self.logs[1 - broker] -= lost
        self.leader = broker


@pytest.mark.parametrize("per_hour", [0.01, 0.2, 2.0])
def test_a_simulation_of_single_records_loses_as_often(per_hour: float) -> None:
    """Written by hand, with a set of record numbers for each log."""
    per_year, hours, years = 40.0, 5.0, 2500
    losing, events, records = Pair(4, per_year / YEAR, hours, per_hour).run(years)
    model = card(broker_crash={"per_year": per_year, "minutes": 60.0 * hours})
    found = evaluate(Cluster.uniform(2, 2), UNCLEAN, model, load(per_hour))
    law = stats.binom(years, found.loss_probability_per_year)
    assert 1e-4 < law.cdf(losing) < 1.0 - 1e-4
    assert events > 20
    # One loss hardly makes another likelier.
    assert abs(events / years / found.loss_events_per_year - 1.0) < 4.0 / math.sqrt(events)
    most = 4.0 * math.sqrt(2.0 / events + 1.0 / records)
    assert abs(records / years / found.acked_records_lost_per_year - 1.0) < most


def drawn(rng: random.Random) -> FailureModel:
    """Return a card of some mechanisms, with rates and durations over orders of magnitude."""
    found = {"flush": {"seconds": rng.choice([0.0, 5.0, 600.0])}, "detection": {"seconds": 9.0}}
    for name in ("broker_crash", "broker_power", "broker_lag", "rack_power", "cluster_power"):
        if rng.random() < 0.6:
            rates = {"per_year": 10.0 ** rng.uniform(-2, 1.5), "minutes": 10.0 ** rng.uniform(0, 2)}
            found[name] = rates | ({"not_returning": 0.05} if name == "cluster_power" else {})
    found["broker_destroyed"] = {
        "per_year": 10.0 ** rng.uniform(-2, 1),
        "hours": 10.0 ** rng.uniform(-1, 2),
    }
    return card(**found)


@pytest.mark.parametrize("seed", range(80))
def test_every_loss_event_loses_a_record(seed: int) -> None:
    """Whatever settings, cards and loads: P(loss) and losses never exceed records."""
    rng = random.Random(seed)
    replicas = rng.choice([1, 2, 2, 3, 3, 3, 4]) if seed % 8 else 4
    config = Config(
        kafka_version=rng.choice(["4.2", "3.9"]),
        replication_factor=replicas,
        min_insync_replicas=rng.randint(1, replicas),
        acks=rng.choice(["all", "all", 1, 0]),
        unclean_leader_election_enable=rng.random() < 0.4,
    )
    asked = Workload(
        partitions=rng.choice([1, 2, 12]),
        records_per_second=10.0 ** rng.uniform(-8, 6),
        retention_hours=10.0 ** rng.uniform(-3, 3),
        record_bytes=100,
    )
    model = drawn(rng) if seed % 3 else load_model(rng.choice(["three_az_cloud", "two_az"]))
    cluster = Cluster.uniform(replicas + rng.randint(0, 2), racks=min(3, replicas))
    found = evaluate(cluster, config, model, asked)
    records = found.acked_records_lost_per_year
    if config.acks == 0:
        records = found.records_dropped_per_year
    assert found.loss_events_per_year <= records * (1.0 + 1e-12)
    assert found.loss_probability_per_year <= records


@pytest.mark.parametrize(("acks", "unclean"), [("all", False), ("all", True), (1, False)])
def test_the_truncation_error_holds_where_few_records_are_at_risk(acks, unclean) -> None:
    """Truncated and whole chain of RF 3 differ by no more than is stated, at any record rate."""
    model = card(
        broker_power={"per_year": 0.2, "minutes": 10.0},
        broker_destroyed={"per_year": 0.02, "hours": 2.0},
        broker_crash={"per_year": 2.0, "minutes": 10.0},
        broker_lag={"per_year": 2.0, "minutes": 10.0},
        rack_power={"per_year": 0.05, "minutes": 180.0},
        flush={"seconds": 35.0},
    )
    config = Config(
        replication_factor=3,
        min_insync_replicas=1,
        acks=acks,
        unclean_leader_election_enable=unclean,
    )
    constants = parameters(config, model, load(1.0), 3).constants
    structure = ctmc.whole_structure(
        constants, FaultEnvironment((0, 0, 1), possible_mechanisms(model))
    )
    for per_hour in (1e-4, 1.0):
        few = load(per_hour)
        kept = measure_set((0, 0, 1), config, model, few, 3)
        assert kept.states < structure.states
        every = measured(solution(structure, config, model, few, 3), config, model)
        for name in ("loss_events_per_year", "acked_records_lost_per_year"):
            one, other = (math.fsum(each.causes[name].values()) for each in (kept, every))
            assert abs(one - other) <= kept.errors[name] + every.errors[name]


def test_zookeeper_and_kraft_lose_alike_where_two_racks_lose_power_in_turn() -> None:
    """The first rack has two of three servers: whoever returns with it decides what is left.

    A loss is a rack that loses power while the other is away, 2 x 2 x 2 / 8760 a year: its
    unflushed records were on nobody else, or those of the other were only on it, and the last
    broker to be removed from the ISR is taken to be the emptiest.
    """
    power = {"per_year": 2.0, "minutes": 60.0}
    card = FailureModel.from_dict(
        {"rack": {"power": power}, "flush": {"seconds": 54.0}, "detection": {"seconds": 18.0}}
    )
    load = Workload(partitions=1, records_per_second=10.0, retention_hours=24.0)
    found = [
        evaluate(
            Cluster.uniform(6, 2),
            Config(kafka_version="3.9", mode=mode, replication_factor=3, min_insync_replicas=1),
            card,
            load,
        ).loss_events_per_year
        for mode in ("kraft", "zookeeper")
    ]
    assert found[0] == pytest.approx(2.0 * 2.0 * 2.0 / 8760.0, rel=0.02)
    assert found[1] == pytest.approx(found[0], rel=1e-6)
