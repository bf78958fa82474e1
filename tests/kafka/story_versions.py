"""Choose the release that plays a story: its own, or one with the same model output."""

from __future__ import annotations

import re

from advisor.errors import AdvisorError
from advisor.kafka_lab.nodes.distribution import RELEASES
from advisor.kafka_lab.player import spec_for
from advisor.protocol.scenario.language import parse
from advisor.protocol.scenario.player import play

# The default releases: the last one with ZooKeeper, and the newest.
KEPT = ("3.9", "4.3")


def with_version(text: str, version: str) -> str:
    """Return the story with another version in its first command."""
    return re.sub(r"^(cluster .*\bkafka=)\S+", rf"\g<1>{version}", text, count=1, flags=re.M)


def version_for(text: str, own_only: bool = False) -> str | None:
    """Return the version to play a story on; None if no release plays it.

    Parameters
    ----------
    text : str
    own_only : bool
        Prefer the release of its own version, even if it is not a default one.
    """
    found = re.search(r"^cluster .*\bkafka=(\S+)", text, flags=re.M)
    assert found is not None
    own = found[1]
    first = [own] if own in KEPT or (own_only and own in RELEASES) else []
    return next((v for v in [*first, *KEPT] if _plays_the_same(text, v)), None)


def _plays_the_same(text: str, version: str) -> bool:
    told = with_version(text, version)
    try:
        spec_for(parse(told))
        return with_version(play(told).transcript, "any") == with_version(
            play(text).transcript, "any"
        )
    except AdvisorError:
        return False
