"""Combinations of the controls that decide elections and acknowledgements, by the chain they share.

Most of the time for a setting is spent on its Markov chain. Many combinations have the same one:
acks=0 and acks=1, and Kafka versions between which no election changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from advisor.errors import ConfigError
from advisor.present.interactive.controls import config_of
from advisor.protocol.rules.config import Config

COMBINED = (
    "acks",
    "unclean_leader_election_enable",
    "eligible_leader_replicas",
    "kafka_version",
)
"""Controls of which several may be changed in quick succession; those changed most come first."""


def combinations_by_chain(
    values: Mapping[str, str], options: Mapping[str, Sequence[str]], start: Config
) -> list[list[dict[str, str]]]:
    """Return every combination of the controls in `COMBINED`, those of one chain together.

    It is a guess which share a chain: a wrong one costs time and changes no answer.

    values: value of each control; those not in `COMBINED` stay.
    options: choices of each control in `COMBINED`.
    start: see `config_of`.
    Returns groups of values; in a group and among groups, fewer changed controls come first.

    >>> from advisor.present.interactive.controls import values_of
    >>> start = Config(kafka_version="4.4", acks="all")
    >>> choices = {name: [values_of(start, "", "")[name]] for name in COMBINED}
    >>> choices |= {"acks": ["all", "1", "0"], "kafka_version": ["4.4", "4.1", "3.9"]}
    >>> groups = combinations_by_chain(values_of(start, "", "card"), choices, start)
    >>> [[(each["acks"], each["kafka_version"]) for each in group] for group in groups][:2]
    [[('all', '4.4'), ('all', '4.1')], [('1', '4.4'), ('0', '4.4'), ('1', '4.1'), ('0', '4.1')]]
    """
    rules = _rules(values, options, start)
    groups: dict[tuple[object, ...], list[dict[str, str]]] = {}
    for combined in product(*(options[name] for name in COMBINED)):
        other = {**values, **dict(zip(COMBINED, combined, strict=True))}
        acks, unclean, elr, version = combined
        groups.setdefault((acks == "all", unclean, rules[elr, version]), []).append(other)

    def nearness(other: Mapping[str, str]) -> tuple[int, int]:
        changed = [n for n, name in enumerate(COMBINED) if other[name] != values[name]]
        return len(changed), min(changed, default=0)

    sorted_groups = [sorted(group, key=nearness) for group in groups.values()]
    return sorted(sorted_groups, key=lambda group: nearness(group[0]))


def _rules(
    values: Mapping[str, str], options: Mapping[str, Sequence[str]], start: Config
) -> dict[tuple[str, str], tuple[object, ...]]:
    """What decides elections, by eligible leader replicas and version; () if Kafka refuses both."""
    rules_of: dict[tuple[str, str], tuple[object, ...]] = {}
    for elr, version in product(options[COMBINED[2]], options[COMBINED[3]]):
        asked = {**values, COMBINED[2]: elr, COMBINED[3]: version}
        rules_of[elr, version] = ()
        try:
            rules = config_of(asked, start).rules
        except ConfigError:
            continue
        lasting = rules.eligible_leader_replicas and rules.last_known_leader_must_be_active
        rules_of[elr, version] = rules.mode, rules.eligible_leader_replicas, lasting
    return rules_of
