"""Stories and random faults on real brokers print the same as on the model, line by line.

With ADVISOR_KAFKA=own each story runs on its own Kafka version instead of a default one.
"""

import os
import tomllib
from pathlib import Path

import pytest

from advisor.kafka_lab.nodes.network import can_partition
from advisor.protocol.scenario.player import play
from conformance import drawn_scripts
from plays import Played, transcripts_of_brokers
from random_scripts import KINDS
from story_versions import version_for, with_version

HERE = Path(__file__).parent
STORIES = {p.stem: p.read_text() for p in sorted((HERE.parent / "scenarios").glob("*.txt"))}
LEFT_OUT = tomllib.loads((HERE / "not-comparable.toml").read_text())
OWN = os.environ.get("ADVISOR_KAFKA") == "own"

VERSIONS = {name: version_for(text, own_only=OWN) for name, text in STORIES.items()}
RUN = {
    name: with_version(STORIES[name], version)
    for name, version in VERSIONS.items()
    if version is not None
}


# Brokers that are told to stop while there is no controller give up after five minutes under KRaft
# and after one and a half under ZooKeeper.
LONGEST = (
    "quorum-stopped-broker-gives-up-waiting-to-stop",
    "quorum-stopped-under-zookeeper-stop",
)
SCRIPTS_OF_EACH_KIND = 2
SEED = 20261121


def random_scripts(name: str) -> dict[str, str]:
    """Return the random scripts of a kind, by name."""
    cuttable = can_partition()
    texts = drawn_scripts(KINDS[name], SCRIPTS_OF_EACH_KIND, SEED, cuttable)
    return {f"{name} script {number}": text for number, text in enumerate(texts)}


@pytest.fixture(scope="module")
def transcripts(request: pytest.FixtureRequest) -> dict[str, Played]:
    """Transcripts of real brokers for every selected story and script, played once."""
    texts: dict[str, str] = {}
    for item in request.session.items:
        if item.path == request.path and hasattr(item, "callspec"):
            chosen = item.callspec.params
            texts |= random_scripts(chosen["kind"]) if "kind" in chosen else {}
            texts |= {chosen["name"]: RUN[chosen["name"]]} if "name" in chosen else {}
    return transcripts_of_brokers(texts, LONGEST)


def test_every_story_is_run_or_excluded_with_a_reason() -> None:
    """The exclusion list has exactly the stories that no available release plays the same."""
    kept = {name for name, text in STORIES.items() if version_for(text) is not None}
    own = {name for name, text in STORIES.items() if version_for(text, own_only=True) is not None}
    assert set(LEFT_OUT["never"]) == STORIES.keys() - own
    assert set(LEFT_OUT["own_release"]) == own - kept
    assert all(reason for table in LEFT_OUT.values() for reason in table.values())


@pytest.mark.parametrize("name", sorted(RUN))
def test_story_on_real_brokers(name: str, transcripts: dict[str, Played]) -> None:
    """Real brokers print the same transcript as the model."""
    assert_played(transcripts[name], RUN[name])


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_random_scripts_print_the_same_on_real_brokers(
    kind: str, transcripts: dict[str, Played]
) -> None:
    """Leader, epochs, ISR, ELR, high watermark, logs and errors agree after every random fault."""
    texts = random_scripts(kind)
    assert len(texts) == SCRIPTS_OF_EACH_KIND
    for name, text in texts.items():
        assert_played(transcripts[name], text)


def assert_played(told: Played, text: str) -> None:
    """Raise what went wrong on the brokers, or compare them with the model."""
    if isinstance(told, BaseException):
        raise told
    assert told.splitlines() == play(text).transcript.splitlines()
