"""What results take for granted is said where it bears on them, and nowhere else."""

import re

import pytest

from advisor.cluster import Cluster
from advisor.protocol.config import Config
from advisor.reliability.assumptions import assumptions
from advisor.reliability.evaluate import evaluate
from advisor.reliability.model import FailureModel

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
    assert fits.assumptions == ()
    (said,) = too_many.assumptions
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
    assert bool(assumptions(at, CONFIG, restarts(per_year, minutes))) is (left < 1.0)


def test_restarts_that_never_happen_are_not_spoken_of():
    """A rate of 0, or none."""
    for card in (restarts(0, 60), FailureModel.from_dict({"broker": {"crash": CRASH}})):
        assert assumptions(AT, CONFIG, card) == ()


@pytest.mark.parametrize(
    ("acks", "what"), [(1, "more acknowledged records are lost"), (0, "more records are dropped")]
)
def test_leaders_that_are_cut_off_and_go_on_are_said(acks, what):
    """A rack's network goes: with acks=1 and 0 what clients on that side send is not counted."""
    card = FailureModel.from_dict({"rack": {"network": NETWORK}})
    (said,) = evaluate(AT, Config(replication_factor=3, acks=acks), card).assumptions
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
    assert assumptions(cluster, config, FailureModel.from_dict(card)) == ()


def test_brokers_without_a_rack_can_be_cut_off_one_by_one():
    """Each counts as a rack of its own, so that both are said."""
    at = Cluster.uniform(brokers=3, racks=None)
    said = assumptions(
        at, CONFIG.changed(acks=1), FailureModel.from_dict({"rack": {"network": NETWORK}})
    )
    assert ["rack of no broker is known" in said[0], "is cut off" in said[1]] == [True, True]
