"""Stories played on real brokers print the same as on the model, line by line.

With ADVISOR_KAFKA=own each story runs on its own Kafka version instead of a default one.
"""

import contextlib
import os
import tomllib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from advisor.kafka_lab.nodes.node_properties import ClusterSpec
from advisor.kafka_lab.player import outputs_on_brokers, spec_for
from advisor.protocol.scenario.language import parse
from advisor.protocol.scenario.player import play, played
from clusters import started
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


# Brokers mostly wait: two clusters at once keep two cores busy.
AT_ONCE = 2
STORIES_A_CLUSTER = 9


def shares(names: Iterable[str]) -> Iterator[tuple[ClusterSpec, list[str]]]:
    """Yield specifications with the stories that run on each."""
    specs = {name: spec_for(parse(RUN[name])) for name in names}
    for key in dict.fromkeys(map(repr, specs.values())):
        found = [name for name in specs if repr(specs[name]) == key]
        for at in range(0, len(found), STORIES_A_CLUSTER):
            yield specs[found[at]], found[at : at + STORIES_A_CLUSTER]


def transcripts_of_brokers(share: tuple[ClusterSpec, list[str]]) -> dict[str, str | BaseException]:
    """Play stories on one cluster; return transcripts or errors."""
    spec, names = share
    found: dict[str, str | BaseException] = {}
    try:
        cluster = started(spec)
    except BaseException as error:  # That of `pytest.skip` is no Exception.
        return dict.fromkeys(names, error)
    with contextlib.closing(cluster):
        for name in names:
            scenario = parse(RUN[name])
            try:
                found[name] = played(scenario, outputs_on_brokers(scenario, cluster)).transcript
            except Exception as error:
                found[name] = error
    return found


@pytest.fixture(scope="module")
def transcripts(request: pytest.FixtureRequest) -> dict[str, str | BaseException]:
    """Transcripts of real brokers for every selected story, played once."""
    asked = [
        item.callspec.params["name"]
        for item in request.session.items
        if item.path == request.path and hasattr(item, "callspec")
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        parts = list(pool.map(transcripts_of_brokers, shares(asked)))
    return {name: told for part in parts for name, told in part.items()}


def test_every_story_is_run_or_excluded_with_a_reason() -> None:
    """The exclusion list has exactly the stories that no available release plays the same."""
    kept = {name for name, text in STORIES.items() if version_for(text) is not None}
    own = {name for name, text in STORIES.items() if version_for(text, own_only=True) is not None}
    assert set(LEFT_OUT["never"]) == STORIES.keys() - own
    assert set(LEFT_OUT["own_release"]) == own - kept
    assert all(reason for table in LEFT_OUT.values() for reason in table.values())


@pytest.mark.parametrize("name", sorted(RUN))
def test_story_on_real_brokers(name: str, transcripts: dict[str, str | BaseException]) -> None:
    """Real brokers print the same transcript as the model."""
    told = transcripts[name]
    if isinstance(told, BaseException):
        raise told
    assert told.splitlines() == play(RUN[name]).transcript.splitlines()
