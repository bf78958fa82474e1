"""What a description does not show of the controller: it is said, and can be stated."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import advisor
from advisor.__main__ import main
from advisor.advice.situation import controller_note, controller_of, version_of
from advisor.errors import AdvisorError
from advisor.protocol.rules.versions import NEWEST_KNOWN

CARD = advisor.FailureModel.from_dict({"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}})
TOPIC = (
    "Topic: t\tTopicId: x\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: \n"
    "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: {isr}{columns}\n"
)
ELR_COLUMNS = "\tElr: {elr}\tLastKnownElr: "


def described(elr: str | None = "", isr: str = "1,2,3") -> advisor.Cluster:
    columns = "" if elr is None else ELR_COLUMNS.format(elr=elr)
    return replace(advisor.load_cluster(TOPIC.format(isr=isr, columns=columns)), source="d.txt")


def test_the_columns_do_not_say_that_eligible_leader_replicas_are_on() -> None:
    """3.8 and newer print them; only a partition that has such replicas shows that they are on."""
    cluster = described()
    version, note = version_of(cluster)
    assert f"kafka-topics.sh 3.8 and newer, so it is taken as {NEWEST_KNOWN}" in note
    assert controller_of(cluster, version) == {}
    note = controller_note(cluster, version)
    assert f"KIP-966) and KRaft are assumed, as in a new cluster of {NEWEST_KNOWN}" in note
    assert "kafka-features.sh --bootstrap-server $BS describe" in note
    assert "--elr off" in note
    shown = described("2", isr="1,3")
    assert controller_of(shown, "4.4") == {"eligible_leader_replicas": True}
    assert controller_of(shown, "3.9") == {"mode": "kraft"}
    assert controller_note(shown, "4.4") == ""
    assert controller_note(cluster, "3.9") == ""
    assert "--mode zookeeper" in controller_note(described(None), "3.7")
    assert controller_note(cluster, "2.8") == ""
    assert controller_note(advisor.Cluster.uniform(3), "4.4") == ""


def test_what_is_stated_is_used_and_nothing_is_assumed() -> None:
    """Every setting compared and every topic has it; the version is one with that controller."""
    off = replace(described(), eligible_leader_replicas=False)
    for cluster, elr, assumed in ((off, False, False), (described(), True, True)):
        advice, audited = advisor.recommend(cluster, CARD), advisor.audit(cluster, CARD)
        configs = [choice.config for choice in (*advice.choices, audited.topics[0].choice)]
        assert {config.eligible_leader_replicas for config in configs} == {elr}
        for notes in (advice.notes, audited.notes):
            assert any("(KIP-966) and KRaft are assumed" in note for note in notes) is assumed
    zookeeper = replace(described(None), mode="zookeeper")
    assert version_of(zookeeper)[0] == "3.7"
    assert version_of(replace(described(), mode="zookeeper"))[0] == "3.9"
    assert controller_note(zookeeper, "3.7") == ""
    assert advisor.recommend(zookeeper, CARD).best.config.mode == "zookeeper"


def test_the_feature_command_stands_where_they_are_only_assumed() -> None:
    """Off: how to enable them. Assumed: how to check first. Known to be on: nothing."""
    lines = {}
    for elr in (None, True, False):
        advice = advisor.recommend(replace(described(), eligible_leader_replicas=elr), CARD)
        lines[elr] = [line for line in advice.plan.lines if "kafka-features.sh" in line]
    upgrade = "upgrade --feature eligible.leader.replicas.version=1"
    assert [line.endswith(upgrade) for line in lines[None]] == [False, True]
    assert lines[None][0] == "#   kafka-features.sh --bootstrap-server $BS describe"
    assert lines[True] == []
    assert [line.endswith(upgrade) for line in lines[False]] == [True]


def test_columns_without_an_elr_show_brokers_with_zookeeper() -> None:
    """Only KRaft brokers from 3.8 on answer with an ELR; the tool prints N/A for all others."""
    text = TOPIC.format(isr="1,2,3", columns="\tElr: N/A\tLastKnownElr: N/A")
    cluster = advisor.load_cluster(text)
    version, note = version_of(cluster)
    assert version == "3.9"
    assert '"Elr: N/A" of brokers that use ZooKeeper or are older' in note
    assert "of Kafka 2.8 to 3.9 (" in cluster.taken_for
    assert "topic ids of brokers from 2.8 on" in note
    without_ids = advisor.load_cluster(text.replace("TopicId: x\t", ""))
    assert "of Kafka 0.10.0 to 3.9 (" in without_ids.taken_for
    assert "topic id" not in version_of(without_ids)[1]
    assert "taken as 3.9 with ZooKeeper" in note
    assert controller_of(cluster, version) == {"mode": "zookeeper"}
    assert advisor.recommend(cluster, CARD).best.config.mode == "zookeeper"
    kraft = replace(cluster, mode="kraft")
    assert controller_of(kraft, version_of(kraft)[0]) == {"mode": "kraft"}
    assert controller_of(cluster, "4.2") == {}


@pytest.mark.parametrize(
    "stated", [{"mode": "raft"}, {"eligible_leader_replicas": "off"}, {"mode": 3}, {"layout": "9"}]
)
def test_nothing_else_can_be_stated(stated: dict[str, object]) -> None:
    """A typo is an error with the names that there are."""
    with pytest.raises(AdvisorError, match="write"):
        replace(described(), **stated)


def test_files_can_state_it() -> None:
    """TOML and saved clusters; a saved cluster without them has no such keys."""
    text = 'mode = "kraft"\neligible_leader_replicas = false\nbrokers = 3\n'
    cluster = advisor.load_cluster(text)
    assert (cluster.mode, cluster.eligible_leader_replicas) == ("kraft", False)
    again = advisor.load_cluster(json.dumps(cluster.to_dict(), indent=1))
    assert (again.mode, again.eligible_leader_replicas) == ("kraft", False)
    optional = {"mode", "eligible_leader_replicas", "layout"}
    assert not optional & advisor.Cluster.uniform(3).to_dict().keys()


def test_the_command_line_states_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--elr and --mode, for every command that takes a cluster."""
    file = tmp_path / "describe.txt"
    file.write_text(TOPIC.format(isr="1,2,3", columns=ELR_COLUMNS.format(elr="")))
    card = tmp_path / "card.toml"
    ranges = 'per_year = { value = 0.1, low = 0.1, high = 0.1, evidence = "own: test" }\n'
    ranges += 'hours = { value = 12, low = 12, high = 12, evidence = "own: test" }\n'
    card.write_text(f'title = "t"\n[broker.destroyed]\n{ranges}')
    line = ["evaluate", str(file), "--model", str(card)]
    found = {}
    for options in ((), ("--elr", "off"), ("--elr", "on"), ("--mode", "zookeeper")):
        assert main([*line, *options, "--json"]) == 0
        config = json.loads(capsys.readouterr().out)["config"]
        found[options] = (config["mode"], config["eligible_leader_replicas"])
        main([*line, *options])
        assert ("(KIP-966) and KRaft are assumed" in capsys.readouterr().out) is (options == ())
    assert list(found.values()) == [
        ("kraft", True),
        ("kraft", False),
        ("kraft", True),
        ("zookeeper", False),
    ]
    assert main([*line, "--elr", "yes"]) == 2
    assert "write on or off" in capsys.readouterr().err
