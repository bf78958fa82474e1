"""Plans for managed services: only commands that can be run there."""

import re
from dataclasses import replace

import pytest

from advisor.advice import recommend
from advisor.advice.migration.plan import COMMANDS
from advisor.cluster import Cluster, load_cluster
from advisor.cluster.managed_services import AIVEN, CONFLUENT_CLOUD, MSK, MSK_SERVERLESS, SERVICES
from advisor.reliability.failures.failure_model import load_model

CARD = load_model("three_az_cloud")
DESCRIBED = (
    "Topic: orders\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=1\n"
    "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\n"
    "Topic: single\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: min.insync.replicas=1\n"
    "\tTopic: single\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
)
READ = re.compile(r"kafka-topics\.sh --bootstrap-server \$BS --describe")
CHANGES = re.compile(r"^(kafka-|until test|confluent|avn)\S* .*")


def changing(service: str | None) -> dict[str, list[str]]:
    """Return the commands of a plan, and of its rollback, that change something."""
    advice = recommend(replace(load_cluster(DESCRIBED, racks="1=a,2=b,3=c"), managed=service), CARD)
    lines = {"plan": advice.commands(), "rollback": list(advice.plan.rollback)}
    return {
        name: [line for line in script if CHANGES.match(line) and not READ.match(line)]
        for name, script in lines.items()
    }


@pytest.mark.parametrize("service", SERVICES)
def test_every_service_has_its_sources(service):
    """What is stated of a service can be looked up; all but MSK have commands of their own."""
    assert SERVICES[service].sources
    assert (service in COMMANDS) == (service != MSK)


def test_each_service_gets_the_commands_that_run_there():
    """Confluent Cloud sets min ISR alone, Aiven replicas too, MSK Serverless nothing."""
    assert changing(CONFLUENT_CLOUD) == {
        "plan": [
            "confluent kafka topic update orders --config min.insync.replicas=2",
            "confluent kafka topic update single --config min.insync.replicas=2",
        ],
        "rollback": [
            "confluent kafka topic update orders --config min.insync.replicas=1",
            "confluent kafka topic update single --config min.insync.replicas=1",
        ],
    }
    there = 'avn service topic-update "$SERVICE" {} --replication {} --min-insync-replicas {}'
    assert changing(AIVEN) == {
        "plan": [there.format("orders", 3, 2), there.format("single", 3, 2)],
        "rollback": [there.format("orders", 3, 1), there.format("single", 1, 1)],
    }
    assert changing(MSK_SERVERLESS) == {"plan": [], "rollback": []}
    serverless = replace(load_cluster(DESCRIBED, racks="1=a,2=b,3=c"), managed=MSK_SERVERLESS)
    assert recommend(serverless, CARD).plan.rollback == ("# Nothing to undo here.",)
    assert changing(MSK) == changing(None)


@pytest.mark.parametrize("service", SERVICES)
def test_no_file_is_written_that_cannot_be_used_there(service):
    """Nobody drains the pods of a service; only MSK takes reassignments and brokers' options."""
    advice = recommend(replace(load_cluster(DESCRIBED, racks="1=a,2=b,3=c"), managed=service), CARD)
    files = {*advice.files()}
    assert "kubernetes.yaml" not in files
    of_brokers = {"reassign.json", "server.properties", "rolling-restart.sh"}
    assert files & of_brokers == (of_brokers if service == MSK else set())
    assert "producer.properties" in files


@pytest.mark.parametrize("service", COMMANDS)
def test_a_new_topic_is_created_as_the_service_does_it(service):
    """Not with Kafka's tool, whose RF the service may refuse."""
    advice = recommend(replace(Cluster.uniform(3), managed=service), CARD)
    assert not [line for line in advice.commands() if "--create" in line]
    assert [*advice.plan.moves] == []
