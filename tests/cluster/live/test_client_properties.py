"""Client properties: parsing, rejected properties, and hidden secrets."""

import json
import pickle
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs

import pytest

from advisor.cluster.live.client_properties import (
    ClientProperties,
    Secret,
    load_properties,
    parse_jaas,
    parse_properties,
)
from advisor.cluster.live.sasl import login_options
from advisor.cluster.live.tls import tls_context
from advisor.errors import InputError
from certificates import authority
from patience import PATIENCE_S

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
WORD = "pass word;\"'=1"
FILE = r"""
# how we reach the cluster
security.protocol = SASL_SSL
sasl.mechanism:SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
  username="alice" \
  password="pass word;\\"'=1";
ssl.truststore.location=/etc/kafka/ca.pem
ssl.truststore.type=PEM
ssl.endpoint.identification.algorithm=
request.timeout.ms=5000
default.api.timeout.ms=20000
bootstrap.servers=elsewhere:9092
retry.backoff.ms=50
"""
SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'{PLAIN} required username="alice" password="x";',
}
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
OAUTH = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.jaas.config": 'LoginModule required clientId="me" clientSecret="hush" scope="read";',
}


def test_a_file_is_read_as_java_reads_it(tmp_path: Path) -> None:
    """Continuation lines, escapes, both separators and comments are parsed."""
    path = tmp_path / "client.properties"
    path.write_text(FILE)
    read = load_properties(path)
    assert (read.security_protocol, read.sasl_mechanism) == ("SASL_SSL", "SCRAM-SHA-512")
    assert read.login["username"].reveal() == "alice"
    assert read.login["password"].reveal() == WORD
    assert read.truststore.location == "/etc/kafka/ca.pem"
    assert not read.check_hostname
    assert (read.request_timeout_ms, read.default_api_timeout_ms) == (5000, 20_000)
    assert read.tls
    assert read.sasl


def test_an_empty_file_has_kafkas_defaults() -> None:
    """Without properties, connections are plaintext with Kafka's default timeouts."""
    read = parse_properties({}, "client.properties")
    assert read == ClientProperties(source="client.properties")
    assert (read.tls, read.sasl) == (False, False)
    assert (read.request_timeout_ms, read.connection_setup_timeout_ms) == (30_000, 10_000)


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        (
            {"securty.protocol": "SSL"},
            r"not understood \(is security.protocol meant\?\)",
        ),
        ({"acks": "all", "linger.ms": "5"}, "not understood, and neither are 1 more; correct it"),
        ({"security.protocol": "TLS"}, "not PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"),
        ({"security.protocol": "SASL_SSL"}, r"GSSAPI \(Kafka's default\); supported"),
        ({**SASL, "sasl.mechanism": "AWS_MSK_IAM"}, "supported are PLAIN, SCRAM-SHA-256, SCRAM"),
        ({**SASL, "sasl.jaas.config": f'{PLAIN} required username="a";'}, "has no password"),
        ({k: v for k, v in SASL.items() if "jaas" not in k}, "sasl.jaas.config is missing"),
        ({"request.timeout.ms": "5s"}, "request.timeout.ms is not in milliseconds; give"),
        ({"request.timeout.ms": "0"}, "a whole number from 1"),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "is TLSv1.2, TLSv1.3 or both"),
        ({"ssl.endpoint.identification.algorithm": "ldaps"}, "is https, or empty for no check"),
        ({"ssl.engine.factory.class": "com.Mine"}, "this property is not understood"),
        ({"sasl.login.callback.handler.class": "com.Mine"}, "Java code, which cannot run here"),
    ],
)
def test_unknown_properties_are_rejected(pairs: dict[str, str], said: str) -> None:
    """An unknown, unsupported or malformed property is one sentence with the file name."""
    with pytest.raises(InputError, match=said) as caught:
        parse_properties(pairs, "client.properties")
    assert str(caught.value).startswith("client.properties: ")


@pytest.mark.parametrize("content", [None, b"password=\\u12"])
def test_a_file_that_cannot_be_read_is_refused(content: bytes | None, tmp_path: Path) -> None:
    """A missing file or invalid escape is one sentence, without the value."""
    path = tmp_path / "client.properties"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=str(path)) as caught:
        load_properties(path)
    assert "password" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f'{PLAIN} required username="a" password="b";', {"username": "a", "password": "b"}),
        (f"{PLAIN} required username='a' password='b' ;", {"username": "a", "password": "b"}),
        (f"{PLAIN} required username=a password=b;", {"username": "a", "password": "b"}),
        (f'{PLAIN} required\n username = "a"\n;\n', {"username": "a"}),
        (f'{PLAIN} required password="a\\"b\\\\c;=";', {"password": 'a"b\\c;='}),
        (f"{PLAIN} required;", {}),
    ],
)
def test_a_login_line_is_read_as_java_reads_it(text: str, options: dict[str, str]) -> None:
    """Both kinds of quotes, escapes and spaces around `=` are parsed."""
    read = parse_jaas(text, "client.properties")
    assert {name: value.reveal() for name, value in read.items()} == options


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        PLAIN,
        f'{PLAIN} required username="a"',
        f'{PLAIN} required username="a;',
        f"{PLAIN} required username=;",
        f'{PLAIN} required username "a";',
        f'{PLAIN} required ="a" x;',
        f'{PLAIN} required username="hush"; {PLAIN} required;',
    ],
)
def test_a_broken_login_line_is_rejected_and_not_shown(text: str) -> None:
    """The error gives the correct form, and nothing of the line with the password."""
    with pytest.raises(InputError, match=r"sasl\.jaas\.config is broken; it reads") as caught:
        parse_jaas(text, "client.properties")
    assert "hush" not in str(caught.value)


def test_a_secret_is_hidden() -> None:
    """Printed, formatted, in a repr or in an object around it, a secret is hidden."""
    secret = Secret("hush")
    read = parse_properties(
        {**SASL, "ssl.keystore.password": "hush", "ssl.keystore.key": "hush"}, "client.properties"
    )
    for shown in (repr(secret), str(secret), f"{secret}", "%s" % [secret], repr(read), str(read)):
        assert "hush" not in shown
        assert "hidden" in shown
    assert secret.reveal() == "hush"
    assert type(secret.reveal()) is str
    assert pickle.loads(pickle.dumps(secret)).reveal() == "hush"


def test_the_password_reaches_the_client_and_no_log() -> None:
    """kafka-python gets the password; its logged options hide it."""
    options = login_options(parse_properties(SASL, "client.properties"), time.monotonic() + 1)
    assert "\0".join(["", "alice", options["sasl_plain_password"]]).encode() == b"\0alice\0x"
    assert options["sasl_plain_password"].encode() == b"x"
    assert repr(options).count("[hidden]") == 1
    assert login_options(ClientProperties(), time.monotonic() + 1) == {}


class Issuer(BaseHTTPRequestHandler):
    """Issues a token to the client `me` (RFC 6749); some paths misbehave."""

    asked: ClassVar[list[str]] = []
    over: ClassVar[threading.Event] = threading.Event()

    def do_GET(self) -> None:
        self.asked.append(f"GET {self.path}")

    def do_POST(self) -> None:
        self.asked.append(f"POST {self.path}")
        if self.path.startswith("/elsewhere"):
            self.send_response(int(self.path[-3:]))
            self.send_header("Location", "/token")
            self.end_headers()
            return
        if self.path == "/slow":
            with suppress(OSError):
                while not self.over.wait(0.1):
                    self.wfile.write(b"H")
            return
        if self.path == "/endless":
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):
                while not self.over.is_set():
                    self.wfile.write(b" " * 100_000)
            return
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        known = self.headers["Authorization"] == "Basic bWU6aHVzaA=="  # me:hush
        known = known and form == {"grant_type": ["client_credentials"], "scope": ["read"]}
        self.send_response(200 if known else 401)
        self.end_headers()
        self.wfile.write(json.dumps({"access_token": "t-1"}).encode())

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def issuer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a token endpoint whose certificate is trusted."""
    authority().write(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.setenv("no_proxy", "*")
    server = HTTPServer(("127.0.0.1", 0), Issuer)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "node.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Issuer.asked.clear()
    Issuer.over.clear()
    yield f"https://127.0.0.1:{server.server_port}/token"
    Issuer.over.set()
    server.shutdown()
    server.server_close()


def token(pairs: dict[str, str], seconds: float = PATIENCE_S) -> str:
    deadline = time.monotonic() + seconds
    options = login_options(parse_properties(pairs, "client.properties"), deadline)
    return str(options["sasl_oauth_token_provider"].token())


def test_a_token_is_fetched_for_the_client(issuer: str) -> None:
    """Client id and secret get a token; wrong ones are one sentence."""
    url = {"sasl.oauthbearer.token.endpoint.url": issuer}
    assert token({**OAUTH, **url}) == "t-1"
    wrong = OAUTH["sasl.jaas.config"].replace("hush", "else")
    with pytest.raises(InputError, match=r"refuses: no token .* \(HTTP 401\)") as caught:
        token({**OAUTH, **url, "sasl.jaas.config": wrong})
    assert "else" not in str(caught.value)


def test_a_token_is_read_from_a_file(tmp_path: Path) -> None:
    """`file:` reads the token from a file; a missing file is one sentence."""
    (tmp_path / "token").write_text("t-2\n")
    key = "sasl.oauthbearer.token.endpoint.url"
    assert token({**OAUTH, key: (tmp_path / "token").as_uri()}) == "t-2"
    with pytest.raises(InputError, match="the token for the login cannot be read"):
        token({**OAUTH, key: (tmp_path / "nothing").as_uri()})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "needs sasl.oauthbearer.token.endpoint.url"),
        ({"sasl.oauthbearer.token.endpoint.url": "ftp://x/y"}, "is not an https: or file: address"),
        ({"sasl.oauthbearer.token.endpoint.url": "https://127.0.0.1:1/"}, "no token could be"),
        ({"sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/"}, "over TLS only"),
        (
            {
                "sasl.oauthbearer.token.endpoint.url": "https://x/",
                "sasl.jaas.config": "LoginModule required;",
            },
            "no clientId and clientSecret",
        ),
    ],
)
def test_a_missing_token_is_one_sentence(change: dict[str, str], said: str) -> None:
    """Every failure to get a token is one sentence."""
    with pytest.raises(InputError, match=said):
        token({**OAUTH, **change})


def test_an_unsecured_token_is_created() -> None:
    """Without an endpoint an unsecured token with the claims is created."""
    made = token({**OAUTH, "sasl.jaas.config": 'M required unsecuredLoginStringClaim_sub="alice";'})
    head, body, signature = made.split(".")
    assert signature == ""
    assert head == "eyJhbGciOiAibm9uZSJ9"  # {"alg": "none"}
    assert body


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(issuer: str, code: int) -> None:
    """The client secret goes to the endpoint alone."""
    url = issuer.replace("/token", f"/elsewhere-{code}")
    with pytest.raises(InputError, match="redirects, which is not followed"):
        token({**OAUTH, ENDPOINT: url})
    assert Issuer.asked == [f"POST /elsewhere-{code}"]


def test_a_secret_is_not_sent_in_plaintext() -> None:
    """Plain http is refused before a connection is made, also to this machine."""
    with HTTPServer(("127.0.0.1", 0), Issuer) as server:
        Issuer.asked.clear()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(InputError, match="over TLS only"):
            token({**OAUTH, ENDPOINT: f"http://127.0.0.1:{server.server_port}/token"})
        server.shutdown()
    assert Issuer.asked == []


@pytest.mark.parametrize("path", ["/slow", "/endless"])
def test_the_deadline_holds_for_a_token(issuer: str, path: str) -> None:
    """A server that trickles, or never stops, gets no more time than there is."""
    with pytest.raises(InputError, match=r"gave no token within|no token could be fetched"):
        token({**OAUTH, ENDPOINT: issuer.replace("/token", path)}, 1.0)
    assert not Issuer.over.is_set()  # These servers never end by themselves: the client gave up.


HUSH = "hush.hush/+Hush0=="
KEY = f"-----BEGIN PRIVATE KEY-----\n{HUSH}\n-----END PRIVATE KEY-----"
NAMES = (
    *("security.protocol", "request.timeout.ms", "socket.connection.setup.timeout.ms"),
    *("default.api.timeout.ms", "client.id", "sasl.mechanism", "sasl.jaas.config"),
    *("sasl.login.callback.handler.class", "ssl.enabled.protocols", "ssl.key.password"),
    *("ssl.endpoint.identification.algorithm", ENDPOINT, "unknown.property", "ssl.keystore.key"),
    *("ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.certificate.chain"),
    *("ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.certificates"),
)


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
@pytest.mark.parametrize(
    "written",
    [
        "{name}={value}",
        "{name}",
        "{value}",
        "{name} {value}",
        "{value}={name}",
        "password {value}",
        "ssl.{value}=1",
        "{value}\n{name}={value}",
    ],
)
def test_no_message_shows_a_value(tmp_path: Path, protocol: str, written: str) -> None:
    """Wherever a password or a key stands in a file, no message shows a part of it."""
    path = tmp_path / "client.properties"
    shown: list[str] = []
    for name in NAMES:
        for value in (HUSH, KEY, f"file:{HUSH}", f"https://{HUSH}@127.0.0.1:1/", f"{HUSH}://x"):
            pairs = {**OAUTH, "security.protocol": protocol}
            lines = [f"{key}={text}" for key, text in pairs.items() if key != name]
            lines.append(written.format(name=name, value=value))
            path.write_text("\n".join(lines) + "\n")
            try:
                read = load_properties(path)
                shown.append(repr(read))
                tls_context(read)
                login_options(read, time.monotonic() + 0.2)
            except InputError as error:
                shown.append(str(error))
    assert len(shown) >= 20
    assert not [text for text in shown if "hush" in text.lower()]
