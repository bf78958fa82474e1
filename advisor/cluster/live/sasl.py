"""SASL options for kafka-python, from a Java client's properties."""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from functools import partial
from http.client import HTTPException
from typing import Any

from kafka.net.sasl.oauth import AbstractTokenProvider

from advisor.cluster.live.client_properties import ClientProperties, Secret
from advisor.cluster.live.deadline import run_with_timeout
from advisor.errors import InputError
from advisor.files import read_input
from advisor.parsing import read_json

_MOST_BYTES = 1_000_000
_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_CLAIM = "unsecuredLoginStringClaim_"


def login_options(properties: ClientProperties, deadline: float) -> dict[str, Any]:
    """Return the `sasl_*` options of kafka-python; empty without SASL."""
    if not properties.sasl:
        return {}
    options: dict[str, Any] = {"sasl_mechanism": properties.sasl_mechanism}
    if properties.sasl_mechanism == "OAUTHBEARER":
        options["sasl_oauth_token_provider"] = _TokenProvider(bearer_token(properties, deadline))
    else:
        options["sasl_plain_username"] = properties.login["username"].reveal()
        options["sasl_plain_password"] = properties.login["password"]
    return options


class _TokenProvider:
    """A fixed token; it stays valid while the cluster is read."""

    def __init__(self, token: Secret) -> None:
        self._token = token

    def token(self) -> str:
        return self._token.reveal()

    def extensions(self) -> dict[str, str]:
        return {}


AbstractTokenProvider.register(_TokenProvider)


def bearer_token(properties: ClientProperties, deadline: float) -> Secret:
    """Return the token of OAUTHBEARER: of a file, of an endpoint, or unsecured claims."""
    url = properties.token_endpoint_url.reveal()
    if url.startswith("file:"):
        try:
            path = urllib.request.url2pathname(urllib.parse.urlparse(url).path)
            return Secret(read_input(path, _MOST_BYTES).decode("ascii").strip())
        except (OSError, ValueError):
            raise InputError(
                f"{properties.source}: the token for the login cannot be read; see {_ENDPOINT}"
            ) from None
    if url:
        return _fetch_token(properties, deadline)
    claims = {
        name.removeprefix(_CLAIM): value.reveal()
        for name, value in properties.login.items()
        if name.startswith(_CLAIM)
    }
    if "sub" not in claims:
        raise InputError(f"{properties.source}: OAUTHBEARER needs {_ENDPOINT}")
    now_s = time.time()
    claim_sets = ({"alg": "none"}, {**claims, "iat": now_s, "exp": now_s + 3600})
    return Secret("".join(f"{_base64url(json.dumps(claim_set))}." for claim_set in claim_sets))


def _fetch_token(properties: ClientProperties, deadline: float) -> Secret:
    """Fetch a token with client credentials (RFC 6749, 4.4), over TLS and without redirects."""
    login, source = properties.login, properties.source
    if not login.get("clientId") or not login.get("clientSecret"):
        raise InputError(
            f"{source}: sasl.jaas.config has no clientId and clientSecret; "
            "the token endpoint needs them"
        )
    if not properties.token_endpoint_url.reveal().lower().startswith("https://"):
        raise InputError(
            f"{source}: {_ENDPOINT} is not an https: or file: address; the client secret is "
            "sent over TLS only"
        )
    limit_s = max(0.1, deadline - time.monotonic())
    # A server that sends a byte now and then never exceeds the time limit of a socket.
    token = run_with_timeout(partial(_ask_endpoint, properties, limit_s), limit_s)
    if token is None:
        raise InputError(f"{source}: {_ENDPOINT} gave no token within {limit_s:.3g} seconds")
    return token


def _ask_endpoint(properties: ClientProperties, limit_s: float) -> Secret:
    login, where = properties.login, f"{properties.source}: {_ENDPOINT}"
    pair = f"{login['clientId'].reveal()}:{login['clientSecret'].reveal()}"
    form = {"grant_type": "client_credentials"}
    if login.get("scope"):
        form["scope"] = login["scope"].reveal()
    opener = urllib.request.build_opener(_NoRedirects)
    try:
        request = urllib.request.Request(
            properties.token_endpoint_url.reveal(),
            data=urllib.parse.urlencode(form).encode(),
            headers={"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"},
        )
        with opener.open(request, timeout=limit_s) as reply:
            token = read_json(reply.read(_MOST_BYTES).decode())["access_token"]
            if not isinstance(token, str):
                raise TypeError
            return Secret(token)
    except urllib.error.HTTPError as error:
        error.close()
        why = "redirects, which is not followed" if 300 <= error.code < 400 else "refuses"
        raise InputError(f"{where} {why}: no token for this client (HTTP {error.code})") from None
    except (OSError, ValueError, LookupError, TypeError, RecursionError, HTTPException):
        raise InputError(f"{where}: no token could be fetched there") from None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Reports a redirect as an error: the client secret is for the endpoint alone."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _base64url(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
