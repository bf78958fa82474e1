"""Brokers under ZooKeeper start again only after the end of their last session."""

from types import SimpleNamespace
from typing import Any

import pytest

from advisor.kafka_lab import player


class Reader:
    """Shows these brokers as serving, one reading after the other."""

    def __init__(self, *serving: set[int]) -> None:
        self.serving = list(serving)

    def read(self) -> Any:
        return SimpleNamespace(serving=frozenset(self.serving.pop(0)))


def cluster_of(mode: str) -> Any:
    """A cluster of three brokers, of which 2 does not run."""
    return SimpleNamespace(
        brokers=(1, 2, 3), running=lambda broker: broker != 2, spec=SimpleNamespace(mode=mode)
    )


@pytest.fixture(autouse=True)
def _no_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(player, "_POLL_INTERVAL_S", 0.0)


def test_a_broker_waits_until_zookeeper_has_forgotten_it() -> None:
    """It is read until the stopped broker is gone, and no longer."""
    reader = Reader({1, 2, 3}, {1, 2, 3}, {1, 3}, {1, 2, 3})
    player._wait_for_session_ends(cluster_of("zookeeper"), reader, deadline=float("inf"))
    assert len(reader.serving) == 1


def test_a_broker_of_kraft_starts_at_once() -> None:
    """Nothing is read."""
    reader = Reader({1, 2, 3})
    player._wait_for_session_ends(cluster_of("kraft"), reader, deadline=float("inf"))
    assert len(reader.serving) == 1
