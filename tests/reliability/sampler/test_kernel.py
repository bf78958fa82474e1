"""The sampler against closed forms, an independent simulation, and the exact chain."""

import math
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest
import simpy

from advisor import Cluster, Config, FailureModel, Workload, evaluate
from advisor.errors import InputError
from advisor.reliability import measure_table
from advisor.reliability.partition.transition_table import partition_transition_table
from advisor.reliability.sampler.block import run_block
from advisor.reliability.sampler.compiled import transition_tables
from advisor.reliability.sampler.compiled.partition_kernel import note_copies
from advisor.reliability.sampler.compiled.transition_tables import tables
from advisor.reliability.sampler.estimators import merge
from advisor.reliability.sampler.plan import Block, cut_into_blocks
from advisor.reliability.sampler.plan_reader import plan_for
from sampled_runs import FAR, MANY_RACKS, QUIET, TRIO, YEAR, card, off_by, sample


@pytest.mark.parametrize("per_year", [0.3, 3.0])
def test_one_replica_follows_the_exponential_law(per_year: float) -> None:
    """RF 1 loses at every destruction: probability, rate and waiting time have closed forms."""
    model = card(broker_destroyed={"per_year": per_year, "hours": 1.0})
    found, rows = sample(Cluster.uniform(1, 1), Config(replication_factor=1), model)
    up = YEAR / per_year
    # Healthy again after each loss, it is at risk again.
    assert [row.first_losses for row in rows] == [row.loss_moments for row in rows]
    assert abs(off_by(found.loss_probability_per_year, -math.expm1(-per_year))) < FAR
    assert abs(off_by(found.mean_years_to_loss, 1.0 / per_year)) < FAR
    assert abs(off_by(found.loss_events_per_year, YEAR / (up + 1.0))) < FAR
    assert abs(off_by(found.write_unavailability, 1.0 / (up + 1.0))) < FAR


def test_what_is_lost_is_what_was_written_since() -> None:
    """A log that is destroyed before it is as old as its retention holds only what it holds."""
    per_year, retention = 100.0, 168.0
    model = card(broker_destroyed={"per_year": per_year, "hours": 1.0})
    found, _ = sample(Cluster.uniform(1, 1), Config(replication_factor=1), model)
    up = YEAR / per_year
    held = 3600.0 * up * -math.expm1(-retention / up)
    assert abs(off_by(found.acked_records_lost_per_year, held * YEAR / (up + 1.0))) < FAR


def test_two_replicas_wait_as_long_as_the_textbook_says() -> None:
    """RF 2, destroyed only: mean time to loss is (3 lambda + mu) / (2 lambda^2)."""
    failing, repair = 2.0 / YEAR, 1.0 / 200.0
    model = card(broker_destroyed={"per_year": 2.0, "hours": 200.0})
    config = Config(replication_factor=2, min_insync_replicas=1)
    found, _ = sample(Cluster.uniform(2, 2), config, model, years=4000)
    hours = (3.0 * failing + repair) / (2.0 * failing**2)
    assert abs(off_by(found.mean_years_to_loss, hours / YEAR)) < FAR


def test_the_shape_of_a_repair_is_honoured() -> None:
    """With Erlang-2 repairs the time down is the same and the records refused are fewer."""
    mean, budget = 0.1, 120.0 / 3600.0
    numbers = {"per_year": 50.0, "minutes": mean * 60.0}
    config = Config(replication_factor=1)
    theta, up = mean / 2.0, YEAR / 50.0
    beyond = {1: mean * math.exp(-budget / mean), 2: math.exp(-budget / theta) * (mean + budget)}
    for shape, excess in beyond.items():
        model = card(broker_crash={**numbers, "shape": shape})
        found, _ = sample(Cluster.uniform(1, 1), config, model)
        assert abs(off_by(found.write_unavailability, mean / (up + mean))) < FAR
        refused = 3600.0 * YEAR * excess / (up + mean)
        assert abs(off_by(found.records_refused_per_year, refused)) < FAR


class Pair:
    """Two replicas with acks=all and min ISR 1, written out by hand for SimPy."""

    def __init__(self, seed: int, crash: tuple[float, float], gone: tuple[float, float]) -> None:
        self.env, self.rng = simpy.Environment(), np.random.default_rng(seed)
        self.state, self.outage = ["well", "well"], [0, 0]
        self.data, self.fresh = [True, True], [True, True]
        self.leader: int | None = 0
        self.last = 0
        self.losses = 0
        for broker in (0, 1):
            self.env.process(self.struck(broker, "crashed", *crash))
            self.env.process(self.struck(broker, "gone", *gone))

    def struck(
        self, broker: int, kind: str, per_year: float, hours: float
    ) -> Iterator[simpy.Event]:
        """Crash or destroy a broker again and again."""
        while True:
            yield self.env.timeout(self.rng.exponential(YEAR / per_year))
            if self.state[broker] == "well" or (kind, self.state[broker]) == ("gone", "crashed"):
                self.state[broker] = kind
                if kind == "gone":
                    self.losses += self.fresh[broker] and not self.fresh[1 - broker]
                    self.data[broker] = self.fresh[broker] = False
                self.rest()
                self.outage[broker] += 1
                self.env.process(self.repaired(broker, self.outage[broker], hours))

    def repaired(self, broker: int, outage: int, hours: float) -> Iterator[simpy.Event]:
        """Bring it back unless something worse came in between."""
        yield self.env.timeout(self.rng.exponential(hours))
        if self.outage[broker] == outage:
            empty = self.state[broker] == "gone"
            self.state[broker] = "well"
            if empty and self.leader is None and self.last == broker:
                # Kafka elects the last leader again, though its disk is new: the rest is cut off.
                self.losses += self.data[1 - broker]
                self.data[1 - broker] = self.fresh[1 - broker] = False
                self.data[broker] = self.fresh[broker] = True
            self.rest()

    def rest(self) -> None:
        """Elect a leader if possible; replicas that are out of service then fall behind."""
        if not any(self.fresh):
            self.fresh = list(self.data)
        self.leader = None
        for broker in (self.last, 1 - self.last):
            well = self.state[broker] == "well"
            if self.leader is None and well and (self.fresh[broker] or not any(self.data)):
                self.leader, follows = broker, self.state[1 - broker] == "well"
                self.data[broker] = self.fresh[broker] = True
                self.data[1 - broker] |= follows
                self.fresh[1 - broker] = follows
                self.last = broker


def test_an_independent_simulation_loses_as_often() -> None:
    """SimPy and hand-written rules for RF 2 count as many losses as the kernel and its tables."""
    crash, gone, years = (20.0, 48.0), (3.0, 96.0), 1500
    pair = Pair(3, crash, gone)
    pair.env.run(until=years * YEAR)
    model = card(
        broker_crash={"per_year": crash[0], "minutes": crash[1] * 60.0},
        broker_destroyed={"per_year": gone[0], "hours": gone[1]},
    )
    config = Config(replication_factor=2, min_insync_replicas=1)
    # There, what is left is elected at once.
    at_once = {"decisions_per_hour": 1e4}
    found, rows = sample(Cluster.uniform(2, 2), config, model, years=3000, changed=at_once)
    mine = found.loss_events_per_year.value
    spread = math.sqrt(pair.losses / years**2 + mine / sum(row.years for row in rows))
    assert pair.losses > 300
    # Losses come in pairs now and then, which at most doubles the variance.
    assert abs(pair.losses / years - mine) < FAR * spread * math.sqrt(2.0)


HOT = {
    "broker_crash": {"per_year": 10.0, "minutes": 600.0},
    "broker_destroyed": {"per_year": 3.0, "hours": 60.0},
    "broker_lag": {"per_year": 40.0, "minutes": 300.0},
    "broker_power": {"per_year": 6.0, "minutes": 400.0},
    "broker_restart": {"per_year": 20.0, "minutes": 240.0},
    "rack_network": {"per_year": 6.0, "minutes": 900.0},
    "rack_power": {"per_year": 4.0, "minutes": 900.0},
    "rack_destroyed": {"per_year": 1.0},
    "cluster_power": {"per_year": 2.0, "minutes": 300.0, "not_returning": 0.2},
    "flush": {"seconds": 30.0},
    "detection": {"seconds": 9.0},
    "election": {"ms_per_leader": 500.0},
}


def hot(*names: str, **more: dict[str, float]) -> FailureModel:
    """Take some of the mechanisms, at rates that make everything happen within years."""
    timing = ("flush", "detection", "election")
    return card(**{**{name: HOT[name] for name in (*names, *timing)}, **more})


PAIR = Config(replication_factor=2, min_insync_replicas=1)
TAIL = Workload(records_per_second=100.0, replication_delay_ms=5.0)
TWO_RACKS = Cluster.uniform(brokers=4, racks=2)
CASES = {
    "crash and destroyed": (MANY_RACKS, TRIO, hot("broker_crash", "broker_destroyed"), QUIET),
    "without ELR": (
        MANY_RACKS,
        TRIO.changed(kafka_version="3.9"),
        hot("broker_crash", "broker_destroyed"),
        QUIET,
    ),
    "ZooKeeper": (
        MANY_RACKS,
        TRIO.changed(kafka_version="2.8"),
        hot("broker_crash", "broker_destroyed"),
        QUIET,
    ),
    "acks=1": (
        MANY_RACKS,
        PAIR.changed(acks=1),
        hot("broker_crash", "broker_destroyed", "broker_lag"),
        TAIL,
    ),
    "unclean": (
        MANY_RACKS,
        PAIR.changed(unclean_leader_election_enable=True),
        hot("broker_crash", "broker_lag"),
        QUIET,
    ),
    "copying": (
        MANY_RACKS,
        TRIO,
        hot("broker_destroyed", "broker_crash", copy={"bytes_per_second": 1000.0}),
        QUIET,
    ),
    "racks": (TWO_RACKS, TRIO, hot("rack_network", "broker_destroyed", "rack_destroyed"), QUIET),
    "rack power": (TWO_RACKS, TRIO, hot("rack_power", "rack_network", "broker_power"), QUIET),
    "cluster power": (MANY_RACKS, PAIR, hot("cluster_power", "broker_destroyed"), QUIET),
    "restarts": (MANY_RACKS, TRIO, hot("broker_restart", "broker_crash"), QUIET),
}


@pytest.mark.parametrize("case", CASES)
def test_the_chain_and_the_sampler_agree(case: str) -> None:
    """One partition, sampled in the whole cluster, agrees with its CTMC."""
    cluster, config, model, load = CASES[case]
    exact = evaluate(cluster, config, model, load)
    found, _ = sample(cluster, config, model, load, years=1500)
    for name in measure_table.names():
        one, truth = found.estimate(name), getattr(exact, name)
        if not one.seen or truth in (0.0, math.inf):
            assert one.low <= truth <= one.high, (name, one, truth)
        elif name == "loss_probability_per_year" and one.value == 1.0:
            assert truth > one.low, (name, one, truth)
        else:
            assert abs(off_by(one, truth)) < FAR, (name, off_by(one, truth), one, truth)


def test_partitions_that_fail_together_lose_together() -> None:
    """A power cut of the whole site takes every partition's newest records in one moment."""
    power = {"per_year": 0.5, "minutes": 60.0, "not_returning": 0.0}
    model = hot(cluster_power=power, broker_destroyed={"hours": 1.0})
    config, load = TRIO, Workload(partitions=12, records_per_second=1.0)
    found, rows = sample(Cluster.uniform(6, 3), config, model, load)
    alone = evaluate(Cluster.uniform(6, 3), config, model)
    assert abs(off_by(found.loss_probability_per_year, alone.loss_probability_per_year)) < FAR
    moments = sum(row.loss_moments for row in rows)
    years = sum(row.hours for row in rows) / YEAR
    events = found.loss_events_per_year.value
    # A twelfth of a record a second, for 30 s until it is on disk; none of them with exp(-2.5).
    losing = 12 * moments / years
    assert events == pytest.approx(losing * -math.expm1(-2.5), rel=1e-12)
    assert found.acked_records_lost_per_year.value == pytest.approx(losing * 2.5, rel=1e-12)


@pytest.mark.parametrize("placement", [((1, 2), (2, 1)), ((1, 2), (1, 2)), ((1, 2), (2, 3))])
def test_a_broker_copies_at_once_what_it_shares_with_the_same_brokers(
    placement: tuple[tuple[int, int], ...],
) -> None:
    """Whichever broker leads, two partitions on two brokers lose as one does, as in the chain.

    On other brokers there is another copy, and what may be lost is no longer the same.
    """
    model = card(
        broker_crash={"per_year": 12.0, "minutes": 60.0},
        broker_destroyed={"per_year": 4.0, "hours": 5.0},
        copy={"bytes_per_second": 2.2e6},
    )
    cluster, load = Cluster.uniform(brokers=3, racks=3), Workload(bytes_per_broker=1e12)
    one = evaluate(cluster, PAIR, model, load, placement=placement[:1])
    both, _ = sample(cluster, PAIR, model, load, years=20_000, placement=placement)
    together = set(placement[0]) == set(placement[1])
    found = both.loss_probability_per_year
    assert (abs(off_by(found, one.loss_probability_per_year)) < FAR) == together
    assert abs(off_by(both.loss_events_per_year, 2.0 * one.loss_events_per_year)) < FAR


def test_a_copy_runs_until_the_last_set_has_left_it() -> None:
    """Two sets on two brokers, in both orders, join and leave their copies one by one."""
    copies = [SimpleNamespace(running=0, place=0, filling=0) for _ in range(2)]
    control = SimpleNamespace(running_copies=0)
    sim = SimpleNamespace(control=[control], copies=copies, copy_of=np.array([[0, 1], [1, 0]]))
    # Set, its slots that copy before and after, and how many sets each copy fills then.
    for s, before, after, running in (
        (0, 0b00, 0b01, [1, 0]),
        (1, 0b00, 0b11, [2, 1]),
        (0, 0b01, 0b10, [1, 2]),
        (1, 0b11, 0b00, [0, 1]),
        (0, 0b10, 0b00, [0, 0]),
    ):
        note_copies.py_func(sim, s, before, after)
        assert [copy.running for copy in copies] == running
        now = [number for number, count in enumerate(running) if count]
        assert sorted(copy.filling for copy in copies[: control.running_copies]) == now


def test_a_block_is_the_same_whenever_it_is_run() -> None:
    """A block's row depends neither on earlier blocks nor on how full the tables are."""
    cluster, config, model, load = CASES["racks"]
    plan = plan_for(cluster, config, model, load)
    first = run_block(plan, Block(7, 3, 50))
    tables.cache_clear()
    partition_transition_table.cache_clear()
    run_block(plan, Block(8, 0, 20))
    assert run_block(plan, Block(7, 3, 50)) == first
    assert run_block(plan, Block(7, 4, 50)).causes != first.causes
    assert run_block(plan, Block(8, 3, 50)).causes != first.causes


def test_a_full_table_forgets_and_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for a few transitions the rules are asked again, and the block stays the same."""
    plan = plan_for(*CASES["racks"])
    first = run_block(plan, Block(7, 3, 50))
    known = tables(plan.constants, plan.replicas, plan.states)
    monkeypatch.setattr(transition_tables, "_MOST_ROWS", 64)
    tables.cache_clear()
    assert run_block(plan, Block(7, 3, 50)) == first
    small = tables(plan.constants, plan.replicas, plan.states)
    held = [(each.table.keys != transition_tables.UNKNOWN).sum() for each in (small, known)]
    assert held[0] <= 64 < held[1]
    tables.cache_clear()


def test_rows_are_merged_in_the_order_of_their_blocks() -> None:
    """Rows in any order give the same result; a missing, doubled or foreign row is refused."""
    cluster, config, model, load = CASES["racks"]
    plan = plan_for(cluster, config, model, load)
    blocks = cut_into_blocks(plan, 40, seed=1)
    rows = [run_block(plan, block) for block in blocks]
    made_of = {"config": config, "model": model, "load": load, "cluster": cluster}
    whole = merge(rows, blocks, plan, **made_of).to_dict()
    assert merge(rows[::-1], blocks, plan, **made_of).to_dict() == whole
    for wrong in (rows[1:], [*rows, rows[0]], [rows[0]._replace(plan="other"), *rows[1:]]):
        with pytest.raises(InputError, match="one of each block"):
            merge(wrong, blocks, plan, **made_of)


def test_causes_add_up_to_their_measure() -> None:
    """Every measure is the sum of its causes, and a destroyed disk is split by what destroys."""
    found, _ = sample(*CASES["racks"])
    for name, parts in found.causes.items():
        assert math.fsum(parts.values()) == pytest.approx(found.estimate(name).value, rel=1e-12)
    assert {"broker.destroyed", "rack.destroyed"} <= set(found.causes["write_unavailability"])
