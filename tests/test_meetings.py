"""Which losses of different replica sets are one event, and how often any of them comes."""

from __future__ import annotations

import pytest
from sampled_runs import FAR, card, off_by, sample

from advisor import Cluster, Config, Workload, evaluate, load_model
from advisor.reliability.meetings import Case, Meetings, Rack, cases

AT_HAND, AWAY, ALONE = Rack(1, 0, False), Rack(1, 0, True), Rack(1, 1, False)
TWO = Rack(2, 0, False)
# Two racks of three brokers; every way to have two replicas in one and one in the other.
RACK_OF = {0: "a", 1: "a", 2: "a", 3: "b", 4: "b", 5: "b"}
PAIRS = {"a": ((0, 1), (0, 2), (1, 2)), "b": ((3, 4), (3, 5), (4, 5))}
SETS = tuple(
    (*pair, single)
    for rack, pairs in PAIRS.items()
    for pair in pairs
    for single in RACK_OF
    if RACK_OF[single] != rack
)
PATTERN = (0, 0, 1)


def meet(scope: str, *racks: Rack) -> tuple[int, int]:
    """In how many ways one of the sets meets it, and how many events that makes for all."""
    ways, events = Meetings({PATTERN: SETS}, RACK_OF).met(PATTERN, scope, tuple(sorted(racks)))
    return ways, len(events)


@pytest.mark.parametrize(
    ("scope", "racks", "found"),
    [
        # The pair's rack is struck while the single one is away: it alone matters, and the rack.
        ("rack", (ALONE, TWO), (1, 6)),
        # The racks of both: two events, whoever the replicas are.
        ("rack", (AWAY, TWO), (1, 2)),
        # The single broker is struck while the pair's rack is away: six brokers.
        ("broker", (AT_HAND, Rack(2, 0, True)), (1, 6)),
        # One of the pair alone, the other struck, the single one's rack away: six pairs, both ways.
        ("broker", (AWAY, Rack(2, 1, False)), (2, 12)),
        # The single one struck while one of the pair is away and the other at hand: or that one.
        ("broker", (AT_HAND, Rack(2, 1, False)), (4, 72)),
        # The site is struck while one is away: whoever that is.
        ("cluster", (ALONE, TWO), (1, 6)),
        ("cluster", (AT_HAND, Rack(2, 1, False)), (2, 6)),
    ],
)
def test_an_event_is_counted_once(
    scope: str, racks: tuple[Rack, ...], found: tuple[int, int]
) -> None:
    """Of 18 sets of two racks, by what those who lose together have in common."""
    assert meet(scope, *racks) == found


def test_who_is_left_at_hand_tells_events_apart() -> None:
    """A rack is struck with one of three racks away: the third rack's broker matters, too."""
    found = cases((1, 1, 1), (AT_HAND, AT_HAND, AWAY), "rack")
    assert len(found) == 6
    assert Case(0, (), (2,), (1,)) in found


def test_sets_that_wait_for_one_broker_lose_together() -> None:
    """Power of a rack goes while a broker of the other is down: six events, not eighteen.

    By hand, in leading order: a rack is struck at rate r, and one of three brokers is down for a
    share d of the time; whatever was written since then is in page caches of the rack alone.
    """
    crashes, hours, strikes = 20.0, 1.0, 5.0
    model = card(
        broker_crash={"per_year": crashes, "minutes": 60.0 * hours},
        rack_power={"per_year": strikes, "minutes": 20.0},
        flush={"seconds": 60.0},
    )
    cluster = Cluster(brokers=RACK_OF)
    config = Config(replication_factor=3, min_insync_replicas=2)
    load = Workload(partitions=len(SETS), records_per_second=100.0)
    exact = evaluate(cluster, config, model, load, placement=SETS)
    down = crashes * hours / 8760.0
    by_hand = 6.0 * strikes * down
    assert 1.0 / exact.mean_years_to_loss == pytest.approx(by_hand, rel=0.1)
    alone = evaluate(cluster, config, model, Workload(), placement=SETS[:1])
    assert len(SETS) / alone.mean_years_to_loss > 2.0 / exact.mean_years_to_loss
    found, _ = sample(cluster, config, model, load, years=8000, placement=SETS)
    # Second order, such as two brokers down at once.
    off = 0.1 * exact.loss_probability_per_year
    estimate = found.loss_probability_per_year
    assert estimate.low - off < exact.loss_probability_per_year < estimate.high + off


def test_two_sites_are_struck_seldom_whatever_the_number_of_partitions() -> None:
    """All sets stand in the same two racks: a hundred times as many lose hardly more often."""
    model, config = load_model("two_az"), Config(replication_factor=3, min_insync_replicas=2)
    cluster = Cluster.uniform(brokers=30, racks=2)
    few, many = (
        evaluate(cluster, config, model, Workload(partitions=count)) for count in (300, 30_000)
    )
    assert many.loss_events_per_year > 50.0 * few.loss_events_per_year
    assert few.mean_years_to_loss < 3.0 * many.mean_years_to_loss


def test_what_began_together_is_within_the_error() -> None:
    """Racks are destroyed, and each broker is replaced by itself: neither alone nor together."""
    model = card(
        rack_destroyed={"per_year": 5.0}, broker_destroyed={"per_year": 0.0, "hours": 48.0}
    )
    cluster, config = Cluster.uniform(brokers=6, racks=3), Config(replication_factor=3)
    load = Workload(partitions=12)
    exact = evaluate(cluster, config, model, load)
    found, _ = sample(cluster, config, model, load, years=20_000)
    chance = found.loss_probability_per_year
    assert exact.latest.probability < chance.low < chance.high < exact.loss_probability_per_year
    off = exact.error_bounds["loss_probability_per_year"]
    assert exact.loss_probability_per_year - off < chance.low
    assert abs(off_by(found.loss_events_per_year, exact.loss_events_per_year)) < FAR
