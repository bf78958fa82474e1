"""One partition of the simulation, driven event by event."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from advisor.protocol.rules.config import Config
from advisor.protocol.simulation import events, scheduler
from advisor.protocol.simulation.state import (
    Broker,
    Partition,
    Replica,
    Settings,
    State,
    replica_of,
    with_partition,
    with_replica,
)
from advisor.protocol.simulation.step import step


class PartitionLab:
    """One partition of a state, driven event by event."""

    state: State
    settings: Settings

    def do(self, *events: Any) -> tuple[Any, ...]:
        effects: tuple[Any, ...] = ()
        for event in events:
            self.state, new = step(self.state, event, self.settings)
            effects += new
        return effects

    def settle(self) -> tuple[Any, ...]:
        self.state, effects = scheduler.settle(self.state, self.settings)
        return effects

    @property
    def partition(self) -> Partition:
        return self.state.partitions[0]


class Lab(PartitionLab):
    """One partition with three replicas."""

    def __init__(self, version: str, mode: str = "kraft", min_isr: int = 2, **options: Any) -> None:
        config = Config(kafka_version=version, mode=mode, **options)
        self.settings = Settings(config)
        self.state = State(tuple(Broker(b) for b in (1, 2, 3)))
        self.do(events.CreateTopic("t", ((1, 2, 3),), min_isr))
        self.settle()

    def produce(self, count: int = 1, acks: int | str = "all", broker: int = 1) -> tuple[Any, ...]:
        first = self.state.next_value
        return self.do(events.Produce("t", 0, broker, first, count, acks))

    def fetch(self, broker: int) -> tuple[Any, ...]:
        return self.do(events.Fetch(0, broker))

    def at(self, broker: int) -> Replica:
        found = replica_of(self.partition, broker)
        assert found is not None
        return found

    def put(self, replica: Replica) -> None:
        self.state = with_partition(self.state, 0, with_replica(self.partition, replica))


def kinds(effects: Iterable[object]) -> list[str]:
    return [type(effect).__name__ for effect in effects]


def follower_state(lab: Lab, broker: int) -> Any:
    (found,) = (f for f in lab.at(1).followers if f.broker == broker)
    return found
