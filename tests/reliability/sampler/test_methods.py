"""Which method samples a plan: the one that was asked for, or the one that its losses need."""

import pytest

from advisor import Cluster, Config, FailureModel, Workload, evaluate, load_model, simulate
from advisor.errors import InputError
from advisor.reliability.patching import without_cluster_wide
from advisor.reliability.sampler import methods
from advisor.reliability.sampler.intervals import fullness
from advisor.reliability.sampler.methods import with_method
from advisor.reliability.sampler.plan import Plan
from advisor.reliability.sampler.plan_reader import plan_for

TRIO = Config(replication_factor=3, min_insync_replicas=2)
THREE = Cluster.uniform(3)


def destroyed(per_year: float, **more: object) -> FailureModel:
    """A card with one mechanism."""
    return FailureModel.from_dict(
        {"broker": {"destroyed": {"per_year": per_year, "hours": 24.0}, **more}}
    )


def plan(model: FailureModel) -> Plan:
    """Three replicas of one partition."""
    return plan_for(THREE, TRIO, model, Workload(partitions=1))


def test_rare_losses_are_sampled_by_importance() -> None:
    """Where hardly a loss is expected, cycles are chosen, and the sentence says so."""
    found, why = with_method(plan(destroyed(0.1)), None, 10**9, 7)
    assert found.bias is not None
    assert why.startswith("only about ")
    assert why.endswith(" losses are expected in 1,000,000,000 years")


def test_frequent_losses_are_sampled_as_they_come() -> None:
    """Where years show enough losses, nothing is made likelier."""
    found, why = with_method(plan(destroyed(20.0)), None, 10**7, 7)
    assert found.bias is None
    assert "losses are expected in 10,000,000 years without it" in why


def test_a_short_run_has_no_pilot() -> None:
    """A run of less than a second is done before a pilot would be."""
    assert with_method(plan(destroyed(0.1)), None, 100, 7) == (plan(destroyed(0.1)), "")


def test_cycles_leave_nothing_else_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few years have few cycles: losses would be known well, and hours without writes badly."""
    # Even a run of a tenth of a second gets a pilot here.
    monkeypatch.setattr(methods, "_SHORT_S", 0.1)
    cluster, load = Cluster.uniform(6, 3), Workload(partitions=12)
    card = without_cluster_wide(load_model("three_az_cloud"))
    some = plan_for(cluster, TRIO, card, load)
    few, why = with_method(some, None, 20_000, 7)
    assert (few.method, why) == (
        "crude",
        "importance sampling of 20,000 years would see too few write outages",
    )
    many, _ = with_method(some, None, 10**6, 7)
    assert many.method == "importance"


def test_a_large_cluster_has_no_pilot() -> None:
    """Where one cycle takes a second, there is no pilot unless the method is given."""
    cluster = Cluster.uniform(300, 3)
    large = plan_for(cluster, TRIO, destroyed(0.001), Workload(partitions=3000))
    found, why = with_method(large, None, 10**8, 7)
    assert found.method == "crude"
    sets = f"{len(large.sets):,} replica sets"
    assert why == f"a trial run for importance sampling would take minutes for {sets}"


def test_more_than_four_replicas_have_no_cycles_unless_asked_for() -> None:
    """Their pilot takes half a minute."""
    five = Config(replication_factor=5, min_insync_replicas=3)
    wide = plan_for(Cluster.uniform(5), five, destroyed(0.1), Workload(partitions=1))
    found, why = with_method(wide, None, 10**9, 7)
    assert found.method == "crude"
    assert why == "a trial run for importance sampling would take half a minute for 5 replicas"
    assert with_method(wide, "importance", 10**9, 7)[0].method == "importance"


WORN = {"per_year": 1, "minutes": 5, "lifetime": {"distribution": "weibull", "shape": 2}}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"crash": WORN}, "times between failures are not exponential"),
        ({}, "repairs wait for a crew"),
    ],
)
def test_what_cycles_cannot_sample_is_refused(more: dict[str, object], why: str) -> None:
    """Importance needs cycles that begin alike; without it the paths of years are split."""
    tables = destroyed(0.1, **more).to_dict()
    if not more:
        tables["repair"] = {"crews": 1}
    model = FailureModel.from_dict(tables)
    with pytest.raises(InputError, match=why):
        with_method(plan(model), "importance", 1000, 7)
    found, because = with_method(plan(model), None, 10**9, 7)
    assert found.method == "splitting"
    assert because.endswith(why)


def test_an_unknown_method_is_refused_with_the_known_ones() -> None:
    """The message names what there is."""
    with pytest.raises(InputError, match="'crude', 'importance'"):
        simulate(THREE, TRIO, "three_az_cloud", years=10, engine="local", method="magic")


def test_a_sample_by_importance_says_so() -> None:
    """The result has its method, its weights, and a sentence about both."""
    model = destroyed(0.1)
    found = simulate(
        THREE, TRIO, model, Workload(partitions=1), 10**8, 7, "local", method="importance"
    )
    assert found.method == "importance"
    assert found.weights is not None
    assert " unweighted ones; " in repr(found)
    assert found.to_dict()["weights"]["losses"] == found.weights.losses
    assert found.loss_probability_per_year.seen


@pytest.mark.parametrize("per_year", [1e-3, 1e-9, 1e-15])
def test_failures_that_never_overlap_have_cycles(per_year: float) -> None:
    """The pilot sees no cycle with a second failure; each loses what the broker had."""
    found = simulate(
        Cluster.uniform(1, 1),
        Config(replication_factor=1, min_insync_replicas=1),
        FailureModel.from_dict({"broker": {"destroyed": {"per_year": per_year, "hours": 12}}}),
        years=10,
        engine="local",
        method="importance",
    )
    losses = found.loss_events_per_year
    assert losses.low <= per_year <= losses.high
    assert losses.seen


@pytest.mark.parametrize("hours", [168.0, 8760.0, 87_600.0])
@pytest.mark.parametrize(("method", "years"), [("importance", 10**6), ("crude", 20_000)])
def test_records_lost_allow_for_logs_that_are_not_full_again(
    hours: float, method: str, years: int
) -> None:
    """Cycles and blocks begin with full logs, also where a log is lost before it is full."""
    asked = (
        Cluster.uniform(1, 1),
        Config(replication_factor=1, min_insync_replicas=1),
        FailureModel.from_dict({"broker": {"destroyed": {"per_year": 1.0, "hours": 1.0}}}),
        Workload(partitions=1, records_per_second=1.0, retention_hours=hours),
    )
    exact = evaluate(*asked).acked_records_lost_per_year
    found = simulate(*asked, years=years, engine="local", method=method)
    lost = found.acked_records_lost_per_year
    assert lost.low <= exact <= lost.high


def test_rare_losses_are_of_full_logs() -> None:
    """Where a log is long full again before it is lost, the lower end stays where it was."""
    assert fullness(1e-9, 1e-4, 1.0) == pytest.approx(1.0, abs=1e-8)
    assert fullness(0.0, 0.1, 1.0) == 1.0
    assert fullness(10.0, 0.0, 1.0) == pytest.approx(0.1, rel=1e-4)
    assert fullness(10.0, 1.0, 1.0) == 0.0


def test_a_pilot_that_takes_all_the_time_is_said() -> None:
    """It is finished however few seconds there are, and a first round after it."""
    asked = (THREE, TRIO, destroyed(0.1), Workload(partitions=1), 10**9, 7, "local")
    found = simulate(*asked, method="importance", seconds=1e-6)
    assert found.why == "time is up; the pilot took all of it"
    assert simulate(*asked, method="crude", seconds=1e-6).why == "time is up"
