"""The example of a loss is the shortest one, and its scenario runs."""

import pytest

from advisor.advice.recommendations.loss_story import tell
from advisor.protocol.rules.config import Config
from advisor.protocol.scenario.player import play


@pytest.mark.parametrize(
    ("settings", "faults"),
    [
        ({"replication_factor": 1}, "1 fault is enough to lose an acknowledged record ("),
        ({"replication_factor": 2, "min_insync_replicas": 1}, "2 faults are enough"),
        ({"replication_factor": 3, "min_insync_replicas": 2}, "3 faults are enough"),
        ({"replication_factor": 3, "acks": 1}, "1 fault is enough"),
    ],
)
def test_the_fewest_faults(settings, faults):
    """As many faults as copies lose a record; with acks=1 one does. The scenario plays."""
    story = tell(Config(**settings))
    assert story.said.startswith(faults)
    assert (", and fewer are not (" in story.said) == ("faults" in faults)
    assert play(story.scenario).ok
    assert "NoAcknowledgedRecordLost" in story.scenario


def test_no_loss_found():
    """The sentence says how far the search went."""
    story = tell(Config(replication_factor=4, min_insync_replicas=3))
    assert story.scenario == ""
    assert "60,0" in story.said
