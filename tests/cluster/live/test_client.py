"""Requests to a cluster that answers as no broker does: noted as missing, and no traceback."""

import asyncio
import math
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import errors

from advisor.cluster.live.client import _ClusterQuery


def asked(what: str, request: str, answer: Any) -> dict[str, str]:
    """Return what is missing after one request, to a cluster without a known controller."""
    query = _ClusterQuery(SimpleNamespace(cluster=SimpleNamespace(controller=None)), math.inf)

    async def send(_request: Any, _connection: Any = None) -> Any:
        return answer

    query._send = send  # type: ignore[method-assign]
    asyncio.run(query._note_failure(what, getattr(query, request)()))
    return query.answers.missing


@pytest.mark.parametrize("topics", [[], [SimpleNamespace(partitions=[])]])
def test_a_quorum_without_a_log_is_missing(topics: list[Any]) -> None:
    """A response that describes no partition of the metadata log."""
    answer = SimpleNamespace(error_code=0, topics=topics)
    missing = asked("the controllers' quorum", "_quorum", answer)
    assert missing == {"the controllers' quorum": "UNKNOWN_TOPIC_OR_PARTITION"}


def test_reassignments_without_a_controller_are_missing() -> None:
    """The broker asked is not the controller, and knows of none."""
    answer = SimpleNamespace(error_code=errors.NotControllerError.errno)
    missing = asked("running reassignments", "_reassignments", answer)
    assert missing == {"running reassignments": "NOT_CONTROLLER"}
