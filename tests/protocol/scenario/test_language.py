"""The scenario language: syntax, output and error messages."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import advisor
from advisor.errors import AdvisorError, InputError
from advisor.protocol.scenario.language import GRAMMAR, parse
from advisor.protocol.scenario.options import boolean
from advisor.protocol.scenario.player import Play, play, rewrite

HEAD = "cluster brokers=3 kafka=3.9\ntopic t replicas=1,2,3 min_insync_replicas=2\n"


@pytest.mark.parametrize(
    ("text", "is_on"), [("TRUE", True), ("True", True), ("true", True), ("FALSE", False)]
)
def test_switches_are_read_in_any_case(text: str, is_on: bool) -> None:
    """As Kafka reads a boolean."""
    assert boolean("unclean_leader_election_enable", text) is is_on


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("produec t-0 1", "line 3: unknown verb 'produec'; did you mean 'produce'?"),
        ("frobnicate", "line 3: unknown verb 'frobnicate'; known are "),
        ("kill 7", "line 3: unknown broker '7'; brokers are 1, 2, 3"),
        ("kill one", "line 3: unknown broker 'one'"),
        ("kill", "line 3: expected 'kill BROKER', found 'kill'"),
        ("kill 1 2", "line 3: expected 'kill BROKER', found 'kill 1 2'"),
        ("state u-0", "line 3: unknown topic 'u'; known are t"),
        ("state t-4", "line 3: unknown partition 't-4'; topic 't' has partitions 0 to 0"),
        ("state t", "line 3: expected a partition such as 't1-0', found 't'"),
        ("produce t-0 none", "line 3: expected a number of records"),
        ("produce t-0 0", "line 3: expected a number of records"),
        ("produce t-0 1 acks=2", "line 3: acks=2 is not a Kafka setting"),
        ("produce t-0 1 akcs=all", "line 3: unknown option 'akcs'; did you mean 'acks'?"),
        ("produce t-0 1 acks=all acks=1", "line 3: option 'acks' is given twice"),
        ("produce t-0 1 acks=", "line 3: option 'acks' has no value"),
        ("power-off 1 kepp=3", "line 3: unknown option 'kepp'; did you mean 'keep'?"),
        ("power-off 1 keep=-3", "line 3: expected keep= a number of records"),
        ("start 1", "line 3: broker 1 is already running"),
        ("elect clean t-0", "line 3: expected 'elect preferred|unclean TOPIC-PARTITION'"),
        ("reassign t-0 1,1", "line 3: a broker is named twice in '1,1'"),
        ("alter t", "line 3: expected 'alter TOPIC key=value'"),
        ("alter t retention_ms=1", "line 3: unknown option 'retention_ms'"),
        ("alter t partitions=1", "line 3: topic 't' has 1 partitions; a topic only grows"),
        ("wait soon", "line 3: expected a duration such as '5s' or '500ms', found 'soon'"),
        ("topic u replicas=1,2;3", "line 3: expected as many replicas for each partition"),
        ("topic u replicas=1,9", "line 3: unknown broker '9'"),
        ("topic a/b replicas=1", "line 3: 'a/b' is not a topic name"),
        ("topic u partitions=1 replication_factor=9", "line 3: "),
        ("cluster brokers=3", "line 3: expected one 'cluster' command, found a second"),
        ("limp", "line 3: expected 'limp BROKER', found 'limp'"),
        ("limp 9", "line 3: unknown broker '9'"),
        ("wipe 1,1", "line 3: a broker is named twice in '1,1'"),
        ("wipe 1, 2", "line 3: expected 'wipe BROKER,BROKER'"),
        ("start-quorum", "line 3: the controller quorum is already running"),
        ("stop-quorum\nstop-quorum", "line 4: the controller quorum is already stopped"),
        ("stop-quorum\nkill-controller", "line 4: the controller quorum is stopped; start it"),
        ("stop-qorum", "line 3: unknown verb 'stop-qorum'; did you mean 'stop-quorum'?"),
        ("fence 1", "line 3: 'fence' needs a cluster with only=controller"),
        ("!", "line 3: expected a command after '!'"),
    ],
)
def test_a_bad_command_names_its_line_and_what_was_expected(line, message):
    """One sentence: the line, what was found, what was expected."""
    with pytest.raises(InputError) as error:
        play(HEAD + line)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n", "line 1: expected a command"),
        ("# nothing\n\n", "line 1: expected a command"),
        ("> acked 1\n", "line 1: expected a command before the first '>' line"),
        ("kill 1\n", "line 1: expected 'cluster brokers=...' first, found 'kill'"),
        ("cluster kafka=3.9\n", "line 1: expected brokers=N"),
        ("cluster brokers=0\n", "line 1: expected brokers=, a whole number from 1"),
        ("cluster brokers=1,1\n", "line 1: expected different broker ids"),
        ("cluster brokers=2 racks=a\n", "line 1: expected racks= with 2 names"),
        ("cluster brokers=2 kafka=nine\n", "line 1: kafka_version='nine' is not a Kafka version"),
        ("cluster brokers=2 kafka=4.0 mode=zookeeper\n", "line 1: Kafka 4.0 has no ZooKeeper"),
        ("cluster brokers=2 mode=raft\n", "line 1: mode='raft' is not a controller mode"),
        ("cluster brokers=2 kfaka=3.9\n", "line 1: unknown option 'kfaka'; did you mean 'kafka'?"),
        ("cluster brokers=2 only=brokers\n", "line 1: expected only=controller"),
    ],
)
def test_a_bad_beginning_is_named_too(text, message):
    """The ``cluster`` command is checked as strictly as the others."""
    with pytest.raises(InputError) as error:
        play(text)
    assert str(error.value).startswith(message)


def test_elr_of_3_9_needs_a_controller_only_cluster():
    """Kafka 3.9 has ELR only in its own tests; for a real cluster of 3.9 it is an error."""
    play("cluster brokers=3 kafka=3.9 only=controller eligible_leader_replicas=true\n")
    with pytest.raises(InputError, match="line 1: eligible_leader_replicas needs KRaft"):
        play("cluster brokers=3 kafka=3.9 eligible_leader_replicas=true\n")


@pytest.mark.parametrize("command", ["limp 1", "recover 1", "wipe 1,2", "stop-quorum"])
def test_new_faults_need_brokers_too(command):
    """In a controller-only cluster they are errors."""
    with pytest.raises(InputError, match=rf"line 2: '{command.split()[0]}' needs brokers"):
        play(f"cluster brokers=3 only=controller\n{command}\n")


def test_a_refused_alteration_changes_no_setting():
    """What the controller did not take is not shown either."""
    text = HEAD + "stop-quorum\nalter t min_insync_replicas=1\nstart-quorum\ndescribe t\n"
    assert "> REQUEST_TIMED_OUT" in play(text).transcript
    assert "min.insync.replicas=1" not in play(text).transcript


def test_brokers_are_not_driven_in_a_controller_only_cluster():
    """Commands that need a broker are errors there."""
    text = "cluster brokers=3 only=controller\ntopic t replicas=1,2,3\nproduce t-0 1\n"
    with pytest.raises(InputError, match=r"line 3: 'produce' needs brokers"):
        play(text)


def test_killing_a_stopped_broker_is_an_error():
    """The error names the line."""
    with pytest.raises(InputError, match="line 4: broker 1 is not running"):
        play(HEAD + "kill 1\nkill 1\n")


def test_differences_name_the_line_the_expectation_and_what_was_printed():
    """A difference is reported as data, not as an exception."""
    played = play(HEAD + "produce t-0 3 acks=all\n> acked 4\n")
    assert not played.ok
    assert played.differences == ((4, "acked 4", "acked 3"),)
    assert repr(played).startswith("Play(1 differences; line 4: expected 'acked 4'")


def test_missing_and_surplus_lines_are_differences():
    """Expected lines that are not printed, and printed lines that are not expected."""
    silent = play(HEAD + "kill 3\n> something\n")
    assert silent.differences == ((4, "something", ""),)
    text = HEAD + "describe t\n> Topic: t TopicId: x\n"
    assert len(play(text).differences) == 2


def test_a_command_without_expectations_may_print_anything():
    """A command without expected lines is not compared."""
    assert play(HEAD + "produce t-0 3 acks=all\n").ok


def test_white_space_is_normalised():
    """An editor that replaces tabs by blanks does not break a scenario."""
    assert play(HEAD + "state t-0\n>   leader=1  epoch=0\treplicas=1,2,3 isr=1,2,3 elr= hw=0\n").ok


def test_rewrite_fills_expectations_in_and_keeps_comments():
    """Comments, blank lines and commands stay; only the expected output changes."""
    text = "# a story\n\n" + HEAD + "produce t-0 3 acks=all  # three\n> acked 9\n\n# end\n"
    assert rewrite(text) == (
        "# a story\n\n" + HEAD + "produce t-0 3 acks=all  # three\n> acked 3\n\n# end\n"
    )
    assert rewrite(rewrite(text)) == rewrite(text)


def test_a_path_or_a_text_may_be_given(tmp_path: Path):
    """A file and its text give the same result."""
    path = tmp_path / "story.txt"
    path.write_text(HEAD + "state t-0\n", encoding="utf-8")
    assert play(path) == play(str(path)) == play(HEAD + "state t-0\n")


@pytest.mark.parametrize("text", ["cluster brokers=1", "# One broker\ncluster brokers=1\n"])
def test_a_text_is_told_from_a_path(text):
    """By a line break, or by its first command."""
    assert play(text).ok


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_an_unreadable_file_is_one_sentence(tmp_path: Path, content):
    """A missing file, and one that is not text."""
    path = tmp_path / "story.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"scenario file '.* cannot be read"):
        play(path)


def test_other_engines_are_refused():
    """Engines are ``model`` and ``kafka``; any other name is an error that lists both."""
    with pytest.raises(InputError, match="no engine='mock'; expected one of model, kafka"):
        advisor.play(HEAD, engine="mock")


def test_a_play_is_frozen():
    """Results do not change."""
    played = play(HEAD)
    assert isinstance(played, Play)
    with pytest.raises(FrozenInstanceError):
        setattr(played, next(iter(vars(played))), "")


def test_every_verb_of_the_language_is_parsed_and_run():
    """Every verb of the grammar has an implementation."""
    from advisor.protocol.scenario.commands import _VERBS

    assert set(GRAMMAR) == set(_VERBS) | {"cluster"}


def test_dots_and_dashes_of_option_names_are_underscores():
    """Kafka's dotted names are accepted."""
    command = parse("cluster brokers=1 min.insync.replicas=2\n").commands[0]
    assert command.options == {"brokers": "1", "min_insync_replicas": "2"}


def test_without_waiting_the_next_command_runs_before_detection():
    """After !kill the registration still has the dead leader; a waiting query sees the new one."""
    played = play(HEAD + "!kill 1\n!state t-0\nstate t-0\n")
    lines = played.transcript.splitlines()
    assert lines[-3] == "> leader=1 epoch=0 replicas=1,2,3 isr=1,2,3 elr= hw=-"
    assert lines[-1] == "> leader=2 epoch=1 replicas=1,2,3 isr=2,3 elr= hw=0"


@pytest.mark.parametrize(
    "text",
    ["cluster brokers=99999999999999", "cluster brokers=1\ntopic t replicas=", "cluster x=\x00=1"],
)
def test_odd_text_is_a_sentence_never_a_traceback(text):
    """Malformed text raises an AdvisorError with its line."""
    with pytest.raises(AdvisorError, match=r"^line "):
        play(text + "\n")


COMMANDS = """\
kill 1;kill 2;kill 3;stop 1;stop 2;start 1;start 2;start 3;power-off 1;power-off 2 keep=1;destroy 3
isolate 1;isolate 2;heal 1;heal 2;lag 1;lag 2;lag 3;catch-up 1;catch-up 2;catch-up 3;flush 1
kill-controller;wait 1s;wait 20s;wait 6m;check;consume t-0;log 1 t-0;log 2 t-1;describe t;state t-0
produce t-0 3 acks=all;produce t-0 2 acks=1;produce t-1 1 acks=0;produce t-1 2 acks=all retries=0
produce t-0 1 acks=1 via=2;produce t-0 1 acks=all via=1;elect preferred t-0;elect unclean t-1
reassign t-0 2,1,3;reassign t-0 3,2;reassign t-0 1;reassign t-0 cancel;alter t partitions=3
alter t min_insync_replicas=2;alter t unclean_leader_election_enable=true;delete t
topic u replicas=1;topic u partitions=2 replication_factor=2;state u-0;registration t-0;kill 9
reassign t-0 3,1,2 throttle=1;fence 1;unfence 1;limp 1;limp 2;recover 1;recover 2;wipe 1,2;wipe 2,3
stop-quorum;stop-quorum;start-quorum;start-quorum
""".replace("\n", ";").strip(";")
LINES = st.lists(
    st.tuples(st.sampled_from(["", "!"]), st.sampled_from(COMMANDS.split(";"))).map("".join),
    max_size=14,
)
CLUSTERS = st.sampled_from(["kafka=0.8.0", "kafka=0.10.2", "kafka=2.4", "kafka=3.9", "kafka=4.2"])


@given(cluster=CLUSTERS, lines=LINES)
def test_any_commands_run_or_are_rejected_with_their_line(cluster, lines):
    """Random commands give a transcript that reproduces itself, or an error with its line."""
    text = "\n".join([f"cluster brokers=3 {cluster}", "topic t replicas=1,2,3;2,3,1", *lines])
    error_text = ""
    try:
        transcript = rewrite(text)
    except InputError as error:
        error_text = str(error)
    if error_text:
        assert error_text.startswith("line ")
    else:
        assert rewrite(transcript) == transcript
        assert play(transcript).ok
