"""What results take for granted is said where it bears on them, and nowhere else."""

import re

import pytest

from advisor.cluster import Cluster
from advisor.pipeline.simulate import simulate
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.results.assumptions import OUTSIDE_EVERY_CARD, assumptions

CRASH = {"per_year": 1.0, "minutes": 5.0}
NETWORK = {"per_year": 0.5, "minutes": 60.0}
CONFIG = Config(replication_factor=3, min_insync_replicas=3, acks="all")
ELSEWHERE = {101: "x", 102: "y", 103: "z"}
# Nothing is to be said about its controllers.
AT = Cluster.uniform(brokers=6, racks=3, controllers=ELSEWHERE)


def restarts(per_year: float, minutes: float) -> FailureModel:
    return FailureModel.from_dict(
        {"broker": {"restart": {"per_year": per_year, "minutes": minutes}}}
    )


def test_restarts_that_do_not_fit_into_a_year_are_said():
    """Weekly hours fit for 100 brokers and not for 400; what is told to divide by mends it."""
    weekly = restarts(52, 60)
    fits, too_many = (
        evaluate(Cluster.uniform(brokers=brokers, racks=None), CONFIG, weekly)
        for brokers in (100, 400)
    )
    assert fits.assumptions == (OUTSIDE_EVERY_CARD,)
    said, outside = too_many.assumptions
    assert outside == OUTSIDE_EVERY_CARD
    assert "400 brokers, one at a time, would take 21,000 hours of a year of 8,760" in said
    assert "38 % of them" in said
    told = re.search(r"divide that part by ([\d.]+)$", said)
    assert told is not None
    # Two digits are shown, so half of the second one may be missing.
    mended = too_many.write_unavailability / float(told[1])
    assert mended == pytest.approx(fits.write_unavailability, rel=0.005 / float(told[1]))


@pytest.mark.parametrize("left", [0.999, 1.0])
def test_restarts_are_said_from_the_first_one_left_out(left):
    """A calendar that is nine tenths full is counted whole."""
    brokers, minutes = 10, 60.0
    per_year = 0.9 * 8760 / brokers / left
    at = Cluster.uniform(brokers=brokers, racks=None)
    said = assumptions(at, CONFIG, restarts(per_year, minutes))
    assert len(said) == (2 if left < 1.0 else 1)


def test_restarts_that_never_happen_are_not_spoken_of():
    """A rate of 0, or none."""
    for card in (restarts(0, 60), FailureModel.from_dict({"broker": {"crash": CRASH}})):
        assert assumptions(AT, CONFIG, card) == (OUTSIDE_EVERY_CARD,)


@pytest.mark.parametrize(
    ("cluster", "config", "card"),
    [
        (
            Cluster.uniform(brokers=3, racks=None),
            CONFIG.changed(acks=1),
            {"rack": {"network": NETWORK}},
        ),
        (AT, CONFIG, {"broker": {"restart": {"per_year": 52, "minutes": 48 * 60}}}),
        (
            AT,
            CONFIG,
            {
                "broker": {"destroyed": {"hours": 24.0}},
                "cluster": {"power": {"per_year": 1.0, "minutes": 120, "not_returning": 0.05}},
            },
        ),
    ],
    ids=["racks and leaders", "restarts", "replacements"],
)
def test_samples_take_the_same_for_granted(cluster, config, card):
    """The sampler reads the same cluster and card by the same rules: it says what is computed."""
    model = FailureModel.from_dict(card)
    sampled = simulate(cluster, config, model, years=10, engine="local")
    assert sampled.assumptions == evaluate(cluster, config, model).assumptions
    assert len(sampled.assumptions) > 1
    assert sampled.to_dict()["assumptions"] == list(sampled.assumptions)
    for text in sampled.assumptions:
        assert f"Assumed: {text}." in sampled.explain()


def test_the_sampler_restarts_no_more_than_fits_either():
    """Of weekly days for 100 brokers, as small a share comes off in a sample as is told."""
    at = Cluster.uniform(brokers=100, racks=10)
    told = simulate(at, CONFIG, restarts(52, 24 * 60), years=20, engine="local")
    said, _ = told.assumptions
    kept = re.search(r"divide that part by ([\d.]+)$", said)
    assert kept is not None
    whole = 3 * 52 * 24 / 8760
    stops = told.write_unavailability
    # Two digits are shown, so half of the second one may be missing.
    assert stops.low < 1.05 * float(kept[1]) * whole
    assert stops.high > 0.95 * float(kept[1]) * whole


@pytest.mark.parametrize(
    ("acks", "what"), [(1, "more acknowledged records are lost"), (0, "more records are dropped")]
)
def test_leaders_that_are_cut_off_and_go_on_are_said(acks, what):
    """A rack's network goes: with acks=1 and 0 what clients on that side send is not counted."""
    card = FailureModel.from_dict({"rack": {"network": NETWORK}})
    said, _ = evaluate(AT, Config(replication_factor=3, acks=acks), card).assumptions
    assert f"whose rack is cut off takes no more records with acks={acks}" in said
    assert "after 60 minutes on average" in said
    assert what in said
    assert said.endswith("acks=all prevents it")


@pytest.mark.parametrize(
    ("config", "cluster", "card"),
    [
        (CONFIG, AT, {"rack": {"network": NETWORK}}),
        (CONFIG.changed(acks=1), AT, {"rack": {"power": NETWORK}}),
        (CONFIG.changed(acks=1), AT, {"rack": {"network": {**NETWORK, "per_year": 0}}}),
        (Config(replication_factor=1, acks=1), AT, {"rack": {"network": NETWORK}}),
        (
            CONFIG.changed(acks=1),
            Cluster.uniform(brokers=3, racks=1),
            {"rack": {"network": NETWORK}},
        ),
    ],
    ids=["acks=all", "power", "never", "no successor", "one rack"],
)
def test_nothing_is_said_where_no_replica_takes_over_from_an_isolated_leader(config, cluster, card):
    """All is waited for, the leader is down itself, or there is no successor meanwhile."""
    said = assumptions(cluster, config, FailureModel.from_dict(card))
    assert said == (OUTSIDE_EVERY_CARD,)


def test_the_brokers_without_a_rack_are_named():
    """One or several of them; all are not named one by one."""
    card = FailureModel.from_dict({"rack": {"network": NETWORK}})
    starts = [
        assumptions(Cluster(brokers=racks), CONFIG, card)[0].partition(" counted")[0]
        for racks in ({1: "a", 2: None}, {1: "a", 2: None, 3: None}, {1: None, 2: None})
    ]
    assert starts == [
        "the rack of broker 2 is not known; it is",
        "the racks of brokers 2, 3 are not known; each is",
        "the rack of no broker is known; each is",
    ]


def test_brokers_without_a_rack_can_be_cut_off_one_by_one():
    """Each counts as a rack of its own, so that both are said."""
    at = Cluster.uniform(brokers=3, racks=None, controllers=ELSEWHERE)
    said = assumptions(
        at, CONFIG.changed(acks=1), FailureModel.from_dict({"rack": {"network": NETWORK}})
    )
    assert ["rack of no broker is known" in said[0], "is cut off" in said[1]] == [True, True]


def site(per_year: float = 1.0, not_returning: float = 0.05, shape: float = 1.0) -> FailureModel:
    return FailureModel.from_dict(
        {
            "broker": {"destroyed": {"hours": 24.0, "shape": shape}},
            "cluster": {
                "power": {"per_year": per_year, "minutes": 120, "not_returning": not_returning}
            },
        }
    )


def test_new_brokers_before_the_old_ones_are_back_are_said():
    """Power of the site: an exponential day is often over within two hours; a stage of four not."""
    config = CONFIG.changed(unclean_leader_election_enable=True)
    said, _ = evaluate(AT, config, site()).assumptions
    assert "takes an exponential time, 24 hours on average" in said
    assert "120 minutes on average" in said
    assert "fewer records are lost than shown; give broker.destroyed.shape" in said
    exponential, alike = (
        simulate(AT, config, site(shape=shape), years=20_000, engine="local") for shape in (1, 4)
    )
    lost = exponential.acked_records_lost_per_year
    assert alike.acked_records_lost_per_year.high < lost.low


def test_how_far_two_stages_may_be_off_is_said():
    """The exact answer has too few of the quickest replacements, and says how much that can do."""
    config = CONFIG.changed(unclean_leader_election_enable=True)
    wide = site(per_year=20.0, shape=0.5)
    exact = evaluate(AT, config, wide)
    found = simulate(AT, config, wide, years=20_000, engine="local")
    (times,) = re.findall("up to about (.+) times as many records as shown", exact.assumptions[0])
    truth = found.acked_records_lost_per_year
    assert truth.low > 1.1 * exact.acked_records_lost_per_year
    assert truth.high < float(times) * exact.acked_records_lost_per_year
    assert "stages" not in found.assumptions[0]
    assert "stages" not in evaluate(AT, config, site(shape=1.0)).assumptions[0]


def test_order_of_replacement_does_not_matter_without_unclean_elections():
    """Only an operator or an unclean election puts another in the place of the last leader."""
    unclean = CONFIG.changed(unclean_leader_election_enable=True)
    acts = FailureModel.from_dict(
        {
            "broker": {"destroyed": {"hours": 24.0}},
            "cluster": {"power": {"per_year": 1.0, "minutes": 120, "not_returning": 0.05}},
            "operator": {"hours": 4.0},
        }
    )
    for config, card, matters in (
        (CONFIG, site(), False),
        (unclean, site(), True),
        (CONFIG, acts, True),
    ):
        said = assumptions(AT, config, card)
        assert any("exponential time" in text for text in said) is matters


@pytest.mark.parametrize(
    ("card", "replicas"),
    [(site(per_year=0), 3), (site(not_returning=0), 3), (site(shape=4), 3), (site(), 1)],
    ids=["never", "all return", "another shape", "no successor"],
)
def test_where_no_new_broker_can_come_first_nothing_is_said(card, replicas):
    """No such power failure, times of another shape, or no other broker that could be sooner."""
    config = Config(replication_factor=replicas, unclean_leader_election_enable=True)
    assert assumptions(AT, config, card) == (OUTSIDE_EVERY_CARD,)


@pytest.mark.parametrize(
    ("racks", "mode", "start"),
    [
        ({1: "b", 2: "a", 3: "b"}, "kraft", "controllers are not known; there are three, two of"),
        ({1: "b", 2: "a"}, "zookeeper", "ZooKeeper servers are not known; there are three, two of"),
        ({1: "a", 2: "b", 3: "c"}, "kraft", "controllers are not known, so they are taken to"),
        ({1: None, 2: None}, "kraft", "controllers are not known, so they are taken to"),
    ],
    ids=["two racks", "ZooKeeper", "three racks", "unknown racks"],
)
def test_where_voters_are_not_known_it_is_said_where_they_are_counted(racks, mode, start):
    """Two racks: two of three in the first by name, which stops elections; else never."""
    version = {"kafka_version": "3.9"} if mode == "zookeeper" else {}
    config = Config(replication_factor=2, min_insync_replicas=1, mode=mode, **version)
    for name in ("network", "power", "destroyed"):
        card = FailureModel.from_dict(
            {"rack": {name: NETWORK if name != "destroyed" else {"per_year": 1.0}}}
            | ({"broker": {"destroyed": {"hours": 9}}} if name == "destroyed" else {})
        )
        said = assumptions(Cluster(brokers=racks), config, card)
        found = [text for text in said if text.startswith(f"the racks of the {start}")]
        # A rack that burns is not one that is out: it strikes brokers alone.
        assert len(found) == (0 if name == "destroyed" else 1)
        assert all(("two of them in rack a." in text) is ("two of" in start) for text in found)


def test_the_rack_that_is_named_is_the_one_that_stops_elections():
    """Two racks, the voters unknown: the same as two of them in the first, one in the other.

    Both replicas are in the second. While the first is cut off no controller replaces a leader
    that crashes, so that writes stop for longer.
    """
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    cut = {"per_year": 50.0, "minutes": 60.0}
    card = FailureModel.from_dict({"rack": {"network": cut}, "broker": {"crash": cut}})
    config = Config(replication_factor=2, min_insync_replicas=1)
    unknown, first, second = (
        evaluate(
            Cluster(brokers=racks, controllers=voters), config, card, placement=((3, 4),)
        ).write_unavailability
        for voters in (None, {7: "a", 8: "a", 9: "b"}, {7: "a", 8: "b", 9: "b"})
    )
    assert unknown == first
    assert unknown > 1.001 * second


@pytest.mark.parametrize(
    ("cluster", "card"),
    [
        (Cluster(brokers={1: "a", 2: "b"}, controllers={7: "a", 8: "b", 9: "b"}), "network"),
        (Cluster(brokers={1: "a", 2: "b"}, controllers=ELSEWHERE), "network"),
        (Cluster(brokers={1: "a", 2: "a"}), "network"),
        (Cluster(brokers={1: "a", 2: "b"}), None),
    ],
    ids=["known", "known elsewhere", "one rack", "no outages of racks"],
)
def test_of_voters_that_are_known_or_never_struck_nothing_is_said(cluster, card):
    """Their racks are in the description, or no outage of racks tells them apart."""
    found = {"rack": {card: NETWORK}} if card else {"broker": {"crash": CRASH}}
    config = Config(replication_factor=2, min_insync_replicas=1)
    assert assumptions(cluster, config, FailureModel.from_dict(found)) == (OUTSIDE_EVERY_CARD,)


DISKS = {"broker": {"destroyed": {"per_year": 1.0, "hours": 24.0}}}


@pytest.mark.parametrize(
    ("operator", "words"),
    [
        ({}, "until a replaced, empty broker leads, and the whole log is lost."),
        (
            {"operator": {"hours": 4.0}},
            "an operator elects the most complete log that is left after 4 hours on average",
        ),
    ],
)
def test_what_operators_do_is_said_where_disks_are_destroyed(operator, words):
    """Never by default, or after the hours of the card, as the numbers have it."""
    config = Config(replication_factor=3, min_insync_replicas=2)
    result = evaluate(AT, config, FailureModel.from_dict(DISKS | operator))
    said, outside = result.assumptions
    assert outside == OUTSIDE_EVERY_CARD
    assert said.startswith("where no replica that Kafka may elect can return with its log, ")
    assert words in said
    assert "operator.hours" in said
    at_once = evaluate(AT, config, FailureModel.from_dict(DISKS | {"operator": {"hours": 1e-5}}))
    assert result.write_unavailability > at_once.write_unavailability


@pytest.mark.parametrize(
    ("config", "card"),
    [
        (Config(replication_factor=1), DISKS),
        (Config(replication_factor=3, unclean_leader_election_enable=True), DISKS),
        (Config(replication_factor=3), {"broker": {"crash": CRASH}}),
        (Config(replication_factor=3), {"broker": {"destroyed": {"per_year": 0, "hours": 24}}}),
    ],
    ids=["one replica", "unclean elections", "nothing destroyed", "never destroyed"],
)
def test_where_nothing_is_left_to_elect_by_hand_nothing_is_said(config, card):
    """No other replica, Kafka elects it itself, or every log returns."""
    assert assumptions(AT, config, FailureModel.from_dict(card)) == (OUTSIDE_EVERY_CARD,)


def test_what_is_in_no_card_is_said_once_with_its_evidence():
    """Bugs and deleted topics, at the end of every result's assumptions."""
    result = evaluate(AT, CONFIG, site())
    assert result.assumptions[-1] == OUTSIDE_EVERY_CARD
    assert result.explain().count("software bugs") == 1
    for words in ("deleted topics", "one bug a year", "2014 to 2024", "commit log"):
        assert words in OUTSIDE_EVERY_CARD


@pytest.mark.parametrize(("overlap", "asked"), [(0.0, 1), (0.5, 0), (1.0, 0), (None, 0)])
def test_what_tooling_does_is_asked_for(overlap: float | None, asked: int) -> None:
    """A card that takes waiting for granted says so, with the question; one that knows does not."""
    restart = {"per_year": 12.0, "minutes": 8.0}
    if overlap is not None:
        restart["overlap"] = overlap
    card = FailureModel.from_dict({"broker": {"restart": restart}})
    said = [text for text in assumptions(AT, CONFIG, card) if "broker.restart.overlap" in text]
    assert len(said) == asked
    assert all(text.endswith("before it restarts the next broker?") for text in said)
