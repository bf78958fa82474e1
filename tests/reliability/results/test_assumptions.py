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
AT = Cluster.uniform(brokers=6, racks=3)


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
    assert f"no records with acks={acks} once its rack is cut off" in said
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
    ids=["acks=all", "power", "never", "nobody else", "one rack"],
)
def test_where_nobody_takes_over_from_a_leader_that_goes_on_nothing_is_said(config, cluster, card):
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
    at = Cluster.uniform(brokers=3, racks=None)
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
    said, _ = evaluate(AT, CONFIG, site()).assumptions
    assert "takes an exponential time, 24 hours on average" in said
    assert "120 minutes on average" in said
    assert "fewer records are lost than shown; give broker.destroyed.shape" in said
    exponential, alike = (
        simulate(AT, CONFIG, site(shape=shape), years=20_000, engine="local") for shape in (1, 4)
    )
    lost = exponential.acked_records_lost_per_year
    assert alike.acked_records_lost_per_year.high < lost.low


@pytest.mark.parametrize(
    ("card", "replicas"),
    [(site(per_year=0), 3), (site(not_returning=0), 3), (site(shape=4), 3), (site(), 1)],
    ids=["never", "all return", "another shape", "nobody else"],
)
def test_where_no_new_broker_can_come_first_nothing_is_said(card, replicas):
    """Without such a cut, with times of another shape, or with nobody to be sooner than."""
    assert assumptions(AT, Config(replication_factor=replicas), card) == (OUTSIDE_EVERY_CARD,)


def test_what_is_in_no_card_is_said_once_with_its_evidence():
    """Bugs, regions and deleted topics, at the end of every result's assumptions."""
    result = evaluate(AT, CONFIG, site())
    assert result.assumptions[-1] == OUTSIDE_EVERY_CARD
    assert result.explain().count("software bugs") == 1
    for words in ("region", "deleted topics", "one bug a year", "2014 to 2024", "commit log"):
        assert words in OUTSIDE_EVERY_CARD
