"""Ports on which nothing listens, and which nobody else gets while a test needs them closed."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

LOOPBACK = "127.0.0.1"


@contextmanager
def closed_port() -> Iterator[int]:
    """Hold a port of the loopback without listening: connections to it are refused."""
    with socket.socket() as held:
        held.bind((LOOPBACK, 0))
        yield int(held.getsockname()[1])
