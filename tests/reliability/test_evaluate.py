"""`evaluate` against exact figures, and what its fields promise."""

import math
from contextlib import nullcontext
from fractions import Fraction
from itertools import islice

import pytest

from advisor.cluster import Cluster
from advisor.errors import AdvisorError, InputError, NotComputedError
from advisor.pipeline.simulate import simulate
from advisor.protocol.rules.config import Config
from advisor.reliability import measure_table
from advisor.reliability.chain import state_selection
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel, load_model
from advisor.reliability.results.fault_tolerance import never_writes, tolerance
from advisor.reliability.solver.generator import ROUGH
from advisor.reliability.statespace import lumping
from advisor.reliability.workload import Workload

DESTROYED = {"broker": {"destroyed": {"per_year": 1.0, "hours": 12.0}}}
ONE = Workload(partitions=1)


# An operator who elects a remaining replica at once where Kafka would wait.
AT_ONCE = {"hours": 1e-5}


def model(**rack: dict) -> FailureModel:
    return FailureModel.from_dict({**DESTROYED, **({"rack": rack} if rack else {})})


def cluster(*racks: str) -> Cluster:
    return Cluster(brokers=dict(enumerate(racks, start=1)))


@pytest.mark.parametrize("min_isr", [1, 2, 3])
@pytest.mark.parametrize("version", ["4.2", "3.9", "0.10"])
def test_three_replicas_meet_the_birth_death_chain(min_isr, version):
    """Media loss needs every copy gone: whatever min ISR and version, the known mean and chance."""
    config = Config(
        kafka_version=version,
        replication_factor=3,
        min_insync_replicas=min_isr,
        acks="all",
        unclean_leader_election_enable=False,
    )
    found = evaluate(cluster("a", "b", "c"), config, model(), ONE)
    assert found.mean_years_to_loss == pytest.approx(1563544660.14 / 8760, rel=1e-9)
    assert found.loss_probability_per_year == pytest.approx(5.59114995506349e-6, rel=1e-11)


def test_five_replicas_meet_the_birth_death_chain():
    """Eleven nines, to eleven digits."""
    config = Config(replication_factor=5)
    found = evaluate(cluster(*"abcde"), config, model(), ONE)
    assert found.loss_probability_per_year == pytest.approx(1.74308231626847e-11, rel=1e-11)


@pytest.mark.parametrize("replicas", range(3, 9))
def test_mean_time_to_loss_keeps_twelve_digits(replicas):
    """Brokers destroyed yearly, back in 12 h: the birth-death chain in exact rationals."""
    fail, repair = Fraction(1, 8760), Fraction(1, 12)
    mean = step = Fraction(0)
    for down in range(replicas):
        step = (1 + down * repair * step) / ((replicas - down) * fail)
        mean += step
    at = Cluster(brokers={broker: f"r{broker}" for broker in range(replicas)})
    found = evaluate(at, Config(replication_factor=replicas), model(), ONE)
    assert found.mean_years_to_loss * 8760 == pytest.approx(float(mean), rel=1e-12)
    assert found.error_bounds["mean_years_to_loss"] <= 2e-12 * found.mean_years_to_loss


@pytest.mark.parametrize("replicas", [5, 6])
def test_many_replicas_with_every_mechanism_are_computed(replicas):
    """RF 5 and 6 over three racks: rarer losses than RF 3, bounded as the rule says."""
    at = Cluster.uniform(brokers=6, racks=3)
    card = load_model("three_az_cloud")
    config = Config(replication_factor=3, min_insync_replicas=2)
    three = evaluate(at, config, card, ONE)
    more = evaluate(
        at, config.changed(replication_factor=replicas, min_insync_replicas=3), card, ONE
    )
    assert 0 < more.loss_events_per_year < three.loss_events_per_year
    losses, _, outages, _ = 0.1 * state_selection._SHARE_OF_MANY
    bound = more.error_bounds["loss_probability_per_year"]
    assert bound < losses * more.loss_probability_per_year
    # A quarter for outages; and which of the followers leads.
    share = 2.5 * outages + lumping._NEXT_LEADER
    assert more.error_bounds["write_unavailability"] < share * more.write_unavailability
    assert more.truncated_entries_per_year > 0
    assert "are left out" in more.explain()
    assert "are left out" in repr(more)
    # Intervals take longest.
    if replicas == 5:
        _, high = more.interval("loss_probability_per_year")
        assert high > 100.0 * bound
        low, _ = more.interval("mean_years_to_loss")
        assert low < 0.01 / bound


def test_errors_are_stated_for_every_measure():
    """Each measure has a bound; a draw's, solved roughly, is wider."""
    at = cluster("a", "b", "c")
    found = evaluate(at, Config(replication_factor=3), load_model("three_az_cloud"), ONE)
    assert set(found.error_bounds) == set(measure_table.names())
    assert found.to_dict()["error_bounds"] == dict(found.error_bounds)
    rough = found.reevaluate(found.model)
    assert set(rough.error_bounds) == set(measure_table.names())
    for name in ("loss_events_per_year", "acked_records_lost_per_year", "write_unavailability"):
        assert rough.error_bounds[name] > found.error_bounds[name] > 0.0
        assert rough.error_bounds[name] > ROUGH * getattr(rough, name)


@pytest.mark.parametrize(
    ("racks", "probability"),
    [("abc", 7.3986153346e-6), ("aab", 2.2683705934e-4), ("aaa", 9.339e-2)],
)
def test_destroyed_racks_meet_the_known_chances(racks, probability):
    """A rack destroyed once in 10.2 years: 1+1+1, 2+1 and 3+0 replicas."""
    card = model(destroyed={"per_year": 1 / 10.2})
    found = evaluate(cluster(*racks), Config(replication_factor=3), card, ONE)
    assert found.loss_probability_per_year == pytest.approx(probability, rel=1e-4)
    if racks != "aaa":
        assert found.loss_probability_per_year == pytest.approx(probability, rel=1e-10)


def test_one_replica_is_down_while_it_is_replaced():
    """RF 1: unavailable for 12 h in every 8772 h, and each destruction of a record a loss event.

    Of destructions at a rate a, r / (a + r) come after a first record at rate r.
    """
    found = evaluate(cluster("a"), Config(replication_factor=1), model(), ONE)
    assert found.write_unavailability == pytest.approx(12 / 8772, rel=1e-12)
    assert found.read_unavailability == pytest.approx(12 / 8772, rel=1e-12)
    written = 1.0 / (1.0 + 1.0 / 8760.0 / 3.6e6)
    assert found.loss_events_per_year == pytest.approx(8760 / 8772 * written, rel=1e-12)


def test_two_of_three_needed_is_unwritable_with_two_down():
    """Three independent brokers, min ISR 2: unwritable with two or three of them away."""
    config = Config(replication_factor=3, min_insync_replicas=2, acks="all")
    card = FailureModel.from_dict({**DESTROYED, "operator": AT_ONCE})
    found = evaluate(cluster("a", "b", "c"), config, card, ONE)
    away = 12 / 8772
    assert found.write_unavailability == pytest.approx(
        3 * away**2 * (1 - away) + away**3, rel=1e-10
    )
    assert found.read_unavailability == pytest.approx(away**3, rel=1e-10)


def test_min_isr_above_rf_blocks_before_3_7_and_not_since():
    """RF 1 with min ISR 2: refused for ever in 3.6, so nothing is lost either; capped in 3.7."""
    for version, blocked in (("3.6", True), ("3.7", False)):
        config = Config(
            kafka_version=version, replication_factor=1, min_insync_replicas=2, acks="all"
        )
        found = evaluate(cluster("a"), config, model(), ONE)
        assert (found.write_unavailability == pytest.approx(1.0)) is blocked
        assert (found.loss_events_per_year == 0.0) is blocked
        assert (found.tolerates.while_writable == -1) is blocked


@pytest.mark.parametrize(
    ("replicas", "least", "advice"),
    [(1, 2, "to 1, or keep 3 replicas"), (3, 5, "to 2, or keep 6 replicas")],
)
def test_a_setting_that_never_writes_says_so_and_what_to_do(replicas, least, advice):
    """In 3.6 a min ISR above the RF: no spans of time, no causes, but the reason and the way out.

    What is advised accepts writes.
    """
    config = Config(
        kafka_version="3.6", replication_factor=replicas, min_insync_replicas=least, acks="all"
    )
    where = cluster(*"abc"[:replicas])
    computed = evaluate(where, config, model(), ONE)
    sampled = simulate(where, config, model(), ONE, 1, engine="local")
    for said in (computed.explain(), repr(sampled)):
        assert (
            f"Kafka 3.6 refuses every write with acks=all, because min.insync.replicas {least} "
            in said
        )
        assert f"set min.insync.replicas {advice}." in said
        assert "all the time" not in said
    assert "Causes of" not in computed.explain()
    assert (
        f"no write succeeds, even with every broker up; brokers you can lose: {replicas - 1} "
        in (str(computed.tolerates))
    )
    lower = config.changed(min_insync_replicas=max(replicas - 1, 1))
    more = config.changed(replication_factor=least + 1)
    assert (never_writes(lower), never_writes(more)) == ("", "")
    assert tolerance(more).while_writable == 1
    assert never_writes(config.changed(kafka_version="3.7")) == ""


def test_detection_is_charged_to_every_failure_of_a_leader():
    """Crashes once a year, 9 s to notice, brokers back at once: 9 s without a leader a year."""
    card = FailureModel.from_dict(
        {"broker": {"crash": {"per_year": 1.0, "minutes": 1e-3}}, "detection": {"seconds": 9.0}}
    )
    found = evaluate(cluster("a", "b", "c"), Config(replication_factor=3), card, ONE)
    assert found.read_unavailability == pytest.approx(9.0 / 3600 / 8760, rel=1e-6)
    assert found.write_unavailability == found.read_unavailability


def test_refused_records_come_from_the_length_of_outages():
    """One replica, 10 min exponential outages: what waits over 120 s is exp(-0.2) of the time."""
    card = FailureModel.from_dict({"broker": {"crash": {"per_year": 10.0, "minutes": 10.0}}})
    load = Workload(partitions=1, records_per_second=100.0)
    found = evaluate(cluster("a"), Config(replication_factor=1), card, load)
    down = found.write_unavailability
    expected = down * math.exp(-120 / 600) * 100.0 * 3600 * 8760
    assert found.records_refused_per_year == pytest.approx(expected, rel=1e-9)


def test_without_retries_every_outage_refuses():
    """retries=0 waits for nothing."""
    card = FailureModel.from_dict({"broker": {"crash": {"per_year": 10.0, "minutes": 10.0}}})
    config = Config(replication_factor=1, retries=0)
    found = evaluate(cluster("a"), config, card, ONE)
    expected = found.write_unavailability * 1000.0 * 3600 * 8760
    assert found.records_refused_per_year == pytest.approx(expected, rel=1e-12)


def test_acks_1_loses_the_tail_of_every_leader_that_fails():
    """Each crash of a leader, and the move back to it, drops what its followers had not fetched."""
    card = FailureModel.from_dict({"broker": {"crash": {"per_year": 1.0, "minutes": 1.0}}})
    load = Workload(partitions=1, records_per_second=1000.0, replication_delay_ms=5.0)
    config = Config(replication_factor=3, acks=1)
    found = evaluate(cluster("a", "b", "c"), config, card, load)
    chance = -math.expm1(-5.0)
    assert found.loss_events_per_year == pytest.approx(2.0 * chance, rel=1e-4)
    assert found.acked_records_lost_per_year == pytest.approx(2.0 * 5.0, rel=1e-4)
    safe = evaluate(cluster("a", "b", "c"), config.changed(acks="all"), card, load)
    assert safe.loss_events_per_year == 0.0


def test_total_loss_takes_what_was_retained():
    """RF 1 destroyed once a year loses a week of records, or what was written since the last time.

    The mean of the smaller of a week and an exponential time of a year; of the logs, all but those
    that are destroyed before a first record is written count as lost.
    """
    load = Workload(partitions=1, records_per_second=1.0, retention_hours=168.0)
    found = evaluate(cluster("a"), Config(replication_factor=1), model(), load)
    per_event = found.acked_records_lost_per_year / found.loss_events_per_year
    whole = -8760 * math.expm1(-168 / 8760) * 3600
    assert per_event == pytest.approx(whole * (1.0 + 1.0 / 8760.0 / 3600.0), rel=1e-12)


def test_min_isr_1_loses_what_the_last_replica_took_alone():
    """Two replicas, one crashes for an hour on average, the other is destroyed meanwhile.

    At a random moment of an exponential spell its age is distributed as the spell: an hour on
    average, of which what is older than the retention of an hour does not count. Repair of the
    destroyed one takes long enough that the other leads first.
    """
    card = FailureModel.from_dict(
        {
            "broker": {
                "crash": {"per_year": 50.0, "minutes": 60.0},
                "destroyed": {"per_year": 1e-6, "hours": 1000.0},
            },
            "operator": AT_ONCE,
        }
    )
    load = Workload(partitions=1, records_per_second=1.0, retention_hours=1.0)
    config = Config(
        kafka_version="3.9",
        replication_factor=2,
        min_insync_replicas=1,
        acks="all",
        eligible_leader_replicas=False,
    )
    found = evaluate(cluster("a", "b"), config, card, load)
    per_event = found.acked_records_lost_per_year / found.loss_events_per_year
    assert per_event == pytest.approx(-3600 * math.expm1(-1.0), rel=0.02)


def test_causes_add_up():
    """The parts of every measure add up to the whole."""
    found = evaluate(
        cluster("a", "b", "c"),
        Config(replication_factor=3, min_insync_replicas=2),
        load_model("three_az_cloud"),
        Workload(partitions=12),
    )
    for measure, parts in found.causes.items():
        assert math.fsum(parts.values()) == pytest.approx(getattr(found, measure), rel=1e-12)
    assert set(found.causes) == set(measure_table.names()) - {"mean_years_to_loss"}


def test_intervals_hold_the_value_and_need_ranges():
    """Every measure lies in its interval; without ranges the interval is the value."""
    at = cluster("a", "b", "c")
    config = Config(replication_factor=2, min_insync_replicas=1)
    found = evaluate(at, config, load_model("three_az_cloud"), ONE)
    for measure in measure_table.names():
        low, high = found.interval(measure)
        assert low <= getattr(found, measure) <= high
        assert low < high or measure == "records_dropped_per_year"
    assert evaluate(at, config, model(), ONE).interval("loss_events_per_year") == (
        (evaluate(at, config, model(), ONE).loss_events_per_year,) * 2
    )
    with pytest.raises(InputError, match="is no measure"):
        found.interval("nines")


def test_kafka_refuses_more_replicas_than_brokers():
    """The replication factor is checked in Kafka's words before anything is computed."""
    with pytest.raises(AdvisorError, match="2"):
        evaluate(cluster("a", "b"), Config(replication_factor=3), model(), ONE)


def test_other_shapes_are_left_to_sampling():
    """A repair that varies less than two stages is refused in one sentence."""
    card = FailureModel.from_dict(
        {"broker": {"destroyed": {"per_year": 1.0, "hours": 12.0, "shape": 4.0}}}
    )
    with pytest.raises(NotComputedError, match="simulate"):
        evaluate(cluster("a", "b"), Config(replication_factor=2), card, ONE)


@pytest.mark.parametrize(
    ("hours", "said"), [(1e-9, r"by operator\.hours .* 3\.6e-6 seconds"), (1.0, "")]
)
def test_a_decision_far_shorter_than_producers_retry_is_named(hours, said):
    """The series would be too long; the message says which number of the card makes it so."""
    card = FailureModel.from_dict(
        {
            "broker": {"destroyed": {"per_year": 1.0, "hours": 24.0}},
            "operator": {"hours": hours},
        }
    )
    with pytest.raises(NotComputedError, match=said) if said else nullcontext():
        evaluate(cluster("a", "b", "c"), Config(replication_factor=3), card, ONE)


def test_unknown_racks_are_said():
    """Brokers without a rack count as racks of their own, and the result says so."""
    card = load_model("three_az_cloud")
    found = evaluate(Cluster(brokers={1: None, 2: "a"}), Config(replication_factor=2), card, ONE)
    assert "broker 1 is not known" in found.assumptions[0]
    known = evaluate(cluster("a", "b"), Config(replication_factor=2), card, ONE)
    assert not any("is not known" in text for text in known.assumptions)


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_card_where_nothing_happens(replicas):
    """Rates of zero: nothing is lost or refused, ever, and the verdict says so."""
    card = FailureModel.from_dict({"broker": {"crash": {"per_year": 0.0, "minutes": 1.0}}})
    found = evaluate(cluster("a", "b", "c"), Config(replication_factor=replicas), card, ONE)
    assert found.mean_years_to_loss == math.inf
    assert found.loss_probability_per_year == 0.0
    assert found.write_unavailability == 0.0
    assert "no modelled data loss, writes never refused." in found.summary
    assert found.interval("mean_years_to_loss") == (math.inf, math.inf)


def test_a_card_with_ranges_that_loses_nothing_has_no_end():
    """Uncertain restarts lose nothing with acks=all: the time to a loss is infinite throughout."""
    card = FailureModel.from_dict(
        {
            "broker": {
                "restart": {"per_year": {"value": 9.0, "low": 1.0, "high": 20.0}, "minutes": 5}
            }
        }
    )
    found = evaluate(cluster("a", "b", "c"), Config(replication_factor=3), card, ONE)
    assert found.interval("mean_years_to_loss") == (math.inf, math.inf)


def test_a_draw_for_which_too_much_would_be_missing_has_states_of_its_own():
    """Failures ten times as frequent: the card's states would miss a loss in three."""
    at, card = Cluster.uniform(brokers=6, racks=3), load_model("three_az_cloud")
    found = evaluate(at, Config(replication_factor=3, min_insync_replicas=2), card, ONE)
    drawn = [found.reevaluate(draw) for draw in islice(card.draws(32, seed=0), 12, 18)]
    names = ("loss_events_per_year", "write_unavailability")
    off = [max(one.error_bounds[name] / getattr(one, name) for name in names) for one in drawn]
    assert max(off) < 0.02
    others = [one.states for one in drawn if one.states != found.states]
    assert 0 < len(others) < 6
