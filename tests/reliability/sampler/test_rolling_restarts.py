"""Rolling restarts by a calendar: closed forms, enumeration over the placement, plain Python."""

import heapq
import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from advisor import Cluster, Config, FailureModel, Workload
from advisor.reliability.results.units import Estimate
from advisor.reliability.sampler.block import RollingRow, run_block, run_rolling_block
from advisor.reliability.sampler.intervals import Ratio, rate
from advisor.reliability.sampler.plan import Block, Plan
from advisor.reliability.sampler.plan_reader import plan_for
from sampled_runs import FAR, QUIET, TRIO, YEAR, off_by, sample

WEEKLY = {"weekday": "monday", "hour": 1, "every_weeks": 1}
SIX, FOUR = Cluster.uniform(6, 3), Cluster.uniform(4, 2)
# A gamma distribution of this shape is a fixed time to three digits.
FIXED = 5e5


def model(minutes: float = 12.0, crash: dict[str, float] | None = None, **keys: object):
    """A card with a calendar, and crashes by chance if there are any."""
    tables: dict[str, object] = {"calendar": {**WEEKLY, "minutes": minutes, **keys}}
    if crash:
        tables["broker"] = {"crash": crash}
    return FailureModel.from_dict(tables)


def alone(plan: Plan, restarts: int = 64_000, hurry: float = 1.0, run_up: float = 0.0):
    """The rows of rolling restarts that are sampled by themselves."""
    assert plan.rolling is not None
    takes = 2.0 * len(plan.rolling.batches) * plan.rolling.mean_hours
    rolling = replace(plan.rolling, alone=True, run_up_hours=run_up, hurry=hurry, hurry_hours=takes)
    blocks = [Block(11, index, restarts // 64) for index in range(64)]
    return [run_rolling_block(replace(plan, rolling=rolling), block) for block in blocks]


def mean(rows: Sequence[RollingRow], amount: Callable[[RollingRow], float]) -> Estimate:
    """The mean of an amount per rolling restart."""
    found = Ratio([amount(row) for row in rows], [float(row.restarts) for row in rows], 1.0)
    return rate(found, sum(row.restarts for row in rows))


def unwritable_hours(plan: Plan, rows: Sequence[RollingRow]) -> Estimate:
    """Hours in which a partition refuses writes, per rolling restart."""
    partitions = sum(plan.partitions)
    return mean(rows, lambda row: row.unwritable_hours / partitions)


def shared(plan: Plan, brokers: Sequence[int], replicas: int) -> float:
    """Share of the partitions with so many replicas on some brokers."""
    hit = [len(set(brokers) & set(each)) == replicas for each in plan.sets]
    return sum(itertools.compress(plan.partitions, hit)) / sum(plan.partitions)


@pytest.mark.parametrize(
    ("keys", "batches"),
    [
        ({}, ((0, 3), (1, 4), (2, 5))),
        ({"at_once": 4}, ((0, 3), (1, 4), (2, 5))),
        ({"at_once": 1}, ((0,), (3,), (1,), (4,), (2,), (5,))),
        ({"order": "id"}, ((0, 1), (2, 3), (4, 5))),
        ({"order": "id", "at_once": 4}, ((0, 1, 2, 3), (4, 5))),
    ],
)
def test_brokers_restart_in_the_order_of_the_script(keys, batches) -> None:
    """Rack by rack, never across racks, or by id; `rolling-restart.sh` sorts the same way."""
    plan = plan_for(SIX, TRIO, model(**{"at_once": 2, **keys}), QUIET)
    assert plan.rolling is not None
    assert plan.rolling.batches == batches


def test_brokers_of_unknown_racks_form_one_group() -> None:
    """Where no rack is known several may restart at once, whatever the order."""
    plan = plan_for(Cluster.uniform(5, None), TRIO, model(at_once=2), QUIET)
    assert plan.rolling is not None
    assert plan.rolling.batches == ((0, 1), (2, 3), (4,))


@pytest.mark.parametrize("shape", [1.0, 4.0])
@pytest.mark.parametrize("order", ["rack", "id"])
def test_two_at_once_stop_what_has_two_replicas_on_them(order: str, shape: float) -> None:
    """Enumerated: until the first of both is back, over all pairs and partitions.

    The mean of the shorter of two gamma times is the integral of the square of what is left.
    """
    load = Workload(partitions=24, records_per_second=1.0)
    plan = plan_for(SIX, TRIO, model(at_once=2, order=order, shape=shape), load)
    assert plan.rolling is not None
    time = stats.gamma(shape, scale=0.2 / shape)
    both, _ = integrate.quad(lambda t: time.sf(t) ** 2, 0.0, np.inf)
    pairs = sum(shared(plan, pair, 2) for pair in plan.rolling.batches)
    found = unwritable_hours(plan, alone(plan))
    if order == "rack":
        # Three racks and three replicas: no partition has two of them in one rack.
        assert (pairs, found.seen) == (0.0, False)
    else:
        assert pairs > 0.5
        assert abs(off_by(found, pairs * both)) < FAR


def test_one_at_a_time_refuses_what_fails_meanwhile() -> None:
    """To first order: six ordered pairs of a set, each a crash at rate L within a restart.

    Writes stop until one of both is back: L m (m d / (m + d)) hours for a restart of mean m and a
    crash of mean d. The next order is the chance of two crashes, a thousandth.
    """
    per_year, m, d = 10.0, 0.2, 0.1
    crash = {"per_year": per_year, "minutes": 60.0 * d}
    plan = plan_for(SIX, TRIO, model(60.0 * m, crash), Workload(partitions=24))
    exact = 6.0 * per_year / YEAR * m * (m * d / (m + d))
    hurried = unwritable_hours(plan, alone(plan, hurry=100.0))
    assert abs(off_by(hurried, exact)) < FAR
    assert hurried.high / hurried.low < 1.1
    # Without hurrying the same, from a hundred times as few restarts that count.
    assert abs(off_by(unwritable_hours(plan, alone(plan)), exact)) < FAR


def test_weights_are_a_likelihood_ratio() -> None:
    """Their mean is 1, and none is larger than the hurried time allows."""
    plan = plan_for(SIX, TRIO, model(12.0, {"per_year": 10.0, "minutes": 6.0}), QUIET)
    rows = alone(plan, hurry=50.0)
    assert abs(off_by(mean(rows, lambda row: row.weight), 1.0)) < FAR
    most = math.exp(49.0 * plan.strikes_per_year_by_chance / YEAR * 2.4)
    assert (
        max(row.most_struck for row in rows)
        <= max(row.most_weight for row in rows)
        <= most * (1.0 + 1e-9)
    )
    assert max(row.most_weight for row in alone(plan)) == 1.0


@pytest.mark.parametrize("pause", [0.0, 3.0])
def test_not_waiting_stops_what_neighbours_share(pause: float) -> None:
    """Fixed times: brokers overlap for as long as they catch up, less the pause."""
    keys = {"catch_up_minutes": 5.0, "wait_for_isr": False, "pause_minutes": pause}
    plan = plan_for(SIX, TRIO, model(10.0, shape=FIXED, **keys), Workload(partitions=24))
    assert plan.rolling is not None
    order = [broker for (broker,) in plan.rolling.batches]
    shares = sum(shared(plan, pair, 2) for pair in itertools.pairwise(order))
    rows = alone(plan, restarts=640)
    found = sum(row.unwritable_hours for row in rows) / 640 / sum(plan.partitions)
    assert shares > 0.4
    assert found == pytest.approx((5.0 - pause) / 60.0 * shares, rel=0.01)
    hours = sum(row.hours for row in rows) / 640
    assert hours == pytest.approx((5 * (5.0 + pause) + 10.0) / 60.0, rel=0.01)


def test_waiting_takes_one_restart_after_the_other() -> None:
    """Fixed times: six restarts and five pauses, and no write is refused."""
    plan = plan_for(SIX, TRIO, model(10.0, shape=FIXED, pause_minutes=2.0), QUIET)
    rows = alone(plan, restarts=640)
    assert sum(row.unwritable_hours for row in rows) == 0.0
    assert sum(row.hours for row in rows) / 640 == pytest.approx(70.0 / 60.0, rel=0.01)


def test_a_shutdown_that_ends_hard_takes_longer() -> None:
    """One replica: it is out for its restart, the hard ones as often as the card says."""
    numbers = {"unclean": 0.25, "unclean_minutes": 60.0}
    config = Config(replication_factor=1)
    plan = plan_for(Cluster.uniform(3, 3), config, model(12.0, **numbers), Workload(partitions=3))
    exact = 0.75 * 0.2 + 0.25 * 1.0
    assert abs(off_by(unwritable_hours(plan, alone(plan)), exact)) < FAR


def test_a_year_has_as_many_as_its_weeks() -> None:
    """Whole years of restarts alone: 365 / 14 a year, though no year has a part of one."""
    config = Config(replication_factor=1)
    card = model(12.0, every_weeks=2)
    found, rows = sample(Cluster.uniform(2, 2), config, card, Workload(partitions=2), years=640)
    exact = 365.0 / 14.0 * 0.2 / YEAR
    assert abs(off_by(found.write_unavailability, exact)) < FAR
    assert dict(found.causes["write_unavailability"]).keys() == {"broker.restart"}
    # Each broker stops and returns; every block begins elsewhere in the calendar.
    assert sum(row.events for row in rows) / 640 == pytest.approx(365.0 / 14.0 * 4.0, rel=0.02)
    assert len({row.events for row in rows if row.years == rows[0].years}) > 1


class Plain:
    """Rolling restarts among crashes, of one set of three, written out by hand."""

    def __init__(self, waits: bool, crash: tuple[float, float], m: float, up: float) -> None:
        self.waits, self.crash, self.m, self.up = waits, crash, m, up
        self.rng = random.Random(5)
        self.queue: list[tuple[float, int, str, int]] = []
        self.number = itertools.count()
        self.out: dict[int, int] = {}
        self.now = self.refused = 0.0
        self.left: list[int] = []
        self.paused = False

    def at(self, time: float, what: str, broker: int = -1) -> None:
        heapq.heappush(self.queue, (time, next(self.number), what, broker))

    def take(self, broker: int, hours: float) -> None:
        """A broker goes out of service, unless it is already."""
        if broker not in self.out:
            self.out[broker] = next(self.number)
            self.at(self.now + self.rng.expovariate(1.0 / hours), "back", broker)

    def roll(self) -> None:
        """Restart the next broker, or wait for those that are out."""
        self.paused = self.waits and bool(self.out)
        if not self.left or self.paused:
            return
        self.take(self.left.pop(0), self.m)
        self.paused = self.waits
        if not self.waits:
            self.at(self.now + self.up, "roll")

    def run(self, hours: float) -> float:
        """The share of the time in which two of the brokers 0, 1 and 2 are out."""
        per_hour = self.crash[0] / YEAR
        for broker in range(4):
            self.at(self.rng.expovariate(per_hour), "crash", broker)
        self.at(self.rng.uniform(0.0, 168.0), "week")
        while self.now < hours:
            time, _, what, broker = heapq.heappop(self.queue)
            if sum(each in self.out for each in (0, 1, 2)) >= 2:
                self.refused += time - self.now
            self.now = time
            if what == "crash":
                self.take(broker, self.crash[1])
                self.at(time + self.rng.expovariate(per_hour), "crash", broker)
            elif what == "back":
                del self.out[broker]
                if self.paused and not self.out:
                    self.roll()
            elif what == "week":
                self.at(time + 168.0, "week")
                if not self.left and not self.paused:
                    self.left = [0, 1, 2, 3]
                    self.roll()
            else:
                self.roll()
        return self.refused / self.now


@pytest.mark.parametrize("waits", [True, False])
def test_a_simulation_in_plain_python_agrees(waits: bool) -> None:
    """Weekly restarts among crashes: the same share of time without writes, within 4 errors."""
    crash = (40.0, 1.0)
    card = model(
        30.0, {"per_year": crash[0], "minutes": 60.0 * crash[1]}, wait_for_isr=waits, order="id"
    )
    placement = ((1, 2, 3),)
    found, _ = sample(FOUR, TRIO, card, QUIET, years=20_000, placement=placement)
    plain = [Plain(waits, crash, 0.5, 0.25) for _ in range(12)]
    for number, each in enumerate(plain):
        each.rng.seed(number)
    shares = [each.run(150.0 * YEAR) for each in plain]
    middle, error = np.mean(shares), np.std(shares, ddof=1) / math.sqrt(len(shares))
    ours = found.write_unavailability
    both = math.hypot(error, (ours.high - ours.low) / (2.0 * 1.96))
    assert abs(ours.value - middle) < FAR * both
    assert both < 0.06 * middle


def test_refused_records_follow_the_traffic_of_the_hour() -> None:
    """Both replicas out from half past one for two hours: the integral over the hours."""
    budget = 120.0 / 3600.0
    hourly = tuple(float(hour + 1) for hour in range(24))
    config = Config(replication_factor=2, min_insync_replicas=2)
    load = Workload(records_per_second=1.0, hourly=hourly)
    keys = {"hour": 1.5, "at_once": 2, "order": "id"}
    plan = plan_for(Cluster.uniform(2, 2), config, model(120.0, shape=FIXED, **keys), load)
    rows = alone(plan, restarts=64)
    steps = [hour / 12.5 for hour in range(1, 25)]
    exact = 3600.0 * ((0.5 - budget) * steps[1] + steps[2] + 0.5 * steps[3])
    assert sum(row.records_refused for row in rows) / 64 == pytest.approx(exact, rel=0.01)
    even = replace(plan, traffic=())
    plain = sum(row.records_refused for row in alone(even, restarts=64)) / 64
    assert plain == pytest.approx(3600.0 * (2.0 - budget), rel=0.01)


def test_failures_by_chance_meet_the_mean_traffic() -> None:
    """Over whole years the hours of the day make no difference to what random crashes refuse."""
    crash = FailureModel.from_dict({"broker": {"crash": {"per_year": 50.0, "minutes": 60.0}}})
    config, budget = Config(replication_factor=1), 120.0 / 3600.0
    load = Workload(records_per_second=1.0, hourly="office hours")
    found, _ = sample(Cluster.uniform(1, 1), config, crash, load)
    exact = 3600.0 * YEAR * math.exp(-budget) / (YEAR / 50.0 + 1.0)
    assert abs(off_by(found.records_refused_per_year, exact)) < FAR


def test_a_weekly_roll_by_day_refuses_what_the_day_writes() -> None:
    """In whole years a calendar begins at its hour, wherever in the week a block does."""
    hourly = (0.0,) * 12 + (2.0,) * 12
    config = Config(replication_factor=1)
    load = Workload(records_per_second=1.0, hourly=hourly)
    card = model(20.0, shape=FIXED)
    night, _ = sample(Cluster.uniform(1, 1), config, card, load, years=64)
    day, _ = sample(Cluster.uniform(1, 1), config, card.with_calendar(hour=15), load, years=64)
    assert not night.records_refused_per_year.seen
    exact = 3600.0 * 2.0 * 18.0 / 60.0 * 365.0 / 7.0
    assert day.records_refused_per_year.value == pytest.approx(exact, rel=0.01)


def test_without_a_calendar_nothing_changed() -> None:
    """The plan has the same fingerprint as its text, and even traffic is no traffic by the hour."""
    card = FailureModel.from_dict({"broker": {"crash": {"per_year": 50.0, "minutes": 60.0}}})
    plain, even = (
        plan_for(SIX, TRIO, card, Workload(hourly=hourly)) for hourly in (None, (3.0,) * 24)
    )
    assert plain.fingerprint == even.fingerprint
    assert run_block(plain, Block(1, 2, 50)) == run_block(even, Block(1, 2, 50))
    by_hour = plan_for(SIX, TRIO, card, Workload(hourly="office hours"))
    assert by_hour.fingerprint != plain.fingerprint
    at = {hour: plan_for(SIX, TRIO, model(hour=hour), QUIET).fingerprint for hour in (1, 2)}
    assert at[1] != at[2]
