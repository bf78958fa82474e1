"""Topics kept as code are audited by the line where the setting stands."""

import pytest

from advisor.advice.audits.audit import audit
from advisor.advice.audits.sarif import Lines
from advisor.advice.findings.catalogue import FACTOR, MIN_ISR
from advisor.cluster import load_cluster
from advisor.reliability.failures.failure_model import FailureModel

TERRAFORM = """\
resource "kafka_topic" "other" {
  name               = "other"
  partitions         = 1
  replication_factor = 3
}
resource "kafka_topic" "orders" {
  config = {
    "min.insync.replicas" = "1"
  }
  name               = "orders"
  partitions         = 1
  replication_factor = 3
}
"""
LISTED = """\
topics:
  - name: other
    partitions: 1
    replicationFactor: 3
  - partitions: 1
    tags:
    - shop
    name: orders
    replicationFactor: 3
    config:
      min.insync.replicas: 1
"""
TABLE = """\
topics:
  other:
    partitions: 1
    replication: 3
  orders:
    partitions: 1
    configs:
      min.insync.replicas: 1
    replication: 3
  last:
    partitions: 1
    replication: 3
"""
JULIE = """\
context: shop
projects:
  - name: bills
    topics:
      - name: other
        config: {num.partitions: 1, replication.factor: 3}
      - name: orders
        config:
          replication.factor: 3
          num.partitions: 1
          min.insync.replicas: 1
"""
STRIMZI = """\
apiVersion: kafka.strimzi.io/v1
kind: Kafka
metadata: {name: shop}
spec:
  kafka: {replicas: 3}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaTopic
metadata:
  name: orders
spec:
  partitions: 1
  replicas: 3
  config:
    min.insync.replicas: 1
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaTopic
metadata:
  name: last
spec:
  partitions: 1
  replicas: 3
  config:
    min.insync.replicas: 2
"""
DESCRIBED = (
    "Topic: orders\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: min.insync.replicas=1\n"
    "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n"
)


@pytest.mark.parametrize(
    ("text", "topic", "min_isr", "factor"),
    [
        (TERRAFORM, "orders", 8, 12),
        (LISTED, "orders", 11, 9),
        (TABLE, "orders", 8, 9),
        (JULIE, "shop.bills.orders", 11, 9),
        (STRIMZI, "orders", 15, 13),
        (DESCRIBED, "orders", 1, 1),
    ],
    ids=["terraform", "list", "table", "julie", "strimzi", "describe"],
)
def test_a_setting_has_its_line(text, topic, min_isr, factor):
    """Not that of another topic; of the name, where the topic does not state it."""
    lines = Lines.read(text, {topic, "other", "last", "gone"})
    assert lines.of(topic, MIN_ISR) == min_isr
    assert lines.of(topic, FACTOR) == factor
    assert lines.of(topic, "") == lines.named[topic]
    assert lines.of("gone", MIN_ISR) == 1
    if text is TERRAFORM:
        assert lines.of("other", MIN_ISR) == 1


@pytest.mark.parametrize("text", [TERRAFORM, LISTED, TABLE, STRIMZI])
def test_a_log_for_code_scanning_points_at_the_setting(text):
    """KRA101 is about the min ISR: its line, in the file that a pull request changes."""
    card = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 1e-3, "hours": 12}}})
    cluster = load_cluster(text, racks={0: "a", 1: "b", 2: "c"})
    results = audit(cluster, card).to_sarif(text)["runs"][0]["results"]
    regions = [
        result["locations"][0]["physicalLocation"]["region"]["startLine"]
        for result in results
        if result["ruleId"] == "KRA101"
        and "KRA101/orders" in result["partialFingerprints"].values()
    ]
    assert len(regions) == 1
    assert "min.insync.replicas" in text.splitlines()[regions[0] - 1]
