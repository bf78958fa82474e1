"""Unreachable addresses: one sentence for each reason, in bounded time."""

import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from advisor import load_cluster
from advisor.__main__ import main
from advisor.cluster.addresses import Address, parse_addresses
from advisor.cluster.live import reader
from advisor.cluster.live.client_properties import Store, parse_properties
from advisor.cluster.live.reachability import first_reachable
from advisor.cluster.live.tls import tls_context
from advisor.errors import InputError, MissingExtraError
from certificates import authority
from closed_ports import closed_port
from patience import PATIENCE_MS, PATIENCE_S, patient_properties

LIMIT_MS = 1_500  # for servers that never answer

Serve = Callable[[Callable[[socket.socket], None]], int]


@pytest.fixture(autouse=True)
def _a_reason_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the reason come however long after the time limit, since the machine may be busy."""
    monkeypatch.setattr(reader, "_GRACE_S", PATIENCE_S)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start servers with a given behaviour for each connection."""
    listeners: list[socket.socket] = []

    def started(behave: Callable[[socket.socket], None]) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def run() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=quietly, args=(connection,), daemon=True).start()

        def quietly(connection: socket.socket) -> None:
            try:
                with connection:
                    behave(connection)
            except OSError:
                pass

        threading.Thread(target=run, daemon=True).start()
        return int(listener.getsockname()[1])

    yield started
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def silent(connection: socket.socket) -> None:
    while connection.recv(1024):
        pass


def saying(answer: bytes) -> Callable[[socket.socket], None]:
    def behave(connection: socket.socket) -> None:
        connection.recv(1024)
        connection.sendall(answer)

    return behave


def answer(request: bytes, body: bytes) -> bytes:
    """Return a response frame: length, correlation id, body."""
    return struct.pack(">i", len(body) + 4) + request[8:12] + body


def hello(request: bytes) -> bytes:
    """Answer ApiVersions in version 0: Metadata and SaslHandshake are supported."""
    newer = request[6:8] != b"\0\0"
    known = [(3, 0, 1), (17, 0, 1), (18, 0, 0), (36, 0, 0)]
    rows = b"".join(struct.pack(">hhh", *row) for row in known)
    return answer(request, struct.pack(">hi", 35 if newer else 0, len(known)) + rows)


def requests(connection: socket.socket) -> Iterator[bytes]:
    """Answer ApiVersions and yield every other request; hang up on anything else."""
    while (request := connection.recv(4096))[:1] == b"\0":
        if request[4:6] == b"\0\x12":
            connection.sendall(hello(request))
        else:
            yield request


def greeting(connection: socket.socket) -> None:
    """Answer ApiVersions only."""
    for _ in requests(connection):
        pass


def hanging_up(connection: socket.socket) -> None:
    """Answer ApiVersions, and hang up at the next request."""
    next(requests(connection), None)


def refusal(address: str, folder: Path, *lines: str) -> str:
    """Return the error message of a server that answers, however late, after checking its form."""
    return said_by(address, client_properties=patient_properties(folder, *lines))


def said_by(address: str, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        load_cluster(address, **options)
    text = str(caught.value)
    assert address in text
    assert "\n" not in text
    return text.replace(address, "ADDRESS")


def test_a_closed_port_is_refused_at_once(tmp_path: Path) -> None:
    """A closed port is reported long before the timeout, by the reason and not by the time."""
    with closed_port() as closed:
        said = refusal(f"127.0.0.1:{closed}", tmp_path)
    assert "cannot be reached (connection refused)" in said


def test_an_unknown_host_name(tmp_path: Path) -> None:
    """A host that cannot be resolved is named."""
    assert "no address is known by this name" in refusal("no-such-host.invalid:9092", tmp_path)


@pytest.mark.parametrize("behave", [silent, greeting], ids=["silent", "greets only"])
def test_a_server_that_never_answers_is_left(
    behave: Callable[[socket.socket], None], serve: Serve
) -> None:
    """It would be waited for without end: the time limit alone ends the call."""
    said = said_by(f"127.0.0.1:{serve(behave)}", timeout_ms=LIMIT_MS)
    assert "accepts connections and does not answer in time" in said


@pytest.mark.parametrize(
    ("behave", "said"),
    [
        (saying(b""), "closes the connection without an answer"),
        (saying(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "answers, but not as a Kafka broker does"),
        (saying(b"SSH-2.0-OpenSSH_9.2\r\n"), "answers, but not as a Kafka broker does"),
        (saying(b"\0\0"), "answers, but not as a Kafka broker does"),
        (saying(bytes(range(256)) * 9), "answers, but not as a Kafka broker does"),
        (saying(b"\x15\x03\x03\x00\x02\x02\x50"), "speaks TLS; give client properties with"),
        (hanging_up, "breaks the connection off when asked; it may want a login"),
    ],
    ids=["closes", "http", "ssh", "cut", "garbage", "tls", "sasl"],
)
def test_other_servers_are_distinguished(
    behave: Callable[[socket.socket], None], said: str, serve: Serve, tmp_path: Path
) -> None:
    """Another protocol, TLS, required SASL: a different sentence for each."""
    assert said in refusal(f"127.0.0.1:{serve(behave)}", tmp_path)


def test_every_address_is_tried_and_has_its_reason(serve: Serve) -> None:
    """The first address that answers is used; if none does, each has a reason."""
    good, mute = serve(greeting), serve(silent)
    with closed_port() as closed:
        places = parse_addresses(f"127.0.0.1:{closed},127.0.0.1:{good}")
        found = first_reachable(places, None, "", PATIENCE_MS, time.monotonic() + PATIENCE_S)
        assert found == Address("127.0.0.1", good)
        with pytest.raises(InputError) as caught:
            load_cluster(f"127.0.0.1:{closed},127.0.0.1:{mute}", timeout_ms=LIMIT_MS)
    refused, waited = str(caught.value).split("; ")
    assert refused.startswith(f"127.0.0.1:{closed} cannot be reached")
    assert waited.startswith(f"127.0.0.1:{mute} accepts connections and does not answer")


def login(code: int, taken: list[str]) -> Callable[[socket.socket], None]:
    """A broker that answers SaslHandshake with an error code and its mechanisms."""
    texts = b"".join(struct.pack(">h", len(text)) + text.encode() for text in taken)

    def behave(connection: socket.socket) -> None:
        asked = requests(connection)
        request = next(asked, b"")
        connection.sendall(answer(request, struct.pack(">hi", code, len(taken)) + texts))
        next(asked, None)

    return behave


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (33, "does not take sasl.mechanism=PLAIN, but SCRAM-SHA-512, OAUTHBEARER"),
        (34, "has no login at this port; leave SASL_ out of security.protocol"),
        (0, "refuses the login; see sasl.jaas.config in "),
    ],
)
def test_sasl_failures_are_distinguished(
    code: int, said: str, serve: Serve, tmp_path: Path
) -> None:
    """Wrong mechanism, no SASL, wrong password: a different sentence for each."""
    lines = (
        "security.protocol=SASL_PLAINTEXT",
        "sasl.mechanism=PLAIN",
        'sasl.jaas.config=M required username="alice" password="hush";',
    )
    port = serve(login(code, ["PLAIN"] if code == 0 else ["SCRAM-SHA-512", "OAUTHBEARER"]))
    text = refusal(f"127.0.0.1:{port}", tmp_path, *lines)
    assert said in text
    assert "hush" not in text


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("kafka:9092", [Address("kafka", 9092)]),
        (
            "a.example:1, b-2.example:65535",
            [Address("a.example", 1), Address("b-2.example", 65535)],
        ),
        ("SASL_SSL://kafka:9093", [Address("kafka", 9093)]),
        ("[::1]:9092", [Address("::1", 9092)]),
        ("a:1,a:1", [Address("a", 1)]),
    ],
)
def test_addresses_are_read(text: str, addresses: list[Address]) -> None:
    """Lists, listener prefixes as Kafka prints them, and IPv6 in brackets."""
    assert list(parse_addresses(text)) == addresses
    assert str(Address("::1", 9092)) == "[::1]:9092"


@pytest.mark.parametrize("text", ["kafka:0", "kafka:65536", "kafka:99999"])
def test_an_invalid_port_is_rejected(text: str) -> None:
    """Ports go from 1 to 65535."""
    with pytest.raises(InputError, match="ports are numbered 1 to 65535"):
        load_cluster(text)


def test_the_command_line_says_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong address, limit or file is one line on stderr and exit code 2."""
    missing = str(tmp_path / "none.properties")
    for options, said in [
        (["--timeout", f"{PATIENCE_S:g}"], "cannot be reached"),
        (["--timeout", "0"], "give seconds"),
        (["--command-config", missing], "this cannot be read (No such file or directory)"),
    ]:
        with closed_port() as closed:
            line = ["audit", f"127.0.0.1:{closed}", "--model", "three_az_cloud", *options]
            assert main(line) == 2
        printed = capsys.readouterr()
        assert said in printed.err
        assert printed.err.count("\n") == 1
        assert printed.out == ""


def test_without_the_extra_it_says_what_to_install() -> None:
    """Without kafka-python the error names the extra."""
    code = (
        "import sys; sys.modules['kafka'] = None\n"
        "from advisor import AdvisorError, load_cluster\n"
        "try: load_cluster('127.0.0.1:9')\n"
        "except AdvisorError as error: print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{MissingExtraError.__name__} Reading a live cluster needs ")
    assert "pip install 'kafka-replication-advisor[live]'" in done.stdout


def secured(folder: Path, **options: object) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "node.pem")
    if options.get("client_certificate"):
        context.load_verify_locations(folder / "ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def over_tls(context: ssl.SSLContext) -> Callable[[socket.socket], None]:
    def behave(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            greeting(secure)

    return behave


def reached(port: int, pairs: dict[str, str], host: str = "127.0.0.1") -> Address:
    context = tls_context(parse_properties({"security.protocol": "SSL", **pairs}, "c.properties"))
    deadline = time.monotonic() + PATIENCE_S
    return first_reachable([Address(host, port)], context, "", PATIENCE_MS, deadline)


def stores(folder: Path) -> dict[str, dict[str, str]]:
    """Trust and key stores of one CA, by format."""
    made = authority()
    made.write(folder)
    key, certificate = made.signed("127.0.0.1")
    secret = BestAvailableEncryption(b"changeit")
    chain = pkcs12.serialize_key_and_certificates(b"me", key, certificate, None, secret)
    (folder / "key.p12").write_bytes(chain)
    trust = [pkcs12.PKCS12Certificate(made.certificate, b"ca")]
    (folder / "trust.p12").write_bytes(pkcs12.serialize_java_truststore(trust, secret))
    pem = (folder / "node.pem").read_text()
    split = pem.index("-----BEGIN CERTIFICATE")
    return {
        "pem": {
            "ssl.truststore.location": str(folder / "ca.pem"),
            "ssl.keystore.location": str(folder / "node.pem"),
        },
        "inline": {
            "ssl.truststore.certificates": (folder / "ca.pem").read_text(),
            "ssl.keystore.key": pem[:split],
            "ssl.keystore.certificate.chain": pem[split:],
        },
        "pkcs12": {
            "ssl.truststore.location": str(folder / "trust.p12"),
            "ssl.truststore.password": "changeit",
            "ssl.keystore.location": str(folder / "key.p12"),
            "ssl.keystore.password": "changeit",
        },
    }


@pytest.mark.parametrize("kind", ["pem", "inline", "pkcs12"])
def test_stores_of_each_kind_open_a_connection(kind: str, serve: Serve, tmp_path: Path) -> None:
    """A client certificate is sent, and the broker's is verified."""
    pairs = stores(tmp_path)[kind]
    port = serve(over_tls(secured(tmp_path, client_certificate=True)))
    assert reached(port, pairs).port == port
    trust = {name: value for name, value in pairs.items() if "keystore" not in name}
    with pytest.raises(InputError, match=r"may want a client certificate \(ssl.keystore.location"):
        reached(port, trust)


def test_certificates_are_checked(serve: Serve, tmp_path: Path) -> None:
    """An untrusted certificate, or one for another host, is rejected; the latter is optional."""
    pairs = stores(tmp_path)["pem"]
    del pairs["ssl.keystore.location"]
    port = serve(over_tls(secured(tmp_path)))
    with pytest.raises(InputError, match=r"not trusted \(.*\); see ssl.truststore.location"):
        reached(port, {})
    with pytest.raises(InputError, match=r"not trusted .*localhost"):
        reached(port, pairs, host="localhost")
    unchecked = {**pairs, "ssl.endpoint.identification.algorithm": ""}
    assert reached(port, unchecked, host="localhost").port == port


def test_tls_to_a_plaintext_port_is_detected(serve: Serve) -> None:
    """With TLS, a plaintext broker and another protocol are distinguished."""
    with pytest.raises(InputError, match=r"does not speak TLS; its security\.protocol is"):
        reached(serve(greeting), {})
    with pytest.raises(InputError, match="neither with TLS nor as a Kafka broker does"):
        reached(serve(saying(b"HTTP/1.1 400 Bad Request\r\n\r\n")), {})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xfe\xed\xfe\xed\0\0\0\2", r"a JKS store can be read by Java only.* keytool -import"),
        (b"\x30\x82garbage", "neither PEM nor a PKCS12 store that the password given opens"),
        (b"-----BEGIN CERTIFICATE-----\nAA==\n", "no certificate in it that can be read"),
        (None, "this store cannot be read"),
    ],
    ids=["jks", "garbage", "broken", "missing"],
)
def test_a_store_that_cannot_be_read_is_refused(
    content: bytes | None, said: str, tmp_path: Path
) -> None:
    """JKS with the conversion command; broken or missing stores by name."""
    path = tmp_path / "store"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=said) as caught:
        reached(9, {"ssl.truststore.location": str(path), "ssl.truststore.password": "hush"})
    assert "ssl.truststore.location" in str(caught.value)
    assert str(path) not in str(caught.value)
    assert "hush" not in str(caught.value)


def test_a_store_without_a_key_is_rejected_and_not_left_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key store without a key is rejected, and no copy is left on disk."""
    aside = tmp_path / "aside"
    aside.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(aside))
    pairs = stores(tmp_path)["pem"]
    with pytest.raises(InputError, match="the key and its certificates cannot be read"):
        reached(9, {**pairs, "ssl.keystore.location": pairs["ssl.truststore.location"]})
    assert tls_context(parse_properties({"security.protocol": "SSL", **pairs}, "c.properties"))
    assert list(aside.iterdir()) == []
    assert not Store()
