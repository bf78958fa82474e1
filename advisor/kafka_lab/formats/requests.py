"""Send one request to one broker and wait for the response.

A client library would hide what matters here: the broker, the number of attempts and the error of
each. So only the message encoding is kafka-python's.
"""

from __future__ import annotations

import socket
import struct
from typing import Any

from kafka import errors
from kafka.protocol.broker_version_data import BrokerVersionData

NETWORK_EXCEPTION = "NETWORK_EXCEPTION"
_SIZE = struct.Struct(">i")
_CONNECT_TIMEOUT_S = 3.0


class NoResponseError(Exception):
    """A broker cannot be reached or does not respond in time; callers retry."""


def send_request(address: tuple[str, int], request: Any, release: str, timeout_s: float) -> Any:
    """Send a request on a new connection and wait for the response.

    address: the broker.
    request: a request of ``kafka.protocol``.
    release: release of the broker, such as ``3.9.2``; selects the API version.
    timeout_s: time limit in seconds.
    Returns the response of ``kafka.protocol``; None for requests without one (acks=0).
    Raises NoResponseError if the broker cannot be reached or does not respond in time.
    """
    line = tuple(int(part) for part in release.split(".")[:2])
    request.API_VERSION = BrokerVersionData(line).api_version(request)
    request.with_header(correlation_id=1, client_id="advisor")
    framed = request.encode(header=True, framed=True)
    try:
        with socket.create_connection(address, min(timeout_s, _CONNECT_TIMEOUT_S)) as connection:
            connection.settimeout(timeout_s)
            connection.sendall(framed)
            if not request.expect_response():
                # The broker has read the request when it closes its side too.
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1)
                return None
            (size,) = _SIZE.unpack(_receive(connection, _SIZE.size))
            data = _receive(connection, size)
    except OSError as error:
        raise NoResponseError(f"{address[0]}:{address[1]}: {error}") from None
    response = request.header.get_response_class()
    return response.decode(data, header=True)


def error_name(code: int) -> str | None:
    """Return Kafka's name of an error code; None for no error."""
    return None if code == 0 else str(errors.for_code(code).message)


def _receive(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("the broker closed the connection")
        data += part
    return bytes(data)
