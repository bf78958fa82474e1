"""One question to one broker, by Kafka's protocol: sent, and its answer waited for.

A library's client hides what matters here behind its own patience: which broker it asks, how often
it tries, and what each attempt was answered. So only the messages are kafka-python's.
"""

from __future__ import annotations

import socket
import struct
from typing import Any

from kafka import errors
from kafka.protocol.broker_version_data import BrokerVersionData

NETWORK_EXCEPTION = "NETWORK_EXCEPTION"
_SIZE = struct.Struct(">i")
_CONNECTED_WITHIN_S = 3.0


class UnansweredError(Exception):
    """A broker could not be reached, or did not answer in time; no AdvisorError: it is retried."""


def ask(address: tuple[str, int], request: Any, release: str, within_s: float) -> Any:
    """Send a request on a connection of its own, and wait for the response.

    Parameters
    ----------
    address : (host, port)
    request : a request of ``kafka.protocol``
    release : str
        Of the broker, such as ``3.9.2``: it decides the version of the message.
    within_s : float

    Returns
    -------
    the response of ``kafka.protocol``, or None where none is expected (acks=0)

    Raises
    ------
    UnansweredError
    """
    line = tuple(int(part) for part in release.split(".")[:2])
    request.API_VERSION = BrokerVersionData(line).api_version(request)
    request.with_header(correlation_id=1, client_id="advisor")
    framed = request.encode(header=True, framed=True)
    try:
        with socket.create_connection(address, min(within_s, _CONNECTED_WITHIN_S)) as connection:
            connection.settimeout(within_s)
            connection.sendall(framed)
            if not request.expect_response():
                # The broker has read it once it has closed its side too.
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1)
                return None
            (size,) = _SIZE.unpack(_received(connection, _SIZE.size))
            data = _received(connection, size)
    except OSError as error:
        raise UnansweredError(f"{address[0]}:{address[1]}: {error}") from None
    response = request.header.get_response_class()
    return response.decode(data, header=True)


def error_name(code: int) -> str | None:
    """Kafka's name of an error code, None for no error."""
    return None if code == 0 else str(errors.for_code(code).message)


def _received(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("the broker closed the connection")
        data += part
    return bytes(data)
