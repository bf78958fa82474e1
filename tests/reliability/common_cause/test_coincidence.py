"""Which losses of different replica sets are one event, and how often any of them comes."""

from __future__ import annotations

import math

import pytest

from advisor import Cluster, Config, FailureModel, Workload, evaluate, load_model
from advisor.reliability.common_cause.coincidence import CoincidentSets, Occurrence, occurrences
from advisor.reliability.common_cause.outage_class import BROKER_REPAIR, RACK_REPAIR, RackOutage
from advisor.reliability.results.sampled import Estimate
from configuration_grid import stressed
from sampled_runs import FAR, YEAR, card, off_by, sample

AT_HAND, AWAY, ALONE = RackOutage(1, 0, False), RackOutage(1, 0, True), RackOutage(1, 1, False)
TWO = RackOutage(2, 0, False)
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


def meet(scope: str, *racks: RackOutage, preferred_leader: bool = True) -> tuple[int, int]:
    """In how many ways one of the sets meets it, and how many events that makes for all."""
    members = {PATTERN: SETS}
    events, parts = CoincidentSets(members, RACK_OF, preferred_leader).events(
        PATTERN, scope, tuple(sorted(racks))
    )
    (part,) = set(parts.tolist())
    return round(1 / part), len(events)


@pytest.mark.parametrize(
    ("scope", "racks", "found"),
    [
        # The pair's rack is struck while the single one is away: it alone matters, and the rack.
        ("rack", (ALONE, TWO), (1, 6)),
        # The racks of both: two events, whoever the replicas are.
        ("rack", (AWAY, TWO), (1, 2)),
        # The single broker is struck while the pair's rack is away: six brokers.
        ("broker", (AT_HAND, RackOutage(2, 0, True)), (1, 6)),
        # One of the pair alone, the other struck, the single one's rack away: six pairs, both ways.
        ("broker", (AWAY, RackOutage(2, 1, False)), (2, 12)),
        # The single one struck while one of the pair is away and the other at hand: or that one.
        ("broker", (AT_HAND, RackOutage(2, 1, False)), (4, 72)),
        # The site is struck while one is away: whoever that is.
        ("cluster", (ALONE, TWO), (1, 6)),
        ("cluster", (AT_HAND, RackOutage(2, 1, False)), (2, 6)),
        # One of the pair, which leads or not, is struck while the other lags: that one does not.
        ("broker", (AWAY, RackOutage(2, 1, False, 1)), (1, 6)),
        # The pair's rack is back while the single one is away: by itself, or its rack.
        (RACK_REPAIR, (ALONE, RackOutage(2, 0, True)), (1, 6)),
        (RACK_REPAIR, (AWAY, RackOutage(2, 0, True)), (2, 2)),
        # The single one is back while the pair's rack is away: six brokers.
        (BROKER_REPAIR, (ALONE, RackOutage(2, 0, True)), (1, 6)),
        # One of a pair is back while the other is at hand and the single one's rack is away.
        (BROKER_REPAIR, (AWAY, RackOutage(2, 1, False)), (2, 12)),
    ],
)
def test_an_event_is_counted_once(
    scope: str, racks: tuple[RackOutage, ...], found: tuple[int, int]
) -> None:
    """Of 18 sets of two racks, by what those who lose together have in common."""
    assert meet(scope, *racks) == found


def test_who_is_left_at_hand_tells_events_apart() -> None:
    """A rack is struck with one of three racks away: the third rack's broker matters, too."""
    found = occurrences((1, 1, 1), (AT_HAND, AT_HAND, AWAY), "rack")
    assert len(found) == 6
    assert Occurrence(0, (), (2,), (1,)) in found


def test_who_leads_does_not_lag() -> None:
    """A pair of each other's followers: one event for each who leads, whoever may lead both."""
    met = (0, 1), "broker", (AT_HAND, RackOutage(1, 1, False, 1))
    two = {0: "a", 3: "b"}
    for lists, preferred_leader, events, part in (
        (((0, 3),), True, 1, 1.0),
        (((0, 3), (3, 0)), True, 2, 1.0),
        (((0, 3),), False, 2, 0.5),
    ):
        found, parts = CoincidentSets({(0, 1): lists}, two, preferred_leader).events(*met)
        assert (len(found), set(parts.tolist())) == (events, {part})


def rate_of(model: FailureModel, config: Config, *lists: tuple[int, ...]) -> float:
    """First losses a year of some partitions on six brokers in two racks."""
    cluster = Cluster(brokers=RACK_OF)
    load = Workload(partitions=len(lists), records_per_second=100.0)
    return 1.0 / evaluate(cluster, config, model, load, placement=lists).mean_years_to_loss


@pytest.mark.parametrize("unclean", [False, True])
def test_partitions_that_lead_each_other_do_not_lose_together(unclean: bool) -> None:
    """A follower lags and its leader's power fails: whom the follower leads loses nothing.

    By hand, in leading order: what was written meanwhile is in the leader's page cache alone.
    """
    lags, hours, strikes = 50.0, 2.0, 3.0
    model = card(
        broker_lag={"per_year": lags, "minutes": 60.0 * hours},
        broker_power={"per_year": strikes, "minutes": 1.0},
        flush={"seconds": 600.0},
    )
    config = Config(
        replication_factor=2, min_insync_replicas=1, unclean_leader_election_enable=unclean
    )
    one = rate_of(model, config, (0, 3))
    assert one == pytest.approx(strikes * lags * hours / YEAR, rel=0.03)
    assert rate_of(model, config, (0, 3), (0, 3)) == pytest.approx(one, rel=1e-12)
    assert rate_of(model, config, (0, 3), (3, 0)) == pytest.approx(2.0 * one, rel=0.01)


def test_who_is_back_first_is_so_for_all_that_waited_for_it() -> None:
    """A rack is cut off, then the other; the first is back first, and leads what it lacks.

    By hand, in leading order: so often a year, whether one set or all nine stand in both racks.
    """
    strikes, hours = 4.0, 2.0
    model = card(rack_network={"per_year": strikes, "minutes": 60.0 * hours})
    config = Config(
        replication_factor=2, min_insync_replicas=1, unclean_leader_election_enable=True
    )
    by_hand = strikes**2 * hours / YEAR
    one = rate_of(model, config, (0, 3))
    assert one == pytest.approx(by_hand, rel=0.01)
    across = tuple((one, other) for one in (0, 1, 2) for other in (3, 4, 5))
    assert rate_of(model, config, *across) == pytest.approx(by_hand, rel=0.01)


def test_a_broker_that_is_back_leads_all_that_wait_for_a_rack() -> None:
    """One is away, then the other, and the first is back first: a broker, or its rack.

    By hand, in leading order, for one set and for three that share a broker. Two racks, or that
    broker and the others' rack: one event for all. One of the others and a rack or broker: three.
    """
    crashes, strikes, hours = 10.0, 4.0, 2.0
    model = card(
        broker_crash={"per_year": crashes, "minutes": 60.0 * hours},
        rack_network={"per_year": strikes, "minutes": 60.0 * hours},
    )
    config = Config(
        replication_factor=2, min_insync_replicas=1, unclean_leader_election_enable=True
    )
    shared = tuple((0, other) for other in (3, 4, 5))
    for sets in (1, 3):
        pairs = strikes**2 + strikes * crashes + sets * (strikes * crashes + crashes**2)
        by_hand = pairs * hours / YEAR
        assert rate_of(model, config, *shared[:sets]) == pytest.approx(by_hand, rel=0.02)


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
    assert (
        exact.first_loss_upper.probability
        < chance.low
        < chance.high
        < exact.loss_probability_per_year
    )
    off = exact.error_bounds["loss_probability_per_year"]
    assert exact.loss_probability_per_year - off < chance.low
    assert abs(off_by(found.loss_events_per_year, exact.loss_events_per_year)) < FAR


@pytest.mark.parametrize(
    ("name", "brokers", "racks", "replicas", "least", "unclean"),
    [
        ("two_az", 6, 2, 2, 1, True),
        ("two_az", 9, 2, 3, 1, True),
        ("two_az", 9, 3, 2, 1, False),
        ("bare_metal_racks", 4, 3, 2, 1, False),
        ("bare_metal_racks", 4, 2, 2, 2, True),
        ("three_az_cloud", 4, 3, 2, 1, True),
    ],
)
def test_many_sets_lose_as_often_as_sampled(
    name: str, brokers: int, racks: int, replicas: int, least: int, unclean: bool
) -> None:
    """Sets that share brokers and racks, led by all in turn: the chance that any of them loses.

    What they share is worked out in leading order: a tenth is left for the rest.
    """
    config = Config(
        replication_factor=replicas,
        min_insync_replicas=least,
        unclean_leader_election_enable=unclean,
    )
    model, load = stressed(load_model(name)), Workload(partitions=18)
    cluster = Cluster.uniform(brokers, racks)
    exact = evaluate(cluster, config, model, load).loss_probability_per_year
    found, _ = sample(cluster, config, model, load, years=3000)
    chance = found.loss_probability_per_year
    assert chance.value * chance.n > 200
    assert math.exp(-FAR * width(chance) - 0.1) < exact / chance.value
    assert exact / chance.value < math.exp(FAR * width(chance) + 0.1)


def width(chance: Estimate) -> float:
    """A standard error of a sampled chance, as a share of it."""
    return math.log(chance.high / chance.low) / (2.0 * 1.96)
