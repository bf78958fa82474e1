"""Coincident losses: which losses of several replica sets are one event, and the first loss."""

from __future__ import annotations

import math
from itertools import permutations

import pytest

from advisor import Cluster, Config, FailureModel, Workload, evaluate, load_model
from advisor.reliability.common_cause.coincidence import CoincidentSets, Occurrence, occurrences
from advisor.reliability.common_cause.outage_class import BROKER_REPAIR, RACK_REPAIR, RackOutage
from advisor.reliability.results.sampled import Estimate
from configuration_grid import stressed
from sampled_runs import ELSEWHERE, FAR, YEAR, card, off_by, sample

UP, RACK_OUT, BROKER_OUT = RackOutage(1, 0, False), RackOutage(1, 0, True), RackOutage(1, 1, False)
PAIR_UP = RackOutage(2, 0, False)
# Two racks of three brokers; every replica set with a pair in one and a single in the other.
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


def events(scope: str, *racks: RackOutage, preferred_leader: bool = True) -> tuple[int, int]:
    """In how many ways one set can take part, and the number of distinct events of all sets."""
    members = {PATTERN: SETS}
    numbers, shares = CoincidentSets(members, RACK_OF, preferred_leader).events(
        PATTERN, scope, tuple(sorted(racks))
    )
    (share,) = set(shares.tolist())
    return round(1 / share), len(numbers)


@pytest.mark.parametrize(
    ("scope", "racks", "expected"),
    [
        # The pair's rack fails while the single broker is out: one event per single broker.
        ("rack", (BROKER_OUT, PAIR_UP), (1, 6)),
        # The pair's rack fails while the other is out: two events, for any replicas.
        ("rack", (RACK_OUT, PAIR_UP), (1, 2)),
        # The single broker fails while the pair's rack is out: six brokers.
        ("broker", (UP, RackOutage(2, 0, True)), (1, 6)),
        # One of the pair is out, the other fails, the single's rack is out: six pairs, both ways.
        ("broker", (RACK_OUT, RackOutage(2, 1, False)), (2, 12)),
        # One of the pair is out, the other up; that one or the single fails.
        ("broker", (UP, RackOutage(2, 1, False)), (4, 72)),
        # The cluster fails while one broker is out: an event for each such broker.
        ("cluster", (BROKER_OUT, PAIR_UP), (1, 6)),
        ("cluster", (UP, RackOutage(2, 1, False)), (2, 6)),
        # One of the pair fails while the other lags, which therefore does not lead.
        ("broker", (RACK_OUT, RackOutage(2, 1, False, 1)), (1, 6)),
        # The pair's rack returns while the single is out, by its broker or by its rack.
        (RACK_REPAIR, (BROKER_OUT, RackOutage(2, 0, True)), (1, 6)),
        (RACK_REPAIR, (RACK_OUT, RackOutage(2, 0, True)), (2, 2)),
        # The single broker returns while the pair's rack is out: six brokers.
        (BROKER_REPAIR, (BROKER_OUT, RackOutage(2, 0, True)), (1, 6)),
        # One of the pair returns while the other is up and the single's rack is out.
        (BROKER_REPAIR, (RACK_OUT, RackOutage(2, 1, False)), (2, 12)),
    ],
)
def test_an_event_is_counted_once(
    scope: str, racks: tuple[RackOutage, ...], expected: tuple[int, int]
) -> None:
    """Events of 18 sets in two racks, by the outages that sets losing together share."""
    assert events(scope, *racks) == expected


def test_unaffected_replicas_distinguish_events() -> None:
    """A rack fails with one of three racks out: the broker in the third rack matters too."""
    found = occurrences((1, 1, 1), (UP, UP, RACK_OUT), "rack")
    assert len(found) == 6
    assert Occurrence((0,), (), (2,), (1,)) in found


def test_a_leader_does_not_lag() -> None:
    """Two brokers that follow each other: one event per preferred leader, or both if any leads."""
    asked = (0, 1), "broker", (UP, RackOutage(1, 1, False, 1))
    two = {0: "a", 3: "b"}
    for lists, preferred_leader, count, share in (
        (((0, 3),), True, 1, 1.0),
        (((0, 3), (3, 0)), True, 2, 1.0),
        (((0, 3),), False, 2, 0.5),
    ):
        found, shares = CoincidentSets({(0, 1): lists}, two, preferred_leader).events(*asked)
        assert (len(found), set(shares.tolist())) == (count, {share})


def rate_of(model: FailureModel, config: Config, *lists: tuple[int, ...]) -> float:
    """First losses a year over some partitions on six brokers in two racks."""
    cluster = Cluster(brokers=RACK_OF, controllers=ELSEWHERE)
    load = Workload(partitions=len(lists), records_per_second=100.0)
    return 1.0 / evaluate(cluster, config, model, load, placement=lists).mean_years_to_loss


@pytest.mark.parametrize("unclean", [False, True])
def test_partitions_that_lead_each_other_do_not_lose_together(unclean: bool) -> None:
    """A follower lags and its leader loses power: partitions led by the follower lose nothing.

    By hand, in leading order: records written meanwhile are in the leader's page cache alone.
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


def test_a_stale_rack_that_returns_first_leads_every_set() -> None:
    """A rack is cut off, then the other; the first returns first, and leads with a stale log.

    By hand, in leading order: the same rate for one set as for all nine across the two racks.
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


def test_a_returning_broker_leads_every_set_that_waits_for_a_rack() -> None:
    """One replica is out, then the other, and the first returns first, by its broker or rack.

    By hand, in leading order, for one set and for three that share a broker. Both racks, or the
    shared broker and the others' rack: one event for all sets. One of the other brokers with a
    rack or with the shared broker: three events.
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


def test_sets_with_a_broker_in_common_lose_together() -> None:
    """A rack loses power while a broker of the other is down: six events, not eighteen.

    By hand, in leading order: a rack fails at rate r, and each broker is down for a share d of the
    time; records written since then are in page caches of the failed rack alone.
    """
    crashes, hours, strikes = 20.0, 1.0, 5.0
    model = card(
        broker_crash={"per_year": crashes, "minutes": 60.0 * hours},
        rack_power={"per_year": strikes, "minutes": 20.0},
        flush={"seconds": 60.0},
    )
    cluster = Cluster(brokers=RACK_OF, controllers=ELSEWHERE)
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


def test_coincident_rack_failures_do_not_scale_with_partitions() -> None:
    """All sets span the same two racks: a hundred times as many lose hardly more often."""
    model, config = load_model("two_az"), Config(replication_factor=3, min_insync_replicas=2)
    cluster = Cluster.uniform(brokers=30, racks=2, controllers=ELSEWHERE)
    few, many = (
        evaluate(cluster, config, model, Workload(partitions=count)) for count in (300, 30_000)
    )
    assert many.loss_events_per_year > 50.0 * few.loss_events_per_year
    assert few.mean_years_to_loss < 3.0 * many.mean_years_to_loss


def test_brokers_of_a_destroyed_rack_are_replaced_one_by_one() -> None:
    """Racks are destroyed and brokers replaced one by one: neither independent nor together."""
    model = card(
        rack_destroyed={"per_year": 5.0}, broker_destroyed={"per_year": 0.0, "hours": 48.0}
    )
    cluster, config = Cluster.uniform(brokers=6, racks=3), Config(replication_factor=3)
    load = Workload(partitions=12)
    exact = evaluate(cluster, config, model, load)
    found, _ = sample(cluster, config, model, load, years=20_000)
    chance = found.loss_probability_per_year
    # A third of that of independent sets, and four times that of sets that lose together.
    assert chance.low < exact.loss_probability_per_year < chance.high
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
    """Sets that share brokers and racks, each broker leading some: within the stated error.

    That of dependence alone, which is smaller than the whole stated error.
    """
    config = Config(
        replication_factor=replicas,
        min_insync_replicas=least,
        unclean_leader_election_enable=unclean,
    )
    model, load = stressed(load_model(name)), Workload(partitions=18)
    cluster = Cluster.uniform(brokers, racks, controllers=ELSEWHERE)
    result = evaluate(cluster, config, model, load)
    exact, off = result.loss_probability_per_year, result.first_loss_upper.error
    assert 0.0 < off < 0.1
    assert off * exact <= result.error_bounds["loss_probability_per_year"]
    found, _ = sample(cluster, config, model, load, years=3000)
    chance = found.loss_probability_per_year
    assert chance.value * chance.n > 200
    assert math.exp(-FAR * width(chance) - off) < exact / chance.value
    assert exact / chance.value < math.exp(FAR * width(chance) + off)


def test_a_limping_leader_that_dies_loses_all_it_led_at_once() -> None:
    """Each broker leads two of eighteen sets: one event per death, of which it limps a tenth.

    By hand, in leading order: nine brokers, each with 0.05 deaths a year.
    """
    gray = {"per_year": 0.5, "minutes": 20.0, "dies": 0.1}
    model = card(broker_gray=gray, flush={"seconds": 35.0})
    cluster = Cluster.uniform(9, 3, controllers=ELSEWHERE)
    config = Config(replication_factor=2, min_insync_replicas=1)
    load = Workload(partitions=18, records_per_second=100.0)
    exact = evaluate(cluster, config, model, load)
    assert exact.loss_events_per_year == pytest.approx(18 * 0.05, rel=0.01)
    assert 1.0 / exact.mean_years_to_loss == pytest.approx(9 * 0.05, rel=0.01)


def test_losses_at_a_replacement_belong_to_what_destroyed_the_brokers() -> None:
    """Site power takes a tenth of the brokers for good: one event, whatever was on them.

    By hand, in leading order: every pair of the four brokers is a replica set, in both orders. Of
    two that fail at once the follower is the last in sync, and records are lost with it; single
    brokers are destroyed far more often, and lose when a second follows. Either way the loss comes
    when the first is replaced.
    """
    gone = 0.1
    model = card(
        broker_destroyed={"per_year": 0.2, "hours": 24.0},
        cluster_power={"per_year": 0.1, "minutes": 1.0, "not_returning": gone},
    )
    cluster = Cluster.uniform(4, 2, controllers=ELSEWHERE)
    config, load = Config(replication_factor=2, min_insync_replicas=1), Workload(partitions=12)
    pairs = tuple(permutations(range(1, 5), 2))
    exact = evaluate(cluster, config, model, load, placement=pairs)
    together, overlaps = 0.1 * (1.0 - (1.0 - gone) ** 4), 0.2 * 4 * 3 * 0.2 * 24.0 / YEAR
    off = exact.first_loss_upper.error
    assert off < 0.2
    assert 1.0 / exact.mean_years_to_loss == pytest.approx(together + overlaps, rel=off)
    shares = exact.causes["loss_probability_per_year"]
    expected = overlaps / (together + overlaps)
    assert shares["broker.destroyed"] / math.fsum(shares.values()) == pytest.approx(
        expected, rel=0.2
    )


def width(chance: Estimate) -> float:
    """Standard error of a sampled probability, relative to it."""
    return math.log(chance.high / chance.low) / (2.0 * 1.96)
