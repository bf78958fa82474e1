"""Client properties: parsing, rejected properties, and hidden secrets."""

import json
import pickle
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
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
from advisor.errors import InputError

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
        ({"securty.protocol": "SSL"}, "securty.protocol is not understood; correct it"),
        ({"acks": "all", "linger.ms": "5"}, "acks, linger.ms are not understood; correct them"),
        ({"security.protocol": "TLS"}, "not PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"),
        ({"security.protocol": "SASL_SSL"}, r"GSSAPI \(Kafka's default, as none is stated\)"),
        ({**SASL, "sasl.mechanism": "AWS_MSK_IAM"}, "supported are PLAIN, SCRAM-SHA-256, SCRAM"),
        ({**SASL, "sasl.jaas.config": f'{PLAIN} required username="a";'}, "has no password"),
        ({k: v for k, v in SASL.items() if "jaas" not in k}, "sasl.jaas.config is missing"),
        ({"request.timeout.ms": "5s"}, "request.timeout.ms is '5s'; give milliseconds"),
        ({"request.timeout.ms": "0"}, "a whole number from 1"),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "TLSv1.2 or TLSv1.3"),
        ({"ssl.endpoint.identification.algorithm": "ldaps"}, "is https, or empty for no check"),
        ({"ssl.engine.factory.class": "com.Mine"}, "ssl.engine.factory.class is not understood"),
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
    """Issues a token to the client `me` (RFC 6749)."""

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        known = self.headers["Authorization"] == "Basic bWU6aHVzaA=="  # me:hush
        known = known and form == {"grant_type": ["client_credentials"], "scope": ["read"]}
        self.send_response(200 if known else 401)
        self.end_headers()
        self.wfile.write(json.dumps({"access_token": "t-1"}).encode())

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def issuer() -> Iterator[str]:
    """The address of a token endpoint."""
    server = HTTPServer(("127.0.0.1", 0), Issuer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/token"
    server.shutdown()
    server.server_close()


def token(pairs: dict[str, str]) -> str:
    options = login_options(parse_properties(pairs, "client.properties"), time.monotonic() + 5)
    return str(options["sasl_oauth_token_provider"].token())


def test_a_token_is_fetched_for_the_client(issuer: str) -> None:
    """Client id and secret get a token; wrong ones are one sentence."""
    url = {"sasl.oauthbearer.token.endpoint.url": issuer}
    assert token({**OAUTH, **url}) == "t-1"
    wrong = OAUTH["sasl.jaas.config"].replace("hush", "else")
    with pytest.raises(InputError, match=r"no token for this client \(HTTP 401\)") as caught:
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
        ({"sasl.oauthbearer.token.endpoint.url": "ftp://x/y"}, "no https: or file: address"),
        ({"sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/"}, "no token could be"),
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
