"""A case read once: which states other cards are solved on, and what a power failure can take."""

import math

import pytest

from advisor import Cluster, Config, Workload, evaluate, load_model
from advisor.reliability import measure_table
from advisor.reliability.case import ChainParameters
from advisor.reliability.measures import replica_set
from advisor.reliability.solver.generator import EXACT, ROUGH
from sampled_runs import card

CLOUD = load_model("three_az_cloud")
CONFIG = Config(replication_factor=3, min_insync_replicas=2)
THREE = Cluster.uniform(brokers=3, racks=3)


@pytest.fixture(scope="module")
def found():
    return evaluate(THREE, CONFIG, CLOUD)


def read(model):
    return ChainParameters.read(CONFIG, model, Workload(), 3)


def more_often(times):
    """All failures but planned restarts so many times as frequent."""
    rates = [path for path in CLOUD.quantities if path.endswith(".per_year")]
    return CLOUD.with_values({p: times * CLOUD[p] for p in rates if "restart" not in p})


def test_another_card_is_solved_on_the_states_of_the_first(found) -> None:
    """All failures are 3 times as frequent: such a card of its own would have other states."""
    often = more_often(3.0)
    assert evaluate(THREE, CONFIG, often).states != found.states
    assert found.reevaluate(often).states == found.states
    like = read(often).roughly_like(read(CLOUD))
    assert like.nominal_rates_per_hour == read(CLOUD).nominal_rates_per_hour
    assert like.rates_per_hour == read(often).rates_per_hour
    assert (like.precision, read(often).precision) == (ROUGH, EXACT)


def test_a_card_of_another_order_of_magnitude_is_solved_on_states_of_its_own(found) -> None:
    """All failures are 40 times as frequent: too much would be missing."""
    often = more_often(40.0)
    drawn = found.reevaluate(often)
    assert drawn.states == evaluate(THREE, CONFIG, often).states > 5 * found.states
    assert drawn.error_bounds["loss_events_per_year"] < 0.02 * drawn.loss_events_per_year


@pytest.mark.parametrize(
    "nothing", ["broker.crash.per_year", "broker.restart.unclean", "rack.power.not_returning"]
)
def test_a_card_of_fewer_mechanisms_is_solved_on_the_same_states(found, nothing: str) -> None:
    """What does not happen has rate 0 there; the numbers are those of a question of its own."""
    fewer = CLOUD.with_values({nothing: 0.0})
    alone, drawn = evaluate(THREE, CONFIG, fewer), found.reevaluate(fewer)
    assert alone.states != found.states
    assert drawn.states == found.states
    for measure in measure_table.names():
        off = alone.error_bounds[measure] + found.error_bounds[measure]
        assert getattr(drawn, measure) == pytest.approx(
            getattr(alone, measure), rel=10 * ROUGH, abs=off
        )


def test_a_card_of_more_mechanisms_is_solved_on_states_of_its_own(found) -> None:
    """Its states are those of a question of its own."""
    fewer = CLOUD.with_values({"broker.crash.per_year": 0.0})
    alone = evaluate(THREE, CONFIG, fewer)
    assert alone.reevaluate(CLOUD).states == found.states
    own = read(CLOUD).roughly_like(read(fewer))
    assert own.nominal_rates_per_hour == read(CLOUD).nominal_rates_per_hour
    assert own.precision == ROUGH


@pytest.mark.parametrize(("flush", "kept"), [(0.01, 1.0), (1.0, 0.01)])
def test_power_takes_no_more_than_what_is_retained(flush: float, kept: float) -> None:
    """RF 1: the smaller of flush time and retention is lost, a record with 1 - exp(-r H)."""
    model = card(broker_power={"per_year": 2.0, "minutes": 1e-3}, flush={"seconds": 3600.0 * flush})
    per_hour = 30.0
    load = Workload(
        records_per_second=per_hour / 3600.0, replication_delay_ms=0.0, retention_hours=kept
    )
    lost = evaluate(Cluster.uniform(1, 1), Config(replication_factor=1), model, load)
    assert lost.acked_records_lost_per_year == pytest.approx(2.0 * per_hour * 0.01, rel=1e-6)
    some = -math.expm1(-per_hour * 0.01)
    assert lost.loss_events_per_year == pytest.approx(2.0 * some, rel=1e-6)


def test_acks_0_and_1_share_a_solved_chain() -> None:
    """The leader writes the same; without an answer, what is lost or refused was dropped."""
    replica_set.measure.cache_clear()  # what another test measured needs no chain
    replica_set.solve.cache_clear()
    one = evaluate(THREE, Config(replication_factor=2, acks=1), CLOUD)
    none = evaluate(THREE, Config(replication_factor=2, acks=0), CLOUD)
    assert replica_set.solve.cache_info().misses == 1
    assert none.loss_events_per_year == one.loss_events_per_year
    dropped = one.acked_records_lost_per_year + none.records_refused_per_year
    assert none.records_dropped_per_year == pytest.approx(dropped, rel=1e-12)
    assert (none.acked_records_lost_per_year, one.records_dropped_per_year) == (0.0, 0.0)


def test_versions_with_the_same_rules_share_a_solved_chain() -> None:
    """From 2.8 to 3.0 nothing changed that decides about leaders or ISRs."""
    old, new, elr = (
        ChainParameters.read(Config(kafka_version=version, acks=1), CLOUD, Workload(), 3)
        for version in ("2.8", "3.0", "4.2")
    )
    assert old == new != elr
