"""Ask a Prometheus-compatible server: only reads, and says what went wrong in one sentence.

The login is in the same file as for a running cluster, a Java client's properties: SASL PLAIN is
sent as HTTP basic, OAUTHBEARER as a bearer token, and the `ssl.*` stores serve for `https:`. It is
sent to the address that was given only: a redirect is not followed, and no message shows it.
"""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import os
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from advisor.cluster.live.client_properties import ClientProperties, Secret, load_properties
from advisor.cluster.live.deadline import run_with_timeout
from advisor.cluster.live.tls import tls_context
from advisor.errors import InputError, shown
from advisor.files import replace_file
from advisor.rendering import one_line

MOST_POINTS = 10_000
"""Of a series in one answer; Prometheus gives at most 11,000."""
TIMEOUT_MS = 30_000
_MOST_ANSWER_BYTES = 40_000_000
_WAITS_S = (0.2, 1.0)
"""Before a question is asked again of a server that is busy."""
_BUSY = (429, 500, 502, 503, 504)
_TOO_MUCH = (400, 413, 422)
_REFUSED = (401, 403)
_SETTLED_S = 3600.0


class TooMuchError(InputError):
    """The server has the data and answers no question of this size."""


@dataclass(frozen=True)
class Server:
    """A server, how it is asked, and of which series.

    where: its address without what is secret, for messages.
    url: the address of `query_range`.
    labels: what the series have, by what stands behind the question mark of the address.
    login: the header `Authorization`, or "".
    timeout_s: for each question.
    """

    where: str
    url: str
    labels: Mapping[str, str]
    login: Secret
    context: ssl.SSLContext | None
    timeout_s: float

    def ask(self, query: str, start: float, end: float, step: float) -> list[Any]:
        """Return the series of a range query, as they are in its JSON.

        Raises TooMuchError if it is more than the server answers at once.
        Raises InputError if it does not answer as Prometheus does.
        """
        numbers = {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:g}"}
        url = f"{self.url}?{urllib.parse.urlencode({'query': query, **numbers})}"
        for wait_s in (*_WAITS_S, None):
            status, kind, body = self._get(url)
            if status not in _BUSY or wait_s is None:
                break
            time.sleep(wait_s)
        return self._series(status, kind, body)

    def _get(self, url: str) -> tuple[int, str, bytes]:
        # A server that sends a byte now and then never exceeds the time limit of a socket.
        answer = run_with_timeout(partial(self._open, url), self.timeout_s + 1.0)
        if answer is None:
            raise InputError(f"{self.where}: no answer within {self.timeout_s:g} seconds.")
        return answer

    def _open(self, url: str) -> tuple[int, str, bytes]:
        headers = {"Accept": "application/json", "User-Agent": "advisor"}
        if self.login:
            headers["Authorization"] = self.login.reveal()
        handlers: list[Any] = [_NoRedirects]
        if self.context is not None:
            handlers.append(urllib.request.HTTPSHandler(context=self.context))
        opener = urllib.request.build_opener(*handlers)
        try:
            request = urllib.request.Request(url, headers=headers)
            with opener.open(request, timeout=self.timeout_s) as reply:
                kind = str(reply.headers.get_content_type())
                return int(reply.status), kind, reply.read(_MOST_ANSWER_BYTES + 1)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, str(error.headers.get_content_type()), error.read(10_000)
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise InputError(f"{self.where}: {_why(error, self.timeout_s)}") from None

    def _series(self, status: int, kind: str, body: bytes) -> list[Any]:
        if 300 <= status < 400:
            raise InputError(
                f"{self.where}: it answers with a redirect (HTTP {status}), which is not followed; "
                "give the address of the API itself."
            )
        if status in _REFUSED:
            raise InputError(
                f"{self.where}: it refuses the login (HTTP {status}); --command-config names a "
                "properties file with one (docs/learn.md)."
            )
        if len(body) > _MOST_ANSWER_BYTES:
            raise TooMuchError(f"{self.where}: its answer is too long.")
        document = _document(body)
        said = document.get("error") if isinstance(document, Mapping) else None
        reason = f": {shown(said)}" if said else ""
        if status in _TOO_MUCH:
            raise TooMuchError(
                f"{self.where}: it does not answer the query (HTTP {status}{reason})."
            )
        if status != 200:
            raise InputError(f"{self.where}: {_refusal(status)} (HTTP {status}{reason}).")
        if not isinstance(document, Mapping) or "status" not in document:
            raise InputError(
                f"{self.where}: the answer is not Prometheus' JSON ({one_line(kind)}); give the "
                "address in front of /api/v1, such as https://mimir.example/prometheus."
            )
        if document["status"] != "success":
            raise TooMuchError(f"{self.where}: it does not answer the query{reason}.")
        data = document.get("data")
        result = data.get("result") if isinstance(data, Mapping) else None
        if not isinstance(result, list) or not isinstance(data, Mapping):
            raise InputError(f"{self.where}: its answer has no list of series.")
        if data.get("resultType") != "matrix" and result:
            raise InputError(f"{self.where}: its answer is no range of times.")
        return result


@dataclass(frozen=True)
class AnsweredServer(Server):
    """A server whose answers are kept in a folder, and that is not asked again for what is there.

    Questions about the last hour are asked again: more of it may have come in.
    """

    folder: Path

    def ask(self, query: str, start: float, end: float, step: float) -> list[Any]:
        """Return what was answered before, or ask."""
        if end > time.time() - _SETTLED_S:
            return super().ask(query, start, end, step)
        question = f"{self.url}\0{query}\0{start:.3f}\0{end:.3f}\0{step:g}"
        path = self.folder / f"{sha256(question.encode()).hexdigest()[:32]}.json.gz"
        with suppress(OSError, EOFError, zlib.error, ValueError):
            document = json.loads(gzip.decompress(path.read_bytes()))
            if document["question"] == question:
                return list(document["result"])
        result = super().ask(query, start, end, step)
        content = json.dumps({"question": question, "result": result}).encode()
        replace_file(path, gzip.compress(content, compresslevel=1, mtime=0))
        return result


def is_address(source: object) -> bool:
    """Whether a source is an address to ask."""
    return isinstance(source, str) and source.lower().startswith(("http://", "https://"))


def server_at(
    address: str,
    client_properties: str | os.PathLike[str] | None = None,
    timeout_ms: int | None = None,
) -> Server:
    """Read an address and a login.

    address: in front of `/api/v1`; behind a question mark labels that the series have, such as
        `?cluster=payments`.
    client_properties: a Java client's properties file with the login.
    timeout_ms: for each question. Default: 30 000.
    Raises InputError if the address or the file cannot be used.
    """
    try:
        parts = urllib.parse.urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise InputError("the address is no URL; write it like http://host:9090.") from None
    where = f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
    if not host or set(address) & set(" \t\r\n"):
        raise InputError(f"{one_line(where)}: write the address like http://host:9090.")
    if "@" in parts.netloc:
        raise InputError(
            f"{where}: a login does not belong into an address; put it into a properties file, "
            "which --command-config names (docs/learn.md)."
        )
    if timeout_ms is not None and timeout_ms < 1:
        raise InputError(f"timeout_ms={timeout_ms!r}: give milliseconds, 1 or more.")
    properties = None if client_properties is None else load_properties(client_properties)
    base = where.removesuffix("/query_range").removesuffix("/api/v1")
    limit_s = (timeout_ms or TIMEOUT_MS) / 1000.0
    return Server(
        where=where,
        url=f"{base}/api/v1/query_range",
        labels=dict(urllib.parse.parse_qsl(parts.query)),
        login=_login(properties, parts.scheme.lower(), limit_s),
        context=None if parts.scheme.lower() == "http" else tls_context(properties or _PLAIN),
        timeout_s=limit_s,
    )


_PLAIN = ClientProperties()


def _login(properties: ClientProperties | None, scheme: str, limit_s: float) -> Secret:
    """The header that logs in."""
    if properties is None:
        return Secret()
    if properties.tls and scheme == "http":
        raise InputError(
            f"{properties.source}: security.protocol says TLS, but the address is http:; the login "
            "is not sent in plain text."
        )
    if not properties.sasl:
        return Secret()
    if properties.sasl_mechanism == "OAUTHBEARER":
        from advisor.cluster.live.sasl import bearer_token

        return Secret(f"Bearer {bearer_token(properties, time.monotonic() + limit_s).reveal()}")
    if properties.sasl_mechanism != "PLAIN":
        raise InputError(
            f"{properties.source}: sasl.mechanism is PLAIN for HTTP basic, or OAUTHBEARER for a "
            "bearer token; a server of metrics takes no other."
        )
    pair = ":".join(properties.login[name].reveal() for name in ("username", "password"))
    return Secret(f"Basic {base64.b64encode(pair.encode()).decode()}")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Reports a redirect as an error: the login is for the address alone."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _document(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None


def _why(error: Exception, limit_s: float) -> str:
    """Say why nothing came back, without what an error's text may have of the question."""
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return f"no answer within {limit_s:g} seconds."
    if isinstance(reason, ssl.SSLCertVerificationError):
        return (
            "its certificate is not trusted; ssl.truststore.location in the properties file names "
            "the authority that signed it."
        )
    if isinstance(reason, ssl.SSLError):
        return "TLS is not spoken there as expected; is it http: instead of https:?"
    if isinstance(reason, ConnectionRefusedError):
        return "nothing listens there."
    if isinstance(error, http.client.HTTPException) or isinstance(reason, ConnectionError):
        return "the connection broke off, or it speaks no HTTP."
    return "it cannot be reached; check the address."


def _refusal(status: int) -> str:
    if status == 404:
        return "there is no API of Prometheus; give the address in front of /api/v1"
    if status in _BUSY:
        return "it is busy or broken, and was asked three times; try again later"
    return "it does not answer as Prometheus does"
