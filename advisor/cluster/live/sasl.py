"""SASL options for kafka-python, from a Java client's properties."""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from kafka.net.sasl.oauth import AbstractTokenProvider

from advisor.cluster.live.client_properties import ClientProperties, Secret
from advisor.errors import InputError

_CLAIM = "unsecuredLoginStringClaim_"


def login_options(properties: ClientProperties, deadline: float) -> dict[str, Any]:
    """Return the `sasl_*` options of kafka-python; empty without SASL.

    Raises
    ------
    InputError
        If a token is needed and cannot be obtained.
    """
    if not properties.sasl:
        return {}
    options: dict[str, Any] = {"sasl_mechanism": properties.sasl_mechanism}
    if properties.sasl_mechanism == "OAUTHBEARER":
        options["sasl_oauth_token_provider"] = _TokenProvider(_token(properties, deadline))
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


def _token(properties: ClientProperties, deadline: float) -> Secret:
    url = properties.token_endpoint_url
    if url.startswith("file:"):
        path = urllib.request.url2pathname(urllib.parse.urlparse(url).path)
        try:
            return Secret(Path(path).read_text(encoding="ascii").strip())
        except (OSError, ValueError):
            raise InputError(f"{path}: the token for the login cannot be read") from None
    if url:
        return _fetch_token(properties, deadline)
    claims = {
        name.removeprefix(_CLAIM): value.reveal()
        for name, value in properties.login.items()
        if name.startswith(_CLAIM)
    }
    if "sub" not in claims:
        raise InputError(
            f"{properties.source}: OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url"
        )
    now_s = time.time()
    parts = ({"alg": "none"}, {**claims, "iat": now_s, "exp": now_s + 3600})
    return Secret("".join(f"{_base64url(json.dumps(part))}." for part in parts))


def _fetch_token(properties: ClientProperties, deadline: float) -> Secret:
    """Fetch a token with client credentials (RFC 6749, 4.4)."""
    login, url = properties.login, properties.token_endpoint_url
    if not login.get("clientId") or not login.get("clientSecret"):
        raise InputError(
            f"{properties.source}: sasl.jaas.config has no clientId and clientSecret; "
            "the token endpoint needs them"
        )
    if not url.startswith(("https://", "http://")):
        raise InputError(f"{properties.source}: the token endpoint is no https: or file: address")
    pair = f"{login['clientId'].reveal()}:{login['clientSecret'].reveal()}"
    form = {"grant_type": "client_credentials"}
    if login.get("scope"):
        form["scope"] = login["scope"].reveal()
    request = urllib.request.Request(
        url,
        data=urllib.parse.urlencode(form).encode(),
        headers={"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"},
    )
    try:
        with urllib.request.urlopen(
            request, timeout=max(0.1, deadline - time.monotonic())
        ) as reply:
            return Secret(json.load(reply)["access_token"])
    except urllib.error.HTTPError as error:
        raise InputError(f"{url}: no token for this client (HTTP {error.code})") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{url}: no token could be fetched there") from None


def _base64url(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
