"""Repair crews and clocks of times that are not exponential, in the sampler."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from advisor import Cluster, Config, FailureModel, Workload
from advisor.reliability.sampler.block import run_block
from advisor.reliability.sampler.compiled import fault_kernel
from advisor.reliability.sampler.plan import Block, Plan
from advisor.reliability.sampler.plan_reader import plan_for
from renewal_oracle import Crowd, lognormal, weibull
from sampled_runs import FAR, MANY_RACKS, QUIET, TRIO, YEAR, card, off_by, sample

ALONE = Config(replication_factor=1)
CRASH = {"per_year": 10.0, "minutes": 300.0}
SHAPE_1 = {"distribution": "weibull", "shape": 1.0}


def mttl(failing: float, repairs: tuple[float, float]) -> float:
    """Mean hours until all three of three replicas are out: a birth-death chain.

    The mean time from k to k + 1 out is T0 = 1 / 3f, T1 = (1 + r1 T0) / 2f, T2 = (1 + r2 T1) / f.
    """
    none = 1.0 / (3.0 * failing)
    one = (1.0 + repairs[0] * none) / (2.0 * failing)
    return none + one + (1.0 + repairs[1] * one) / failing


@pytest.mark.parametrize("crews", [1, 2, 3])
def test_one_technician_doubles_the_loss(crews: int) -> None:
    """Three replicas destroyed and replaced, by one at a time or all at once: closed form."""
    failing, repair = 2.0 / YEAR, 1.0 / 200.0
    model = FailureModel.from_dict(
        {"broker": {"destroyed": {"per_year": 2.0, "hours": 200.0}}, "repair": {"crews": crews}}
    )
    config = Config(replication_factor=3, min_insync_replicas=1)
    found, _ = sample(Cluster.uniform(3, 3), config, model, years=20_000)
    several = min(crews, 2)
    truth = mttl(failing, (repair, several * repair)) / YEAR
    assert abs(off_by(found.mean_years_to_loss, truth)) < FAR
    other = mttl(failing, (repair, (3 - several) * repair)) / YEAR
    assert abs(off_by(found.mean_years_to_loss, other)) > 2.0 * FAR
    assert 1.8 < max(truth, other) / min(truth, other) < 2.0


def test_crews_repair_one_after_the_other() -> None:
    """A fire takes three brokers, each an hour to replace: down for 1, 2 and 3 hours."""
    replaced = {"hours": 1.0, "duration": {"distribution": "fixed"}}
    for crews, mean in ((1, 2.0), (2, 4.0 / 3.0), (3, 1.0)):
        model = FailureModel.from_dict(
            {
                "cluster": {"destroyed": {"per_year": 20.0}},
                "broker": {"destroyed": replaced},
                "repair": {"crews": crews, "needed_for": ["broker.destroyed"]},
            }
        )
        config, load = ALONE, Workload(partitions=3, records_per_second=1.0)
        found, _ = sample(Cluster.uniform(3, 3), config, model, load, years=500)
        # Fires of those that stand still come while others wait: a second order in rate x hours.
        truth = 20.0 * mean / YEAR
        assert found.write_unavailability.value == pytest.approx(truth, rel=0.03)


@pytest.mark.parametrize("crews", [1, 2])
def test_who_waits_longest_is_next(crews: int) -> None:
    """Hosts that fail, and are destroyed while they wait or are repaired: a heap and a queue.

    A destroyed broker gives its crew back and joins the queue anew.
    """
    power, gone = (60.0, 6.0), (150.0, 12.0)
    shares = []
    for seed in range(30):
        ways = [
            (weibull(1.5, power[0]), lognormal(0.8, power[1]), 0),
            (weibull(0.8, gone[0]), lognormal(0.5, gone[1]), 1),
        ]
        crowd, down, before = Crowd(100 + seed, 4, ways, crews), 0.0, 0.0
        while crowd.now < YEAR:
            out = sum(way is not None for way in crowd.out)
            crowd.next_event()
            down += out * (crowd.now - before)
            before = crowd.now
        shares.append(down / crowd.now / 4.0)
    tables = {
        "power": {
            "per_year": YEAR / power[0],
            "minutes": 60.0 * power[1],
            "lifetime": {"distribution": "weibull", "shape": 1.5},
            "duration": {"distribution": "lognormal", "sigma": 0.8},
        },
        "destroyed": {
            "per_year": YEAR / gone[0],
            "hours": gone[1],
            "lifetime": {"distribution": "weibull", "shape": 0.8},
            "duration": {"distribution": "lognormal", "sigma": 0.5},
        },
    }
    model = FailureModel.from_dict({"broker": tables, "repair": {"crews": crews}})
    load = Workload(partitions=4, records_per_second=1.0)
    found, _ = sample(Cluster.uniform(4, 4), ALONE, model, load, years=40)
    one = found.write_unavailability
    error = math.hypot(
        np.std(shares) / math.sqrt(len(shares) - 1), (one.high - one.low) / (2.0 * 1.96)
    )
    assert abs(one.value - np.mean(shares)) < FAR * error


def test_a_clock_runs_from_the_end_of_the_outage_that_it_caused() -> None:
    """Fixed lives and fixed outages repeat exactly: neither more nor fewer than the years hold."""
    fixed = {"distribution": "fixed"}
    crash = {"per_year": 4.0, "minutes": 6000.0, "lifetime": fixed, "duration": fixed}
    found, rows = sample(Cluster.uniform(3, 3), ALONE, card(broker_crash=crash), years=64)
    hours = sum(row.hours for row in rows)
    period = YEAR / 4.0 + 100.0
    # The partition's broker; each block begins anywhere in a period.
    ended = sum(sum(row.outages) for row in rows)
    assert abs(ended - hours / period) <= len(rows)
    assert off_by(found.write_unavailability, 100.0 / period) < FAR


def test_restarts_that_are_due_wait_for_each_other() -> None:
    """Every broker restarts as often as the card says, never two at a time, even in step."""
    restart = {
        "per_year": 52.0,
        "minutes": 600.0,
        "lifetime": {"distribution": "fixed"},
        "duration": {"distribution": "fixed"},
    }
    model = card(broker_restart=restart)
    cluster, config = Cluster.uniform(6, 6), Config(replication_factor=6, min_insync_replicas=6)
    found, _ = sample(cluster, config, model, years=40)
    # Any of six is out: shares add up if they never overlap. Waiting takes 1 % of the time.
    alone = 6.0 * 52.0 * 10.0 / YEAR
    assert found.write_unavailability.value == pytest.approx(alone, rel=0.03)
    four = Config(replication_factor=6, min_insync_replicas=5)
    found, _ = sample(cluster, four, model, years=40)
    assert not found.write_unavailability.seen


def test_a_mechanism_has_one_clock_for_all_its_kinds() -> None:
    """Restarts that end hard are a share of the restarts, whatever the time between them."""
    restart = {
        "per_year": 50.0,
        "minutes": 60.0,
        "unclean": 0.3,
        "unclean_minutes": 600.0,
        "lifetime": {"distribution": "weibull", "shape": 2.0},
    }
    found, _ = sample(Cluster.uniform(1, 1), ALONE, card(broker_restart=restart), years=500)
    mean = 0.7 * 1.0 + 0.3 * 10.0
    # The card's rate leaves room for the clean ones; those that end hard come on top.
    period = YEAR / 50.0 - 1.0 + mean
    assert abs(off_by(found.write_unavailability, mean / period)) < FAR


def test_exponential_said_or_not_gives_the_same_bytes() -> None:
    """The plan is the same, and so is every row; a clock of shape 1 draws other numbers."""
    plain = {"distribution": "exponential"}
    said = card(broker_crash=CRASH | {"lifetime": plain, "duration": plain})
    gamma = {"distribution": "gamma", "shape": 2.0}
    plans = [
        plan_for(MANY_RACKS, TRIO, model, QUIET)
        for model in (
            card(broker_crash=CRASH),
            said,
            card(broker_crash=CRASH | {"shape": 2.0}),
            card(broker_crash=CRASH | {"duration": gamma}),
            card(broker_crash=CRASH | {"lifetime": SHAPE_1}),
        )
    ]
    rows = [run_block(plan, Block(7, 0, 50)) for plan in plans]
    assert rows[0] == rows[1]
    assert rows[2] == rows[3]
    assert len({row.causes for row in rows}) == 3
    assert [bool(plan.lifetimes) for plan in plans] == [False, False, False, False, True]
    assert [plan.clumping for plan in plans] == [None, None, None, None, 1.0]


def test_plans_differ_where_their_times_do() -> None:
    """A checkpoint of one distribution or crew is not that of another."""
    cards = [
        card(broker_crash=CRASH, **more)
        for more in ({}, {"repair": {"crews": 1}}, {"repair": {"crews": 2}})
    ]
    cards += [
        card(broker_crash=CRASH | {key: {"distribution": "weibull", "shape": shape}})
        for key in ("lifetime", "duration")
        for shape in (0.5, 2.0)
    ]
    plans: list[Plan] = [plan_for(MANY_RACKS, TRIO, model, QUIET) for model in cards]
    assert len({plan.fingerprint for plan in plans}) == len(plans)
    assert plans[3].clumping == pytest.approx(5.0)


@pytest.mark.parametrize("clocks", [1, 2, 3, 5, 8, 13])
def test_the_tournament_finds_the_first_clock(clocks: int) -> None:
    """After every change the winner is the clock that is due first."""
    rng = np.random.default_rng(clocks)
    sim = SimpleNamespace(
        control=[SimpleNamespace(next_renewal=math.inf)],
        renewals=[SimpleNamespace(due=math.inf) for _ in range(clocks)],
        earliest=np.zeros(clocks, dtype=np.int64),
    )
    for step in range(300):
        number = step if step < clocks else int(rng.integers(clocks))
        due = math.inf if rng.random() < 0.2 else float(rng.random())
        fault_kernel._set_due.py_func(sim, number, due)
        dues = [clock.due for clock in sim.renewals]
        assert sim.control[0].next_renewal == min(dues) or step < clocks - 1
        if clocks > 1 and step >= clocks - 1:
            assert dues[sim.earliest[1]] == min(dues)
