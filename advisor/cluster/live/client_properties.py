"""Parse a Java client's properties file, as Kafka's tools take it with `--command-config`.

Names and defaults are those of `AdminClientConfig`, `SaslConfigs` and `SslConfigs` in
`org.apache.kafka.clients` and `common`. An unknown property that could affect the connection is
an error: if it were ignored, `securty.protocol=SSL` would send a password in plaintext. No message
shows a value, nor a name that is not known: on a line of its own, part of a password or key is one.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from advisor.errors import InputError, MissingExtraError
from advisor.files import read_input

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
MOST_BYTES = 1_000_000
REQUEST_TIMEOUT_MS = 30_000
CONNECTION_SETUP_TIMEOUT_MS = 10_000

_SUPPORTED = frozenset(
    {
        "security.protocol",
        "request.timeout.ms",
        "socket.connection.setup.timeout.ms",
        "default.api.timeout.ms",
        "client.id",
        "sasl.mechanism",
        "sasl.jaas.config",
        "sasl.login.callback.handler.class",
        "sasl.oauthbearer.token.endpoint.url",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.password",
        *(f"ssl.keystore.{part}" for part in ("location", "password", "type", "key")),
        "ssl.keystore.certificate.chain",
        *(f"ssl.truststore.{part}" for part in ("location", "password", "type", "certificates")),
    }
)
_IGNORED = re.compile(
    r"bootstrap\.servers|metadata\..*|(send|receive)\.buffer\.bytes|(reconnect|retry)\.backoff\..*|"
    r"retries|enable\.metrics\.push|connections\.max\.idle\.ms|metrics?\..*|metric\.reporters|"
    r"socket\.connection\.setup\.timeout\.max\.ms|auto\.include\.jmx\.reporter|ssl\.protocol|"
    r"sasl\.login\.(refresh|retry|connect|read)\..*|sasl\.oauthbearer\.(clock|jwks|expected)\..*|"
    r"sasl\.oauthbearer\.(scope|sub)\.claim\.name"
)
_OAUTH_HANDLER = re.compile(
    r"org\.apache\.kafka\.common\.security\.oauthbearer\.(secured\.)?OAuthBearerLoginCallbackHandler"
)
_JAAS = re.compile(
    r"""\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s"'=;]+)|([=;]))""", re.DOTALL
)
_JAAS_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class Secret(str):
    """A string that hides itself when printed, formatted or shown in a traceback."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "[hidden]"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format("[hidden]", spec)

    def reveal(self) -> str:
        """Return the plain text, for the caller that has to send it."""
        return "".join(self)


_NONE = Secret()


@dataclass(frozen=True)
class Store:
    """A key store or trust store: a file, or inline PEM text.

    name: the property that has it, with the name of the properties file, for messages.
    """

    name: str = field(default="", compare=False)
    location: Secret = _NONE
    password: Secret = _NONE
    key: Secret = _NONE
    certificates: Secret = _NONE
    key_password: Secret = _NONE

    def __bool__(self) -> bool:
        return bool(self.location or self.certificates)


@dataclass(frozen=True)
class ClientProperties:
    """Connection settings and credentials of a client.

    sasl_mechanism: one of `MECHANISMS`; "" without SASL.
    token_endpoint_url: where OAUTHBEARER gets its token: an `https:` address, or `file:`.
    tls_versions: `ssl.enabled.protocols`, such as "TLSv1.3"; empty for 1.2 and newer.
    default_api_timeout_ms: total time limit, if set in the file.
    """

    source: str = ""
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str = ""
    login: Mapping[str, Secret] = field(default_factory=dict)
    token_endpoint_url: Secret = _NONE
    truststore: Store = Store()
    keystore: Store = Store()
    check_hostname: bool = True
    tls_versions: tuple[str, ...] = ()
    request_timeout_ms: int = REQUEST_TIMEOUT_MS
    connection_setup_timeout_ms: int = CONNECTION_SETUP_TIMEOUT_MS
    default_api_timeout_ms: int | None = None
    client_id: str = field(default="advisor", repr=False)

    @property
    def tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.security_protocol.endswith("SSL")

    @property
    def sasl(self) -> bool:
        """Whether the client authenticates with SASL."""
        return self.security_protocol.startswith("SASL")


def load_properties(path: str | os.PathLike[str]) -> ClientProperties:
    """Read a client properties file."""
    name = os.fspath(path)
    try:
        content = read_input(name, MOST_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise InputError(
            f"{name}: this cannot be read ({reason}); give the properties file of a Kafka client"
        ) from None
    pairs, lines = _read_pairs(content, name)
    return parse_properties(pairs, name, lines)


def _read_pairs(content: bytes, name: str) -> tuple[dict[str, str], dict[str, int]]:
    """Return the values and the first lines of the properties, by name."""
    try:
        import javaproperties
    except ModuleNotFoundError:
        raise MissingExtraError("Reading a live cluster", "live") from None
    try:
        entries = list(javaproperties.parse(content))
    except javaproperties.InvalidUEscapeError:
        # The text of this error contains the value, possibly a password.
        raise InputError(f"{name}: a \\u escape is broken; write it with four digits") from None
    pairs: dict[str, str] = {}
    lines: dict[str, int] = {}
    number = 1
    for entry in entries:
        if isinstance(entry, javaproperties.KeyValue):
            pairs[entry.key] = entry.value
            lines[entry.key] = number
        number += len(entry.source.splitlines())
    return pairs, lines


def parse_properties(
    pairs: Mapping[str, str], source: str, lines: Mapping[str, int] | None = None
) -> ClientProperties:
    """Interpret property names and values."""
    properties = {key: value.strip() for key, value in pairs.items()}
    _check_keys(properties, source, lines or {})
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise InputError(f"{source}: security.protocol is not {_or(PROTOCOLS)}")
    mechanism, login = "", dict[str, Secret]()
    if protocol.startswith("SASL"):
        mechanism, login = _sasl(properties, source)
    identification = properties.get("ssl.endpoint.identification.algorithm", "https").lower()
    if identification not in ("", "https"):
        raise InputError(
            f"{source}: ssl.endpoint.identification.algorithm is https, or empty for no check"
        )
    versions = tuple(
        filter(None, re.split(r"\s*,\s*", properties.get("ssl.enabled.protocols", "")))
    )
    for version in versions:
        if version not in ("TLSv1.2", "TLSv1.3"):
            raise InputError(f"{source}: ssl.enabled.protocols is TLSv1.2, TLSv1.3 or both")
    api_timeout_ms = _milliseconds(properties, "default.api.timeout.ms", 0, source)
    return ClientProperties(
        source=source,
        security_protocol=protocol,
        sasl_mechanism=mechanism,
        login=login,
        token_endpoint_url=Secret(properties.get("sasl.oauthbearer.token.endpoint.url", "")),
        truststore=_store(pairs, "truststore", "certificates", source),
        keystore=_store(pairs, "keystore", "certificate.chain", source),
        check_hostname=identification == "https",
        tls_versions=versions,
        request_timeout_ms=_milliseconds(
            properties, "request.timeout.ms", REQUEST_TIMEOUT_MS, source
        ),
        connection_setup_timeout_ms=_milliseconds(
            properties, "socket.connection.setup.timeout.ms", CONNECTION_SETUP_TIMEOUT_MS, source
        ),
        default_api_timeout_ms=api_timeout_ms or None,
        client_id=properties.get("client.id") or "advisor",
    )


def _check_keys(properties: Mapping[str, str], source: str, lines: Mapping[str, int]) -> None:
    handler = properties.get("sasl.login.callback.handler.class", "")
    if handler and not _OAUTH_HANDLER.fullmatch(handler):
        raise InputError(
            f"{source}: sasl.login.callback.handler.class names Java code, which cannot run here"
        )
    unknown = [
        name for name in properties if name not in _SUPPORTED and not _IGNORED.fullmatch(name)
    ]
    if unknown:
        first = min(unknown, key=lambda name: lines.get(name, 0))
        where = f"{source}:{lines[first]}" if first in lines else source
        close = difflib.get_close_matches(first[:100], sorted(_SUPPORTED), n=1, cutoff=0.8)
        meant = f" (is {close[0]} meant?)" if close else ""
        more = f", and neither are {len(unknown) - 1} more" if len(unknown) > 1 else ""
        raise InputError(
            f"{where}: this property is not understood{meant}{more}; correct it, or leave it out"
        )


def _sasl(properties: Mapping[str, str], source: str) -> tuple[str, dict[str, Secret]]:
    mechanism = properties.get("sasl.mechanism", "GSSAPI").upper()
    if mechanism not in MECHANISMS:
        stated = "unknown" if "sasl.mechanism" in properties else "GSSAPI (Kafka's default)"
        raise InputError(f"{source}: sasl.mechanism is {stated}; supported are {_or(MECHANISMS)}")
    if "sasl.jaas.config" not in properties:
        raise InputError(f"{source}: sasl.jaas.config is missing; {mechanism} needs it to log in")
    login = parse_jaas(properties["sasl.jaas.config"], source)
    if mechanism != "OAUTHBEARER":
        for option in ("username", "password"):
            if not login.get(option):
                raise InputError(
                    f"{source}: sasl.jaas.config has no {option}; {mechanism} needs it"
                )
    return mechanism, login


def parse_jaas(text: str, source: str) -> dict[str, Secret]:
    """Parse the options of a JAAS line like `JaasConfig` of Kafka's clients."""
    broken = InputError(
        f"{source}: sasl.jaas.config is broken; it reads "
        'org.example.LoginModule required username="..." password="...";'
    )
    tokens: list[tuple[str, bool]] = []
    position = 0
    text = text.rstrip()
    while position < len(text):
        match = _JAAS.match(text, position)
        if match is None:
            raise broken
        quoted = match[1] if match[1] is not None else match[2]
        if quoted is not None:
            tokens.append((_JAAS_ESCAPE.sub(lambda m: _ESCAPED.get(m[1], m[1]), quoted), False))
        else:
            tokens.append((match[3] or match[4], match[4] is not None))
        position = match.end()
    if len(tokens) < 3 or tokens[-1] != (";", True) or any(mark for _, mark in tokens[:2]):
        raise broken
    options = tokens[2:-1]
    triples = [options[start : start + 3] for start in range(0, len(options), 3)]
    if any(
        len(triple) != 3 or [mark for _, mark in triple] != [False, True, False]
        for triple in triples
    ):
        raise broken
    if any(sign != "=" for _, (sign, _), _ in triples):
        raise broken
    return {name: Secret(value) for (name, _), _, (value, _) in triples}


def _store(pairs: Mapping[str, str], kind: str, certificates: str, source: str) -> Store:
    location = pairs.get(f"ssl.{kind}.location", "").strip()
    inline = "key" if kind == "keystore" else certificates
    return Store(
        name=f"{source}: ssl.{kind}.{'location' if location else inline}",
        location=Secret(location),
        password=Secret(pairs.get(f"ssl.{kind}.password", "")),
        key=Secret(pairs.get(f"ssl.{kind}.key", "")),
        certificates=Secret(pairs.get(f"ssl.{kind}.{certificates}", "")),
        key_password=Secret(pairs.get("ssl.key.password", "")),
    )


def _milliseconds(properties: Mapping[str, str], name: str, default: int, source: str) -> int:
    text = properties.get(name)
    if text is None:
        return default
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) == 0:
        raise InputError(f"{source}: {name} is not in milliseconds; give a whole number from 1")
    return int(text)


def _or(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
