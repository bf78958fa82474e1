"""Reading a cluster with TLS, SASL and ACLs, as far as permitted."""

import io
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor import load_cluster
from advisor.__main__ import main
from advisor.advice.migration.moves import Move, election_json, reassignment_json
from advisor.advice.migration.plan import make_plan
from advisor.advice.migration.tools import Tools
from advisor.cluster import Cluster
from advisor.errors import InputError
from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.kafka_tools import run_tool
from advisor.kafka_lab.nodes.node_properties import ClusterSpec
from advisor.protocol.rules.config import Config
from advisor.reliability.workload import Workload
from awaited import awaited
from certificates import authority
from emitted_scripts import Shell
from patience import PATIENT_LINES, patient_properties

PASSWORDS = {"alice": "alice's own; secret", "bob": "bob-secret"}
SCRAM = "scram-secret"
MODULES = {
    "PLAIN": "plain.PlainLoginModule",
    "SCRAM-SHA-256": "scram.ScramLoginModule",
    "OAUTHBEARER": "oauthbearer.OAuthBearerLoginModule",
}
JAAS = "org.apache.kafka.common.security."


def settings(folder: Path) -> dict[str, str]:
    """TLS and SASL for clients; brokers use plaintext and are super users."""
    users = " ".join(f'user_{name}="{word}"' for name, word in PASSWORDS.items())
    listener = "listener.name.client"
    return {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PEER:PLAINTEXT,CLIENT:SASL_SSL",
        f"{listener}.sasl.enabled.mechanisms": ",".join(MODULES),
        f"{listener}.plain.sasl.jaas.config": f"{JAAS}{MODULES['PLAIN']} required {users};",
        f"{listener}.scram-sha-256.sasl.jaas.config": f"{JAAS}{MODULES['SCRAM-SHA-256']} required;",
        f"{listener}.oauthbearer.sasl.jaas.config": (
            f'{JAAS}{MODULES["OAUTHBEARER"]} required unsecuredLoginStringClaim_sub="nobody";'
        ),
        f"{listener}.ssl.keystore.type": "PEM",
        f"{listener}.ssl.keystore.location": str(folder / "node.pem"),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:alice",
        "auto.create.topics.enable": "true",
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates, and a properties file for each user."""
    made = tmp_path_factory.mktemp("secured")
    authority().write(made)
    for user, word in PASSWORDS.items():
        client(made, user, "PLAIN", f'username="{user}" password="{word}"')
    client(made, "wrong", "PLAIN", 'username="alice" password="guessed"')
    client(made, "scram", "SCRAM-SHA-256", f'username="alice" password="{SCRAM}"')
    client(made, "oauth", "OAUTHBEARER", 'unsecuredLoginStringClaim_sub="alice"')
    client(made, "strict", "PLAIN", f'username="bob" password="{PASSWORDS["bob"]}"', "https")
    return made


def client(folder: Path, name: str, mechanism: str, login: str, identified: str = "") -> None:
    lines = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{JAAS}{MODULES[mechanism]} required {login};",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "ssl.endpoint.identification.algorithm": identified,
    }
    text = "".join(f"{key}={value}\n" for key, value in lines.items())
    text += "".join(f"{line}\n" for line in PATIENT_LINES)
    (folder / f"{name}.properties").write_text(text)


@pytest.fixture(scope="module")
def running(folder: Path, real_cluster: Callable[[ClusterSpec], RealCluster]) -> RealCluster:
    """The newest Kafka with three topics: bob may read the configs of one and describe another."""
    cluster = real_cluster(ClusterSpec("4.3", brokers_configs=settings(folder)))
    for topic in ("open", "seen", "hidden"):
        arguments = ["--create", "--topic", topic, "--replica-assignment", "1:2:3"]
        run(cluster, folder, "kafka-topics.sh", *arguments, "--config", "min.insync.replicas=2")
    inherits = ["--create", "--topic", "inherits", "--replica-assignment", "1:2:3"]
    run(cluster, folder, "kafka-topics.sh", *inherits)
    for topic, operation in [
        ("open", "DescribeConfigs"),
        ("open", "Describe"),
        ("seen", "Describe"),
    ]:
        rule = ["--add", "--allow-principal", "User:bob", "--operation", operation]
        run(cluster, folder, "kafka-acls.sh", *rule, "--topic", topic)
    password = ["--alter", "--add-config", f"SCRAM-SHA-256=[password={SCRAM}]"]
    run(
        cluster,
        folder,
        "kafka-configs.sh",
        *password,
        "--entity-type",
        "users",
        "--entity-name",
        "alice",
    )
    awaited(lambda: seen_by(cluster, folder, "bob"), lambda seen: seen == {"open": 2, "seen": None})
    every = {"open", "seen", "hidden", "inherits"}
    awaited(lambda: seen_by(cluster, folder, "scram"), lambda seen: {*(seen or ())} == every)
    return cluster


def seen_by(cluster: RealCluster, folder: Path, login: str) -> dict[str, int | None] | None:
    """Return the topics that a login sees, and their min ISR; None if it is not let in."""
    try:
        read = load_cluster(cluster.bootstrap, client_properties=folder / f"{login}.properties")
    except InputError:
        return None
    return {topic.name: topic.min_insync_replicas for topic in read.topics}


def run(cluster: RealCluster, folder: Path, script: str, *arguments: str) -> str:
    """Run one of Kafka's tools as alice."""
    reach = ["--bootstrap-server", cluster.bootstrap]
    reach += ["--command-config", str(folder / "alice.properties")]
    result = run_tool(cluster.jars, script, [*reach, *arguments])
    assert result.code == 0, result.output + result.errors
    return result.output


@pytest.mark.parametrize("login", ["alice", "scram", "oauth"])
def test_each_authentication_reads_everything(
    login: str, running: RealCluster, folder: Path
) -> None:
    """With the properties file of Kafka's tools everything is read, as they print it."""
    read = load_cluster(running.bootstrap, client_properties=folder / f"{login}.properties")
    result = load_cluster(run(running, folder, "kafka-topics.sh", "--describe"))
    assert {topic.name: dict(topic.configs) for topic in read.topics} == {
        topic.name: dict(topic.configs) for topic in result.topics
    }
    assert read.notes == ()
    assert read.observed is not None
    assert set(read.observed.broker_settings) == {1, 2, 3}


def test_missing_authorization_is_noted(running: RealCluster, folder: Path) -> None:
    """What is not authorized is missing, with Kafka's reason; the rest is read."""
    read = load_cluster(running.bootstrap, client_properties=folder / "bob.properties")
    assert [topic.name for topic in read.topics] == ["open", "seen"]
    assert read.topic("open").min_insync_replicas == 2
    assert read.topic("seen").min_insync_replicas is None
    assert read.topic("seen").partitions[0].isr == (1, 2, 3)
    said = "\n".join(read.notes)
    assert "The settings of the topics seen are not known (TOPIC_AUTHORIZATION_FAILED)" in said
    assert (
        "The settings of the brokers 1, 2, 3 are not known (CLUSTER_AUTHORIZATION_FAILED)" in said
    )
    assert "The cluster did not tell the controllers' quorum (CLUSTER_AUTHORIZATION_FAILED)" in said
    assert "Topics that may not be described are not listed by Kafka and missing here." in said
    assert read.observed is not None
    assert (read.observed.quorum, dict(read.observed.broker_settings)) == (None, {})


@pytest.mark.parametrize(
    ("login", "said"),
    [
        (None, "speaks TLS; give client properties with security.protocol=SSL"),
        ("wrong", r"refuses the login; see sasl.jaas.config in .*wrong.properties"),
        ("strict", r"has a certificate that is not trusted \(.*IP address mismatch"),
    ],
)
def test_failed_authentication_is_explained(
    login: str | None, said: str, running: RealCluster, folder: Path
) -> None:
    """No SASL, wrong password, certificate for another host: one sentence without secrets."""
    path = patient_properties(folder) if login is None else folder / f"{login}.properties"
    with pytest.raises(InputError, match=said) as caught:
        load_cluster(running.bootstrap, client_properties=path)
    assert not any(word in str(caught.value) for word in (*PASSWORDS.values(), "guessed"))


@pytest.mark.parametrize("login", ["alice", "scram", "oauth"])
def test_no_log_shows_the_password(login: str, running: RealCluster, folder: Path) -> None:
    """At level DEBUG kafka-python's log contains neither password nor token."""
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        load_cluster(running.bootstrap, client_properties=folder / f"{login}.properties")
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
    written = log.getvalue()
    assert "Connected" in written
    assert not any(word in written for word in (*PASSWORDS.values(), SCRAM, "Bearer"))


def test_the_command_line_accepts_command_config(
    running: RealCluster, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--command-config` works, and missing information is printed on stderr."""
    options = ["--model", "three_az_cloud", "--command-config", str(folder / "bob.properties")]
    assert main(["evaluate", running.bootstrap, *options]) == 0
    printed = capsys.readouterr()
    assert "\nRF 3 with min ISR " in printed.out
    assert "The settings of the topics seen are not known" in printed.err
    options = ["--model", "three_az_cloud", "--command-config", str(patient_properties(folder))]
    assert main(["evaluate", running.bootstrap, *options]) == 2
    assert "speaks TLS" in capsys.readouterr().err


def test_emitted_commands_authenticate(running: RealCluster, folder: Path, tmp_path: Path) -> None:
    """Commands have address and client properties; the rollback restores inheritance."""

    def read() -> Cluster:
        found = load_cluster(running.bootstrap, client_properties=folder / "alice.properties")
        assert found.observed is not None
        return found

    before = read()
    wanted = Config(kafka_version="4.3", replication_factor=3, min_insync_replicas=3)
    plan = make_plan(before, wanted, Workload(), topics=["open", "inherits"])
    shell = Shell(running, tmp_path / "shell")
    there = shell.run_lines("unset BS", *plan.lines)
    assert there.well, there.output

    def min_isrs(found: Cluster) -> set[int | None]:
        return {t.min_insync_replicas for t in found.topics if t.name in ("open", "inherits")}

    assert min_isrs(awaited(read, lambda found: min_isrs(found) == {3})) == {3}
    back = shell.run_lines("unset BS", *plan.rollback)
    assert back.well, back.output
    assert awaited(read, lambda found: found.observed == before.observed)


def test_every_tool_takes_the_client_properties(
    running: RealCluster, folder: Path, tmp_path: Path
) -> None:
    """Reassignments and elections authenticate too, each with its tool's option."""
    tools = Tools("4.3", running.bootstrap, str(folder / "alice.properties"))
    default = tools.alter_default("min.insync.replicas", "1")
    assert default is not None
    move = Move("open", 0, (1, 2, 3), (1, 2, 3))
    shell = Shell(running, tmp_path / "shell")
    shell.write({"m.json": reassignment_json([move]).text, "e.json": election_json([move]).text})
    ran = shell.run_lines(
        "unset BS",
        *(line.text for line in tools.variables),
        tools.reassign("m.json", 1_000_000).text,
        tools.await_reassignment("m.json", 1).text,
        tools.elect_preferred("e.json").text,
        default.text,
    )
    assert ran.well, ran.output
