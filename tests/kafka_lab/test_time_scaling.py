"""A scenario's time on faster clocks, and what its power failures leave."""

import pytest

from advisor.errors import AdvisorError, InputError
from advisor.kafka_lab.nodes.node_properties import Clocks
from advisor.kafka_lab.observation.flushed_offsets import FlushedOffsets, common_prefix_length
from advisor.kafka_lab.player import spec_for
from advisor.kafka_lab.time_scaling import timing_for
from advisor.protocol.log.replica_log import Log, Run
from advisor.protocol.scenario import options
from advisor.protocol.scenario.language import parse

CLUSTER = "cluster brokers=3 kafka=3.9 mode=kraft\ntopic t replicas=1,2,3\n"


def timing(text):
    scenario = parse(CLUSTER + text)
    model = options.cluster_of(scenario.commands[0])
    return timing_for(scenario, model.settings), model.settings.config


def test_clocks_are_short_unless_a_scenario_compares_them():
    """By default sessions and lags last seconds; a wait in the midst of things needs true ones."""
    assert timing("kill 1\nwait 5s")[0].clocks == Clocks()
    assert timing("!kill 1\n!wait 5s")[0].clocks == Clocks(9_000, 30_000)


def test_timeouts_shrink_with_the_lag_time():
    """What was shorter than the lag time stays shorter, what was longer stays longer."""
    found, config = timing("produce t-0 1 acks=all request_timeout_ms=10000")
    given = config.changed(request_timeout_ms=10_000, delivery_timeout_ms=45_000)
    lag_ms = found.clocks.replica_lag_time_max_ms
    assert found.request_ms(given) * 30_000 == 10_000 * lag_ms
    assert found.delivery_s(given) == pytest.approx(1.5 * lag_ms / 1000)


def test_a_default_patience_outlasts_every_clock():
    """A producer that was given no timeout does not give up before sessions and lags end."""
    found, config = timing("produce t-0 1 acks=all")
    assert found.delivery_s(config) > 2 * found.clocks.longest_timer_ms / 1000


def test_waiting_ends_where_nothing_can_happen_any_more():
    """An hour is no more than all clocks; five minutes after an alteration, a sweep more."""
    plain, _ = timing("wait 1h")
    assert plain.unclean_interval_ms is None
    assert plain.wait_s(3_600_000) == plain.wait_s(7_200_000)
    sweeping, _ = timing("alter t unclean_leader_election_enable=true\nwait 5m")
    assert sweeping.unclean_interval_ms is not None
    assert sweeping.wait_s(300_000) > sweeping.unclean_interval_ms / 1000 > sweeping.wait_s(299_999)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("cluster brokers=1 kafka=2.4 mode=zookeeper", "not 2.4"),
        ("cluster brokers=1 kafka=3.9 only=controller", "only=controller"),
        ("cluster brokers=1 kafka=3.9 mode=zookeeper\nkill-controller", "line 2: .*kill that"),
        ("cluster brokers=2\ntopic t replicas=1\nreassign t-0 2 throttle=5", "line 3: .*bytes"),
    ],
)
def test_what_only_the_model_can_do_is_refused_before_anything_starts(text, what):
    """The error says what real brokers cannot do, and where it stands."""
    with pytest.raises(AdvisorError, match=what):
        spec_for(parse(text))


def test_a_wish_has_what_the_scenario_asks_for():
    """Version, controller, racks, ELR and settings of the first command."""
    text = "cluster brokers=1,4 racks=a,b kafka=4.0 eligible_leader_replicas=true"
    spec = spec_for(parse(f"{text} min_insync_replicas=2"))
    assert (spec.version, spec.mode, spec.racks) == ("4.0", "kraft", {1: "a", 4: "b"})
    assert spec.eligible_leader_replicas is True
    assert spec.brokers_configs == {"min.insync.replicas": "2"}
    assert spec_for(parse(text), "3.9").eligible_leader_replicas is None
    with pytest.raises(InputError):
        spec_for(parse("cluster"))


@pytest.mark.parametrize(
    ("one", "two", "records"),
    [
        ((Run(0, 0, 10),), (Run(0, 0, 4), Run(0, 4, 9)), 10),
        ((Run(0, 0, 10),), (Run(0, 0, 4), Run(1, 4, 9)), 4),
        ((Run(0, 0, 10),), (Run(0, 0, 4), Run(0, 5, 9)), 4),
        ((), (Run(0, 0, 4),), 0),
        ((Run(2, 0, 3),), (Run(1, 0, 3),), 0),
    ],
)
def test_logs_agree_up_to_the_first_record_that_differs(one, two, records):
    """Value and epoch count, not how records are grouped."""
    assert common_prefix_length(one, two) == common_prefix_length(two, one) == records


def test_what_was_cut_off_and_written_again_is_not_flushed():
    """A flush of ten, a truncation to four, six others: a power failure leaves four."""
    name = (1, "t", 0)
    flushed = FlushedOffsets()
    flushed.note(1, {name: Log(runs=(Run(0, 0, 10),), leo=10)})
    flushed.clamp({name: Log(runs=(Run(0, 0, 10), Run(0, 10, 5)), leo=15)})
    assert flushed.records(name) == 10
    flushed.clamp({name: Log(runs=(Run(0, 0, 4), Run(1, 20, 6)), leo=10)})
    assert flushed.records(name) == 4
    flushed.clamp({})
    assert flushed.records(name) == 0
