"""Which rules switch at which release."""

import itertools

import pytest

from advisor.protocol.rules.versions import (
    DEFAULTS,
    NEWEST_KNOWN,
    default,
    parse_version,
    rules_for,
)

SWITCHES = {
    "min_isr_supported": "0.8.2",
    "high_watermark_waits_for_caught_up": "0.10.2",
    "truncate_on_every_epoch": "2.0.1",
    "join_needs_epoch_start": "2.1",
    "fence_fetch_by_epoch": "2.1",
    "epoch_at_become_leader": "2.1",
    "maximal_isr": "2.7",
    "truncate_on_fetch": "2.7",
    "leader_recovery_state": "3.2",
    "join_refuses_fenced": "3.3",
    "broker_epoch_in_alter_partition": "3.5",
    "strict_min_isr": "3.7",
    "min_isr_capped": "3.7",
    "last_known_leader_must_be_active": "4.1",
}
RELEASES = [
    "0.8.0", "0.8.1", "0.8.2", "0.9", "0.10.0", "0.10.1", "0.10.2", "0.11", "1.0", "1.1", "2.0",
    "2.0.1", "2.1", "2.4", "2.5", "2.6", "2.7", "2.8", "3.0", "3.1", "3.2", "3.3", "3.4", "3.5",
    "3.6", "3.7", "3.8", "3.9", "4.0", "4.1", "4.2", "4.3", "4.4",
]  # fmt: skip


def test_the_releases_go_to_the_newest_and_have_every_default() -> None:
    """A version that is added, or a default that changes there, is tested as well."""
    assert RELEASES[-1] == NEWEST_KNOWN
    for option, defaults in DEFAULTS.items():
        values = {default(option, release) for release in RELEASES}
        assert values >= {value for _, value in defaults}, option


@pytest.mark.parametrize(("switch", "since"), SWITCHES.items())
def test_each_rule_switches_once_and_stays(switch: str, since: str) -> None:
    """A rule is off in every release before its version and on from there."""
    for release in RELEASES:
        on = getattr(rules_for(release), switch)
        assert on == (parse_version(release) >= parse_version(since)), release


def test_truncation_in_three_generations() -> None:
    """High watermark, then KIP-101 from 0.11, then KIP-279 from 2.0."""
    kinds = [
        (kind, len(list(group)))
        for kind, group in itertools.groupby(rules_for(release).truncation for release in RELEASES)
    ]
    assert [kind for kind, _ in kinds] == ["high_watermark", "epoch", "epoch_divergence"]
    assert rules_for("0.10.2").truncation == "high_watermark"
    assert rules_for("1.1").truncation == "epoch"
    assert rules_for("2.0").truncation == "epoch_divergence"


def test_reassignments_complete_in_three_ways() -> None:
    """With the added replicas, the whole target from 3.8, the added ones again from 4.3."""
    ways = {release: rules_for(release).reassignment_waits_for for release in RELEASES}
    before = RELEASES.index("3.8")
    since = RELEASES.index("4.3")
    assert {ways[release] for release in RELEASES[:before]} == {"added"}
    assert {ways[release] for release in RELEASES[before:since]} == {"target"}
    assert {ways[release] for release in RELEASES[since:]} == {"added_unless_fewer"}


def test_zookeeper_keeps_bumping_epochs_and_has_no_fencing() -> None:
    """KAFKA-15021 and KIP-841 apply to KRaft only."""
    assert rules_for("3.9", "zookeeper").epoch_bump_on_isr_shrink
    assert not rules_for("3.9", "kraft").epoch_bump_on_isr_shrink
    assert not rules_for("3.9", "zookeeper").join_refuses_fenced
