"""Read a Java client's properties file: how to reach a cluster, and as whom.

It is the file that Kafka's own tools take as `--command-config`. Names and defaults are those of
`AdminClientConfig`, `SaslConfigs` and `SslConfigs` in `org.apache.kafka.clients` and `common`.
A property that would change how the cluster is reached, and is not understood, is refused:
passed over in silence, `securty.protocol=SSL` would send a password in the clear.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from advisor.errors import InputError, MissingExtraError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
REQUEST_TIMEOUT_MS = 30_000
CONNECTION_SETUP_TIMEOUT_MS = 10_000

_UNDERSTOOD = frozenset(
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
_WITHOUT_EFFECT = re.compile(
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
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class Secret(str):
    """A text that shows itself to nobody: neither printed, nor formatted, nor in a traceback."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "[hidden]"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format("[hidden]", spec)

    def revealed(self) -> str:
        """Return the text itself, for the one place that needs it."""
        return "".join(self)


_NONE = Secret()


@dataclass(frozen=True)
class Store:
    """A key store or trust store: a file, or PEM text in the properties themselves.

    Attributes
    ----------
    location : str
        Path of the file; "" if there is none.
    password : Secret
        Of the store; "" if there is none.
    key, certificates : Secret, str
        PEM text given in place of a file.
    key_password : Secret
        Of the private key in it; "" if there is none.
    """

    location: str = ""
    password: Secret = _NONE
    key: Secret = _NONE
    certificates: str = ""
    key_password: Secret = _NONE

    def __bool__(self) -> bool:
        return bool(self.location or self.certificates)


@dataclass(frozen=True)
class ClientProperties:
    """How to reach a cluster, and as whom.

    Attributes
    ----------
    source : str
        The file, for messages; "" where there is none.
    security_protocol : {"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}
    sasl_mechanism : str
        One of `MECHANISMS`; "" without SASL.
    login : mapping of str to Secret
        The options of `sasl.jaas.config`, such as username and password.
    token_endpoint_url : str
        Where OAUTHBEARER gets its token: `https:`, or `file:` for a token in a file.
    truststore, keystore : Store
    check_hostname : bool
        Whether the broker's certificate must name the host (`ssl.endpoint.identification...`).
    tls_versions : tuple of str
        Of `ssl.enabled.protocols`, such as "TLSv1.3"; empty: 1.2 and newer.
    request_timeout_ms, connection_setup_timeout_ms : int
    default_api_timeout_ms : int or None
        The limit for everything together, where the file states one.
    client_id : str
    """

    source: str = ""
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str = ""
    login: Mapping[str, Secret] = field(default_factory=dict)
    token_endpoint_url: str = ""
    truststore: Store = Store()
    keystore: Store = Store()
    check_hostname: bool = True
    tls_versions: tuple[str, ...] = ()
    request_timeout_ms: int = REQUEST_TIMEOUT_MS
    connection_setup_timeout_ms: int = CONNECTION_SETUP_TIMEOUT_MS
    default_api_timeout_ms: int | None = None
    client_id: str = "advisor"

    @property
    def tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.security_protocol.endswith("SSL")

    @property
    def sasl(self) -> bool:
        """Whether SASL says who asks."""
        return self.security_protocol.startswith("SASL")


def load_properties(path: str | os.PathLike[str]) -> ClientProperties:
    """Return what a client's properties file says.

    Raises
    ------
    InputError
        If it cannot be read, or has a property that is unknown, not supported or malformed.
    MissingExtraError
        If the extra `live` is not installed.
    """
    name = os.fspath(path)
    try:
        content = Path(name).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise InputError(
            f"{name}: this cannot be read ({reason}); give the properties file of a Kafka client"
        ) from None
    return read_properties(_pairs(content, name), name)


def _pairs(content: bytes, name: str) -> dict[str, str]:
    try:
        import javaproperties
    except ModuleNotFoundError:
        raise MissingExtraError("Reading a live cluster", "live") from None
    try:
        return dict(javaproperties.loads(content))
    except javaproperties.InvalidUEscapeError:
        # The error's own text shows the value, which may be a password.
        raise InputError(f"{name}: a \\u escape is broken; write it with four digits") from None


def read_properties(pairs: Mapping[str, str], source: str) -> ClientProperties:
    """Return what pairs of a property's name and value say.

    Raises
    ------
    InputError
        As `load_properties`.
    """
    given = {key: value.strip() for key, value in pairs.items()}
    _refuse_unknown(given, source)
    protocol = given.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise InputError(f"{source}: security.protocol is {protocol}, not {_or(PROTOCOLS)}")
    mechanism, login = "", dict[str, Secret]()
    if protocol.startswith("SASL"):
        mechanism, login = _sasl(given, source)
    identification = given.get("ssl.endpoint.identification.algorithm", "https").lower()
    if identification not in ("", "https"):
        raise InputError(
            f"{source}: ssl.endpoint.identification.algorithm is https, or empty for no check"
        )
    versions = tuple(filter(None, re.split(r"\s*,\s*", given.get("ssl.enabled.protocols", ""))))
    for version in versions:
        if version not in ("TLSv1.2", "TLSv1.3"):
            raise InputError(f"{source}: ssl.enabled.protocols has {version}; TLSv1.2 or TLSv1.3")
    api_timeout_ms = _milliseconds(given, "default.api.timeout.ms", 0, source)
    return ClientProperties(
        source=source,
        security_protocol=protocol,
        sasl_mechanism=mechanism,
        login=login,
        token_endpoint_url=given.get("sasl.oauthbearer.token.endpoint.url", ""),
        truststore=_store(pairs, "truststore", "certificates"),
        keystore=_store(pairs, "keystore", "certificate.chain"),
        check_hostname=identification == "https",
        tls_versions=versions,
        request_timeout_ms=_milliseconds(given, "request.timeout.ms", REQUEST_TIMEOUT_MS, source),
        connection_setup_timeout_ms=_milliseconds(
            given, "socket.connection.setup.timeout.ms", CONNECTION_SETUP_TIMEOUT_MS, source
        ),
        default_api_timeout_ms=api_timeout_ms or None,
        client_id=given.get("client.id") or "advisor",
    )


def _refuse_unknown(given: Mapping[str, str], source: str) -> None:
    handler = given.get("sasl.login.callback.handler.class", "")
    if handler and not _OAUTH_HANDLER.fullmatch(handler):
        raise InputError(
            f"{source}: sasl.login.callback.handler.class names Java code, which cannot run here"
        )
    unknown = [
        name for name in given if name not in _UNDERSTOOD and not _WITHOUT_EFFECT.fullmatch(name)
    ]
    if unknown:
        one = len(unknown) == 1
        raise InputError(
            f"{source}: {', '.join(sorted(unknown))} {'is' if one else 'are'} not understood; "
            f"correct {'it' if one else 'them'}, or leave {'it' if one else 'them'} out"
        )


def _sasl(given: Mapping[str, str], source: str) -> tuple[str, dict[str, Secret]]:
    mechanism = given.get("sasl.mechanism", "GSSAPI").upper()
    if mechanism not in MECHANISMS:
        stated = "" if "sasl.mechanism" in given else " (Kafka's default, as none is stated)"
        raise InputError(
            f"{source}: sasl.mechanism is {mechanism}{stated}; supported are {_or(MECHANISMS)}"
        )
    if "sasl.jaas.config" not in given:
        raise InputError(f"{source}: sasl.jaas.config is missing; {mechanism} needs it to log in")
    login = parse_jaas(given["sasl.jaas.config"], source)
    if mechanism != "OAUTHBEARER":
        for option in ("username", "password"):
            if not login.get(option):
                raise InputError(
                    f"{source}: sasl.jaas.config has no {option}; {mechanism} needs it"
                )
    return mechanism, login


def parse_jaas(text: str, source: str) -> dict[str, Secret]:
    """Return the options of a JAAS login line, as `JaasConfig` of Kafka's clients reads it.

    Parameters
    ----------
    text : str
        `org.example.LoginModule required username="alice" password="..." ;`
    source : str
        What errors call the file; they never show the line itself.

    Raises
    ------
    InputError
        If it is not of that form, or names two modules.
    """
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
            tokens.append((re.sub(r"\\(.)", _unescaped, quoted, flags=re.DOTALL), False))
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


def _unescaped(match: re.Match[str]) -> str:
    return _ESCAPED.get(match[1], match[1])


def _store(pairs: Mapping[str, str], kind: str, certificates: str) -> Store:
    return Store(
        location=pairs.get(f"ssl.{kind}.location", "").strip(),
        password=Secret(pairs.get(f"ssl.{kind}.password", "")),
        key=Secret(pairs.get(f"ssl.{kind}.key", "")),
        certificates=pairs.get(f"ssl.{kind}.{certificates}", ""),
        key_password=Secret(pairs.get("ssl.key.password", "")),
    )


def _milliseconds(given: Mapping[str, str], name: str, default: int, source: str) -> int:
    text = given.get(name)
    if text is None:
        return default
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) == 0:
        raise InputError(f"{source}: {name} is {text!r}; give milliseconds, a whole number from 1")
    return int(text)


def _or(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
