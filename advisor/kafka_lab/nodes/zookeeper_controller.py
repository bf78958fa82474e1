"""Which broker is the ZooKeeper controller: asked, and moved to another."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

from advisor.errors import MissingExtraError
from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError

_CONTROLLER = "/controller"
_ANSWER_WITHIN_S = 15.0
_TRIED_FOR_S = 60.0
_RACE_OVER_S = 0.3


def lead(cluster: RealCluster, broker: int) -> None:
    """Let a broker be the controller: the others resign until it has won the race.

    Raises
    ------
    BrokersUnavailableError
        If it does not win within a minute.
    """
    try:
        from kazoo.client import KazooClient
    except ImportError:
        raise MissingExtraError("moving the controller", "dev") from None
    client: Any = KazooClient(hosts=cluster.zookeeper_address, timeout=_ANSWER_WITHIN_S)
    client.start(timeout=_ANSWER_WITHIN_S)
    until = time.monotonic() + _TRIED_FOR_S
    try:
        while (now := _controller(client)) != broker:
            if time.monotonic() > until:
                raise BrokersUnavailableError(f"broker {broker} did not become the controller")
            if now is not None:
                _resign(client)
            time.sleep(_RACE_OVER_S)
    finally:
        client.stop()
        client.close()


def _controller(client: Any) -> int | None:
    from kazoo.exceptions import NoNodeError

    try:
        data, _ = client.get(_CONTROLLER)
    except NoNodeError:
        return None
    return int(json.loads(data)["brokerid"])


def _resign(client: Any) -> None:
    from kazoo.exceptions import NoNodeError

    with contextlib.suppress(NoNodeError):
        client.delete(_CONTROLLER)
