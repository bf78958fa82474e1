"""Each mechanism alone against a closed form or an enumeration, none of it code of the chain."""

from itertools import product

import pytest

from advisor import Cluster, Config, FailureModel, Workload, evaluate

YEAR = 8760.0
LOAD = Workload(partitions=1, records_per_second=1000.0, replication_delay_ms=0.0)


def config(replicas=3, least=2, acks="all", **more):
    """Return a configuration in which stalls take no time."""
    return Config(
        kafka_version="4.1",
        replication_factor=replicas,
        min_insync_replicas=least,
        acks=acks,
        replica_lag_time_max_ms=1,
        **more,
    )


def solved(tables, settings, *, brokers=6, racks=3, controllers=None, load=LOAD):
    """Evaluate a card of bare numbers."""
    cluster = Cluster.uniform(brokers=brokers, racks=racks, controllers=controllers)
    return evaluate(cluster, settings, FailureModel.from_dict(tables), load)


@pytest.mark.parametrize("name", ["crash", "rollout", "disk_full"])
@pytest.mark.parametrize("replicas", [1, 2, 3, 4])
def test_all_brokers_at_once_are_down_for_their_share_of_time(name, replicas):
    """With ``brokers = 1``: down time over up time plus down time."""
    tables = {"cluster": {name: {"per_year": 2.0, "brokers": 1.0, "minutes": 230.0}}}
    found = solved(tables, config(replicas, 1))
    up, down = YEAR / 2.0, 230.0 / 60.0
    assert found.write_unavailability == pytest.approx(down / (up + down), rel=1e-9)
    assert found.loss_events_per_year == 0.0


@pytest.mark.parametrize("least", [1, 2, 3])
def test_some_brokers_at_once_by_enumeration(least):
    """Writes stop if too few are left; brokers struck together while all are up return together.

    An event while others are down is enumerated as well: states are the sets of struck replicas.
    """
    rate, share, back = 3.0 / YEAR, 0.4, 1.0 / 2.0
    tables = {"cluster": {"crash": {"per_year": 3.0, "brokers": share, "minutes": 120.0}}}
    found = solved(tables, config(3, least))
    # By the number of replicas down; each event strikes those still running.
    down = [1.0, 0.0, 0.0, 0.0]
    for _ in range(200):
        new = [0.0] * 4
        entered = [0.0] * 4
        for before in range(4):
            for struck in product((0, 1), repeat=3 - before):
                k = sum(struck)
                chance = share**k * (1.0 - share) ** (3 - before - k)
                if k:
                    entered[before + k] += down[before] * rate * chance
        for state in (1, 2, 3):
            leaving = back + rate * (1.0 - (1.0 - share) ** (3 - state))
            new[state] = entered[state] / leaving
        new[0] = 1.0 - sum(new[1:])
        down = new
    refused = sum(down[k] for k in range(4) if 3 - k < least)
    assert found.write_unavailability == pytest.approx(refused, rel=1e-6)


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_wiped_logs_are_lost_where_every_replica_is_struck(replicas):
    """One partition loses all at per_year x brokers^RF."""
    share = 0.7
    tables = {"cluster": {"wiped": {"per_year": 1e-5, "brokers": share, "hours": 5.0}}}
    found = solved(tables, config(replicas, 1))
    assert found.loss_events_per_year == pytest.approx(1e-5 * share**replicas, rel=1e-6)


def test_a_limping_leader_that_dies_loses_with_min_isr_1_only():
    """One loss for each death of the leader; with min ISR 2 nothing is acknowledged meanwhile."""
    gray = {"per_year": 1e-3, "minutes": 20.0, "dies": 0.1}
    tables = {"broker": {"gray": gray}, "flush": {"seconds": 35.0}}
    alone, safe = solved(tables, config(3, 1)), solved(tables, config(3, 2))
    assert alone.loss_events_per_year == pytest.approx(1e-3 * 0.1, rel=1e-6)
    assert set(alone.causes["loss_events_per_year"]) == {"broker.gray"}
    assert safe.loss_events_per_year < 1e-9
    # The leader limps for 20 minutes; if it dies, its outage takes 20 more, as the card has no
    # other number, and writes go on as soon as another leads.
    share = 1e-3 / YEAR / 3.0
    assert safe.write_unavailability == pytest.approx(share, rel=1e-4)
    assert alone.write_unavailability == pytest.approx(share * 0.1, rel=1e-4)


def test_without_a_controller_nothing_is_elected():
    """A leader that dies meanwhile stays away until the controller is back; others go on.

    Both are rare, so that writes stop when the second of two comes: a replica that dies while
    there is no controller (any of three: the ISR cannot shrink), until the controller is back
    (a crashed broker cannot register before).
    """
    rates = {"controller": {"per_year": 1e-3, "minutes": 240.0, "stops": 0.0}}
    tables = {"cluster": rates, "broker": {"crash": {"per_year": 1e-3, "minutes": 1.0}}}
    found = solved(tables, config(3, 1))
    crash, lost, back = 3.0 * 1e-3 / YEAR, 1e-3 / YEAR, 1.0 / 4.0
    # The quorum is lost; a crash follows before it is back; the wait is as long again.
    expected = lost / back * crash / back
    assert found.write_unavailability == pytest.approx(expected, rel=1e-3)
    # With acks=1 the leader alone is missed.
    one = solved(tables, config(3, 1, acks=1))
    assert one.write_unavailability == pytest.approx(expected / 3.0, rel=1e-3)


@pytest.mark.parametrize("unclean", [False, True])
@pytest.mark.parametrize("stops", [0.25, 1.0])
def test_a_controller_outage_that_stops_clients(stops, unclean):
    """Its share of time, of those events that stop clients."""
    numbers = {"per_year": 2.0, "minutes": 240.0, "stops": stops}
    settings = config(3, 2, unclean_leader_election_enable=unclean)
    found = solved({"cluster": {"controller": numbers}}, settings)
    load = 2.0 * 4.0 / YEAR
    assert found.write_unavailability == pytest.approx(stops * load / (1.0 + load), rel=1e-9)


def test_two_data_centres_lose_elections_with_the_majority_of_voters():
    """Two of three voters in the first: with it gone, nothing is written in the second either."""
    rate, hours = 0.01, 1.0
    tables = {"rack": {"network": {"per_year": rate, "minutes": 60.0 * hours}}}
    load = Workload(partitions=12, records_per_second=1000.0)
    voters = {101: "rack 0", 102: "rack 0", 103: "rack 1"}
    share = rate * hours / YEAR
    names = sorted({str(r) for r in Cluster.uniform(brokers=4, racks=2).brokers.values()})
    voters = {101: names[0], 102: names[0], 103: names[1]}
    both = solved(tables, config(4, 1), brokers=4, racks=2, controllers=voters, load=load)
    # The outage of the second costs nothing but a moment; that of the first all partitions.
    assert both.write_unavailability == pytest.approx(share, rel=1e-4)
    unknown = solved(tables, config(4, 1), brokers=4, racks=2, load=load)
    assert unknown.write_unavailability == pytest.approx(both.write_unavailability, rel=1e-9)
    elsewhere = {101: "x", 102: "y", 103: "z"}
    good = solved(tables, config(4, 1), brokers=4, racks=2, controllers=elsewhere, load=load)
    assert good.write_unavailability < share * 1e-4


@pytest.mark.parametrize("spreads", [0.0, 0.2])
def test_racks_that_fail_together_by_enumeration(spreads):
    """A replica in each of three racks of four: all subsets that one event may strike."""
    rate, back = 1e-4 / YEAR, 1.0
    tables = {"rack": {"network": {"per_year": 1e-4, "minutes": 60.0, "spreads": spreads}}}
    voters = {1: "a", 2: "b", 3: "c", 4: "d", 5: "e", 6: "f", 7: "g", 8: "h", 9: "i"}
    cluster = Cluster(brokers={0: "w", 1: "x", 2: "y", 3: "z"}, controllers=voters)
    found = evaluate(
        cluster, config(3, 2), FailureModel.from_dict(tables), LOAD, placement=((0, 1, 2),)
    )
    refused = 0.0
    for first in range(4):
        for struck in product((0, 1), repeat=4):
            if not struck[first]:
                continue
            chance = 1.0
            for rack, out in enumerate(struck):
                if rack != first:
                    chance *= spreads if out else 1.0 - spreads
            out = sum(struck[:3])
            if out >= 2:
                # Until at most one is out; each returns by itself.
                hours = sum(1.0 / (left * back) for left in range(out, 1, -1))
                refused += rate * chance * hours
    expected = refused if spreads else 0.0
    assert found.write_unavailability == pytest.approx(expected, rel=1e-3, abs=1e-15)


def test_restarts_that_do_not_wait_by_their_pairs():
    """Two of three replicas are out at once, until one is back, as often as restarts overlap."""
    numbers = {"per_year": 1e-3, "minutes": 60.0, "overlap": 0.5}
    found = solved({"broker": {"restart": numbers}}, config(3, 2))
    pairs = 3.0 * 2.0 * 1e-3 / YEAR * 0.5 / 5.0
    assert found.write_unavailability == pytest.approx(pairs / 2.0, rel=1e-4)


def test_unclean_restarts_last_as_long_as_they_say():
    """A single replica: the shares of time of both kinds of restart add up."""
    numbers = {"per_year": 1e-3, "minutes": 60.0, "unclean": 0.25, "unclean_minutes": 600.0}
    found = solved({"broker": {"restart": numbers}}, config(1, 1))
    share = 1e-3 / YEAR * (0.75 * 1.0 + 0.25 * 10.0)
    assert found.write_unavailability == pytest.approx(share, rel=1e-4)


def test_racks_that_do_not_return_take_their_logs():
    """Both replicas in one rack: lost if the one that was fenced last does not return.

    It alone is left in the ISR; the other, with its log, has to wait for it.
    """
    power = {"per_year": 1e-4, "minutes": 60.0, "not_returning": 0.1}
    tables = {"rack": {"power": power}, "broker": {"destroyed": {"hours": 5.0}}}
    cluster = Cluster(brokers={0: "a", 1: "a"})
    found = evaluate(cluster, config(2, 1), FailureModel.from_dict(tables), LOAD)
    assert found.loss_events_per_year == pytest.approx(1e-4 * 0.1, rel=1e-3)


@pytest.mark.parametrize("hours", [0.5, 50.0])
def test_an_operator_elects_what_is_left(hours):
    """The last of the ISR is gone for good, while another with its log came back before.

    Two replicas; one crashes, returns too late, the other is destroyed: Kafka waits until the
    destroyed one is replaced and leads, empty. An operator elects the stale one before, if he is
    faster: then nothing more is lost.
    """
    tables = {
        "broker": {
            "crash": {"per_year": 1e-2, "minutes": 60.0},
            "destroyed": {"per_year": 1e-2, "hours": 20.0},
        }
    }
    never = solved(tables, config(2, 1))
    acts = solved(tables | {"operator": {"hours": hours}}, config(2, 1))
    assert never.loss_events_per_year > acts.loss_events_per_year
    assert never.write_unavailability > acts.write_unavailability
    # Destroyed while the other is down with a gap: one loss in any case; the empty leader's is the
    # second, if neither the operator nor the return of the other (which does not help) is first.
    crashed = 2.0 * (1e-2 / YEAR) * (1e-2 / YEAR) / 1.0 * YEAR
    decides, replaced, back = 1.0 / hours, 1.0 / 20.0, 1.0
    empty = replaced / (replaced + back) + back / (replaced + back) * replaced / (
        replaced + decides
    )
    both_gone = 2.0 * (1e-2 / YEAR) ** 2 * 20.0 * YEAR
    found = acts.loss_events_per_year
    assert found == pytest.approx(crashed * (1.0 + empty) + both_gone, rel=2e-2)
