"""Every finding has a cluster that shows it and one that does not."""

from dataclasses import replace
from itertools import product

import pytest

from advisor.advice import Goals, recommend
from advisor.advice.audits.audit import audit
from advisor.advice.findings.catalogue import RULES
from advisor.advice.findings.checks import (
    check_delivery_timeout,
    check_producer,
)
from advisor.advice.situation import config_of
from advisor.cluster import Cluster, Topic
from advisor.cluster.observed import Observed, Setting
from advisor.formatting import significant
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel, load_model
from advisor.reliability.workload import Workload
from checked_topics import CARD, ONE, SIX, partition, with_min_isr
from read_cluster import findings_of, findings_of_topic


def codes(
    topic: Topic, brokers: dict[int, str | None] | None = None, version: str = "4.1"
) -> set[str]:
    cluster = Cluster(brokers or SIX, (topic,))
    found = findings_of_topic(topic, cluster, version)
    return {finding.code for finding in found}


def test_a_sound_topic_has_no_finding() -> None:
    """RF 3 over three racks with min ISR 2 and all replicas in sync has no findings."""
    assert codes(with_min_isr(2)) == set()
    assert list(findings_of(Cluster(SIX))) == []
    assert list(check_producer(Config(acks="all", delivery_timeout_ms=600_000), CARD)) == []


TOPICS = [
    ("KRA101", with_min_isr(1)),
    ("KRA102", with_min_isr(3)),
    ("KRA103", with_min_isr(4)),
    ("KRA104", with_min_isr(2, partition(leader=None))),
    ("KRA105", with_min_isr(2, partition(isr=(1, 2)))),
    ("KRA106", with_min_isr(2, partition(isr=(1,)))),
    ("KRA107", Topic("t", (partition(),))),
    ("KRA108", with_min_isr(2, partition(0), partition(1, (1, 2)))),
    ("KRA109", with_min_isr(2, partition(replicas=(1, 2, 3, 4), adding=(4,), removing=(1,)))),
    ("KRA110", with_min_isr(1, partition(isr=(1,)))),
    ("KRA111", replace(with_min_isr(2), broken=(7,))),
    ("KRA201", with_min_isr(1, ONE, name="__consumer_offsets")),
    ("KRA202", with_min_isr(1, ONE, name="__transaction_state")),
    ("KRA203", with_min_isr(1, ONE, name="__share_group_state")),
    ("KRA204", with_min_isr(1, ONE)),
    ("KRA205", with_min_isr(1, ONE, name="app-store-changelog")),
    ("KRA205", with_min_isr(1, ONE, name="connect-offsets")),
    ("KRA205", with_min_isr(1, ONE, name="_schemas")),
    ("KRA206", with_min_isr(1, name="__transaction_state")),
    ("KRA206", with_min_isr(3, name="__transaction_state")),
    ("KRA302", Topic("t", (partition(),), {"unclean.leader.election.enable": "true"})),
    ("KRA306", with_min_isr(2, partition(replicas=(1, 2, 3, 4)))),
    ("KRA307", with_min_isr(1, partition(replicas=(1, 4)))),
    ("KRA308", with_min_isr(2, partition(replicas=(1, 4, 2)))),
]


@pytest.mark.parametrize(("code", "topic"), TOPICS, ids=lambda value: str(value)[:40])
def test_topic_findings(code: str, topic: Topic) -> None:
    """Each topic finding appears where it applies, with title, reason and remedy."""
    assert code in codes(topic)
    assert all((RULES[code].title, RULES[code].why, RULES[code].remedy))


def test_the_last_replica_in_sync_is_reported_where_it_leads() -> None:
    """Of a partition without a leader KRA104 says more; beside one that has one, both are said."""
    leaderless, alone = partition(0, leader=None, isr=(1,)), partition(1, isr=(1,))
    assert codes(with_min_isr(1, leaderless)) == {"KRA101", "KRA104", "KRA105"}
    topic = with_min_isr(1, leaderless, alone)
    said = findings_of_topic(topic, Cluster(SIX, (topic,)))
    (last,) = [str(finding) for finding in said if finding.code == "KRA110"]
    assert "1 of 2 partitions" in last


def test_min_isr_findings_exclude_each_other() -> None:
    """Min ISR 1, equal to RF, and above RF each give their own finding and no other's."""
    assert codes(with_min_isr(1)) == {"KRA101"}
    assert codes(with_min_isr(3)) == {"KRA102"}
    assert codes(with_min_isr(4), version="3.6") == {"KRA103", "KRA106"}
    assert codes(with_min_isr(1, ONE)) == {"KRA204"}
    assert codes(with_min_isr(1, partition(replicas=(1, 4)))) == {"KRA101", "KRA307"}


def test_as_many_replicas_as_brokers() -> None:
    """RF 3 on three brokers leaves no broker for a new replica; on six it does."""
    assert "KRA304" in codes(with_min_isr(2), {1: "a", 2: "b", 3: "c"})
    assert "KRA304" not in codes(with_min_isr(2))


def test_min_isr_above_rf_depends_on_the_version() -> None:
    """Before 3.7 the finding says that writes are refused; since 3.7 that it is capped."""
    topic = with_min_isr(4)
    cluster = Cluster(SIX, (topic,))
    said = {
        version: " ".join(map(str, findings_of_topic(topic, cluster, version)))
        for version in ("3.6", "3.7")
    }
    assert "Kafka 3.6 refuses every acks=all write" in said["3.6"]
    assert "it counts as 3" in said["3.7"]
    assert "KRA102" in said["3.7"]
    assert "KRA102" not in said["3.6"]


@pytest.mark.parametrize(
    ("text", "is_on"), [("TRUE", True), ("True", True), (" true ", True), ("FALSE", False)]
)
def test_switches_are_read_in_any_case(text: str, is_on: bool) -> None:
    """As Kafka reads a boolean: neither its case nor blanks around it matter."""
    topic = Topic("t", (partition(),), {"unclean.leader.election.enable": text})
    assert config_of(topic, "4.1", {}).unclean_leader_election_enable is is_on
    assert ("KRA302" in codes(topic)) is is_on


def test_unclean_election_by_default_is_reported() -> None:
    """Before 0.11 unclean election is on by default, and the finding says so."""
    topic = with_min_isr(2)
    found = findings_of_topic(topic, Cluster(SIX, (topic,)), "0.10.2")
    assert any("the default of Kafka 0.10.2" in str(f) for f in found if f.code == "KRA302")


CLUSTERS = [
    ("KRA301", {1: "a", 2: "b"}),
    ("KRA309", {1: "a", 2: "b", 3: None}),
    ("KRA310", {1: None, 2: None}),
    ("KRA311", {1: "a", 2: "a", 3: "b", 4: "c"}),
]


@pytest.mark.parametrize(("code", "brokers"), CLUSTERS)
def test_cluster_findings(code: str, brokers: dict[int, str | None]) -> None:
    """Each finding about racks appears where it applies, and no other with it."""
    assert [f.code for f in findings_of(Cluster(brokers))] == [code]


CONTROLLERS = [
    ("KRA313", "abcd", "4 controllers survive the failure of 1."),
    ("KRA314", "aaa", "all 3 controllers are in rack a."),
    ("KRA315", "aab", "of the controllers, a has 2 and b has 1; losing a stops elections."),
    ("KRA316", "aaabc", "of the controllers, a has 3, b has 1 and c has 1; losing a stops"),
    ("KRA317", "a", "the quorum is a single controller."),
]


def controller_findings(racks: str | list[str | None]) -> dict[str, str]:
    controllers = dict(enumerate(racks, start=101))
    found = list(findings_of(Cluster(SIX, controllers=controllers)))
    assert {f.rule.weight for f in found} <= {"risk"}
    return {f.code: f.detail for f in found}


@pytest.mark.parametrize(("code", "racks", "detail"), CONTROLLERS)
def test_controller_findings(code: str, racks: str, detail: str) -> None:
    """Each finding about controllers appears where it applies, and no other with it."""
    found = controller_findings(racks)
    assert list(found) == [code]
    assert detail in found[code]
    assert all((RULES[code].title, RULES[code].why, RULES[code].remedy))


@pytest.mark.parametrize("racks", ["abc", "aabbc", "aabbccd", "abcde"])
def test_a_sound_quorum_has_no_finding(racks: str) -> None:
    """An odd number over three racks or more survives the loss of any rack."""
    assert controller_findings(racks) == {}


def test_an_even_number_of_controllers_is_reported_beside_their_racks() -> None:
    """Half of the controllers in a rack are enough to stop elections."""
    assert controller_findings("aabb") == {
        "KRA313": "4 controllers survive the failure of 1.",
        "KRA315": "of the controllers, a has 2 and b has 2; losing either stops elections.",
    }
    assert controller_findings("aabc") == {
        "KRA313": "4 controllers survive the failure of 1.",
        "KRA316": "of the controllers, a has 2, b has 1 and c has 1; losing a stops elections.",
    }
    assert controller_findings("ab")["KRA313"] == "2 controllers survive the failure of none."


def test_every_placement_is_reported_just_where_a_rack_stops_the_quorum() -> None:
    """Up to five controllers over three racks: a rack is named if fewer than a majority remain."""
    for voters in range(2, 6):
        for racks in product("abc", repeat=voters):
            stops = any(2 * (voters - racks.count(rack)) <= voters for rack in "abc")
            found = controller_findings(list(racks)).keys() & {"KRA314", "KRA315", "KRA316"}
            assert len(found) == stops


def test_unknown_controllers_have_no_finding_about_racks() -> None:
    """Their number is judged without racks; a quorum in the brokers' only rack is not judged."""
    assert controller_findings(["a", "a", None]) == {}
    assert list(controller_findings([None] * 4)) == ["KRA313"]
    one_rack = Cluster({1: "a", 2: "a"}, controllers={1: "a", 2: "a", 3: "a"})
    assert list(findings_of(one_rack)) == []


@pytest.mark.parametrize(
    ("mode", "session", "lag", "found"),
    [
        ("kraft", 9_000, 30_000, ""),
        ("kraft", 29_999, 30_000, ""),
        ("kraft", 30_000, 30_000, "broker.session.timeout.ms is 30000, "),
        ("kraft", 60_000, 30_000, "broker.session.timeout.ms is 60000, "),
        ("zookeeper", 18_000, 10_000, "zookeeper.session.timeout.ms is 18000, "),
        ("zookeeper", 18_000, 30_000, ""),
    ],
)
def test_the_controller_is_to_notice_a_dead_broker_first(
    mode: str, session: int, lag: int, found: str
) -> None:
    """KIP-537: the lag time is longer than the session timeout; of the mode in use, where known."""
    used, other = ("broker", "zookeeper") if mode == "kraft" else ("zookeeper", "broker")
    settings = {
        f"{used}.session.timeout.ms": Setting(str(session), "STATIC_BROKER_CONFIG"),
        f"{other}.session.timeout.ms": Setting("99999999", "STATIC_BROKER_CONFIG"),
        "replica.lag.time.max.ms": Setting(str(lag), "STATIC_BROKER_CONFIG"),
    }
    racks: dict[int, str | None] = {1: "a", 2: "b", 3: "c"}
    observed = Observed(mode=mode, broker_settings=dict.fromkeys(racks, settings))
    controllers = racks if mode == "kraft" else None
    told = list(findings_of(Cluster(racks, controllers=controllers, observed=observed)))
    assert [f.code for f in told] == ["KRA305"] * bool(found)
    assert all(f.detail == f"{found}replica.lag.time.max.ms {lag}." for f in told)
    assert not list(findings_of(Cluster(racks, controllers=controllers)))


def test_findings_about_controllers_reach_the_audit_and_the_recommendation() -> None:
    """Both check the cluster."""
    cluster = Cluster(SIX, (with_min_isr(2),), controllers={1: "a", 4: "a", 2: "b"})
    found = audit(cluster, CARD, kafka_version="4.1").findings
    assert "KRA315" in {f.code for f in found}
    assert "KRA315" in {f.code for f in recommend(cluster, CARD).findings}


PRODUCERS = [
    ("KRA401", {"delivery_timeout_ms": 9_000, "request_timeout_ms": 5_000}),
    ("KRA403", {"retries": 0}),
    ("KRA404", {"acks": 1}),
    ("KRA405", {"enable_idempotence": False}),
]


@pytest.mark.parametrize(("code", "settings"), PRODUCERS)
def test_producer_findings(code: str, settings: dict[str, object]) -> None:
    """Each finding about a producer appears where it applies."""
    config = Config(**{"acks": "all", **settings})
    assert code in {finding.code for finding in check_producer(config, CARD)}


def test_every_rule_has_an_example() -> None:
    """Every rule has an example here or in a test of its own, and codes are in their range."""
    shown = {code for code, _ in (*TOPICS, *CLUSTERS, *PRODUCERS)}
    shown |= {"KRA304", "KRA305", "KRA312", "KRA318", "KRA402", "KRA501"}
    shown |= {"KRA207", "KRA208"}  # in test_created_topics.py
    shown |= {code for code, _, _ in CONTROLLERS}
    assert shown == set(RULES)
    assert all(rule.code == code for code, rule in RULES.items())


def test_partitions_are_counted_and_named() -> None:
    """A finding about some partitions says how many of all, and which."""
    topic = with_min_isr(2, partition(0), partition(1, leader=None), partition(2, leader=None))
    cluster = Cluster(SIX, (topic,))
    (found,) = findings_of_topic(topic, cluster)
    assert found.partitions == (1, 2)
    assert str(found) == "KRA104 t: 2 of 3 partitions without a leader."
    data = found.to_dict()
    assert (data["weight"], data["topic"], data["partitions"]) == ("broken", "t", [1, 2])
    assert replace(found, topic="").to_dict()["topic"] is None


@pytest.mark.parametrize("limit", [None, 1e-9])
def test_finding_and_file_agree_on_the_delivery_timeout(limit: float | None) -> None:
    """The finding names the file's delivery.timeout.ms, and what longer ones save.

    Without a limit on records given up the default stands; with one that it misses, it does not.
    """
    card = load_model("three_az_cloud")
    goals = Goals(records_refused_per_year=limit)
    advice = recommend(Cluster.uniform(3, 3), card, goals=goals)
    recommended = advice.best.config.delivery_timeout_ms
    assert (recommended == 120_000) == (limit is None)
    told = [found for found in advice.findings if found.code == "KRA402"]
    assert len(told) == (limit is not None)
    assert f"\ndelivery.timeout.ms={recommended}\n" in advice.files()["producer.properties"]
    if limit is None:
        # 0.0005 % of the records, where the goals accept a hundredth of a per cent.
        return
    assert f"is {recommended // 1000:,} s: " in told[0].detail
    assert " failed sends a year, " in told[0].detail
    assert "Raise" not in told[0].rule.remedy
    alike = [c for c in advice.choices if c.name == advice.best.name]
    assert len(alike) == 3
    for choice in alike:
        given_up = significant(choice.reliability.records_refused_per_year)
        waited = f"{choice.config.delivery_timeout_ms / 1000:,g} s"
        assert f"{given_up} after {waited}" in told[0].detail


def timeout_words(minutes: float, goals: Goals, **settings: object) -> list[str]:
    """KRA402 for two replicas that must both be in sync, while one crashes a hundred times a year.

    Their writes stop for the length of every crash.
    """
    card = FailureModel.from_dict({"broker": {"crash": {"per_year": 50, "minutes": minutes}}})
    config = Config(replication_factor=2, min_insync_replicas=2, acks="all", **settings)
    result = evaluate(Cluster(SIX), config, card, Workload(partitions=1, records_per_second=1.0))
    return [found.detail for found in check_delivery_timeout(result, goals)]


def test_the_delivery_timeout_is_compared_with_the_outages_of_the_setting() -> None:
    """An hour without writes outlasts two minutes, ten seconds do not; goals say what is much.

    Exponential outages: the share of what is written during them that still has more than the
    timeout to wait is exp(-timeout / mean), 97 % here.
    """
    (told,) = timeout_words(60.0, Goals())
    assert "delivery.timeout.ms is 120 s: " in told
    assert "failed sends a year, 97 % of those made while writes are refused" in told
    # A hundred hours a year at a record a second.
    (given_up,) = [word for word in told.split() if word.endswith("0") and "," in word]
    assert float(given_up.replace(",", "")) == pytest.approx(360_000 * 0.967, rel=0.03)
    assert timeout_words(1.0 / 6.0, Goals(write_unavailability=1e-9)) == []
    assert timeout_words(60.0, Goals(write_unavailability=0.5)) == []
    assert timeout_words(60.0, Goals(write_unavailability=0.5, records_refused_per_year=1e3))
    assert timeout_words(60.0, Goals(records_refused_per_year=1e9)) == []
    assert timeout_words(60.0, Goals(), retries=0) != []


def test_values_are_those_of_the_partitions_that_have_them() -> None:
    """Where replication factors differ, each finding names its own partitions and values."""
    mixed = with_min_isr(2, partition(0), partition(1, (1, 2)), partition(2, (3,)))
    cluster = Cluster(SIX, (mixed,))
    found = {f.code: f for f in findings_of_topic(mixed, cluster)}
    assert found["KRA102"].detail == "in 1 of 3 partitions min ISR and RF are both 2."
    assert found["KRA102"].partitions == (1,)
    assert found["KRA204"].partitions == (2,)
    # Kafka takes min ISR 2 for 1 there, so nothing is refused.
    assert "KRA106" not in found
    above = with_min_isr(4)
    said = {f.code: f.detail for f in findings_of_topic(above, cluster)}
    assert said["KRA102"] == "min ISR and RF are both 3 (min ISR 4 counts as 3)."
    # One less than two replicas would be the setting that loses records.
    assert "add a third one first" in RULES["KRA102"].remedy


def test_a_min_isr_of_all_synchronous_replicas_is_kept_where_observers_may_be_promoted() -> None:
    """The decision weighs no other setting there, and the finding must not advise one either."""
    observed = with_min_isr(2, replace(partition(0, (1, 2)), observers=(3, 4)))
    found = {f.code: f for f in findings_of_topic(observed, Cluster(SIX, (observed,)))}
    assert found["KRA102"].remedy.startswith("Keep it if the placement constraints promote")
    assert "one less" not in found["KRA102"].remedy


def test_remedies_name_commands_that_can_be_run() -> None:
    """Tools take an address, moves are listed before they are verified, voters can be changed."""
    assert "kafka-reassign-partitions.sh --bootstrap-server $BS --list" in RULES["KRA109"].remedy
    unclean = "--bootstrap-server $BS --election-type unclean --topic T --partition P"
    assert unclean in RULES["KRA312"].remedy
    for code, _, _ in CONTROLLERS:
        assert "kafka-metadata-quorum.sh --bootstrap-server $BS describe" in RULES[code].remedy
        assert "add-controller and remove-controller" in RULES[code].remedy


def test_losing_the_controllers_stops_writes_to_partitions_led_elsewhere() -> None:
    """Without a controller the ISR keeps the lost replicas, and acks=all waits for them."""
    for code in ("KRA314", "KRA315", "KRA316"):
        assert (
            "acks=all writes time out on every other partition with an in-sync replica in it"
            in (RULES[code].why)
        )
