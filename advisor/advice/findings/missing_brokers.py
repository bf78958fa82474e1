"""Brokers that are down or in no ISR, in words and as a finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from advisor.advice.findings.catalogue import Finding, finding
from advisor.advice.phrases import first_of, listed
from advisor.cluster.broker_presence import Presence


def check_missing(presence: Presence) -> Iterator[Finding]:
    """Yield a finding if brokers with replicas are in no ISR, or reported as down."""
    if presence.missing:
        missing = finding("KRA318", f"{listed(missing_words(presence))}.")
        yield replace(missing, brokers=presence.missing)


def missing_words(presence: Presence) -> list[str]:
    """Return what is seen of the brokers that are down or in no ISR: "broker 3 is down"."""
    unseen = "in no ISR (down, or behind everywhere)"
    if presence.part:
        unseen = "in no ISR of what is shown (down, or behind there)"
    seen = {
        "down": presence.down,
        unseen: presence.unknown,
        "running, but in no ISR": presence.behind,
        "not serving replicas (down, or with failed log directories)": presence.offline,
    }
    return [_brokers_are(brokers, what) for what, brokers in seen.items() if brokers]


def _brokers_are(brokers: Sequence[int], what: str) -> str:
    many = len(brokers) > 1
    names = first_of([str(broker) for broker in brokers])
    return f"{'brokers' if many else 'broker'} {names} {'are' if many else 'is'} {what}"
