"""What replication settings decide of each measure, and what they do not."""

import json
import math
import re
from typing import Any

import pytest
from advisor.reliability.results.settings_split import PARTS, Amount, beyond_causes

import advisor
from advisor.errors import InputError
from advisor.formatting import significant
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.mechanisms import decided_by_settings
from advisor.reliability.results import explanation
from advisor.reliability.results.units import MEASURES
from sampled_runs import FAR, off_by, sample

SIX = advisor.Cluster.uniform(brokers=6, racks=3)
LOAD = advisor.Workload(partitions=12, records_per_second=10.0)
OWN: dict[str, Any] = {
    "broker": {
        "crash": {"per_year": 3.0, "minutes": 30.0},
        "power": {"per_year": {"value": 1.0, "low": 0.3, "high": 3.0}, "minutes": 60.0},
        "destroyed": {"per_year": 0.5, "hours": 20.0},
    },
    "flush": {"seconds": 30.0},
}
SITE = {"power": {"per_year": 0.5, "minutes": 240.0, "not_returning": 0.3}}
SPARE = {"broker": {"destroyed": {"per_year": 0.0, "hours": 20.0}}}
BOTH = FailureModel.from_dict({**OWN, "cluster": SITE})
ALONE = FailureModel.from_dict(OWN)
CONFIGS = [
    advisor.Config(replication_factor=3, min_insync_replicas=2, acks="all"),
    advisor.Config(replication_factor=2, min_insync_replicas=1, acks="all"),
    advisor.Config(replication_factor=2, min_insync_replicas=1, acks=1),
    advisor.Config(replication_factor=2, min_insync_replicas=1, acks=0),
]


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_settings_decide_what_the_card_without_the_rest_gives(config: advisor.Config) -> None:
    """The parts of every measure add up, and the first is that of a card without `cluster.`."""
    whole = advisor.evaluate(SIX, config, BOTH, LOAD)
    alone = advisor.evaluate(SIX, config, ALONE, LOAD)
    for name in MEASURES:
        by, rest = whole.by_settings(name), whole.beyond_settings(name)
        assert by + rest == pytest.approx(getattr(whole, name), rel=1e-12)
        if name != "mean_years_to_loss":
            assert by == pytest.approx(min(getattr(alone, name), getattr(whole, name)), rel=1e-9)
    assert whole.years_between("by_settings") == pytest.approx(alone.mean_years_to_loss)
    assert whole.beyond_settings("write_unavailability") > whole.by_settings("write_unavailability")


def test_one_copy_has_closed_forms() -> None:
    """RF 1: disks die a times a year, the site takes the broker b times; first losses compete."""
    a, b = 0.4, 0.1
    card = FailureModel.from_dict(
        {
            "broker": {"destroyed": {"per_year": a, "hours": 1e-6}},
            "cluster": {"power": {"per_year": b, "minutes": 1e-6, "not_returning": 1.0}},
        }
    )
    config = advisor.Config(replication_factor=1, min_insync_replicas=1, acks="all")
    found = advisor.evaluate(advisor.Cluster.uniform(1, 1), config, card)
    by, rest = -math.expm1(-a), math.exp(-a) - math.exp(-a - b)
    measure = "loss_probability_per_year"
    assert found.by_settings(measure) == pytest.approx(by, rel=1e-6)
    assert found.beyond_settings(measure) == pytest.approx(rest, rel=1e-6)
    assert found.by_settings("mean_years_to_loss") == pytest.approx(a / (a + b) ** 2, rel=1e-6)
    assert found.beyond_settings("mean_years_to_loss") == pytest.approx(b / (a + b) ** 2, rel=1e-6)
    assert found.years_between("by_settings") == pytest.approx(1 / a, rel=1e-6)
    assert found.years_between("beyond_settings") == pytest.approx(1 / b, rel=1e-6)


def test_the_trigger_of_a_loss_does_not_say_whether_settings_decide_it() -> None:
    """What finishes off the replicas that a site left is a broker's failure, yet not settings'."""
    found = advisor.evaluate(SIX, CONFIGS[0], BOTH, LOAD)
    causes = found.causes["loss_events_per_year"]
    triggered = sum(part for name, part in causes.items() if decided_by_settings(name))
    assert triggered > 10.0 * found.by_settings("loss_events_per_year")


@pytest.mark.parametrize("tables", [{}, {"cluster": SITE}])
def test_intervals_of_the_parts(tables: dict[str, Any]) -> None:
    """Each part lies in its interval; the first has that of the card without the rest."""
    config = CONFIGS[1]
    found = advisor.evaluate(SIX, config, FailureModel.from_dict({**OWN, **tables}), LOAD)
    alone = advisor.evaluate(SIX, config, ALONE, LOAD)
    for name in MEASURES:
        for part in ("by_settings", "beyond_settings"):
            low, high = found.interval(name, part)
            assert low <= getattr(found, part)(name) <= high
    measure = "write_unavailability"
    low, high = found.interval(measure, "by_settings")
    assert low < found.by_settings(measure) < high
    assert (low, high) == pytest.approx(alone.interval(measure), rel=0.01)
    soon, late = found.years_between_interval("by_settings")
    assert soon < found.years_between("by_settings") < late
    if not tables:
        assert found.interval(measure) == (low, high)
        assert found.interval(measure, "beyond_settings") == (0.0, 0.0)
        assert found.years_between("beyond_settings") == math.inf
        assert found.years_between_interval("beyond_settings") == (math.inf, math.inf)


def test_a_card_of_one_kind_has_one_part() -> None:
    """Without other mechanisms all is settings'; with the site's alone, nothing is."""
    for card, part, other in (
        (ALONE, "by_settings", "beyond_settings"),
        (FailureModel.from_dict({"cluster": SITE, **SPARE}), "beyond_settings", "by_settings"),
    ):
        found = advisor.evaluate(SIX, CONFIGS[1], card, LOAD)
        for name in ("loss_probability_per_year", "write_unavailability", "mean_years_to_loss"):
            assert getattr(found, part)(name) == getattr(found, name) > 0
            assert getattr(found, other)(name) == 0.0
    both = advisor.evaluate(SIX, CONFIGS[1], BOTH, LOAD)
    for name in ("write_unavailability", "loss_events_per_year"):
        assert beyond_causes(both.causes, name, BOTH) == ("site power outages",)
        assert beyond_causes(both.causes, name, ALONE) == ()
    triggered = {"loss_events_per_year": {"broker.power": 1.0}}
    said = beyond_causes(triggered, "loss_events_per_year", BOTH)
    assert said == ("site power outages",)


def test_unknown_names_are_refused() -> None:
    """Measures and parts that there are not, of exact and sampled results."""
    card = FailureModel.from_dict({"broker": {"crash": {"per_year": 1.0, "minutes": 10.0}}})
    exact = advisor.evaluate(SIX, CONFIGS[1], card, LOAD)
    sampled, _ = sample(SIX, CONFIGS[1], card, LOAD, years=40)
    for found in (exact, sampled):
        for part in (found.by_settings, found.beyond_settings):
            with pytest.raises(InputError, match="'losses' is no measure; there are: loss_"):
                part("losses")
    with pytest.raises(InputError, match="'settings' is no part of a measure; there are: by_"):
        exact.interval("write_unavailability", "settings")


def test_sampled_parts_agree_with_the_exact_ones() -> None:
    """Sampled: what follows a site's outage until all is healthy. Exact: another card. The same."""
    often = {**OWN["broker"], "destroyed": {"per_year": 5.0, "hours": 50.0}}
    card = FailureModel.from_dict({**OWN, "broker": often, "cluster": SITE})
    # One replica set: several are approximated where losses are frequent.
    asked = (advisor.Cluster.uniform(brokers=2, racks=2), CONFIGS[1], card, LOAD)
    exact = advisor.evaluate(*asked)
    sampled, _ = sample(*asked, years=6000)
    compared = 0
    for name in MEASURES:
        by, rest = sampled.by_settings(name), sampled.beyond_settings(name)
        whole = sampled.estimate(name)
        if not whole.seen:
            assert whole.high == by.high == rest.high
            continue
        alone = by.value, rest.value
        if name == "mean_years_to_loss":
            assert 1.0 / sum(1.0 / years for years in alone) == pytest.approx(
                whole.value, rel=1e-12
            )
        else:
            assert sum(alone) == pytest.approx(whole.value, rel=1e-12)
        for found, part in ((by, "by_settings"), (rest, "beyond_settings")):
            expected = exact._alone(name, part)
            # Stalls hardly differ with and without the site's outages.
            if name not in ("acked_records_lost_per_year", "write_stalled"):
                assert abs(off_by(found, expected)) < FAR
                compared += 1
    assert compared >= 12


def test_a_sample_of_a_card_of_one_kind_has_one_part() -> None:
    """All of each estimate is settings', and nothing can happen beyond them."""
    sampled, _ = sample(SIX, CONFIGS[1], ALONE, LOAD, years=100)
    for name in MEASURES:
        assert sampled.by_settings(name) == sampled.estimate(name)
        never = math.inf if name == "mean_years_to_loss" else 0.0
        assert sampled.beyond_settings(name).low == sampled.beyond_settings(name).high == never


def test_both_parts_are_said_with_their_intervals() -> None:
    """Verdict, explanation, data and table name both; a card of settings' alone names neither."""
    often = {**SITE["power"], "per_year": {"value": 0.5, "low": 0.1, "high": 2.0}}
    card = FailureModel.from_dict({**OWN, "cluster": {"power": often}})
    exact = advisor.evaluate(SIX, CONFIGS[0], card, LOAD)
    sampled, _ = sample(SIX, CONFIGS[1], card, LOAD, years=2000)
    for found in (exact, sampled):
        first, second, *numbers = repr(found).splitlines()
        assert first == found.verdict
        assert len(first.split()) <= 25
        assert second == found.no_setting_changes
        assert re.fullmatch(
            r"Causes beyond settings add .+ of refused writes \(site power outages\) and a "
            r"lost record once in .+ \(site power outages\).*\.",
            second,
        )
        assert sum("(95 %: " in line for line in numbers) >= 3
        assert (
            "<th scope='col'>by settings</th><th scope='col'>beyond settings</th>"
            in found._repr_html_()
        )
        row = re.search(
            "<tr><th[^>]*>time to the first data loss</th>.*?</tr>", found._repr_html_()
        )
        assert row is not None
        assert row[0].count("<td>–</td>") == 2
        data = found.to_dict()
        for part in ("by_settings", "beyond_settings"):
            assert set(data[part]) == set(MEASURES)
        json.dumps(data)
        if found is exact:
            kept = data["by_settings"]["mean_years_to_loss"]
            assert kept == exact.decided.mean_years_to_loss > exact.mean_years_to_loss
        frame = found.to_frame()
        both = frame["by_settings"] + frame["beyond_settings"]
        assert both["write_unavailability"] == pytest.approx(frame.value["write_unavailability"])
    shown = significant(exact.beyond_settings("write_unavailability"))
    assert f"{shown} (95 %: " in exact.explain().partition("causes beyond settings:")[2]
    assert "beyond settings" in sampled.explain()
    plain = advisor.evaluate(SIX, CONFIGS[0], ALONE, LOAD)
    assert "ettings decide" not in plain.explain() + repr(plain)
    assert plain.no_setting_changes.startswith("Causes beyond settings ")
    assert "by settings" not in plain._repr_html_()
    unacknowledged = advisor.evaluate(SIX, CONFIGS[3], BOTH, LOAD)
    assert "lost record" not in unacknowledged.no_setting_changes
    only = advisor.evaluate(SIX, CONFIGS[1], FailureModel.from_dict({"cluster": SITE, **SPARE}))
    assert re.fullmatch(
        r"Causes beyond settings .+ of refused writes \(site power outages\) and a lost record "
        r".+\.",
        only.no_setting_changes,
    )
    assert "another" not in only.no_setting_changes


def test_no_part_is_larger_than_the_whole() -> None:
    """Nor are the ends of their intervals, where a part's numerical error exceeds the part."""
    cluster = advisor.Cluster.uniform(4, 2)
    config = advisor.Config(replication_factor=4, min_insync_replicas=2)
    found = advisor.evaluate(cluster, config, "two_az", advisor.Workload(partitions=8))
    for name in MEASURES:
        if name != "mean_years_to_loss":
            most = found.interval(name)[1]
            assert all(found.interval(name, part)[1] <= most for part in PARTS)


def test_a_factor_of_losses_that_were_not_seen_is_a_least_one() -> None:
    """Of settings whose losses a sample did not see only the fewest years are known."""
    outlook = advisor.evaluate(SIX, CONFIGS[0], "three_az_cloud", LOAD).outlook
    lost = outlook.years[1]
    for seen, least in ((False, ", at least 14 times as often"), (True, ", 14 times as often")):
        bounded = outlook._replace(years=(Amount(14.0 * lost.value, seen), lost))
        said = explanation.no_setting_changes(bounded)
        assert said.endswith(f"{least} as the losses that settings decide.")


def test_a_sampled_factor_of_losses_has_an_interval() -> None:
    """Both times vary: the interval is wider than either's; a bound is the least of both."""
    outlook = advisor.evaluate(SIX, CONFIGS[0], "three_az_cloud", LOAD).outlook
    lost = outlook.years[1].value
    by = 1400.0 * lost
    sampled = outlook._replace(
        years=(Amount(by), Amount(lost)),
        years_within=((by / 1.3, by * 1.3), (lost / 1.4, lost * 1.4)),
    )
    factor = math.exp(math.hypot(math.log(1.3), math.log(1.4)))
    assert sampled.times_rarer_within == pytest.approx((1400.0 / factor, 1400.0 * factor))
    said = explanation.no_setting_changes(sampled)
    assert ", 1,400 times (95 %: 910 to 2,100) as often as the losses that" in said
    bound = sampled._replace(
        years=(Amount(by, seen=False), Amount(lost)),
        years_within=((by, math.inf), (lost / 1.4, lost * 1.4)),
    )
    assert ", at least 1,000 times as often as" in explanation.no_setting_changes(bound)
    # Errors of operators are a number, and no sample.
    rare = sampled._replace(
        years=(Amount(1e9), Amount(math.inf)), years_within=((5e8, 2e9), (1e7, math.inf))
    )
    low, high = rare.times_rarer_within or (0.0, 0.0)
    assert high / low == pytest.approx(4.0)
