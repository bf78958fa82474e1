"""The state of a cluster now, against the simulation that plays the next failure."""

import random
from collections import Counter
from pathlib import Path

import pytest

import advisor
from advisor.__main__ import main
from advisor.advice import Goals, audit, recommend
from advisor.advice.audits.current_state import NextFailure, state_lines
from advisor.cluster import Cluster, Partition, Topic
from advisor.cluster.observed import Observed
from advisor.reliability.failures.failure_model import FailureModel
from read_cluster import state_of

CARD = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 1e-3, "hours": 12}}})
LOOSE = Goals(loss_probability_per_year=1.0, write_unavailability=1.0)
SIX = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}


def topic(name: str, *isrs: tuple[int, ...], least: int = 1, leader: bool = True) -> Topic:
    rows = (Partition(i, isr[0] if leader else None, (1, 2, 3), isr) for i, isr in enumerate(isrs))
    return Topic(name, tuple(rows), {"min.insync.replicas": str(least)})


def said(*topics: Topic, version: str = "4.0") -> tuple[str, ...]:
    return state_lines(state_of(Cluster(SIX, topics), version))


def described(scenario: str) -> Cluster:
    transcript = advisor.play(f"{scenario}describe t\ndescribe u\ndescribe one\n").transcript
    lines = [line[2:] for line in transcript.splitlines() if line.startswith("> ")]
    return advisor.load_cluster("\n".join(lines))


def stopped(cluster: Cluster) -> tuple[set[str], set[str]]:
    """Partitions without a leader, and those below the min ISR, counted from the description."""
    offline, refusing = set(), set()
    for each in cluster.topics:
        for p in each.partitions:
            name = f"{each.name}-{p.index}"
            if p.leader is None:
                offline.add(name)
            elif len(p.isr) < min(each.min_insync_replicas or 1, len(p.replicas)):
                refusing.add(name)
    return offline, refusing


@pytest.mark.parametrize(
    ("kafka", "mode"), [("4.1", "kraft"), ("3.9", "kraft"), ("3.5", "zookeeper")]
)
def test_the_next_failure_is_what_the_simulation_plays(kafka: str, mode: str) -> None:
    """For every broker the partitions that stop are those that the simulated crash stops."""
    draw = random.Random(7)
    worst_seen = Counter[str]()
    for _ in range(6):
        rows = ";".join(",".join(map(str, draw.sample(range(1, 6), 3))) for _ in range(6))
        two = ";".join(",".join(map(str, draw.sample(range(1, 6), 2))) for _ in range(5))
        text = (
            f"cluster brokers=1,2,3,4,5 kafka={kafka} mode={mode}\n"
            f"topic t replicas={rows} min_insync_replicas=2\n"
            f"topic u replicas={two} min_insync_replicas=1\n"
            "topic one replicas=1;2;3;4;5\n"
        )
        down = draw.sample(range(1, 6), draw.choice((1, 2)))
        text += "".join(f"kill {broker}\n" for broker in down)
        before = described(text)
        state = state_of(before, kafka)
        assert state.missing == tuple(sorted(down))
        assert (set(state.offline), set(state.under_min_isr)) == stopped(before)
        harms = {}
        for broker in sorted(set(range(1, 6)) - set(down)):
            now, then = stopped(before), stopped(described(f"{text}kill {broker}\n"))
            offline = len(then[0] - now[0])
            refusing = len(then[1] - now[1] - now[0])
            harms[broker] = (offline, refusing)
        worst = state.worst_next
        assert worst is not None
        assert (worst.offline, worst.refusing) == harms[worst.broker]
        assert harms[worst.broker] == max(harms.values())
        worst_seen["offline"] += worst.offline
        worst_seen["refusing"] += worst.refusing
    assert min(worst_seen.values()) > 0


def test_one_in_sync_replica_differs_from_two() -> None:
    """Of three replicas one in sync is worse than two: finding, exit code, order, and words."""
    one, two = topic("one", (1,)), topic("two", (1, 2))
    fine = audit(Cluster(SIX, (two,)), CARD, goals=LOOSE)
    bad = audit(Cluster(SIX, (one,)), CARD, goals=LOOSE)
    assert fine.ok
    assert not bad.ok
    assert "KRA110" in {f.code for f in bad.findings} - {f.code for f in fine.findings}
    assert bad.topics[0].broken == ("1 of 1 partition with one in-sync replica left",)
    assert fine.now != bad.now
    assert fine.explain() != bad.explain()
    both = audit(Cluster(SIX, (two, one)), CARD, goals=LOOSE)
    assert [t.topic.name for t in both.topics] == ["one", "two"]


def test_what_has_no_leader_comes_before_what_refuses_and_what_has_one_copy() -> None:
    """No leader, then writes refused with one copy, then writes refused, then one copy."""
    four = (
        topic("copy", (1,)),
        topic("refuses", (1, 2), least=3),
        topic("both", (1,), least=2),
        topic("dead", (1,), leader=False),
        topic("good", (1, 2, 3)),
    )
    found = audit(Cluster(SIX, four), CARD, goals=LOOSE)
    assert [t.topic.name for t in found.topics] == ["dead", "both", "refuses", "copy", "good"]


def test_each_partition_is_counted_by_kafkas_own_rules() -> None:
    """Offline, below min ISR, at min ISR and one replica left, as kafka-topics.sh lists them."""
    mixed = topic("m", (1, 2, 3), (1, 2), (1,), least=2)
    lone = topic("lone", (1, 2), (1,))
    dead = topic("dead", (2,), leader=False)
    full = topic("full", (1, 2, 3), least=3)
    state = state_of(Cluster(SIX, (mixed, lone, dead, full)), "4.0")
    assert state.partitions == 7
    assert state.offline == ("dead-0",)
    assert state.under_min_isr == ("m-2",)
    # What is in sync and at its min ISR by design is a finding, and no news.
    assert state.at_min_isr == ("m-1", "lone-1")
    assert state.one_left == ("m-2", "lone-1")
    assert state.out_of_sync == ("m-1", "m-2", "lone-0", "lone-1")


def test_all_in_sync_says_nothing() -> None:
    """Where every replica is in sync there is no line, and JSON says so."""
    state = state_of(Cluster(SIX, (topic("t", (1, 2, 3)),)), "4.0")
    assert state.in_sync
    assert state_lines(state) == ()
    assert state.worst_next is None
    assert state.to_dict()["in_sync"] is True


def test_a_last_copy_goes_with_its_disk_only_with_min_isr_one() -> None:
    """With min ISR 2 writes stopped at one replica, so that an older copy has all acknowledged."""
    lone = state_of(Cluster(SIX, (topic("t", (1,)),)), "4.0").worst_next
    assert lone == NextFailure(1, offline=1, last_copies=1)
    kept = state_of(Cluster(SIX, (topic("t", (1,), least=2),)), "4.0").worst_next
    assert kept == NextFailure(1, offline=1)


def test_an_unclean_election_counts_as_a_loss() -> None:
    """With unclean election on, the next failure elects a replica that lacks records."""
    text = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
    rows = (
        Partition(0, 1, (1, 2, 3), (1,)),
        Partition(1, 2, (2, 3, 1), (2, 3, 1)),
    )
    state = state_of(Cluster(SIX, (Topic("t", rows, text),)), "4.0")
    assert state.worst_next == NextFailure(1, unclean=1, last_copies=1)
    assert "1 partition may lose acknowledged records" in state_lines(state)[1]


def test_eligible_leader_replicas_take_over() -> None:
    """With a replica in the ELR the next failure of the last in-sync one stops only writes."""
    row = Partition(0, 1, (1, 2, 3), (1,), elr=(2,), last_known_elr=())
    config = {"min.insync.replicas": "2"}
    up = Partition(1, 2, (2, 4, 5), (2, 4, 5), elr=(), last_known_elr=())
    state = state_of(Cluster(SIX, (Topic("t", (row, up), config),)), "4.1")
    assert state.under_min_isr == ("t-0",)
    assert state.worst_next is None
    assert "no further partition stops" in state_lines(state)[1]


def test_with_all_offline_nothing_is_said_of_the_next_failure() -> None:
    """A cluster that has stopped is told what to start, not that nothing more can stop."""
    rows = tuple(Partition(n, None, (1, 2, 3), (), elr=(), last_known_elr=(1,)) for n in range(2))
    lines = state_lines(state_of(Cluster(SIX, (Topic("t", rows, {}),)), "4.1"))
    assert [line.split(":")[0] for line in lines] == ["Now", "First"]


def test_what_to_do_first_names_a_broker_and_a_command() -> None:
    """The broker that helps most comes first, with the command that lists what waits for it."""
    offline = said(topic("dead", (2,), (3,), (3,), leader=False), topic("t", (1,)))
    assert offline[0].startswith(
        "Now: brokers 2 and 3 are not serving replicas (down, or with failed log directories); "
    )
    assert offline[2].startswith(
        "First: bring back broker 3 (if it is up, see its log), which offline partitions wait for"
    )
    assert offline[2].endswith(
        "kafka-topics.sh --bootstrap-server $BS --describe --unavailable-partitions"
    )
    refused = said(topic("t", (1,), least=2), topic("u", (1, 2), (2, 1), least=2))
    assert "its log); leave min.insync.replicas as it is" in refused[2]
    assert refused[2].endswith("--under-min-isr-partitions")
    old = said(topic("t", (1,), least=2), version="2.1")
    assert old[2].endswith(
        "kafka-topics.sh --zookeeper $ZK --describe --under-replicated-partitions"
    )
    behind = said(topic("t", (1, 2), (1, 2, 3)))
    assert "no broker is missing" in behind[0]
    assert "First: find out why broker 3 is behind" in behind[2]


def shown_by_confluent(*more: str) -> Cluster:
    """A topic on brokers 1, 2 and 3 as Confluent's tool prints it, and one that is in sync."""
    lines = [f"Topic: t\tPartition: {number}\t{rest}" for number, rest in enumerate(more)]
    lines += ["Topic: u\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tOffline: "]
    return advisor.load_cluster("\n".join(lines) + "\n")


def test_an_offline_replica_of_a_broker_that_is_in_sync_elsewhere_is_a_failed_directory() -> None:
    """Broker 2 runs: its log directory is repaired, and nobody brings the broker back."""
    cluster = shown_by_confluent("Leader: 1\tReplicas: 1,2,3\tIsr: 1,3\tOffline: 2")
    state = state_of(cluster, "3.7")
    assert (state.missing, state.presence.failed_directories) == ((), (2,))
    lines = state_lines(state)
    assert "broker 2 runs, but not all of its log directories work" in lines[0]
    assert lines[2].startswith("First: repair the failed log directory of broker 2")
    assert state.to_dict()["brokers_with_failed_directories"] == [2]


def test_an_offline_replica_of_a_broker_that_is_in_sync_nowhere_may_be_down() -> None:
    """The column does not say which: the broker, or all of its directories."""
    cluster = shown_by_confluent("Leader: 1\tReplicas: 1,2,3\tIsr: 1,2\tOffline: 3")
    state = state_of(cluster, "3.7")
    assert (state.presence.offline, state.presence.unknown) == ((3,), ())
    assert state.start_first == 3
    assert "First: bring back broker 3 (if it is up" in state_lines(state)[2]


def test_the_last_isr_of_an_offline_partition_is_not_contradicted() -> None:
    """As in https://kugarocks.com: replica 100 alone, in the ISR, and no leader."""
    text = "".join(
        f"Topic: t\tPartition: {n}\tLeader: {leader}\tReplicas: {b}\tIsr: {b}\n"
        for n, (leader, b) in enumerate([("0", 0), ("none", 100), ("0", 0)])
    )
    state = state_of(advisor.load_cluster(text), "3.7")
    assert (state.presence.offline, state.presence.unknown) == ((100,), ())
    lines = state_lines(state)
    assert "no ISR" not in " ".join(lines)
    assert lines[2].startswith("First: bring back broker 100")


def test_observers_are_neither_behind_nor_missing() -> None:
    """As in https://github.com/confluentinc/examples/pull/402: two replicas and two observers."""
    healthy = "Leader: 1\tReplicas: 1,2,3,4\tIsr: 1,2\tOffline: \tObservers: 3,4"
    state = state_of(shown_by_confluent(healthy), "3.7")
    assert state.in_sync
    assert state_lines(state) == ()
    behind = healthy.replace("Isr: 1,2", "Isr: 1")
    state = state_of(shown_by_confluent(behind), "3.7")
    assert (state.out_of_sync, state.missing) == (("t-0",), ())
    # A promoted observer is in the ISR: it counts as a replica that acknowledges.
    promoted = healthy.replace("Isr: 1,2", "Isr: 1,2,3")
    (partition,) = shown_by_confluent(promoted).topic("t").partitions
    assert (partition.replicas, partition.observers) == ((1, 2, 3), (4,))


def test_of_a_part_nothing_is_said_of_brokers_that_may_be_in_sync_elsewhere() -> None:
    """The same line among others, and alone."""
    behind = "Topic: t\tPartition: {}\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2\n"
    in_sync = "Topic: u\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n"
    for text, words in (
        (behind.format(0) + in_sync, "bring back broker 3"),
        (behind.format(0), "see whether broker 3 runs"),
        (behind.format(7) + in_sync, "see whether broker 3 runs"),
    ):
        assert f"First: {words}" in state_lines(state_of(advisor.load_cluster(text), "4.1"))[2]


def test_a_broker_that_may_lead_and_does_not_has_a_failed_disk_or_no_controller() -> None:
    """An in-sync replica that is up and was not elected: its log directory, or the controllers."""
    lines = said(topic("dead", (2,), leader=False), topic("t", (1, 2, 3)))
    assert "First: find out why broker 2 was not elected" in lines[2]
    assert "failed log directory" in lines[2]
    assert lines[2].endswith("kafka-metadata-quorum.sh --bootstrap-server $BS describe --status")
    zookeeper = said(topic("dead", (2,), leader=False), topic("t", (1, 2, 3)), version="2.8")
    assert zookeeper[2].endswith("zookeeper-shell.sh $ZK get /controller")


OWN = '{ value = 0.1, low = 0.1, high = 0.1, evidence = "own: a test" }'
PUBLISHED = "data/clusters/testp3-3-broker-1-killed.txt"


def test_audit_recommend_and_report_begin_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text, JSON and HTML of audit, recommend and report say the state first."""
    monkeypatch.setattr("advisor.catalog.model_names", list)  # no card to switch to
    cluster = advisor.load_cluster(PUBLISHED)
    first = state_lines(state_of(cluster, "3.5"))[0]
    assert first == (
        "Now: brokers 1 and 2 are in no ISR of what is shown (down, or behind there); of 5 "
        "partitions 5 have one in-sync replica left."
    )
    card = tmp_path / "card.toml"
    card.write_text(f"[broker.destroyed]\nper_year = {OWN}\nhours = {OWN}\n")
    for verb in ("audit", "recommend"):
        arguments = [verb, PUBLISHED, "--model", str(card), "--kafka-version", "3.5"]
        assert main(arguments) == (verb == "audit")
        said_first, *others = capsys.readouterr().out.split("\n\n")
        assert said_first.startswith("Broken now: testp3: 5 of 5 partitions with one in-sync")
        assert "  Now: brokers 1 and 2 are in no ISR of what is" in said_first
        assert "  First: see whether broker 1 runs, " in said_first
        assert not any("broker 1" in block for block in others)
        assert main([*arguments, "--explain"]) == (verb == "audit")
        assert first in " ".join(capsys.readouterr().out.split())
    answer = recommend(cluster, CARD, kafka_version="3.5")
    for result in (answer, audit(cluster, CARD, kafka_version="3.5")):
        now = result.to_dict()["now"]
        assert now["said"][0] == first
        assert now["brokers_missing"] == [1, 2]
        assert first in result._repr_html_()
        assert result.explain().startswith(first)
        assert repr(result).startswith(first)
    page = answer.report(tmp_path / "report.html").read_text()
    assert page.index(first) < page.index('<h1 class="av-headline">')


def test_commands_have_the_addresses_of_the_cluster_that_was_read() -> None:
    """The shell variables of a plan's scripts are set nowhere when the state is shown."""
    low = topic("t", (1,), (2,), least=2)
    observed = Observed(
        mode="kraft", bootstrap_servers="b1:9092,b2:9092", command_config="my client.properties"
    )
    state = state_of(Cluster(SIX, (low,), observed=observed), "4.1")
    line = state_lines(state)[-1]
    assert "--bootstrap-server b1:9092,b2:9092 --command-config 'my client.properties' " in line
    assert "$" not in line
    assert "--bootstrap-server $BS" in said(low)[-1]


def test_what_a_running_cluster_reports_is_said_as_proven() -> None:
    """A broker that is fenced is down; one that runs and is in no ISR is behind."""
    lagging = topic("t", (1, 2), least=2)
    for down, seen, do in (
        ((3,), "broker 3 is down", "bring back broker 3;"),
        ((), "broker 3 is running, but in no ISR", "find out why broker 3 is behind"),
    ):
        observed = Observed(mode="kraft", down=down)
        cluster = Cluster(SIX, (lagging,), observed=observed)
        state = state_of(cluster, "4.1")
        assert state_lines(state)[0].startswith(f"Now: {seen}; of 1 partition ")
        assert f"First: {do}" in state_lines(state)[2]
        assert state.to_dict()["brokers_down"] == list(down)
        details = [f.detail for f in audit(cluster, CARD).findings if f.code == "KRA318"]
        assert details == [f"{seen}."]


def test_a_missing_broker_is_a_finding_that_says_how_to_replace_it() -> None:
    """Kafka moves no replica by itself, so audit and recommendation say what to do."""
    cluster = Cluster(SIX, (topic("t", (1, 2), least=2),))
    for found in (audit(cluster, CARD).findings, recommend(cluster, CARD).findings):
        (told,) = [each for each in found if each.code == "KRA318"]
        assert told.detail == "broker 3 is in no ISR (down, or behind everywhere)."
        assert "with the same node.id" in told.rule.remedy
    whole = Cluster(SIX, (topic("t", (1, 2, 3), least=2),))
    assert "KRA318" not in {each.code for each in audit(whole, CARD).findings}


def test_a_reassignment_left_half_done_is_said_though_all_is_in_sync() -> None:
    """Four replicas of one partition and three of another: finish or undo; not while it runs."""
    three = Partition(0, 1, (1, 2, 3), (1, 2, 3))
    four = Partition(1, 1, (1, 2, 3, 4), (1, 2, 3, 4))
    moving = Partition(1, 1, (1, 2, 3, 4, 5), (1, 2, 3, 4), adding=(5,))
    (line,) = said(Topic("t", (three, four)))
    assert line == (
        "Half done: partitions of t differ in their number of replicas; finish or undo the "
        "reassignment."
    )
    assert said(topic("u", (1, 2), least=1), Topic("t", (three, four)))[-1] == line
    assert not any(text.startswith("Half done") for text in said(Topic("t", (three, moving))))
