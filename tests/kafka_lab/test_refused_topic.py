"""A refused topic on real brokers: expected, or a sign that the machine is too busy."""

from types import SimpleNamespace
from typing import Any

import pytest

from advisor.kafka_lab import real_simulation
from advisor.kafka_lab.real_simulation import RealSimulation, TooBusyError
from advisor.protocol.rules.config import Config
from advisor.protocol.simulation import events as ev
from advisor.protocol.simulation.cluster import Simulation
from advisor.protocol.simulation.state import Broker, Settings

TOPIC = ev.CreateTopic("t", ((1, 2),))


@pytest.fixture
def simulation(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that makes a simulation whose controller gives an answer."""

    def answering(error: str | None, active: bool = True, has_quorum: bool = True) -> Any:
        faults = SimpleNamespace(
            quorum=SimpleNamespace(running=has_quorum), resume_followers=lambda: None
        )
        client = SimpleNamespace(create_topic=lambda *_: error)
        monkeypatch.setattr(real_simulation, "FaultInjector", lambda *_: faults)
        monkeypatch.setattr(real_simulation, "Client", lambda *_: client)
        brokers = tuple(Broker(b, session="active" if active else "fenced") for b in (1, 2))
        cluster: Any = SimpleNamespace(brokers=(1, 2), running=lambda _: True)
        scale: Any = SimpleNamespace()
        return RealSimulation(Simulation(brokers, Settings(Config())), cluster, scale)

    return answering


def test_a_topic_that_is_accepted_is_in_the_state(simulation):
    accepted = simulation(None)
    assert accepted.apply(TOPIC) == ()
    assert [p.topic for p in accepted.state.partitions] == ["t"]


@pytest.mark.parametrize("error", ["INVALID_REPLICA_ASSIGNMENT", "TOPIC_ALREADY_EXISTS"])
def test_a_topic_that_is_refused_though_its_brokers_serve_is_tried_again(simulation, error):
    with pytest.raises(TooBusyError, match=rf"topic t was refused \({error}\)"):
        simulation(error).apply(TOPIC)


def test_a_topic_is_refused_where_no_broker_could_lead(simulation):
    error = "INVALID_REPLICA_ASSIGNMENT"
    assert simulation(error, active=False).apply(TOPIC) == (ev.Refused(error),)


def test_a_topic_is_refused_without_a_controller(simulation):
    error = "REQUEST_TIMED_OUT"
    assert simulation(error, has_quorum=False).apply(TOPIC) == (ev.Refused(error),)
