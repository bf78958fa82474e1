"""Records lost with log gaps, within the retention: closed forms and matrix exponentials."""

import math

import numpy as np
import pytest
from scipy import integrate, linalg, sparse

from advisor import Cluster, Config, Workload, evaluate
from advisor.reliability.measures import records_lost
from sampled_runs import card

HOURS = [0.01, 0.3, 2.0, 50.0]


def by_exponentials(rates, out, ages, source, limit):
    """Integrate the time in each state over the age, after eliminating states without ageing."""
    flow = rates.T - np.diag(out)
    runs, still = np.flatnonzero(ages), np.flatnonzero(~ages)
    stay, away = flow[np.ix_(still, still)], flow[np.ix_(runs, still)]
    onward = np.linalg.solve(-stay, flow[np.ix_(still, runs)])
    before = np.linalg.solve(-stay, source[still])
    inner, first = flow[np.ix_(runs, runs)] + away @ onward, source[runs] + away @ before
    found, _ = integrate.quad_vec(
        lambda x: linalg.expm(inner * x) @ first, 0.0, limit, epsrel=1e-12
    )
    hours = np.zeros(len(out))
    hours[runs], hours[still] = found, before + onward @ found
    return hours


@pytest.mark.parametrize("limit", HOURS)
def test_time_in_each_state_is_that_of_matrix_exponentials(limit: float) -> None:
    """In random chains in which age may stop growing, the inversion keeps its stated accuracy."""
    rng = np.random.default_rng(5)
    for _ in range(5):
        rates = rng.random((7, 7)) * 10.0 ** rng.uniform(-3.0, 1.0, (7, 7))
        np.fill_diagonal(rates, 0.0)
        out = rates.sum(axis=1) + 10.0 ** rng.uniform(-3.0, 1.0, 7)
        ages = np.array([True, True, False, True, False, True, True])
        source = np.where(ages, rng.random(7), 0.0)
        found = records_lost.hours_within(sparse.csr_array(rates.T), out, ages, source, limit)
        whole = np.linalg.solve(np.diag(out) - rates.T, source)
        off = np.abs(found - by_exponentials(rates, out, ages, source, limit))
        assert (off <= records_lost.ACCURACY * whole).all()


@pytest.mark.parametrize("limit", HOURS)
def test_gaps_begin_grow_and_move_with_the_chain(limit: float) -> None:
    """A random chain expanded gap by gap, with loops that move gaps and gaps that end."""
    rng = np.random.default_rng(3)
    count, growing = np.array([0, 1, 3, 2, 1]), np.array([True, True, False, True, True])
    source, target = rng.integers(0, len(count), (2, 60))
    gap_map, new_gap = rng.integers(-2, 3, (60, 3)), rng.integers(-2, 3, 60)
    rate, new_hours = rng.random(60), rng.random(60) * rng.integers(0, 2, 60)
    share = rng.random(len(count))
    gaps = records_lost.LogGaps(
        *(source, target, rate[:, None], gap_map, count, growing, new_gap, new_hours[:, None])
    )
    pairs = [(state, gap) for state, gaps_there in enumerate(count) for gap in range(gaps_there)]
    index = {pair: number for number, pair in enumerate(pairs)}
    rates, out, starts = np.zeros((len(index),) * 2), np.zeros(len(index)), np.zeros(len(index))
    for (state, gap), number in index.items():
        starts[number] = share[state] * (gap == 0 and growing[state])
        for move in np.flatnonzero(source == state):
            out[number] += rate[move]
            if (after := index.get((target[move], gap_map[move, gap]))) is not None:
                rates[number, after] += rate[move]
    for move, gap in enumerate(new_gap):
        if (first := index.get((target[move], gap))) is not None:
            starts[first] += new_hours[move]
    expanded = (rates, out, np.array([growing[state] for state, _ in index]), starts)
    found = gaps.mean_hours(share[:, None], records_lost.on_one_card(limit))[..., 0]
    whole = np.linalg.solve(np.diag(out) - rates.T, starts)
    off = np.abs(found[tuple(zip(*index, strict=True))] - by_exponentials(*expanded, limit))
    assert (off <= records_lost.ACCURACY * whole).all()
    assert np.count_nonzero(found) == len(index)


def test_a_retention_that_no_record_reaches_needs_no_inversion(monkeypatch) -> None:
    """Both methods agree for a long retention; a short one needs the inversion."""
    rng = np.random.default_rng(11)
    rates = rng.random((6, 6))
    np.fill_diagonal(rates, 0.0)
    out = rates.sum(axis=1) + rng.random(6) + 0.2
    ages = np.array([True, False, True, True, False, True])
    chain = (sparse.csr_array(rates.T), out, ages, np.where(ages, 1.0, 0.0))
    slowest = 1.0 / np.linalg.eigvals(np.diag(out) - rates).real.min()
    long, short = 60.0 * slowest, 5.0 * slowest
    quick = records_lost._unlimited(*chain, long)
    assert quick is not None
    assert records_lost._unlimited(*chain, short) is None
    with monkeypatch.context() as patched:
        # With so small an exponent Chernoff's bound exceeds a millionth.
        patched.setattr(records_lost, "CHERNOFF_EXPONENT", 5.0)
        assert records_lost._unlimited(*chain, long) is None
    assert (records_lost.hours_within(*chain, long) == quick).all()
    monkeypatch.setattr(records_lost, "_unlimited", lambda *_: None)
    assert records_lost.hours_within(*chain, long) == pytest.approx(
        quick, rel=records_lost.ACCURACY
    )
    limited = records_lost.hours_within(*chain, short)
    assert (limited < quick * (1.0 - records_lost.ACCURACY)).any()


@pytest.mark.parametrize("limit", HOURS)
def test_rough_hours_are_within_one_percent(limit: float) -> None:
    """Solutions of parameter draws have two digits of ``(1 - exp(-rR)) / r``."""
    for rate in (0.01, 1.0, 30.0):
        found = records_lost.hours_within(
            sparse.csr_array((1, 1)),
            np.array([rate]),
            np.array([True]),
            np.array([1.0]),
            limit,
            rough=True,
        )
        assert found[0] == pytest.approx(-math.expm1(-rate * limit) / rate, rel=1e-2)


@pytest.mark.parametrize("limit", [0.0, *HOURS])
def test_two_replicas_lose_what_the_retention_keeps(limit: float) -> None:
    """Losing both disks loses one whole log: no record twice or beyond the retention.

    The second disk fails before the first is replaced. The share of logs younger than the
    retention is at most rate times retention.
    """
    per_year, hours = 2.0, 20.0
    model = card(broker_destroyed={"per_year": per_year, "hours": hours})
    config = Config(replication_factor=2, min_insync_replicas=1, acks="all")
    load = Workload(records_per_second=1.0, retention_hours=limit)
    found = evaluate(Cluster.uniform(2, 2), config, model, load)
    lost = found.acked_records_lost_per_year
    total = found.loss_events_per_year
    assert lost <= total * 3600.0 * limit
    assert lost >= total * 3600.0 * limit * (1.0 - total / 8760.0 * limit * 2.0)


@pytest.mark.parametrize("limit", HOURS)
def test_what_an_unclean_leader_drops_ends_at_the_retention(limit: float) -> None:
    """An unclean leader that lacks a gap drops min(gap, retention).

    Crash rate a, repair rate m, unclean election. With both down the first to return leads; half
    the time it lacks what the other wrote alone, for an exponential time of rate a + m. Terms of
    order a/m are neglected.
    """
    per_year, minutes = 1.0, 60.0
    model = card(broker_crash={"per_year": per_year, "minutes": minutes})
    config = Config(
        replication_factor=2,
        min_insync_replicas=1,
        acks="all",
        unclean_leader_election_enable=True,
        eligible_leader_replicas=False,
    )
    load = Workload(records_per_second=1.0, retention_hours=limit)
    found = evaluate(Cluster.uniform(2, 2), config, model, load)
    rate = per_year / 8760.0 + 60.0 / minutes
    kept = -math.expm1(-rate * limit) / rate * 3600.0
    per_event = found.acked_records_lost_per_year / found.loss_events_per_year
    assert per_event == pytest.approx(kept, rel=5.0 * per_year / 8760.0 * minutes / 60.0)


def test_one_replica_loses_a_log_no_older_than_its_last_loss() -> None:
    """Logs destroyed at rate a have mean age ``(1 - exp(-aR)) / a`` within the retention R."""
    model = card(broker_destroyed={"per_year": 100.0, "hours": 0.001})
    load = Workload(records_per_second=1.0, retention_hours=100.0)
    found = evaluate(Cluster.uniform(1, 1), Config(replication_factor=1), model, load)
    rate = 100.0 / 8760.0
    per_event = found.acked_records_lost_per_year / found.loss_events_per_year
    assert per_event == pytest.approx(-math.expm1(-rate * 100.0) / rate * 3600.0, rel=1e-4)


@pytest.mark.parametrize("flush_hours", [0.001, 1.0])
def test_a_gap_begins_with_what_was_not_flushed(flush_hours: float) -> None:
    """Two replicas, equal rates of crashes and power failures: power loses the flush window f.

    One replica leads alone for g on average, then both are down. Half the time the other returns
    first and leads: it drops the gap g, plus f if it had lost power. If the lone leader loses
    power, its last f is lost as well. So of four losses two are of f, and two of g + f / 2. Terms
    of order rate times g are neglected.
    """
    per_year, gap_hours = 1.0, 0.01
    outage = {"per_year": per_year, "minutes": 60.0 * gap_hours}
    flush = {"seconds": 3600.0 * flush_hours}
    config = Config(
        replication_factor=2,
        min_insync_replicas=1,
        acks="all",
        unclean_leader_election_enable=True,
        eligible_leader_replicas=False,
    )
    model = card(broker_crash=outage, broker_power=outage, flush=flush)
    # So many that no loss is without a record.
    load = Workload(records_per_second=1e6, replication_delay_ms=0.0, retention_hours=100.0)
    found = evaluate(Cluster.uniform(2, 2), config, model, load)
    per_event = found.acked_records_lost_per_year / found.loss_events_per_year / 3.6e9
    expected = (2.0 * flush_hours + 2.0 * (gap_hours + flush_hours / 2.0)) / 4.0
    assert per_event == pytest.approx(expected, rel=5.0 * 2.0 * per_year / 8760.0 * gap_hours)
