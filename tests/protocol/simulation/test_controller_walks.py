"""The simulated controller against walks recorded from Kafka's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.protocol.rules.config import Config
from advisor.protocol.rules.partition_registration import Registration
from advisor.protocol.scenario.commands import Runner
from advisor.protocol.scenario.language import parse
from advisor.protocol.simulation import events, scheduler
from advisor.protocol.simulation.admin_requests import refusal
from advisor.protocol.simulation.state import Broker, Settings, State, broker_of, with_broker
from advisor.protocol.simulation.step import step

FACTS = json.loads(
    (Path(__file__).resolve().parents[2] / "facts" / "kraft-controller-walks.json").read_text()
)


def ids(brokers) -> str:
    return ",".join(str(b) for b in brokers)


def scenario_of(walk) -> str:
    """Return a recorded walk as a scenario that reads the partition after each command."""
    elr = f" eligible_leader_replicas={str(walk['elr']).lower()}"
    lines = [
        f"cluster brokers={ids(range(walk['brokers']))} kafka={walk['kafka']} mode=kraft "
        f"only=controller{elr}",
        f"topic t replicas={ids(walk['replicas'])} min_insync_replicas={walk['min_isr']} "
        f"unclean_leader_election_enable={str(walk['unclean']).lower()}",
    ]
    for command, *_ in walk["steps"]:
        verb, word = command.split()[:2]
        if verb in ("alter-isr", "reassign"):
            command = f"{verb} t-0 {word}"
        elif verb == "elect":
            command = f"elect {word} t-0"
        elif verb == "alter":
            command = f"alter t {word}"
        lines += [command, "registration t-0", "state t-0"]
    return "\n".join(lines)


@pytest.mark.parametrize("kafka", ["3.5", "3.9", "4.0", "4.1", "4.4"])
def test_recorded_walks_of_the_kraft_controller(kafka):
    """Leader, epochs, ISR, ELR, last known leader and recovery agree after every step."""
    walks = [walk for walk in FACTS["walks"] if walk["kafka"] == kafka]
    assert len(walks) >= 36
    for walk in walks:
        printed = Runner().run(parse(scenario_of(walk)))[2:]
        for number, step_ in enumerate(walk["steps"]):
            command, leader, leader_epoch, partition_epoch, isr, elr, known, recovering, rs = step_
            expected = (
                f"leader={'none' if leader < 0 else leader} leader_epoch={leader_epoch} "
                f"partition_epoch={partition_epoch} isr={ids(isr)} elr={ids(elr)} "
                f"last_known_elr={ids(known)} "
                f"recovery={'recovering' if recovering else 'recovered'}"
            )
            assert printed[3 * number + 1] == [expected], (walk, number, command)
            assert f" replicas={ids(rs)} " in printed[3 * number + 2][0]


KRAFT = Settings(Config(kafka_version="3.9", mode="kraft"), only_controller=True)
RECORD = Registration(replicas=(1, 2, 3), isr=(1, 2), leader=1, leader_epoch=5, partition_epoch=9)


@pytest.mark.parametrize(
    ("sender", "epochs", "isr", "broker_epochs", "error"),
    [
        (1, (5, 9), (1, 2, 3), (-1, -1, -1), None),
        (1, (6, 9), (1, 2), (-1, -1), "NOT_CONTROLLER"),
        (1, (5, 10), (1, 2), (-1, -1), "NOT_CONTROLLER"),
        (2, (6, 1), (9,), (-1,), "NOT_CONTROLLER"),
        (1, (4, 9), (1, 2), (-1, -1), "FENCED_LEADER_EPOCH"),
        (2, (4, 8), (1, 2), (-1, -1), "FENCED_LEADER_EPOCH"),
        (2, (5, 8), (1, 2), (-1, -1), "INVALID_REQUEST"),
        (1, (5, 8), (2, 7), (-1, -1), "INVALID_UPDATE_VERSION"),
        (1, (5, 9), (), (), "INVALID_REQUEST"),
        (1, (5, 9), (1, 7), (-1, -1), "INVALID_REQUEST"),
        (1, (5, 9), (1, 1), (-1, -1), "INVALID_REQUEST"),
        (1, (5, 9), (2, 3), (-1, -1), "INVALID_REQUEST"),
        (1, (5, 9), (1, 4), (-1, -1), "INVALID_REQUEST"),
        (1, (5, 9), (1, 2), (-1, 7), "INELIGIBLE_REPLICA"),
        (1, (5, 9), (1, 2), (0, 0), None),
    ],
)
def test_order_of_errors_of_alter_partition(sender, epochs, isr, broker_epochs, error):
    """Newer epochs first, then older ones, then the request itself (KIP-497, KIP-903)."""
    state = State(tuple(Broker(b) for b in (1, 2, 3)))
    assert refusal(state, RECORD, sender, epochs, isr, broker_epochs, KRAFT) == error


@pytest.mark.parametrize(
    ("version", "session", "error"),
    [
        ("3.9", "fenced", "INELIGIBLE_REPLICA"),
        ("3.9", "stopping", "INELIGIBLE_REPLICA"),
        ("3.2", "fenced", None),
    ],
)
def test_fenced_brokers_may_not_join_since_3_3(version, session, error):
    """KIP-841."""
    settings = Settings(Config(kafka_version=version, mode="kraft"), only_controller=True)
    state = State(tuple(Broker(b) for b in (1, 2, 3)))
    state = with_broker(state, broker_of(state, 3)._replace(session=session))
    returned = refusal(state, RECORD, 1, (5, 9), (1, 2, 3), (-1, -1, -1), settings)
    assert returned == error


def settled(version: str, mode: str) -> tuple[State, Settings]:
    """Return a quiescent cluster of three brokers and one partition with three replicas."""
    settings = Settings(Config(kafka_version=version, mode=mode))
    state = State(tuple(Broker(b) for b in (1, 2, 3)))
    state, _ = step(state, events.CreateTopic("t", ((1, 2, 3),), 2), settings)
    return scheduler.settle(state, settings)[0], settings


@pytest.mark.parametrize(
    ("version", "mode", "detected_ms"),
    [
        ("3.9", "kraft", 9_000),
        ("3.4", "zookeeper", 18_000),
        ("2.4", "zookeeper", 6_000),
    ],
)
def test_a_dead_broker_is_fenced_when_its_session_expires(version, mode, detected_ms):
    """9 s under KRaft, 18 s under ZooKeeper, 6 s before 2.5; not one millisecond earlier."""
    state, settings = settled(version, mode)
    state, _ = step(state, events.Kill(1), settings)
    before, _ = scheduler.run_for(state, settings, detected_ms - 1)
    assert before.partitions[0].registration.leader == 1
    after, _ = scheduler.run_for(before, settings, 1)
    assert after.partitions[0].registration.leader == 2


def test_a_restart_within_the_session_waits_for_its_end():
    """The old session must expire before the controller accepts the new registration."""
    state, settings = settled("3.9", "kraft")
    state, _ = step(state, events.Kill(1), settings)
    state, _ = step(state, events.Start(1), settings)
    early, _ = scheduler.run_for(state, settings, 8_999)
    assert not broker_of(early, 1).registered
    late, _ = scheduler.run_for(early, settings, 1)
    assert broker_of(late, 1).registered
    assert late.partitions[0].registration.leader == 2


def test_a_controlled_shutdown_moves_leaders_at_once():
    """No session has to expire, and the broker's logs are flushed."""
    state, settings = settled("3.9", "kraft")
    state, _ = step(state, events.Stop(1), settings)
    state, _ = scheduler.run_now(state, settings)
    assert state.now_ms == 0
    assert state.partitions[0].registration.leader == 2
    assert not broker_of(state, 1).running


def test_nothing_is_decided_without_a_controller():
    """Fencing waits for the next controller, which restarts every session (KRaft)."""
    state, settings = settled("3.9", "kraft")
    state, _ = step(state, events.Kill(1), settings)
    state, _ = scheduler.run_for(state, settings, 8_000)
    state, _ = step(state, events.KillController(), settings)
    state, _ = scheduler.run_for(state, settings, 2_000 + 8_999)
    assert state.partitions[0].registration.leader == 1
    state, _ = scheduler.run_for(state, settings, 1)
    assert state.partitions[0].registration.leader == 2
    assert state.controller_epoch == 2


def test_fencing_and_unfencing_happen_once():
    """A fenced broker is not fenced again, an active one not unfenced (processBrokerHeartbeat).

    So a leader removed by its own unclean registration is not elected by another heartbeat.
    """
    text = """\
cluster brokers=0,1 kafka=4.1 mode=kraft only=controller eligible_leader_replicas=true
topic t replicas=0,1 min_insync_replicas=2
fence 1
register 0 unclean
unfence 0
registration t-0
fence 1
registration t-0
"""
    printed = Runner().run(parse(text))
    assert printed[5] == printed[7]
    assert printed[5][0].startswith("leader=none leader_epoch=1 partition_epoch=2 isr= elr=1 ")


@pytest.mark.parametrize(
    ("kafka", "changed", "elr"),
    [("4.1", "2", ""), ("4.1", "3", "2"), ("3.9", "2", "2")],
)
def test_a_new_min_isr_clears_the_elr(kafka, changed, elr):
    """In 4.0 and newer; not in the preview of 3.9, and not if the value does not change."""
    text = f"""\
cluster brokers=3 kafka={kafka} mode=kraft only=controller eligible_leader_replicas=true
topic t replicas=1,2,3 min_insync_replicas=3
fence 2
alter t min_insync_replicas={changed}
registration t-0
"""
    assert f" elr={elr} " in Runner().run(parse(text))[-1][0]


def last_of(text):
    """Return the last line that a scenario on ZooKeeper prints."""
    return Runner().run(parse(f"cluster kafka=3.9 mode=zookeeper {text}"))[-1]


def test_without_a_zookeeper_controller_nothing_is_written():
    """After the last broker dies it stays leader on record until a broker becomes controller."""
    down = "brokers=2\ntopic t replicas=1,2\nkill 1\nkill 2\nwait 1h\n"
    before = "leader=2 epoch=2 replicas=1,2 isr=2 elr= hw=-"
    assert last_of(f"{down}state t-0") == [before]
    after = before.replace("leader=2 epoch=2", "leader=none epoch=3")
    assert last_of(f"{down}start 1\nstate t-0") == [after]


def test_sessions_that_expire_without_a_zookeeper_controller_wait_for_the_next():
    """Broker 2 dies, then 1, the controller: broker 3 removes both when 1's session expires."""
    faults = "brokers=3\ntopic t replicas=2,3,1\n!kill 2\n!wait 1s\n!kill 1\n"
    # Broker 2's session of 18 s has expired, the controller's has not.
    silent = last_of(f"{faults}!wait 17500ms\n!registration t-0")[0]
    assert silent.startswith("leader=2 leader_epoch=0 ")
    acted = last_of(f"{faults}registration t-0")[0]
    assert acted.startswith("leader=3 leader_epoch=3 partition_epoch=3 isr=3 ")
