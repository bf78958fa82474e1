"""What strikes all brokers at once, sites that are destroyed, and deaths, against hand counts."""

from __future__ import annotations

import math
from itertools import combinations

import pytest

from advisor import Cluster, Config, FailureModel, Workload, evaluate, load_model
from advisor.reliability.case import Case
from advisor.reliability.failures.transition_rates import Pick
from sampled_runs import YEAR

EVERY, SHARE = 0.3, 0.4
LOAD = Workload(partitions=6, records_per_second=10.0, retention_hours=24.0)


def config(replicas: int, min_isr: int) -> Config:
    """Return a configuration whose followers leave the ISR at once."""
    return Config(
        kafka_version="4.1",
        replication_factor=replicas,
        min_insync_replicas=min_isr,
        acks="all",
        replica_lag_time_max_ms=1,
    )


def struck(picked: int, among: int, every: float = EVERY, share: float = SHARE) -> float:
    """Probability that exactly these brokers are struck, written out."""
    alone = (1.0 - every) * share**picked * (1.0 - share) ** (among - picked)
    return alone + (every if picked == among else 0.0)


@pytest.mark.parametrize("every", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("among", [0, 1, 3])
def test_the_chances_of_all_choices_add_up(every: float, share: float, among: int) -> None:
    """Every choice of brokers has its chance, and together they are certain."""
    pick = Pick(share, every)
    chances = [pick.chance_of(n, among) * math.comb(among, n) for n in range(among + 1)]
    assert math.fsum(chances) == pytest.approx(1.0, rel=1e-12)
    assert pick.mean_share == pytest.approx(struck(1, 1, every, share), rel=1e-12)


@pytest.mark.parametrize("cause", ["crash", "rollout", "disk_full"])
def test_two_replicas_under_a_common_cause_follow_the_hand_made_chain(cause: str) -> None:
    """Three states: both well, one out, both out; all that are out come back together."""
    card = {"cluster": {cause: {"per_year": 60, "brokers": SHARE, "all": EVERY, "minutes": 300}}}
    model = FailureModel.from_dict(card)
    found = evaluate(Cluster.uniform(4, 2), config(2, 2), model, LOAD)
    rate, back = 60.0 / YEAR, 1.0 / 5.0
    one_out = rate * 2.0 * struck(1, 2) / (back + rate * struck(1, 1))
    both_out = (rate * struck(2, 2) + one_out * rate * struck(1, 1)) / back
    well = 1.0 / (1.0 + one_out + both_out)
    assert found.write_unavailability == pytest.approx(1.0 - well, rel=1e-9)
    assert found.read_unavailability == pytest.approx(both_out * well, rel=1e-9)


@pytest.mark.parametrize(("brokers", "replicas"), [(4, 1), (4, 2), (6, 3)])
def test_wiped_logs_lose_as_every_choice_of_brokers_written_out(
    brokers: int, replicas: int
) -> None:
    """A set loses where all its brokers are wiped; sets share the event, and `all` takes all."""
    numbers = {"per_year": 0.01, "brokers": SHARE, "all": EVERY, "hours": 1e-3}
    model = FailureModel.from_dict({"cluster": {"wiped": numbers}})
    question = Cluster.uniform(brokers, 1), config(replicas, 1), model, LOAD
    found = evaluate(*question)
    sets = [frozenset(replicas_of) for replicas_of, _ in Case.read(*question).placement.sets]
    any_lost = math.fsum(
        struck(count, brokers)
        for count in range(brokers + 1)
        for picked in combinations(sorted(question[0].brokers), count)
        if any(members <= set(picked) for members in sets)
    )
    assert found.loss_events_per_year == pytest.approx(
        0.01 * LOAD.partitions * struck(replicas, replicas), rel=1e-4
    )
    assert found.loss_probability_per_year == pytest.approx(-math.expm1(-0.01 * any_lost), rel=2e-3)


def test_a_destroyed_site_loses_every_partition_once() -> None:
    """Each event loses all partitions at the same moment, however many replicas they have."""
    card = {"broker": {"destroyed": {"hours": 1.0}}, "cluster": {"destroyed": {"per_year": 0.01}}}
    model = FailureModel.from_dict(card)
    for replicas in (1, 2, 3):
        found = evaluate(Cluster.uniform(6, 3), config(replicas, 1), model, LOAD)
        assert found.loss_probability_per_year == pytest.approx(-math.expm1(-0.01), rel=1e-3)
        assert found.causes["loss_events_per_year"]["cluster.destroyed"] == pytest.approx(
            0.01 * LOAD.partitions, rel=1e-3
        )


def limping(hard: float | None) -> FailureModel:
    """A card of limping brokers, half of which die."""
    gray = {"per_year": 0.1, "minutes": 60.0, "dies": 0.5}
    given = gray if hard is None else {**gray, "hard": hard}
    return FailureModel.from_dict({"broker": {"gray": given}, "flush": {"seconds": 60.0}})


def test_only_deaths_of_hosts_lose_what_a_limping_leader_alone_had() -> None:
    """A killed process leaves its page cache: losses are in proportion to `hard`."""
    setting = config(2, 1)

    def losses(hard: float | None) -> float:
        found = evaluate(Cluster.uniform(4, 4), setting, limping(hard), LOAD)
        return found.loss_events_per_year

    whole = losses(1.0)
    # Leaders of six partitions limp 0.1 times a year, and half of them die.
    assert whole == pytest.approx(6 * 0.1 * 0.5, rel=0.01)
    assert losses(None) == whole
    assert losses(0.25) == pytest.approx(0.25 * whole, rel=0.01)
    assert losses(0.0) < 1e-6 * whole


def test_a_limping_broker_is_out_after_either_death() -> None:
    """A host and a process are away for as long, for a card that gives one duration."""
    stopped = [
        evaluate(Cluster.uniform(4, 4), config(2, 2), limping(hard), LOAD).write_unavailability
        for hard in (0.0, 0.5, 1.0)
    ]
    assert stopped[1] == pytest.approx(stopped[0], rel=1e-6)
    assert stopped[2] == pytest.approx(stopped[0], rel=1e-6)


def test_racks_that_never_fail_together_are_combined_beside_homes_of_several() -> None:
    """A card for one rack, on three: as with racks that hardly ever take another along."""
    at, setting = Cluster.uniform(6, 3), config(3, 2)
    card = load_model("single_rack")
    found = evaluate(at, setting, card, LOAD).loss_probability_per_year
    tables = card.to_dict()
    tables["rack"]["power"]["spreads"] = 1e-12
    near = evaluate(at, setting, FailureModel.from_dict(tables), LOAD).loss_probability_per_year
    assert found == pytest.approx(near, rel=1e-3)
