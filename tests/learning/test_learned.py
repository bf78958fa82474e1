"""A card and a verdict from counts: what moves, what stays, and what is read back."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

import advisor
from advisor.errors import AdvisorError, InputError
from advisor.learning import Learned
from advisor.learning.fit import learned_numbers
from advisor.reliability.failures.card import Quantity
from advisor.reliability.failures.distributions import range_of
from advisor.reliability.failures.failure_model import FailureModel

CARD = "three_az_cloud"
CALENDAR = {"weekday": "tuesday", "hour": 2, "every_weeks": 4}
FRAME = {"brokers": 12, "years": 3, "racks": 3}
EVERYTHING = {
    "broker.power": 4,
    "broker.crash": [{"minutes": 3}, {"minutes": 12}],
    "broker.gray": [{"minutes": 9, "dies": True, "hard": False}],
    "broker.restart": {"events": 300, "unclean": 2},
    "broker.destroyed": [{"hours": 3}],
    "rack.power": [{"minutes": 60, "racks": 1, "not_returning": 0}],
    "cluster.crash": [{"minutes": 40, "brokers": 12}],
    "cluster.controller": 0,
}


def learned(events: dict[str, Any], prior: Any = CARD, **frame: Any) -> Learned:
    return advisor.learn({**FRAME, **frame, "events": events}, prior=prior)


def test_numbers_of_which_something_was_seen_move_and_no_others() -> None:
    """Rates, lengths and probabilities; what was not named stays to the digit."""
    result, prior = learned(EVERYTHING), advisor.load_model(CARD)
    moved = {path for path in prior.quantities if result.model[path] != prior[path]}
    # Its product with the minutes, which were learned, is what the card knows.
    moved.remove("cluster.controller.zookeeper_per_year")
    assert moved == {row.number for row in result.numbers}
    assert "cluster.controller.minutes" in moved
    for path, before in prior.quantities.items():
        after = result.model.quantities[path]
        assert after.low <= after.value <= after.high
        if path not in moved and "zookeeper" not in path:
            assert after == before


def test_counts_are_rows() -> None:
    """Each mechanism with its events, the exposure of what it strikes, before and after."""
    rows = {row.mechanism: row for row in learned(EVERYTHING).counts}
    assert rows.keys() == EVERYTHING.keys()
    power, rack, crash = (rows[name] for name in ("broker.power", "rack.power", "cluster.crash"))
    assert (power.events, power.broker_years, power.cluster_years) == (4, 36.0, None)
    assert (rack.events, rack.rack_years, rack.broker_years) == (1, 9.0, None)
    assert (crash.events, crash.cluster_years, crash.exposure_years) == (1, 3.0, 3.0)
    assert tuple(power.prior) == (0.2, 0.05, 0.56)
    assert 0.05 < power.posterior.low < power.posterior.value < 0.2
    assert power.posterior.high < 0.56


def test_the_card_reads_back(tmp_path: Path) -> None:
    """A file with every kind of number, times, a calendar and odd texts is the same card."""
    tables = advisor.load_model(CARD).to_dict()
    tables["when_to_use"] = 'Two\nlines, a "quote" and a \\.'
    tables["broker"]["crash"]["duration"] = {"distribution": "lognormal", "sigma": 1.2}
    tables["broker"]["power"]["per_year"] = {"events": 3, "exposure_years": 40}
    tables["repair"] = {"crews": 1, "needed_for": ["broker.power"]}
    prior = FailureModel.from_dict(tables, "mine").with_calendar(
        weekday="tuesday", hour=2, every_weeks=4
    )
    result = learned(EVERYTHING, prior)
    path = tmp_path / "learned.toml"
    result.to_toml(path)
    assert advisor.load_model(path) == result.model
    assert "3 years" in path.read_text()
    again = advisor.learn({**FRAME, "events": {"broker.power": 1}}, prior=path)
    again.to_toml(path)
    assert advisor.load_model(path) == again.model


def test_another_file_is_not_overwritten(tmp_path: Path) -> None:
    """A file that is no learned card stays, and a folder must be there."""
    path = tmp_path / "mine.toml"
    path.write_text("brokers = 12\n")
    result = learned({"broker.power": 4})
    with pytest.raises(InputError, match="not overwritten"):
        result.to_toml(path)
    assert path.read_text() == "brokers = 12\n"
    with pytest.raises(InputError, match="not a directory"):
        result.to_toml(tmp_path / "none" / "card.toml")


def test_counts_add_up_on_a_card_that_counts() -> None:
    """A rate that the prior counts keeps counting, exactly."""
    prior = FailureModel.from_dict(
        {"broker": {"power": {"per_year": {"events": 3, "exposure_years": 40}, "minutes": 10}}}
    )
    number = learned({"broker.power": 4}, prior).model.quantities["broker.power.per_year"]
    assert (number.events, number.exposure_years) == (7, 76.0)
    assert (number.value, number.low, number.high) == range_of(7, 76.0)


def test_a_zero_is_no_silence() -> None:
    """A typed zero lowers a rate and its high end, silence leaves it; both say so."""
    zero = learned({"cluster.controller": 0}, years=10).model
    silent = learned({"broker.power": 0}, years=10).model
    prior = advisor.load_model(CARD)
    path = "cluster.controller.per_year"
    assert zero[path] < prior[path]
    assert zero.quantities[path].high < prior.quantities[path].high
    assert silent.quantities[path] == prior.quantities[path]


def test_products_stay_products_where_little_was_seen() -> None:
    """Without an event the product of rate and minutes is kept, with many the rate itself."""
    path = "cluster.crash.per_year"
    few = learned({"cluster.crash": 0}, years=0.5).model.quantities
    assert few[path].minutes_per_year is not None
    value, low, high = few[path].minutes_per_year
    assert (low, high) == pytest.approx((4.0, 200.0), rel=0.4)
    assert few[path].value == value / few["cluster.crash.minutes"].value
    many = learned({"cluster.crash": [{"minutes": 30.0}] * 20}).model.quantities
    assert many[path].minutes_per_year is None
    assert 3.0 < many[path].value < 10.0
    assert 20.0 < many["cluster.crash.minutes"].value < 50.0
    assert (
        many["cluster.rollout.per_year"]
        == advisor.load_model(CARD).quantities["cluster.rollout.per_year"]
    )


@pytest.mark.parametrize("events", [0, 1, 20])
def test_rows_say_what_both_cards_say(events: int) -> None:
    """Of a product, too: before and now are the numbers that a report shows of each card."""
    result, prior = learned({"cluster.crash": events}), advisor.load_model(CARD)
    assert {row.number for row in result.numbers} > {"cluster.crash.per_year"}
    for row in result.numbers:
        for said, card in ((row.prior, prior), (row.posterior, result.model)):
            number = card.quantities[row.number]
            assert said == pytest.approx((number.value, number.low, number.high), rel=1e-3)
    (count,) = result.counts
    assert count.prior.value == prior["cluster.crash.per_year"]
    assert count.posterior.value == result.model["cluster.crash.per_year"]


def test_a_short_time_is_said_in_hours() -> None:
    """Not in thousandths of a day."""
    result = learned({"broker.power": 0}, years=0.0161 / 365.0)
    assert "0.386 hours" in result.seen_words
    assert [row.evidence for row in result.numbers] == ["0 in 4.64 broker-hours"]


def test_the_other_mode_follows_new_minutes() -> None:
    """The rate with ZooKeeper is learned there only; its product stays with the new minutes."""
    with_zookeeper = learned({"cluster.controller": 6}, mode="zookeeper").model.quantities
    prior = advisor.load_model(CARD).quantities
    kraft, zookeeper = "cluster.controller.per_year", "cluster.controller.zookeeper_per_year"
    assert with_zookeeper[zookeeper].value > 10 * prior[zookeeper].value
    assert with_zookeeper[kraft].minutes_per_year == prior[kraft].minutes_per_year
    minutes = with_zookeeper["cluster.controller.minutes"].value
    assert with_zookeeper[kraft].value * minutes == pytest.approx(7.2)


def test_what_cannot_be_learned_is_said() -> None:
    """Exact numbers, other distributions, a calendar, and mechanisms that the card lacks."""
    prior = FailureModel.from_dict(
        {
            "broker": {
                "crash": {"per_year": 2.0, "minutes": {"value": 4, "low": 1, "high": 9}},
                "power": {
                    "per_year": {"value": 0.2, "low": 0.1, "high": 0.4},
                    "minutes": {"value": 10, "low": 1, "high": 20},
                    "duration": {"distribution": "weibull", "shape": 0.7},
                },
                "restart": {"per_year": 12, "minutes": 4},
            }
        },
        "bare",
    ).with_calendar(**CALENDAR)
    events = {
        "broker.crash": [{"minutes": 3}],
        "broker.power": [{"minutes": 3}],
        "broker.restart": 4,
        "broker.gray": 1,
    }
    result = learned(events, prior)
    assert {row.number for row in result.numbers} == {
        "broker.crash.minutes",
        "broker.power.per_year",
    }
    said = " ".join(result.notes)
    for path in ("broker.crash.per_year", "broker.power.minutes", "broker.restart.per_year"):
        assert path in said
    assert "no broker.gray" in said
    assert result.model["broker.crash.per_year"] == 2.0


def test_a_fleet_has_a_centre_and_a_card_for_each() -> None:
    """Busy clusters pull quiet ones up; the centre lies between, and lengths are shared."""
    fleet = [
        {"name": name, **FRAME, "years": 1, "events": {"broker.power": events}}
        for name, events in {"quiet": [], "busy": [{"minutes": 30}] * 9, "usual": 2}.items()
    ]
    result = advisor.learn(fleet, prior=CARD)
    rates = {name: card["broker.power.per_year"] for name, card in result.clusters.items()}
    assert rates["quiet"] < rates["usual"] < rates["busy"]
    assert rates["quiet"] < result.model["broker.power.per_year"] < rates["busy"]
    alone = advisor.learn(fleet[0], prior=CARD)
    assert alone.clusters == {}
    quiet = [{**cluster, "events": {"broker.power": 0}} for cluster in fleet]
    beside_quiet = advisor.learn(quiet, prior=CARD).clusters["quiet"]
    assert rates["quiet"] > 1.1 * beside_quiet["broker.power.per_year"]
    minutes = {card["broker.power.minutes"] for card in result.clusters.values()}
    assert minutes == {result.model["broker.power.minutes"]}
    assert result.counts[0].events == 11


def test_the_card_is_used_everywhere() -> None:
    """`evaluate` and `audit` take it like any card."""
    card = learned({"broker.power": 400}).model
    cluster, config = advisor.Cluster.uniform(), advisor.Config(replication_factor=3)
    before = advisor.evaluate(cluster, config, CARD)
    assert (
        advisor.evaluate(cluster, config, card).write_unavailability > before.write_unavailability
    )


def test_the_verdict_says_what_was_assumed() -> None:
    """Without a cluster one topic on as many brokers; with one, its own topics."""
    result = learned({"broker.power": 4})
    (action,) = result.quick_verdict.actions
    assert str(action.today) == "RF 3, min ISR 2, acks=all"
    assert "12 brokers in 3 racks" in result.assumed
    small = learned({"broker.power": 0}, brokers=2, racks=2)
    assert small.quick_verdict.actions[0].today.replication_factor == 2
    described = "Topic: logs Partition: 0 Leader: 1 Replicas: 1,2,3 Isr: 1,2,3\n"
    given = advisor.learn(
        {"years": 3, "events": {"broker.power": 4}}, prior=CARD, cluster=described
    )
    assert given.assumed == ""
    assert given.counts[0].broker_years == 9.0
    assert [a.topic for a in given.quick_verdict.actions] == ["logs"]


LISTS = ("1,2,3", "2,3,1", "3,1,2", "4,5,6", "5,6,4", "6,4,5")
DESCRIBED = (
    "Topic: t PartitionCount: 6 ReplicationFactor: 3 Configs: min.insync.replicas=2\n"
    + "".join(
        f"\tTopic: t Partition: {n} Leader: {brokers[0]} Replicas: {brokers} Isr: {brokers}\n"
        for n, brokers in enumerate(LISTS)
    )
)


def lasting(events: int, minutes: float) -> dict[str, Any]:
    return {"events": events, "minutes": [minutes] * min(events, 300)}


STORIES = {
    "usual years": ({"broker.power": 2, "broker.crash": lasting(20, 6.0)}, ""),
    "all brokers stop ten times": ({"cluster.crash": [{"minutes": 300, "all": True}] * 10}, ""),
    "leaders limp every week": ({"broker.gray": lasting(150, 30.0)}, ""),
    "followers lag all the time": ({"broker.lag": lasting(30_000, 120.0)}, "broker.lag"),
    "hosts are gone for days": ({"broker.power": lasting(200, 3000.0)}, "broker.power"),
    "crashes last for hours": ({"broker.crash": lasting(300, 600.0)}, "broker.crash"),
}


@pytest.mark.parametrize("story", STORIES)
def test_what_to_set_changes_where_it_should(story: str) -> None:
    """Outages that min ISR 2 of 3 does not survive make it 1; what no setting prevents does not.

    Three stories of three years each; the reason is the mechanism that was counted.
    """
    events, reason = STORIES[story]
    racks = "1=a,2=b,3=c,4=a,5=b,6=c"
    cluster = advisor.load_cluster(DESCRIBED, racks=racks)
    result = advisor.learn({"years": 3, "events": events}, prior=CARD, cluster=cluster)
    (before,), (after,) = result.verdict_before.actions, result.quick_verdict.actions
    assert before.after.min_insync_replicas == 2
    assert after.after.min_insync_replicas == (1 if reason else 2)
    assert after.refused_after != before.refused_after
    if reason:
        assert f"({reason}, " in result.change
    assert ("changed" in result.change) is bool(reason)


def test_what_to_set_stays_for_a_reason() -> None:
    """Nothing new was seen; no setting prevents it; or what prevents it loses too much."""
    cluster = advisor.load_cluster(DESCRIBED, racks="1=a,2=b,3=c,4=a,5=b,6=c")
    stays = {}
    for story in ("usual years", "all brokers stop ten times", "leaders limp every week"):
        counts = {"years": 3, "events": STORIES[story][0]}
        result = advisor.learn(counts, prior=CARD, cluster=cluster)
        (before,), (after,) = result.verdict_before.actions, result.quick_verdict.actions
        unavoidable = after.floor.minutes_without_writes_per_year
        stays[story] = before.refused_after, after.refused_after, unavoidable, after.choice
    was, now, _, _ = stays["usual years"]
    assert now == pytest.approx(was, rel=0.1)
    was, now, unavoidable, _ = stays["all brokers stop ten times"]
    assert now > 10.0 * was
    assert unavoidable > 0.9 * now
    was, now, unavoidable, choice = stays["leaders limp every week"]
    assert now > 5.0 * was
    assert unavoidable < 0.2 * now
    # A loss counts as a week without writes; a lower min ISR pays only where it counts for less.
    assert 1.0 < choice.break_even_minutes.median < 10_080.0


def test_the_text_says_what_numbers_are_called() -> None:
    """Each mechanism in plain words, and what one event strikes."""
    result = learned({"broker.gray": 3, "cluster.crash": 1})
    assert "broker.gray: half-dead brokers; cluster.crash: brokers crashing together" in (
        result.named_words
    )
    assert "of one broker or cluster" in result.named_words
    assert result.named_words in result.explain()


def test_observed_minutes_are_compared_with_both_cards() -> None:
    """Minutes as expected fit; a thousand times as many do not, and it is said."""
    usual = learned({"broker.power": 4}, refused_minutes=90).observed
    assert usual is not None
    assert usual.prior.low <= usual.prior.value <= usual.prior.high
    assert usual.posterior_tail > 0.05
    odd = learned({"broker.power": 4}, refused_minutes=50_000).observed
    assert odd is not None
    assert odd.posterior_tail < 0.01
    assert learned({"broker.power": 4}).observed is None


def test_what_was_refused_is_said_with_how_exactly_it_is_known() -> None:
    """Of metrics by how much it may be off; of minutes that were typed nothing."""
    typed = learned({"broker.power": 4}, refused_minutes=90).observed
    assert typed is not None
    assert "give or take" not in str(typed)
    measured = dataclasses.replace(
        typed,
        refused_partition_minutes=8.55,
        refused_partition_minutes_off=0.62,
        any_refused_minutes=2.7,
        any_refused_minutes_off=0.21,
    )
    assert "8.6 partition-minutes, give or take 0.6, 2.7 minutes" in str(measured)
    assert "with any refused, give or take 0.2)" in str(measured)


@pytest.mark.parametrize("years", [0.0001, 0.01])
def test_a_short_time_mostly_has_no_outage(years: float) -> None:
    """The bounds are those of such times and not the average, which rare long outages make."""
    short = learned({"broker.power": 0}, years=years, refused_minutes=0).observed
    assert short is not None
    assert (short.prior.low, short.prior.high) == (0.0, 0.0)
    assert short.prior.value > 0.0
    assert short.prior_tail > 0.9
    assert "mostly 0" in str(short)
    assert "0.00" not in str(short)


def test_views_say_the_same() -> None:
    """Text, page, plain data and frame have the same numbers."""
    result = learned(EVERYTHING)
    assert str(result).startswith(result.quick_verdict.headline)
    explained, page = result.explain(), result._repr_html_()
    for row in result.numbers:
        assert row.number in explained
        assert row.number in page
    data = json.loads(json.dumps(result.to_dict()))
    assert [row["mechanism"] for row in data["counts"]] == [r.mechanism for r in result.counts]
    assert FailureModel.from_dict(data["model"], "learned") == result.model
    assert list(result.to_frame().index) == [row.number for row in result.numbers]
    assert dataclasses.is_dataclass(result)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.prior = result.model  # type: ignore[misc]


def test_evidence_says_what_was_seen_and_believed() -> None:
    """A learned number names count, prior and card; learned again, it does not grow."""
    first = learned({"broker.power": 4})
    number = first.model.quantities["broker.power.per_year"]
    assert isinstance(number, Quantity)
    assert number.evidence.startswith("own: 4 in 36 broker-years; before 0.2 (0.05 to 0.56)")
    second = learned({"broker.power": 4}, first.model).model.quantities["broker.power.per_year"]
    assert len(second.evidence) < 1.3 * len(number.evidence)


@pytest.mark.parametrize("prior", ["three_az_clod", 7])
def test_a_wrong_prior_is_refused(prior: Any) -> None:
    """A card that is not there, and what is no card."""
    with pytest.raises(AdvisorError):
        learned({"broker.power": 4}, prior)


def test_an_empty_list_is_refused() -> None:
    """There must be something to learn from."""
    with pytest.raises(InputError, match="nothing to learn"):
        advisor.learn([], prior=CARD)


def test_a_card_says_itself_what_was_learned(tmp_path: Path) -> None:
    """Read back from its file it names each number, what was seen, and the card before."""
    counts = {
        "brokers": 12,
        "years": 3,
        "events": {"broker.power": 4, "broker.gray": 0, "cluster.crash": [{"minutes": 40}]},
    }
    learned = advisor.learn(counts, prior="three_az_cloud")
    learned.to_toml(tmp_path / "my_card.toml")
    said = learned_numbers(advisor.load_model(tmp_path / "my_card.toml"))
    rows = {row.number: row for row in learned.numbers}
    assert {row.number for row in said} == set(rows)
    for row in said:
        assert row.seen == rows[row.number].evidence
        assert row.card == "three_az_cloud"
        assert row.before == str(learned.prior.quantities[row.number])
    again = advisor.learn(counts, prior=advisor.load_model(tmp_path / "my_card.toml"))
    assert {row.card for row in learned_numbers(again.model)} == {"my_card"}


def test_a_short_time_that_moves_a_rate_far_is_said() -> None:
    """A day of restarts may be a migration; a year of them, or a day that fits, says nothing."""
    said = "Caution: broker.restart.per_year went from 12 to"
    day = learned({"broker.restart": 36}, years=1.0 / 365.0)
    assert said in str(day)
    assert said in day._repr_html_()
    assert said in day.explain()
    assert "Caution" not in str(learned({"broker.restart": 36_000}))
    assert "Caution" not in str(learned({"broker.crash": 1}, years=1.0 / 365.0))
