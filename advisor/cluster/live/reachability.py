"""Probe whether a Kafka broker answers at an address, and if not, find out why.

Client libraries retry until a timeout and do not give the reason. The probe opens one connection
step by step: DNS, TCP, TLS, and an ApiVersions request, which every broker since 0.10 answers
before authentication.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Sequence

from advisor.cluster.addresses import Address
from advisor.errors import InputError

# ApiVersions, version 0, correlation id 0, no client id (`ApiVersionsRequest.json`).
_API_VERSIONS_REQUEST = struct.pack(">ihhih", 10, 18, 0, 0, -1)
_TLS_RECORDS = (b"\x15\x03", b"\x16\x03")
_MAX_RESPONSE_BYTES = 1 << 20
_ILLEGAL_SASL_STATE = 34
_CLOSED_MESSAGE = (
    "closes the connection without an answer; is it a broker, and security.protocol right?"
)


class _UnreachableError(Exception):
    """Why an address cannot be used, as the predicate of a sentence."""


def first_reachable(
    addresses: Sequence[Address],
    context: ssl.SSLContext | None,
    mechanism: str,
    limit_ms: float,
    deadline: float,
) -> Address:
    """Return the first address with a Kafka broker; `deadline` in seconds of `time.monotonic`."""
    reasons: dict[Address, str] = {}
    for addresses_left, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
        share = (deadline - time.monotonic()) / addresses_left
        try:
            _probe(address, context, mechanism, time.monotonic() + min(limit_ms / 1000, share))
        except _UnreachableError as reason:
            reasons[address] = str(reason)
        else:
            return address
    raise InputError("; ".join(f"{address} {reason}" for address, reason in reasons.items()))


def _probe(
    address: Address, context: ssl.SSLContext | None, mechanism: str, deadline: float
) -> None:
    with _connect(address, deadline) as plain:
        if context is None:
            _handshake(plain, mechanism, deadline)
            return
        try:
            with context.wrap_socket(plain, server_hostname=address.host) as secured:
                _handshake(secured, mechanism, deadline)
        except TimeoutError:
            raise _UnreachableError("accepts connections and does not answer in time") from None
        except ssl.SSLCertVerificationError as error:
            raise _UnreachableError(
                f"has a certificate that is not trusted ({error.verify_message.rstrip('.')}); see "
                "ssl.truststore.location and ssl.endpoint.identification.algorithm"
            ) from None
        except OSError as error:
            raise _UnreachableError(_tls_reason(error, address, deadline)) from None


def _handshake(sock: socket.socket, mechanism: str, deadline: float) -> None:
    """Send ApiVersions and SaslHandshake, which need no authentication."""
    _exchange(sock, _API_VERSIONS_REQUEST, 0, deadline)
    if not mechanism:
        return
    name = mechanism.encode()
    # SaslHandshake, version 1, correlation id 1, no client id (`SaslHandshakeRequest.json`).
    body = struct.pack(f">hhihh{len(name)}s", 17, 1, 1, -1, len(name), name)
    response = _exchange(sock, struct.pack(">i", len(body)) + body, 1, deadline)
    (code,) = struct.unpack_from(">h", response, 4)
    if code == _ILLEGAL_SASL_STATE:
        raise _UnreachableError("has no login at this port; leave SASL_ out of security.protocol")
    if code:
        supported = _strings(response[6:])
        raise _UnreachableError(
            f"does not take sasl.mechanism={mechanism}, but {', '.join(supported) or 'none'}"
        )


def _strings(data: bytes) -> list[str]:
    """Decode an array of strings in Kafka's format; a truncated tail is dropped."""
    strings: list[str] = []
    position = 4
    while position + 2 <= len(data):
        (length,) = struct.unpack_from(">h", data, position)
        strings.append(data[position + 2 : position + 2 + length].decode(errors="replace"))
        position += 2 + max(0, length)
    return strings


def _connect(address: Address, deadline: float) -> socket.socket:
    try:
        resolved = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise _UnreachableError("cannot be found: no address is known by this name") from None
    reason = "cannot be reached"
    for family, kind, protocol, _, place in resolved:
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
    raise _UnreachableError(reason)


def _exchange(sock: socket.socket, request: bytes, number: int, deadline: float) -> bytes:
    """Send a request and return the response, starting at its correlation id."""
    try:
        sock.settimeout(max(0.001, deadline - time.monotonic()))
        sock.sendall(request)
        head = _receive(sock, 8, deadline)
        length = _length(head, number)
        return head[4:] + _receive(sock, length - 4, deadline)
    except TimeoutError:
        raise _UnreachableError("accepts connections and does not answer in time") from None
    except ssl.SSLError:
        raise
    except OSError:
        raise _UnreachableError(_CLOSED_MESSAGE) from None


def _receive(sock: socket.socket, size: int, deadline: float) -> bytes:
    """Receive `size` bytes, or fewer if the peer closes the connection."""
    received = b""
    while len(received) < size:
        sock.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            chunk = sock.recv(size - len(received))
        except ConnectionError:
            break  # judge what was received before
        if not chunk:
            break
        received += chunk
    return received


def _length(head: bytes, number: int) -> int:
    """Return the length of a response from its first eight bytes."""
    if head.startswith(_TLS_RECORDS):
        raise _UnreachableError("speaks TLS; give client properties with security.protocol=SSL")
    if not head:
        raise _UnreachableError(_CLOSED_MESSAGE)
    length, correlation_id = struct.unpack(">ii", head.ljust(8, b"\xff"))
    if not 6 <= length <= _MAX_RESPONSE_BYTES or correlation_id != number:
        raise _UnreachableError("answers, but not as a Kafka broker does")
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
        with _connect(address, deadline) as plain:
            _handshake(plain, "", deadline)
    except _UnreachableError:
        return False
    return True
