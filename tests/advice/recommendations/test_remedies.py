"""Where goals are missed: the cheapest change that meets them, and a softer goal."""

from dataclasses import replace

import pytest

from advisor.advice import Goals, recommend
from advisor.advice.candidate import Candidate, choose, measures_of
from advisor.advice.recommendations import remedies
from advisor.advice.recommendations.remedies import cheapest, softer_goals
from advisor.advice.tolerance import largest_share
from advisor.cluster import Cluster
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel, load_model
from advisor.reliability.workload import Workload

CONFIG = Config(replication_factor=3, min_insync_replicas=2, acks="all")
LOAD = Workload(partitions=1)
SIX = Cluster.uniform(6, 3)
TWO = Cluster.uniform(6, 2)
POWER = FailureModel.from_dict(
    {
        "broker": {"destroyed": {"per_year": 0.01, "hours": 1}},
        "rack": {"power": {"per_year": 0.05, "minutes": 60, "spreads": 0.1}},
        "flush": {"seconds": 30},
    }
)


def chosen(
    cluster: Cluster, card: FailureModel, goals: Goals, config: Config = CONFIG
) -> Candidate:
    share = largest_share(cluster.brokers, config.replication_factor or 1, str(config.mode))
    return choose(config, evaluate(cluster, config, card, LOAD), goals, share)


def test_met_goals_need_no_remedy() -> None:
    """Nothing is evaluated and nothing said."""
    goals = Goals(loss_probability_per_year=0.9, write_unavailability=0.9)
    best = chosen(SIX, POWER, goals)
    assert best.meets_all
    assert cheapest(best, evaluate, SIX, POWER, LOAD, goals) is None
    assert softer_goals(best, goals) == ""


def test_flushing_is_tried_before_a_second_power_feed() -> None:
    """Fewer records are lost with a shorter flush window, by the numbers that evaluate gives."""
    first = evaluate(SIX, CONFIG, POWER, LOAD)
    flushed = evaluate(SIX, CONFIG, POWER.with_values({"flush.seconds": 1.0}), LOAD)
    before, after = (r.acked_records_lost_per_year for r in (first, flushed))
    assert after < before / 4
    goals = Goals(
        loss_probability_per_year=None,
        write_unavailability=None,
        acked_records_lost_per_year=1.01 * after,
    )
    remedy = cheapest(chosen(SIX, POWER, goals), evaluate, SIX, POWER, LOAD, goals)
    assert remedy is not None
    assert remedy.said.startswith(
        "To meet every goal, flush every second (log.flush.scheduler.interval.ms=1000 in "
        "server.properties of every broker, "
    )
    assert remedy.flushes
    assert remedy.after.reliability.acked_records_lost_per_year == pytest.approx(after)
    assert "the number of lost records: " in remedy.said


def test_a_second_power_feed_helps_where_racks_lose_power_together() -> None:
    """A rate that is halved meets a goal that is missed by less than a factor of two."""
    lost = evaluate(SIX, CONFIG, POWER, LOAD).loss_probability_per_year
    goals = Goals(loss_probability_per_year=0.6 * lost, write_unavailability=None)
    remedy = cheapest(chosen(SIX, POWER, goals), evaluate, SIX, POWER, LOAD, goals)
    assert remedy is not None
    assert "a second power feed that halves power failures (lost records: " in remedy.said
    halved = POWER.with_values({"rack.power.per_year": 0.025})
    expected = evaluate(SIX, CONFIG, halved, LOAD).loss_probability_per_year
    assert remedy.after.reliability.loss_probability_per_year == pytest.approx(expected)
    # Where it does not do, it is said to be what helps most.
    strict = Goals(loss_probability_per_year=1e-30, write_unavailability=None)
    most = cheapest(chosen(SIX, POWER, strict), evaluate, SIX, POWER, LOAD, strict)
    assert most is not None
    assert most.said.startswith("Nothing tried meets every goal; it helps most to give racks a")


def test_a_third_rack_survives_the_loss_of_one() -> None:
    """Two racks never keep data and writes; three do with RF 3 and min ISR 2."""
    card = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 0.01, "hours": 1}}})
    goals = Goals(loss_probability_per_year=0.9, write_unavailability=0.9, survive="rack")
    best = chosen(TWO, card, goals)
    remedy = cheapest(best, evaluate, TWO, card, LOAD, goals)
    assert remedy is not None
    assert (
        "spread brokers and controllers over three racks, with RF 3 and min ISR 2 (" in remedy.said
    )
    assert "is met" in remedy.said
    assert remedy.after.meets_all
    # No limit is a goal of survival.
    assert softer_goals(best, goals) == ""


def test_voters_move_where_one_rack_has_a_majority() -> None:
    """A rack that holds two of three controllers stops elections while it is out."""
    card = FailureModel.from_dict({"rack": {"network": {"per_year": 2, "minutes": 60}}})
    crowded = Cluster.uniform(6, 3, controllers={1: "r1", 2: "r1", 3: "r2"})
    spread = Cluster.uniform(6, 3, controllers={1: "r1", 2: "r2", 3: "r3"})
    stops = [evaluate(c, CONFIG, card, LOAD).write_unavailability for c in (crowded, spread)]
    assert stops[1] < stops[0] / 2
    goals = Goals(loss_probability_per_year=None, write_unavailability=1.01 * stops[1])
    remedy = cheapest(chosen(crowded, card, goals), evaluate, crowded, card, LOAD, goals)
    assert remedy is not None
    assert remedy.said.startswith("To meet every goal, place the controllers in 3 racks")
    assert remedy.after.reliability.write_unavailability == pytest.approx(stops[1])
    assert "time without writes: " in remedy.said


@pytest.mark.parametrize("factor", [0.9, 0.1, 1e-6])
def test_a_softer_goal_is_met_and_close(factor: float) -> None:
    """The limit offered is met by the setting, within a tenth."""
    lost = evaluate(SIX, CONFIG, POWER, LOAD).loss_probability_per_year
    goals = Goals(loss_probability_per_year=factor * lost, write_unavailability=None)
    best = chosen(SIX, POWER, goals)
    said = softer_goals(best, goals)
    limit = float(said.removeprefix("A softer goal that it meets: ").split(" ")[0])
    value = measures_of(best.reliability)["loss_probability_per_year"]
    assert value <= limit <= 1.11 * value


def test_commands_and_broker_properties_say_how_to_flush() -> None:
    """Where flushing is the remedy, and only there, both have the setting as a comment."""
    three = Cluster.uniform(3, 3)
    first = evaluate(three, CONFIG, POWER, LOAD).acked_records_lost_per_year
    for limit, flushed in ((first / 4, True), (2 * first, False)):
        goals = Goals(acked_records_lost_per_year=limit)
        made = recommend(three, POWER, LOAD, goals, CONFIG)
        line = "#   log.flush.scheduler.interval.ms=1000"
        for name in ("commands.sh", "server.properties"):
            assert (line in made.files()[name].splitlines()) == flushed, name
        assert (line in made.commands()) == flushed
        topic = [each for each in made.commands() if each.endswith("--add-config flush.ms=1000")]
        assert [each[0] for each in topic] == (["#"] if flushed else [])


def changed(card: FailureModel, cluster: Cluster) -> str:
    """All changes that are tried for a strict goal, in words."""
    tried = remedies._changes(cluster, card, evaluate(cluster, CONFIG, card, LOAD))
    return "; ".join(what for what, _, _ in tried)


def test_nobody_buys_power_in_a_cloud() -> None:
    """A second feed for racks of one's own, a UPS for a single one, neither for rented ones."""
    one = Cluster.uniform(6, 1)
    assert "give racks a second power feed" in changed(POWER, SIX)
    assert "give the rack a UPS" in changed(POWER, one)
    for hosting in ("cloud", "managed"):
        rented = replace(POWER, hosting=hosting)
        assert "power feed" not in changed(rented, SIX)
        assert "UPS" not in changed(rented, one)


def test_a_ups_keeps_the_site_of_a_single_rack_from_power_cuts_too() -> None:
    """The room's power is halved with the rack's."""
    card = load_model("single_rack")
    tried = list(remedies._changes(Cluster.uniform(3, 1), card, evaluate(SIX, CONFIG, card, LOAD)))
    (halved,) = (model for what, _, model in tried if "UPS that halves" in what)
    for path in ("rack.power.per_year", "cluster.power.per_year"):
        assert halved[path] == card[path] / 2.0


def test_flushing_is_not_tried_against_rarer_losses_than_wiping() -> None:
    """It shortens what a power cut takes; whole logs that are wiped are not shorter for it."""
    wiped = {"wiped": {"per_year": 0.01, "brokers": 0.7, "hours": 5}}
    both = FailureModel.from_dict({**POWER.to_dict(), "cluster": wiped})
    assert "flush every second" in changed(POWER, SIX)
    assert "flush every second" not in changed(both, SIX)
    assert "flush every second" not in changed(load_model("three_az_cloud"), SIX)
