"""Every story that real brokers can play comes out there as the model tells it, line for line.

With ADVISOR_KAFKA=own each runs on its own line of releases instead of the nearest that is kept.
"""

import os
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from story_versions import retold, version_for

from advisor.brokers.cluster import RealCluster
from advisor.brokers.playing import printed_by, wish_of
from advisor.brokers.properties import Wish
from advisor.protocol.play import play, played
from advisor.protocol.scenario import parse

HERE = Path(__file__).parent
STORIES = {p.stem: p.read_text() for p in sorted((HERE.parent / "scenarios").glob("*.txt"))}
LEFT_OUT = tomllib.loads((HERE / "not-comparable.toml").read_text())
OWN = os.environ.get("ADVISOR_KAFKA") == "own"

VERSIONS = {name: version_for(text, own_only=OWN) for name, text in STORIES.items()}
RUN = {
    name: retold(STORIES[name], version)
    for name, version in VERSIONS.items()
    if version is not None
}


def wanted(name: str) -> str:
    """What cluster a story needs: those that need the same one follow each other."""
    return repr(wish_of(parse(RUN[name])))


def test_every_story_is_run_or_left_out_with_a_reason() -> None:
    """The list of what is not run names exactly the stories that no release here plays the same."""
    kept = {name for name, text in STORIES.items() if version_for(text) is not None}
    own = {name for name, text in STORIES.items() if version_for(text, own_only=True) is not None}
    assert set(LEFT_OUT["never"]) == STORIES.keys() - own
    assert set(LEFT_OUT["own_release"]) == own - kept
    assert all(reason for table in LEFT_OUT.values() for reason in table.values())


@pytest.mark.parametrize("name", sorted(RUN, key=lambda name: (wanted(name), name)))
def test_story_on_real_brokers(name: str, real_cluster: Callable[[Wish], RealCluster]) -> None:
    """The transcript of real brokers is the model's, every line of every command."""
    scenario = parse(RUN[name])
    real = played(scenario, printed_by(scenario, real_cluster(wish_of(scenario))))
    assert real.transcript.splitlines() == play(RUN[name]).transcript.splitlines()
