"""Move the ZooKeeper controller to a given broker."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

from advisor.errors import MissingExtraError
from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError

_CONTROLLER = "/controller"
_RESPONSE_TIMEOUT_S = 15.0
_RETRY_FOR_S = 60.0
_ELECTION_DELAY_S = 0.3


def move_controller(cluster: RealCluster, broker: int) -> None:
    """Make a broker the controller, by deleting the znode until it wins the election."""
    try:
        from kazoo.client import KazooClient
    except ImportError:
        raise MissingExtraError("moving the controller", "dev") from None
    client: Any = KazooClient(hosts=cluster.zookeeper_address, timeout=_RESPONSE_TIMEOUT_S)
    client.start(timeout=_RESPONSE_TIMEOUT_S)
    deadline = time.monotonic() + _RETRY_FOR_S
    try:
        while (now := _controller(client)) != broker:
            if time.monotonic() > deadline:
                raise BrokersUnavailableError(f"broker {broker} did not become the controller")
            if now is not None:
                _resign(client)
            time.sleep(_ELECTION_DELAY_S)
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
