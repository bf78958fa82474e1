"""What is lost with a gap ends at the retention: closed forms and matrix exponentials."""

import math

import numpy as np
import pytest
from scipy import integrate, linalg, sparse

from advisor import Cluster, Config, Workload, evaluate
from advisor.reliability.measures import records_lost
from sampled_runs import card

HOURS = [0.01, 0.3, 2.0, 50.0]


def by_exponentials(rates, out, clock, source, limit):
    """Integrate the time in each place over the clock, places without one taken out by algebra."""
    flow = rates.T - np.diag(out)
    runs, still = np.flatnonzero(clock), np.flatnonzero(~clock)
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
def test_time_in_each_place_is_that_of_matrix_exponentials(limit: float) -> None:
    """In random chains, with clocks that stop, the inversion has the digits that it promises."""
    rng = np.random.default_rng(5)
    for _ in range(5):
        rates = rng.random((7, 7)) * 10.0 ** rng.uniform(-3.0, 1.0, (7, 7))
        np.fill_diagonal(rates, 0.0)
        out = rates.sum(axis=1) + 10.0 ** rng.uniform(-3.0, 1.0, 7)
        clock = np.array([True, True, False, True, False, True, True])
        source = np.where(clock, rng.random(7), 0.0)
        found = records_lost.hours_within(sparse.csr_array(rates.T), out, clock, source, limit)
        whole = np.linalg.solve(np.diag(out) - rates.T, source)
        off = np.abs(found - by_exponentials(rates, out, clock, source, limit))
        assert (off <= records_lost.ACCURACY * whole).all()


@pytest.mark.parametrize("limit", HOURS)
def test_gaps_begin_grow_and_move_as_the_chain_says(limit: float) -> None:
    """A random chain, written out gap by gap: loops that move gaps, and gaps that end, too."""
    rng = np.random.default_rng(3)
    count, growing = np.array([0, 1, 3, 2, 1]), np.array([True, True, False, True, True])
    source, target = rng.integers(0, len(count), (2, 60))
    onto, begins = rng.integers(-2, 3, (60, 3)), rng.integers(-2, 3, 60)
    rate, begun = rng.random(60), rng.random(60) * rng.integers(0, 2, 60)
    share = rng.random(len(count))
    gaps = records_lost.LogGaps(source, target, rate, onto, count, growing, begins, begun)
    places = {
        name: place
        for place, name in enumerate((s, g) for s, most in enumerate(count) for g in range(most))
    }
    rates, out, starts = np.zeros((len(places),) * 2), np.zeros(len(places)), np.zeros(len(places))
    for (state, gap), place in places.items():
        starts[place] = share[state] * (gap == 0 and growing[state])
        for move in np.flatnonzero(source == state):
            out[place] += rate[move]
            if (after := places.get((target[move], onto[move, gap]))) is not None:
                rates[place, after] += rate[move]
    for move, begin in enumerate(begins):
        if (first := places.get((target[move], begin))) is not None:
            starts[first] += begun[move]
    asked = (rates, out, np.array([growing[state] for state, _ in places]), starts)
    found = gaps.mean_hours(share, limit)
    whole = np.linalg.solve(np.diag(out) - rates.T, starts)
    off = np.abs(found[tuple(zip(*places, strict=True))] - by_exponentials(*asked, limit))
    assert (off <= records_lost.ACCURACY * whole).all()
    assert np.count_nonzero(found) == len(places)


def test_a_retention_that_nothing_outlives_takes_one_sum(monkeypatch) -> None:
    """Then both ways to the hours agree; a little sooner only the inversion is left."""
    rng = np.random.default_rng(11)
    rates = rng.random((6, 6))
    np.fill_diagonal(rates, 0.0)
    out = rates.sum(axis=1) + rng.random(6) + 0.2
    clock = np.array([True, False, True, True, False, True])
    asked = (sparse.csr_array(rates.T), out, clock, np.where(clock, 1.0, 0.0))
    slowest = 1.0 / np.linalg.eigvals(np.diag(out) - rates).real.min()
    long, short = 60.0 * slowest, 5.0 * slowest
    quick = records_lost._unlimited(*asked, long)
    assert quick is not None
    assert records_lost._unlimited(*asked, short) is None
    with monkeypatch.context() as patched:
        # Chernoff's bound with so small a weight leaves more than a millionth.
        patched.setattr(records_lost, "_BEYOND", 5.0)
        assert records_lost._unlimited(*asked, long) is None
    assert (records_lost.hours_within(*asked, long) == quick).all()
    monkeypatch.setattr(records_lost, "_unlimited", lambda *_: None)
    assert records_lost.hours_within(*asked, long) == pytest.approx(
        quick, rel=records_lost.ACCURACY
    )
    limited = records_lost.hours_within(*asked, short)
    assert (limited < quick * (1.0 - records_lost.ACCURACY)).any()


@pytest.mark.parametrize("limit", HOURS)
def test_rough_is_within_a_hundredth(limit: float) -> None:
    """A draw of an uncertain card gets two digits of ``(1 - exp(-rR)) / r``."""
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
    """Who loses both disks loses a whole log, and no hour of it twice or beyond the retention.

    A second disk that goes while the first is away takes all with it. Logs younger than the
    retention are a share of rate times retention.
    """
    per_year, hours = 2.0, 20.0
    model = card(broker_destroyed={"per_year": per_year, "hours": hours})
    config = Config(replication_factor=2, min_insync_replicas=1, acks="all")
    load = Workload(records_per_second=1.0, retention_hours=limit)
    found = evaluate(Cluster.uniform(2, 2), config, model, load)
    lost = found.acked_records_lost_per_year
    total = found.loss_events_per_year
    # Ages below the retention have a share of rate times retention at most.
    assert lost <= total * 3600.0 * limit
    assert lost >= total * 3600.0 * limit * (1.0 - total / 8760.0 * limit * 2.0)


@pytest.mark.parametrize("limit", HOURS)
def test_what_an_unclean_leader_drops_ends_at_the_retention(limit: float) -> None:
    """A survivor that crashes hands over to the one that was away: it drops min(gap, retention).

    Crashes at rate a, ends at rate m, unclean election on. With both down the one that is back
    first leads; half the time it lacks what the other wrote alone, for a time that is exponential
    of rate a + m. Terms of the order a/m are neglected.
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
    """Of logs that are destroyed at rate a the mean age below R is ``(1 - exp(-aR)) / a``."""
    model = card(broker_destroyed={"per_year": 100.0, "hours": 0.001})
    load = Workload(records_per_second=1.0, retention_hours=100.0)
    found = evaluate(Cluster.uniform(1, 1), Config(replication_factor=1), model, load)
    rate = 100.0 / 8760.0
    per_event = found.acked_records_lost_per_year / found.loss_events_per_year
    assert per_event == pytest.approx(-math.expm1(-rate * 100.0) / rate * 3600.0, rel=1e-4)


@pytest.mark.parametrize("flush_hours", [0.001, 1.0])
def test_a_gap_begins_with_what_was_not_flushed(flush_hours: float) -> None:
    """Two replicas, crashes and power failures alike in number: who goes dark lacks the flush.

    Both are away in the end, after one was written alone for g on average. Half the time the other
    is back first and leads: what it lacks is dropped, which is g, and f where power took it. If
    power takes the one that was written alone, its last f is lost before. So of four losses two
    are of f, and two of g + f / 2. Terms of the order of a rate times g are neglected.
    """
    per_year, gap_hours = 1.0, 0.01
    spell = {"per_year": per_year, "minutes": 60.0 * gap_hours}
    flush = {"seconds": 3600.0 * flush_hours}
    config = Config(
        replication_factor=2,
        min_insync_replicas=1,
        acks="all",
        unclean_leader_election_enable=True,
        eligible_leader_replicas=False,
    )
    model = card(broker_crash=spell, broker_power=spell, flush=flush)
    load = Workload(records_per_second=1 / 3600, replication_delay_ms=0.0, retention_hours=100.0)
    found = evaluate(Cluster.uniform(2, 2), config, model, load)
    per_event = found.acked_records_lost_per_year / found.loss_events_per_year
    expected = (2.0 * flush_hours + 2.0 * (gap_hours + flush_hours / 2.0)) / 4.0
    assert per_event == pytest.approx(expected, rel=5.0 * 2.0 * per_year / 8760.0 * gap_hours)
