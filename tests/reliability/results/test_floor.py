"""What no setting prevents of a result, and that only who asks for it pays for it."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import advisor
from advisor import verdicts
from advisor.errors import InputError
from advisor.reliability import measure_table
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.sampled import Sampled

RANGE = {"value": 2.0, "low": 1.0, "high": 4.0}
CARD = advisor.FailureModel.from_dict(
    {
        "broker": {
            "crash": {"per_year": RANGE, "minutes": 30.0},
            "destroyed": {"per_year": 5.0, "hours": 100.0},
        },
        "cluster": {"power": {"per_year": 0.5, "minutes": 60.0}},
    }
)
CLUSTER = advisor.Cluster.uniform(3, racks=3)
LOAD = advisor.Workload(partitions=2)
STRICT = advisor.Config(replication_factor=3, min_insync_replicas=3, acks="all")


def evaluated(**changes: Any) -> Reliability:
    """The result of a setting, RF 3 with min ISR 3 and acks=all by default."""
    return advisor.evaluate(CLUSTER, STRICT.changed(**changes), CARD, LOAD)


@pytest.fixture(scope="module")
def strict() -> Reliability:
    """Min ISR 3: it loses least, and refuses most."""
    return evaluated()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was asked of the room that decides: nothing, unless a test asks."""
    kinds: list[str] = []

    def note(kind: str, answer: Any) -> Any:
        def decide(*_: Any, **__: Any) -> Any:
            kinds.append(kind)
            return answer

        return decide

    for kind in ("floor", "reliability"):
        monkeypatch.setitem(verdicts.verdict_functions, kind, note(kind, f"the {kind}"))
    return kinds


def test_the_floor_is_the_best_of_the_candidates(strict: Reliability) -> None:
    """Of every measure the least over min ISR 1 to 3, or the longest time; the rest adds up."""
    candidates = [strict, *(evaluated(min_insync_replicas=least) for least in (1, 2))]
    for name in measure_table.names():
        values, whole = [getattr(each, name) for each in candidates], getattr(strict, name)
        floor, rest = strict.beyond_settings(name), strict.by_settings(name)
        if name == "mean_years_to_loss":
            assert floor == max(values)
            rate = 1.0 / floor + 1.0 / rest
            assert rate == pytest.approx(1.0 / whole, rel=1e-9)
        else:
            assert floor == min(values)
            assert floor + rest == pytest.approx(whole, rel=1e-12)
    assert strict.by_settings("write_unavailability") > 0.0


def test_the_setting_shown_is_among_them() -> None:
    """An unclean election is never chosen; where it stops writes least, that is the floor."""
    unclean = evaluated(min_insync_replicas=1, unclean_leader_election_enable=True)
    least = evaluated(min_insync_replicas=1).write_unavailability
    assert unclean.beyond_settings("write_unavailability") == unclean.write_unavailability < least
    lost = "acked_records_lost_per_year"
    assert unclean.beyond_settings(lost) < unclean.acked_records_lost_per_year


def test_a_card_without_cluster_wide_failures_has_a_floor_too() -> None:
    """No mechanism is beyond settings by its name: two crashes at once stop every setting."""
    own = {"broker": {"crash": {"per_year": 12.0, "minutes": 600.0}}}
    result = advisor.evaluate(CLUSTER, STRICT, advisor.FailureModel.from_dict(own), LOAD)
    assert 0.0 < result.beyond_settings("write_unavailability") < result.write_unavailability


def test_nothing_else_pays_for_it(strict: Reliability, asked: list[str]) -> None:
    """Texts, tables, data and intervals evaluate no other setting; who asks does so once."""
    own = replace(strict)
    texts = (repr(own), own.explain(), own.summary, own._repr_html_(), own.to_dict())
    assert all(texts)
    assert list(own.to_frame().columns) == ["value", "low", "high", "unit"]
    own.interval("write_unavailability")
    assert asked == []
    assert own.verdict == own.verdict == "the reliability"
    assert asked == ["reliability"]
    with pytest.raises(AttributeError):
        own.beyond_settings("write_unavailability")
    assert asked == ["reliability", "floor"]


def test_texts_draw_nothing(strict: Reliability) -> None:
    """A card has ranges; repr, summary and explain do not evaluate it again."""

    def again(*_: Any, **__: Any) -> Any:
        raise AssertionError("evaluated again")

    draws = SimpleNamespace(draws=again)
    lazy = replace(strict, reevaluate=draws, evaluate_card=again, intervals={}, samples={})
    assert repr(lazy).splitlines()[0] == lazy.explain().splitlines()[0] == lazy.summary
    with pytest.raises(AssertionError, match="evaluated again"):
        lazy.interval("write_unavailability")


def test_the_summary_has_the_whole_and_no_goal(strict: Reliability) -> None:
    """Setting, losses, time without writes and the main cause."""
    said = evaluated(min_insync_replicas=1).summary
    assert said.startswith("RF 3 with min ISR 1: data loss once in ")
    assert "main cause: " in said
    assert "goals" not in said
    # Half a year of site power outages of an hour is in it.
    assert strict.write_unavailability > 0.5 / 8760


def test_the_floor_of_a_sample_is_the_exact_one(strict: Reliability) -> None:
    """Of the same question; the rest is what was sampled less it."""
    sampled: Sampled = advisor.simulate(
        CLUSTER, STRICT, CARD, LOAD, years=400, engine="local", method="crude"
    )
    for name in ("write_unavailability", "acked_records_lost_per_year"):
        floor = strict.beyond_settings(name)
        assert sampled.beyond_settings(name) == floor
        value = sampled.estimate(name).value
        assert sampled.by_settings(name) == pytest.approx(value - floor)


def test_only_measures_have_parts(strict: Reliability) -> None:
    """The message lists them, and the other settings are not evaluated for it."""
    with pytest.raises(InputError, match="there are: loss_probability_per_year, "):
        strict.by_settings("downtime")
    with pytest.raises(InputError, match="'downtime' is no measure"):
        strict.beyond_settings("downtime")


def test_the_verdict_is_about_the_setting_shown(strict: Reliability) -> None:
    """Min ISR 3 stops writes whenever a broker restarts: another is set, critically."""
    verdict = strict.verdict
    assert verdict is strict.verdict
    assert str(verdict).startswith(verdict.headline)
    (action,) = verdict.actions
    assert action.today.config == STRICT
    assert action.set_to.min_insync_replicas < 3
    assert action.refused_today == pytest.approx(strict.write_unavailability * 525600)
