"""Findings on a screen: one for a missing broker and everything that follows from it."""

from advisor.advice import audit
from advisor.advice.findings.summary import folded, shortened
from advisor.cluster import Cluster, Partition, Topic
from advisor.reliability.failures.failure_model import FailureModel

CARD = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 0.1, "hours": 12.0}}})
OUT_OF_SYNC = {"KRA104", "KRA105", "KRA106", "KRA110"}


def topic(name: str, min_isr: int, *lists: tuple[int, ...], out: set[int]) -> Topic:
    """Return a topic whose replicas on some brokers are out of sync; a lone one has no leader."""
    partitions = []
    for index, held in enumerate(lists):
        isr = tuple(broker for broker in held if broker not in out)
        partitions.append(Partition(index, isr[0] if isr else None, held, isr or held))
    return Topic(name, tuple(partitions), {"min.insync.replicas": str(min_isr)})


def of_one_dead_broker() -> tuple[Topic, ...]:
    return (
        topic("lone", 1, (2,), (1,), out={2}),
        topic("refusing", 2, (1, 2), (2, 3), out={2}),
        topic("left", 1, (1, 2), (1, 3), out={2}),
        topic("whole", 2, (1, 2, 3), (2, 3, 1), (3, 1, 2), out={2}),
    )


def test_a_dead_broker_is_one_finding_with_its_consequences() -> None:
    """It stands where the worst of them stood, and counts the partitions of every topic."""
    cluster = Cluster(dict.fromkeys((1, 2, 3), "a"), of_one_dead_broker())
    findings = audit(cluster, CARD).findings
    assert len([f for f in findings if f.code in OUT_OF_SYNC]) == 7
    shown = folded(findings)
    assert not OUT_OF_SYNC & {finding.code for finding in shown}
    assert [f for f in findings if f.code not in OUT_OF_SYNC | {"KRA318"}] == shown[1:]
    assert shown[0].code == "KRA318"
    assert shown[0].detail.partition(" That leaves ")[2] == (
        "1 partition without a leader (lone), 2 below min ISR, so that writes are refused "
        "(refusing), 3 with one in-sync replica left (refusing and left) and 6 with replicas out "
        "of sync (refusing, left and whole)."
    )
    assert next(finding for finding, *_ in shortened(findings)) == shown[0]


def test_what_another_broker_lacks_is_no_consequence() -> None:
    """A topic whose replica on a running broker is behind keeps its own finding."""
    behind = topic("behind", 1, (1, 3), out={3})
    cluster = Cluster(dict.fromkeys((1, 2, 3), "a"), (*of_one_dead_broker(), behind))
    shown = folded(audit(cluster, CARD).findings)
    assert {(f.code, f.topic) for f in shown if f.code in OUT_OF_SYNC} == {
        ("KRA110", "behind"),
        ("KRA105", "behind"),
    }
    healthy = [f for f in shown if f.code not in OUT_OF_SYNC | {"KRA318"}]
    assert folded(healthy) == healthy
