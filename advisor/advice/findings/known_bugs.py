"""Known bugs of Kafka that lose acknowledged records, and the versions that have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from advisor import catalog
from advisor.advice.findings.catalogue import Finding, finding
from advisor.advice.phrases import listed
from advisor.protocol.rules.versions import Version, parse_version

_FILE = "known_bugs.csv"


@dataclass(frozen=True)
class KnownBug:
    """One row of `data/known_bugs.csv`, which explains the columns in `data/README.md`.

    id: ticket or KIP, such as "KAFKA-16541".
    title, url: what goes wrong, and where it is described.
    first_affected: first version that has it.
    fixed: first fixed version of each branch that was fixed, ascending.
    mode (one of "", "kraft", "zookeeper"): the controller that it needs; "" for either.
    lost (one of "yes", "may"): whether acknowledged records are lost, or may be.
    acks_all (one of "yes", "with a crash"): whether acks=all is hit by itself, or only if a broker
        or host also crashes.
    condition: what sets it off.
    inferred, retrieved, verified: how the versions were determined, when, and from what.
    """

    id: str
    title: str
    url: str
    first_affected: str
    fixed: tuple[str, ...]
    mode: str
    lost: str
    acks_all: str
    condition: str
    inferred: str
    retrieved: str
    verified: str

    def affects(self, version: Version, mode: str) -> bool:
        """Whether a cluster of a version and a controller mode has the bug.

        version: as `parse_version` returns it.
        mode (one of "kraft", "zookeeper").
        """
        if version < parse_version(self.first_affected) or self.mode not in ("", mode):
            return False
        fixes = [parse_version(fix) for fix in self.fixed]
        same_branch = [fix for fix in fixes if _branch(fix) == _branch(version)]
        return version < (same_branch[0] if same_branch else fixes[-1])

    def fix_for(self, version: Version) -> str:
        """The lowest version above the given one that has the fix."""
        return next(fix for fix in self.fixed if parse_version(fix) > version)


def _branch(version: Version) -> Version:
    """The part of a version that its patch releases share."""
    return version[:3] if version[0] == 0 else version[:2]


@cache
def known_bugs() -> tuple[KnownBug, ...]:
    """Return the shipped table of bugs, in its order.

    Raises ModelError if a column or field is missing.
    """
    table = catalog.table_rows(catalog.data_path(_FILE), KnownBug)
    return tuple(_bug(row) for _, row in table)


def _bug(row: Mapping[str, str]) -> KnownBug:
    text = {column: cell for column, cell in row.items() if column != "fixed"}
    return KnownBug(fixed=tuple(row["fixed"].split()), **text)


def check_version(kafka_version: str, mode: str) -> Iterator[Finding]:
    """Yield a finding if a Kafka version has known bugs that lose acknowledged records.

    kafka_version: of the brokers. Without a patch level ("3.7") the first release is meant (3.7.0).
    mode (one of "kraft", "zookeeper").
    """
    version = parse_version(kafka_version)
    bugs = [bug for bug in known_bugs() if bug.affects(version, mode)]
    if not bugs:
        return
    in_short = [_in_short(bug, bug.fix_for(version)) for bug in bugs]
    clean = f"Kafka {_clean_after(version, mode)} is the first release after it without any known."
    yield finding("KRA501", f"Kafka {kafka_version} has {listed(in_short)}. {clean}")


def _clean_after(version: Version, mode: str) -> str:
    """The lowest fixed version above the given one that no bug of the table affects."""
    later = {fix for bug in known_bugs() for fix in bug.fixed if parse_version(fix) > version}
    return next(
        fix
        for fix in sorted(later, key=parse_version)
        if not any(bug.affects(parse_version(fix), mode) for bug in known_bugs())
    )


def _in_short(bug: KnownBug, fix: str) -> str:
    """The bug, its condition and its fix, for a list in a sentence."""
    doubt = ", may lose" if bug.lost == "may" else ""
    return f"{bug.id} ({bug.condition}{doubt}; fixed in {fix})"
