"""Time scaling, flushed offsets, and the cluster specification of a scenario."""

import pytest

from advisor.errors import AdvisorError, InputError
from advisor.kafka_lab.fault_injection import FlushedOffsets, common_prefix_length
from advisor.kafka_lab.nodes.node_properties import ClusterTimeouts
from advisor.kafka_lab.player import spec_for
from advisor.kafka_lab.time_scaling import time_scale_for
from advisor.protocol.log.replica_log import Log, Run
from advisor.protocol.scenario import options
from advisor.protocol.scenario.language import parse

CLUSTER = "cluster brokers=3 kafka=3.9 mode=kraft\ntopic t replicas=1,2,3\n"


def time_scale(text):
    scenario = parse(CLUSTER + text)
    model = options.cluster_of(scenario.commands[0])
    return time_scale_for(scenario, model.settings), model.settings.config


def test_timeouts_are_short_unless_the_scenario_depends_on_them():
    """Timeouts are short by default; `!wait` needs the real ones."""
    assert time_scale("kill 1\nwait 5s")[0].timeouts == ClusterTimeouts()
    assert time_scale("!kill 1\n!wait 5s")[0].timeouts == ClusterTimeouts(9_000, 30_000)


def test_sessions_outlive_a_restart_of_zookeeper():
    """Brokers need a second or two to find ZooKeeper again: their sessions must not end meanwhile.

    A KRaft controller that restarts gives every session its full time, however short.
    """
    assert time_scale("stop-quorum\nstart-quorum")[0].timeouts == ClusterTimeouts()
    scenario = parse(CLUSTER.replace("mode=kraft", "mode=zookeeper") + "stop-quorum\nstart-quorum")
    assert spec_for(scenario).timeouts.session_timeout_ms > ClusterTimeouts().session_timeout_ms


def test_producer_timeouts_scale_with_the_lag_timeout():
    """Producer timeouts keep their ratio to the lag timeout."""
    found, config = time_scale("produce t-0 1 acks=all request_timeout_ms=10000")
    given = config.changed(request_timeout_ms=10_000, delivery_timeout_ms=45_000)
    lag_ms = found.timeouts.replica_lag_time_max_ms
    assert found.request_ms(given) * 30_000 == 10_000 * lag_ms
    assert found.delivery_s(given) == pytest.approx(1.5 * lag_ms / 1000)


def test_default_delivery_timeout_exceeds_all_timeouts():
    """The default delivery timeout is longer than session and lag timeouts."""
    found, config = time_scale("produce t-0 1 acks=all")
    assert found.delivery_s(config) > 2 * found.timeouts.longest_timer_ms / 1000


def test_waits_are_limited_to_the_longest_timeout():
    """`wait` is limited to the longest timeout, plus the unclean election interval if enabled."""
    plain, _ = time_scale("wait 1h")
    assert plain.unclean_interval_ms is None
    assert plain.wait_s(3_600_000) == plain.wait_s(7_200_000)
    sweeping, _ = time_scale("alter t unclean_leader_election_enable=TRUE\nwait 5m")
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
def test_model_only_commands_are_rejected_before_start(text, what):
    """Commands that real brokers do not support are errors that name the line."""
    with pytest.raises(AdvisorError, match=what):
        spec_for(parse(text))


def test_spec_has_the_settings_of_the_scenario():
    """The specification has version, mode, racks, ELR and settings of the first command."""
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
def test_common_prefix_ends_at_the_first_difference(one, two, records):
    """Records are compared by value and epoch, whatever the runs they are grouped in."""
    assert common_prefix_length(one, two) == common_prefix_length(two, one) == records


def test_rewritten_records_are_not_flushed():
    """Flush 10, truncate to 4, write 6 others: a power failure preserves 4."""
    name = (1, "t", 0)
    flushed = FlushedOffsets()
    flushed.note(1, {name: Log(runs=(Run(0, 0, 10),), leo=10)})
    flushed.clamp({name: Log(runs=(Run(0, 0, 10), Run(0, 10, 5)), leo=15)})
    assert flushed.records(name) == 10
    flushed.clamp({name: Log(runs=(Run(0, 0, 4), Run(1, 20, 6)), leo=10)})
    assert flushed.records(name) == 4
    flushed.clamp({})
    assert flushed.records(name) == 0
