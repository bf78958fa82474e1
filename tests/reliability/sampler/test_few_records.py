"""Samples with few records a second: loss events that lose a record, as often as computed."""

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from advisor import Cluster, Config, Workload, evaluate
from advisor.reliability import measure_table
from advisor.reliability.sampler.block import run_block
from advisor.reliability.sampler.compiled.memory_layout import SHARES, UNWRITABLE
from advisor.reliability.sampler.plan import Block
from advisor.reliability.sampler.plan_reader import plan_for
from agreement_of_samples import deviations, table
from configuration_grid import grid
from sampled_runs import FAR, QUIET, card, off_by, sample

# A second: from a record a day to one in two minutes.
RATES = (1e-5, 1e-4, 1e-3, 3e-3, 1e-2)
EVENTS = 1e6


def test_few_records_are_lost_as_often_as_computed() -> None:
    """Every fourth case of the grid, at a rate of its own: no z-score above 4, and no drift."""
    found = []
    for number, case in enumerate(list(grid())[::4]):
        rate = RATES[number % len(RATES)]
        load = replace(case.load, records_per_second=rate, replication_delay_ms=2000.0)
        question = (case.cluster, case.config, case.model, load)
        years = max(1000, int(EVENTS / plan_for(*question).strikes_per_year))
        sampled, _ = sample(*question, years=years)
        found += [(f"{rate} {case.name}", d) for d in deviations(evaluate(*question), sampled)]
    scores = defaultdict(list)
    for _, deviation in found:
        scores[deviation.measure].append(deviation.z)
    for measure in measure_table.names()[:3]:
        assert len(scores[measure]) >= 6
        assert abs(math.fsum(scores[measure])) < FAR * math.sqrt(len(scores[measure]))
    assert all(abs(deviation.z) < FAR for _, deviation in found), "\n" + table(found)


@pytest.mark.parametrize("partitions", [1, 12])
def test_partitions_on_one_set_lose_first_as_often_as_computed(partitions: int) -> None:
    """The first loss is that of any of them; each has its own loss events."""
    model = card(broker_power={"per_year": 20.0, "minutes": 1.0}, flush={"seconds": 600.0})
    load = Workload(partitions=partitions, records_per_second=1e-4, replication_delay_ms=0.0)
    question = Cluster.uniform(1, 1), Config(replication_factor=1), model, load
    exact, (found, _) = evaluate(*question), sample(*question)
    per_hour, flush = 0.36 / partitions, 1.0 / 6.0
    events = 20.0 * partitions * -math.expm1(-per_hour * flush)
    assert exact.loss_events_per_year == pytest.approx(events, rel=1e-4)
    assert exact.mean_years_to_loss == pytest.approx(1.0 / -math.expm1(-0.06) / 20.0, rel=1e-4)
    for name in measure_table.names()[:4]:
        assert abs(off_by(found.estimate(name), getattr(exact, name))) < FAR, name
    assert found.loss_events_per_year.value <= found.acked_records_lost_per_year.value


def test_a_loss_without_records_is_none() -> None:
    """Where nothing is written nothing is lost, however often disks go."""
    model = card(broker_destroyed={"per_year": 100.0, "hours": 1.0})
    load = replace(QUIET, records_per_second=0.0)
    question = Cluster.uniform(1, 1), Config(replication_factor=1), model, load
    exact, (found, rows) = evaluate(*question), sample(*question)
    assert exact.loss_events_per_year == exact.loss_probability_per_year == 0.0
    assert math.isinf(exact.mean_years_to_loss)
    assert not found.loss_events_per_year.seen
    assert sum(row.loss_moments for row in rows) == 0


def test_many_records_draw_nothing() -> None:
    """With more records than can be missed, samples need no random number for it.

    All that happens is what happens where power loses nothing.
    """
    power = {"per_year": 3.0, "minutes": 60.0}
    rows = []
    for flush, per_second in ((30.0, 1e3), (30.0, 0.01), (0.0, 1e3)):
        model = card(broker_power=power, flush={"seconds": flush})
        load = replace(QUIET, records_per_second=per_second)
        plan = plan_for(Cluster.uniform(1, 1), Config(replication_factor=1), model, load)
        rows.append(run_block(plan, Block(7, 0, 500)))
    many, few, none = rows
    books = (np.reshape(row.causes, (SHARES + len(plan.shares), -1)) for row in rows)
    unwritable = [float(book[UNWRITABLE].sum()) for book in books]
    assert many.loss_moments > 1000 > few.loss_moments > 0 == none.loss_moments
    assert unwritable[0] == unwritable[2] != unwritable[1]
    assert (many.events, many.hours) == (none.events, none.hours)
