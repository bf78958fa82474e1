"""Which release plays a story: its own line's, or one for which the model says the same."""

from __future__ import annotations

import re

from advisor.errors import AdvisorError
from advisor.kafka_lab.nodes.distribution import RELEASES
from advisor.kafka_lab.player import spec_for
from advisor.protocol.scenario.language import parse
from advisor.protocol.scenario.player import play

# What is run by default: the last release with ZooKeeper, and the newest.
KEPT = ("3.9", "4.3")


def retold(text: str, version: str) -> str:
    """The story with another version in its first command."""
    return re.sub(r"^(cluster .*\bkafka=)\S+", rf"\g<1>{version}", text, count=1, flags=re.M)


def version_for(text: str, own_only: bool = False) -> str | None:
    """The version to play a story on; None if no real broker can.

    Parameters
    ----------
    text : str
    own_only : bool
        Play it on its own line where there is a release of that, not on one that is kept.
    """
    found = re.search(r"^cluster .*\bkafka=(\S+)", text, flags=re.M)
    assert found is not None
    own = found[1]
    first = [own] if own in KEPT or (own_only and own in RELEASES) else []
    return next((v for v in [*first, *KEPT] if _plays_the_same(text, v)), None)


def _plays_the_same(text: str, version: str) -> bool:
    told = retold(text, version)
    try:
        spec_for(parse(told))
        return retold(play(told).transcript, "any") == retold(play(text).transcript, "any")
    except AdvisorError:
        return False
