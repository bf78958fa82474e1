"""The sampler against closed forms, an independent simulation, and the exact chain."""

import math
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from advisor import Cluster, Config, FailureModel, Workload, evaluate
from advisor.errors import AdvisorError, InputError
from advisor.reliability.automaton import automaton
from advisor.reliability.result import MEASURES
from advisor.reliability.sampled import Estimate, Sampled
from advisor.reliability.sampler import Row, run_block
from advisor.reliability.sampler_merge import Ratio, merge, rate, share, waiting_time
from advisor.reliability.sampler_plan import Block, Plan, cut_into_blocks, plan_for
from advisor.reliability.sampler_tables import tables

YEAR = 8760.0
# The chance that one right comparison out of a hundred strays further is 1 in 160.
FAR = 4.0
MANY_RACKS = Cluster.uniform(brokers=6, racks=6)
QUIET = Workload(records_per_second=1.0, replication_delay_ms=0.0)


def sample(
    cluster: Cluster,
    config: Config,
    model: FailureModel,
    load: Workload = QUIET,
    years: int = 2000,
    **options: object,
) -> tuple[Sampled, list[Row]]:
    """Run all blocks here and merge them."""
    plan = plan_for(cluster, config, model, load, **options)
    blocks = cut_into_blocks(plan, years, seed=1)
    rows = [run_block(plan, block) for block in blocks]
    merged = merge(rows, blocks, plan, config=config, model=model, load=load, cluster=cluster)
    return merged, rows


def off_by(found: Estimate, exact: float) -> float:
    """How many standard errors lie between; from the interval on a logarithmic scale."""
    error = (math.log(found.high) - math.log(found.low)) / (2.0 * 1.96)
    return (math.log(found.value) - math.log(exact)) / error


def card(**mechanisms: dict[str, float]) -> FailureModel:
    """Build a card from `broker_crash={...}` and the like."""
    tables_: dict[str, dict[str, object]] = {}
    for name, numbers in mechanisms.items():
        section, _, key = name.partition("_")
        if key:
            tables_.setdefault(section, {})[key] = numbers
        else:
            tables_[section] = dict(numbers)
    return FailureModel.from_dict(tables_)


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
        self.state, self.spell = ["well", "well"], [0, 0]
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
                self.spell[broker] += 1
                self.env.process(self.repaired(broker, self.spell[broker], hours))

    def repaired(self, broker: int, spell: int, hours: float) -> Iterator[simpy.Event]:
        """Bring it back unless something worse came in between."""
        yield self.env.timeout(self.rng.exponential(hours))
        if self.spell[broker] == spell:
            empty = self.state[broker] == "gone"
            self.state[broker] = "well"
            if empty and self.leader is None and self.last == broker:
                # Kafka elects the last leader again, though its disk is new: the rest is cut off.
                self.losses += self.data[1 - broker]
                self.data[1 - broker] = self.fresh[1 - broker] = False
                self.data[broker] = self.fresh[broker] = True
            self.rest()

    def rest(self) -> None:
        """Lead if someone can; whoever is away then falls behind."""
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
    found, rows = sample(Cluster.uniform(2, 2), config, model, years=3000)
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
TRIO = Config(replication_factor=3, min_insync_replicas=2)
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
    """One partition, sampled in the whole cluster, does what its chain computes."""
    cluster, config, model, load = CASES[case]
    exact = evaluate(cluster, config, model, load)
    found, _ = sample(cluster, config, model, load, years=1500)
    for name in MEASURES:
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
    assert events == pytest.approx(12 * moments / years, rel=1e-12)
    # A twelfth of a record a second, for 30 s until it is on disk.
    assert found.acked_records_lost_per_year.value == pytest.approx(events * 2.5, rel=1e-12)


def test_a_block_is_the_same_whenever_it_is_run() -> None:
    """Neither what was run before nor how full the tables are changes a block's row."""
    cluster, config, model, load = CASES["racks"]
    plan = plan_for(cluster, config, model, load)
    first = run_block(plan, Block(7, 3, 50))
    tables.cache_clear()
    automaton.cache_clear()
    run_block(plan, Block(8, 0, 20))
    assert run_block(plan, Block(7, 3, 50)) == first
    assert run_block(plan, Block(7, 4, 50)).causes != first.causes
    assert run_block(plan, Block(8, 3, 50)).causes != first.causes


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


def test_what_is_never_seen_is_bounded() -> None:
    """Without a loss there is an upper bound, a lower one for the wait, and never 0."""
    found, _ = sample(
        Cluster.uniform(6, 3), TRIO, card(broker_crash={"per_year": 1.0, "minutes": 1.0}), years=50
    )
    chance, wait = found.loss_probability_per_year, found.mean_years_to_loss
    assert (chance.low, chance.value) == (0.0, chance.high)
    # 50 years without an event leave 5 % at about 3 in 50 a year.
    assert chance.high == pytest.approx(3.0 / 50.0, rel=0.04)
    assert wait.low == wait.value == pytest.approx(50.0 / 3.0, rel=0.01)
    assert wait.high == math.inf
    assert not chance.seen
    assert "no acknowledged record was lost in 50 simulated years" in repr(found)


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_the_interval_of_a_share_covers_it(n: int) -> None:
    """Whatever the true share, at least 95 % of all samples' intervals hold it."""
    intervals = [share(k, n) for k in range(n + 1)]
    for true in np.linspace(0.001, 0.999, 97):
        covered = [e.low <= true <= e.high for e in intervals]
        chance = stats.binom.pmf(np.arange(n + 1), n, true)
        # Nothing seen gives a one-sided bound at 95 %; the other side has 2.5 %.
        assert chance[covered].sum() >= 0.95 - 0.025 - 1e-9


@given(st.lists(st.integers(0, 1), min_size=1, max_size=29).filter(any))
def test_few_equal_events_have_the_poisson_interval(counts: list[int]) -> None:
    """Where all amounts are 1, Fay and Feuer's interval is the exact one of a Poisson count."""
    total = sum(counts)
    found = rate(Ratio(counts, [1.0] * len(counts), 1.0), len(counts))
    assert found.low * len(counts) == pytest.approx(stats.chi2.ppf(0.025, 2 * total) / 2)
    assert found.high * len(counts) == pytest.approx(stats.chi2.ppf(0.975, 2 * total + 2) / 2)


def test_many_blocks_have_the_interval_of_their_scatter() -> None:
    """Where most blocks saw something, 95 % of intervals hold the truth: 9 in 10 at the least."""
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(300):
        found = rate(Ratio(rng.gamma(2.0, 1.5, 40).tolist(), [1.0] * 40, 1.0), 40)
        held += found.low <= 3.0 <= found.high
    # Binomial with 300 and 0.95: fewer than 270 has a chance below 1e-3.
    assert held >= 270


def test_a_wait_is_the_inverse_of_a_rate() -> None:
    """Mean years to loss and its interval are those of the rate, turned over."""
    found = waiting_time([0, 1, 2], [YEAR, YEAR, 2 * YEAR], 4)
    turned = rate(Ratio([0, 1, 2], [1.0, 1.0, 2.0], 1.0), 4)
    assert found.value == pytest.approx(4.0 / 3.0)
    assert (found.low, found.high) == pytest.approx((1 / turned.high, 1 / turned.low))


@given(st.integers(1, 10**9), st.integers(0, 2**64 - 1))
def test_blocks_share_the_years_out(years: int, seed: int) -> None:
    """Blocks are numbered from 0, differ by a year at most and add up to the years asked for."""
    blocks = cut_into_blocks(_PLAN, years, seed)
    assert sum(block.years for block in blocks) == years
    assert max(block.years for block in blocks) - min(block.years for block in blocks) <= 1
    assert all(two.index == one.index + 1 for one, two in pairwise(blocks))
    assert len(blocks) >= min(years, 32)


_PLAN: Plan = plan_for(
    MANY_RACKS, TRIO, card(broker_crash={"per_year": 1e-3, "minutes": 1.0}), QUIET
)


@pytest.mark.parametrize("years", [0, -1, 2.5, math.nan, math.inf, True, "many"])
def test_years_are_a_whole_number(years: Any) -> None:
    """Anything but a whole number of years from 1 is refused in one sentence."""
    with pytest.raises(InputError, match="whole number of simulated years"):
        cut_into_blocks(_PLAN, years, 7)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, True])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    """Anything but a whole number below 2**64 is refused in one sentence."""
    with pytest.raises(InputError, match="seed="):
        cut_into_blocks(_PLAN, 10, seed)


def test_a_cluster_that_is_never_well_is_refused() -> None:
    """Where outages never end all at once there is no healthy year to start from."""
    model = card(broker_crash={"per_year": 1000.0, "minutes": 60000.0})
    plan = plan_for(Cluster.uniform(12, 3), TRIO, model, QUIET)
    with pytest.raises(AdvisorError, match="outside this model"):
        run_block(plan, Block(7, 0, 1))


def test_the_kernel_compiles_where_nothing_can_be_written() -> None:
    """With neither the source's nor the user's directory writable, each process compiles."""
    code = (
        "import tempfile\n"
        "def refuse(*args, **options): raise OSError('read-only file system')\n"
        "tempfile.TemporaryFile = refuse\n"
        "from advisor.reliability.sampler_kernel import run\n"
        "print(run.stats.cache_path)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "None"


def test_importing_the_sampler_does_not_import_numba() -> None:
    """Only running a block loads the compiler."""
    code = "import sys, advisor.reliability.sampler; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


def test_a_loss_too_rare_to_be_seen_is_allowed_for():
    """Losing both copies is most of the mean and not in 300 years; the interval leaves room."""
    card = FailureModel.from_dict(
        {
            "broker": {
                "crash": {"per_year": 20.0, "minutes": 60.0},
                "power": {"per_year": 5.0, "minutes": 60.0},
                "destroyed": {"per_year": 0.01, "hours": 10.0},
            },
            "flush": {"seconds": 1.0},
        }
    )
    at = Cluster(brokers={1: "a", 2: "b"})
    config = Config(replication_factor=2, min_insync_replicas=1)
    found, _ = sample(at, config, card, years=300)
    exact = evaluate(at, config, card, QUIET).acked_records_lost_per_year
    few = found.acked_records_lost_per_year
    assert few.value < 0.1 * exact
    assert few.low <= exact <= few.high
    assert "unseen" in few.method
