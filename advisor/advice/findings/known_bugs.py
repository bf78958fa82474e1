"""Known bugs of Kafka that lose acknowledged records, and the versions that have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from advisor import catalog
from advisor.advice.findings.catalogue import Finding, finding
from advisor.advice.phrases import listed
from advisor.protocol.rules.versions import Version, parse_version


@dataclass(frozen=True)
class KnownBug:
    """One row of `data/known_bugs.csv`, which explains the columns in `data/README.md`.

    fixed: first fixed version of each branch that was fixed, ascending.
    mode (one of "", "kraft", "zookeeper"): the controller that it needs; "" for either.
    lost (one of "yes", "may"): whether acknowledged records are lost, or may be.
    acks_all (one of "yes", "with a crash"): whether acks=all is hit by itself, or only if a broker
        or host also crashes.
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

    @cached_property
    def fixes(self) -> Mapping[str, Version]:
        """The fixed versions as they are written, and as numbers."""
        return {fix: parse_version(fix) for fix in self.fixed}

    def affects(self, version: Version, mode: str) -> bool:
        """Whether a cluster of a version and a controller mode has the bug."""
        if version < parse_version(self.first_affected) or self.mode not in ("", mode):
            return False
        fixes = [*self.fixes.values()]
        same_branch = [fix for fix in fixes if _branch(fix) == _branch(version)]
        return version < (same_branch[0] if same_branch else fixes[-1])

    def fix_for(self, version: Version) -> str:
        """The lowest version above the given one that has the fix."""
        return next(fix for fix, number in self.fixes.items() if number > version)


def _branch(version: Version) -> Version:
    """The part of a version that its patch releases share."""
    return version[:3] if version[0] == 0 else version[:2]


@cache
def known_bugs() -> tuple[KnownBug, ...]:
    """Return the shipped table of bugs, in its order."""
    bugs = []
    for _, row in catalog.table_rows(catalog.data_path("known_bugs.csv"), KnownBug):
        texts = {column: cell for column, cell in row.items() if column != "fixed"}
        bugs.append(KnownBug(fixed=tuple(row["fixed"].split()), **texts))
    return tuple(bugs)


def check_version(kafka_version: str, mode: str) -> Iterator[Finding]:
    """Yield a finding if a Kafka version ("3.7" is 3.7.0) has known bugs that lose records."""
    version = parse_version(kafka_version)
    bugs = [bug for bug in known_bugs() if bug.affects(version, mode)]
    if not bugs:
        return
    in_short = []
    for bug in bugs:
        doubt = ", may lose" if bug.lost == "may" else ""
        in_short.append(f"{bug.id} ({bug.condition}{doubt}; fixed in {bug.fix_for(version)})")
    fixes = {n: fix for bug in known_bugs() for fix, n in bug.fixes.items() if n > version}
    clean = next(
        fixes[number]
        for number in sorted(fixes)
        if not any(bug.affects(number, mode) for bug in known_bugs())
    )
    yield finding(
        "KRA501",
        f"Kafka {kafka_version} has {listed(in_short)}. Kafka {clean} is the first release after "
        "it without any known.",
    )
