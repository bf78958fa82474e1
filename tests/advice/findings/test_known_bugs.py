"""Which Kafka versions have which known bugs, and when the finding is raised."""

import re
from itertools import pairwise

import pytest

from advisor import catalog
from advisor.advice import recommend
from advisor.advice.audits.audit import audit
from advisor.advice.findings.catalogue import RULES
from advisor.advice.findings.known_bugs import KnownBug, check_version, known_bugs
from advisor.cluster import Cluster, Partition, Topic
from advisor.errors import ModelError
from advisor.protocol.rules.versions import NEWEST_KNOWN, parse_version, rules_for
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.workload import Workload

CARD = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}})
TOPIC = Topic(
    "t",
    (Partition(index=0, replicas=(1, 2, 3), leader=1, isr=(1, 2, 3)),),
    {"min.insync.replicas": "2"},
)
BUGS = {bug.id: bug for bug in known_bugs()}
RELEASES = [
    *("0.8.0", "0.8.1", "0.8.2.2", "0.9.0.1", "0.10.0.1", "0.10.1.1", "0.10.2.2", "0.11.0.3"),
    *("1.0.2", "1.1.0", "1.1.1", "2.0.0", "2.0.1", "2.1.0", "2.1.1", "2.2.2", "2.3.1", "2.4.0"),
    *("2.4.1", "2.5.1", "2.6.3", "2.7.0", "2.7.1", "2.7.2", "2.8.0", "2.8.1", "2.8.2", "3.0.0"),
    *("3.0.2", "3.1.0", "3.1.2", "3.2.0", "3.2.1", "3.2.3", "3.3.0", "3.3.2", "3.4.1", "3.5.0"),
    *("3.5.2", "3.6.2", "3.7.0", "3.7.1", "3.8.0", "3.8.1", "3.9.0", "3.9.1", "4.0.0", "4.1.0"),
]


def ids(version: str, mode: str = "zookeeper") -> set[str]:
    """Return the bugs of a version, read from the finding's sentence."""
    found = list(check_version(version, mode))
    assert {finding.code for finding in found} <= {"KRA501"}
    return {id_ for each in found for id_ in re.findall(r"(K(?:IP|AFKA)-\d+) \(", each.detail)}


# Written down from the release notes and tags of Kafka, not from the table.
@pytest.mark.parametrize(
    ("version", "mode", "has", "has_not"),
    [
        ("0.10.2.1", "zookeeper", {"KIP-101", "KAFKA-7128"}, {"KAFKA-6361", "KAFKA-9254"}),
        ("0.11.0.0", "zookeeper", {"KAFKA-6361", "KAFKA-7415"}, {"KIP-101", "KAFKA-7897"}),
        ("1.1.1", "zookeeper", {"KAFKA-7164", "KAFKA-9254"}, {"KIP-101"}),
        ("2.0.0", "zookeeper", {"KAFKA-7164", "KAFKA-7415"}, {"KAFKA-6361", "KAFKA-7897"}),
        ("2.0.1", "zookeeper", {"KAFKA-7897"}, {"KAFKA-7164", "KAFKA-7415", "KAFKA-7128"}),
        ("2.1.0", "zookeeper", {"KAFKA-7897"}, {"KAFKA-7164"}),
        ("2.1.1", "zookeeper", {"KAFKA-9254"}, {"KAFKA-7897"}),
        ("2.4.0", "zookeeper", {"KAFKA-9254", "KAFKA-10471"}, {"KAFKA-13141"}),
        ("2.4.1", "zookeeper", {"KAFKA-10471"}, {"KAFKA-9254"}),
        ("2.7.1", "zookeeper", {"KAFKA-13141", "KAFKA-14154"}, {"KAFKA-9254"}),
        ("2.7.2", "zookeeper", {"KAFKA-13194"}, {"KAFKA-13141"}),
        ("2.8.0", "zookeeper", {"KAFKA-13141"}, {"KAFKA-10471"}),
        ("3.2.0", "zookeeper", {"KAFKA-13773", "KAFKA-14154"}, {"KAFKA-13194"}),
        ("3.2.1", "zookeeper", {"KAFKA-14154"}, {"KAFKA-13773"}),
        ("3.4.0", "kraft", {"KAFKA-14139"}, {"KAFKA-15221", "KAFKA-14154"}),
        ("3.4.0", "zookeeper", set(), {"KAFKA-14139"}),
        ("3.6.2", "kraft", {"KAFKA-15221"}, {"KAFKA-14139", "KAFKA-16541"}),
        ("3.7.0", "kraft", {"KAFKA-16541"}, {"KAFKA-15221"}),
        ("3.7.0", "zookeeper", {"KAFKA-16541"}, set()),
    ],
)
def test_versions_have_the_bugs_that_they_had(
    version: str, mode: str, has: set[str], has_not: set[str]
) -> None:
    """A bug counts from its first version until the fix of its branch, or a later branch."""
    found = ids(version, mode)
    assert has <= found
    assert not has_not & found


@pytest.mark.parametrize("version", ["3.8.0", "3.9.1", "4.0.0", NEWEST_KNOWN])
def test_a_version_without_known_bugs_has_no_finding(version: str) -> None:
    """Nothing is said of a version that has all fixes."""
    assert list(check_version(version, "kraft")) == []


@pytest.mark.parametrize("mode", ["zookeeper", "kraft"])
@pytest.mark.parametrize("version", RELEASES)
def test_the_advised_version_is_later_and_clean(version: str, mode: str) -> None:
    """Following the advice ends with a later version that has no finding."""
    for found in check_version(version, mode):
        (advised,) = re.findall(r"Kafka (\S+) is the first release after it", found.detail)
        assert parse_version(advised) > parse_version(version)
        assert list(check_version(advised, mode)) == []
        fixes = re.findall(r"fixed in ([\d.]+)", found.detail)
        assert all(parse_version(fix) > parse_version(version) for fix in fixes)


def test_a_branch_without_a_fix_of_its_own_waits_for_the_next() -> None:
    """Fixed in 2.7.2, 2.8.1 and 3.0.0: 2.7.2 has it, 2.8.0 not, and nothing before 2.7."""
    bug = BUGS["KAFKA-13141"]
    affected = [v for v in RELEASES if bug.affects(parse_version(v), "zookeeper")]
    assert affected == ["2.7.0", "2.7.1", "2.8.0"]
    assert [bug.fix_for(parse_version(v)) for v in affected] == ["2.7.2", "2.7.2", "2.8.1"]


@pytest.mark.parametrize(
    ("id_", "rule", "before", "after"),
    [
        ("KIP-101", "truncation", "high_watermark", "epoch"),
        ("KAFKA-6361", "truncation", "epoch", "epoch_divergence"),
        ("KAFKA-7164", "truncate_on_every_epoch", False, True),
        ("KAFKA-14139", "broker_epoch_in_alter_partition", False, True),
    ],
)
def test_rules_of_replication_changed_with_the_fix(
    id_: str, rule: str, before: object, after: object
) -> None:
    """Where our own rules know the fix, they change at the version that the table names."""
    bug = BUGS[id_]
    mode = bug.mode or "zookeeper"
    for version in RELEASES:
        if parse_version(version) < parse_version(bug.first_affected):
            continue
        if parse_version(version) >= parse_version("4.0"):
            continue
        value = getattr(rules_for(version, mode), rule)
        assert (value == before) == bug.affects(parse_version(version), mode), version
        if parse_version(version) == parse_version(bug.fixed[-1]):
            assert value == after


@pytest.mark.parametrize("bug", known_bugs(), ids=lambda bug: bug.id)
def test_a_row_is_complete_and_in_order(bug: KnownBug) -> None:
    """Versions ascend, the vocabulary is kept, and the source has an address."""
    versions = [bug.first_affected, *bug.fixed]
    assert all(parse_version(a) < parse_version(b) for a, b in pairwise(versions))
    assert bug.mode in ("", "kraft", "zookeeper")
    assert bug.lost in ("yes", "may")
    assert bug.acks_all in ("yes", "with a crash")
    assert bug.url.startswith("https://github.com/apache/kafka/")
    assert re.fullmatch(r"(KIP|KAFKA)-\d+", bug.id)
    assert all((bug.title, bug.condition, bug.inferred))


def test_ids_are_unique_and_columns_documented() -> None:
    """An id names one bug, and data/README.md explains every column."""
    assert len(BUGS) == len(known_bugs())
    readme = (catalog.data_dir() / "README.md").read_text(encoding="utf-8")
    section = readme.partition("## known_bugs.csv")[2].partition("\n## ")[0]
    assert {f"`{name}`" for name in KnownBug.__dataclass_fields__} <= set(
        re.findall(r"`\w+`", section)
    )


def test_a_table_without_a_column_is_refused(tmp_path, monkeypatch) -> None:
    """A damaged table is refused, with file and columns."""
    path = tmp_path / "known_bugs.csv"
    path.write_text("id,title\nKAFKA-1,x\n")
    monkeypatch.setattr(catalog, "data_path", lambda _name: path)
    with pytest.raises(ModelError, match=r"known_bugs\.csv:1: the columns must be id, title"):
        known_bugs.__wrapped__()


def cluster(version: str | None) -> Cluster:
    return Cluster({1: "a", 2: "b", 3: "c"}, (TOPIC,), kafka_version=version)


@pytest.mark.parametrize(("stated", "raised"), [("3.7.0", True), ("4.1", False), (None, False)])
def test_audit_and_recommend_look_at_a_stated_version(stated: str | None, raised: bool) -> None:
    """A version that was only assumed raises no finding."""
    load = Workload(partitions=1)
    audited = audit(cluster(stated), CARD, load)
    advised = recommend(cluster(stated), CARD, load)
    for findings in (audited.general, advised.findings):
        assert ("KRA501" in {finding.code for finding in findings}) == raised


def test_a_version_given_in_the_call_counts_as_stated() -> None:
    """`kafka_version=` of audit and recommend is looked up, too."""
    load = Workload(partitions=1)
    audited = audit(cluster(None), CARD, load, kafka_version="3.7.0")
    advised = recommend(cluster(None), CARD, load, kafka_version="3.7.0")
    for findings in (audited.general, advised.findings):
        (found,) = [finding for finding in findings if finding.code == "KRA501"]
        assert found.detail == (
            "Kafka 3.7.0 has KAFKA-16541 (a host loses power, may lose; fixed in 3.8.0). "
            "Kafka 3.8.0 is the first release after it without any known."
        )
    assert all((RULES["KRA501"].title, RULES["KRA501"].why, RULES["KRA501"].remedy))
