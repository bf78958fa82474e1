"""Find out whether a Kafka broker answers at an address, and if not, why.

A client library tries again until its time is up, and then says no more than that. Here one
connection is made first, step by step: the name, the port, TLS, and a first request, the one that
every broker since 0.10 answers before anybody has logged in.
"""

from __future__ import annotations

import re
import socket
import ssl
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass

from advisor.errors import InputError

ADDRESS = re.compile(
    r"(?:[A-Za-z_]+://)?(?:\[([0-9A-Fa-f:.]+(?:%\w+)?)\]|([^\s/\\:,\[\]=]+)):([0-9]{1,5})"
)
# ApiVersions, version 0, correlation id 0, no client id (`ApiVersionsRequest.json`).
_HELLO = struct.pack(">ihhih", 10, 18, 0, 0, -1)
_TLS_RECORDS = (b"\x15\x03", b"\x16\x03")
_LARGEST_ANSWER = 1 << 20
_ILLEGAL_SASL_STATE = 34
_CLOSED = "closes the connection without an answer; is it a broker, and security.protocol right?"


@dataclass(frozen=True)
class Address:
    """A host and a port from 1 to 65535."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class _NotReachedError(Exception):
    """Why an address cannot be used; the text continues a sentence that began with it."""


def looks_like_addresses(text: str) -> bool:
    """Say whether a text is `host:port`, or several with commas between them."""
    return all(ADDRESS.fullmatch(part.strip()) for part in text.split(","))


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Return the addresses of `host:9092,host2:9092`.

    Raises
    ------
    InputError
        If one of them has another form, or a port that cannot be.
    """
    found = []
    for part in text.split(","):
        match = ADDRESS.fullmatch(part.strip())
        if match is None:
            raise InputError(f"{part.strip()!r} is not an address; write host:9092")
        address = Address(match[1] or match[2], int(match[3]))
        if not 1 <= address.port <= 65_535:
            raise InputError(f"{part.strip()}: ports are numbered 1 to 65535")
        found.append(address)
    return tuple(dict.fromkeys(found))


def first_reached(
    addresses: Sequence[Address],
    context: ssl.SSLContext | None,
    mechanism: str,
    limit_ms: float,
    deadline: float,
) -> Address:
    """Return the first address where a Kafka broker answers.

    Parameters
    ----------
    addresses : sequence of Address
    context : ssl.SSLContext or None
        To speak TLS with; None for plaintext.
    mechanism : str
        The SASL mechanism that the broker must take; "" without SASL.
    limit_ms : float
        For one address, in milliseconds.
    deadline : float
        When all must be over, by `time.monotonic`, in seconds.

    Raises
    ------
    InputError
        If none answers; the message gives the reason for each.
    """
    reasons: dict[Address, str] = {}
    for left, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
        share = (deadline - time.monotonic()) / left
        try:
            _greet(address, context, mechanism, time.monotonic() + min(limit_ms / 1000, share))
        except _NotReachedError as reason:
            reasons[address] = str(reason)
        else:
            return address
    raise InputError("; ".join(f"{address} {reason}" for address, reason in reasons.items()))


def _greet(
    address: Address, context: ssl.SSLContext | None, mechanism: str, deadline: float
) -> None:
    with _connected(address, deadline) as plain:
        if context is None:
            _talk(plain, mechanism, deadline)
            return
        try:
            with context.wrap_socket(plain, server_hostname=address.host) as secured:
                _talk(secured, mechanism, deadline)
        except TimeoutError:
            raise _NotReachedError("accepts connections and does not answer in time") from None
        except ssl.SSLCertVerificationError as error:
            raise _NotReachedError(
                f"has a certificate that is not trusted ({error.verify_message.rstrip('.')}); see "
                "ssl.truststore.location and ssl.endpoint.identification.algorithm"
            ) from None
        except OSError as error:
            raise _NotReachedError(_tls_reason(error, address, deadline)) from None


def _talk(sock: socket.socket, mechanism: str, deadline: float) -> None:
    """Exchange what needs no login: which requests it knows, and which logins it takes."""
    _exchange(sock, _HELLO, 0, deadline)
    if not mechanism:
        return
    name = mechanism.encode()
    # SaslHandshake, version 1, correlation id 1, no client id (`SaslHandshakeRequest.json`).
    body = struct.pack(f">hhihh{len(name)}s", 17, 1, 1, -1, len(name), name)
    answer = _exchange(sock, struct.pack(">i", len(body)) + body, 1, deadline)
    (code,) = struct.unpack_from(">h", answer, 4)
    if code == _ILLEGAL_SASL_STATE:
        raise _NotReachedError("has no login at this port; leave SASL_ out of security.protocol")
    if code:
        taken = _texts(answer[6:])
        raise _NotReachedError(
            f"does not take sasl.mechanism={mechanism}, but {', '.join(taken) or 'none'}"
        )


def _texts(data: bytes) -> list[str]:
    """Return an array of strings in Kafka's format; what is cut off is left out."""
    found: list[str] = []
    position = 4
    while position + 2 <= len(data):
        (length,) = struct.unpack_from(">h", data, position)
        found.append(data[position + 2 : position + 2 + length].decode(errors="replace"))
        position += 2 + max(0, length)
    return found


def _connected(address: Address, deadline: float) -> socket.socket:
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise _NotReachedError("cannot be found: no address is known by this name") from None
    reason = "cannot be reached"
    for family, kind, protocol, _, place in found:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(max(0.001, deadline - time.monotonic()))
            sock.connect(place)
        except TimeoutError:
            sock.close()
            reason = "does not answer: no connection in time"
        except OSError as error:
            sock.close()
            why = (error.strerror or "no connection").lower()
            reason = f"cannot be reached ({why}): is a broker running there?"
        else:
            return sock
    raise _NotReachedError(reason)


def _exchange(sock: socket.socket, request: bytes, number: int, deadline: float) -> bytes:
    """Send a request and return the answer to it, from its number on."""
    try:
        sock.settimeout(max(0.001, deadline - time.monotonic()))
        sock.sendall(request)
        head = _received(sock, 8, deadline)
        length = _length(head, number)
        return head[4:] + _received(sock, length - 4, deadline)
    except TimeoutError:
        raise _NotReachedError("accepts connections and does not answer in time") from None
    except ssl.SSLError:
        raise
    except OSError:
        raise _NotReachedError(_CLOSED) from None


def _received(sock: socket.socket, size: int, deadline: float) -> bytes:
    """Return so many bytes, or fewer where the other side ends."""
    received = b""
    while len(received) < size:
        sock.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            chunk = sock.recv(size - len(received))
        except ConnectionError:
            break  # what came before is judged
        if not chunk:
            break
        received += chunk
    return received


def _length(head: bytes, number: int) -> int:
    """Return how long an answer is, from its first eight bytes."""
    if head.startswith(_TLS_RECORDS):
        raise _NotReachedError("speaks TLS; give client properties with security.protocol=SSL")
    if not head:
        raise _NotReachedError(_CLOSED)
    length, given = struct.unpack(">ii", head.ljust(8, b"\xff"))
    if not 6 <= length <= _LARGEST_ANSWER or given != number:
        raise _NotReachedError("answers, but not as a Kafka broker does")
    return int(length)


def _tls_reason(error: OSError, address: Address, deadline: float) -> str:
    if _speaks_plaintext(address, deadline):
        return "does not speak TLS; its security.protocol is PLAINTEXT or SASL_PLAINTEXT"
    reason = (getattr(error, "reason", None) or "connection broken off").replace("_", " ").lower()
    if "wrong version" in reason or "record layer" in reason or "http" in reason:
        return "answers, but neither with TLS nor as a Kafka broker does"
    return (
        f"refuses the TLS handshake ({reason}); it may want a client certificate "
        "(ssl.keystore.location) or another TLS version (ssl.enabled.protocols)"
    )


def _speaks_plaintext(address: Address, deadline: float) -> bool:
    try:
        with _connected(address, deadline) as plain:
            _talk(plain, "", deadline)
    except _NotReachedError:
        return False
    return True
