"""What changed since an audit that was accepted: its SARIF file is the baseline.

A result is known again by its code and its topic, whatever the numbers in its message. One that is
about partitions is new again for a partition that was not accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from advisor.advice.audits.sarif import FINGERPRINT, SETTINGS, fingerprint, is_own_log
from advisor.advice.findings.catalogue import BROKEN, Finding
from advisor.decision.verdict import WARNING
from advisor.errors import InputError
from advisor.parsing import read_json


@dataclass(frozen=True)
class Changes:
    """What changed since an accepted audit.

    new: what was not accepted, heaviest first; missed goals and settings to change included.
    gone: what was accepted and is no more, such as "KRA102 audit".
    accepted: number of results that are as accepted.
    """

    new: tuple[Finding, ...]
    gone: tuple[str, ...]
    accepted: int

    def fails(self, severity: str) -> bool:
        """Whether something new is broken, critical or misses a goal; for "warning" also less."""
        warning = severity == WARNING
        return any(
            f.rule.weight == BROKEN or (warning and f.rule is SETTINGS[WARNING]) for f in self.new
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the changes as plain JSON data."""
        return {
            "new": [finding.to_dict() for finding in self.new],
            "gone": list(self.gone),
            "accepted": self.accepted,
        }


def changes_since(accepted: str, results: Sequence[Finding], source: str = "") -> Changes:
    """Compare the results of an audit with those of an accepted one.

    accepted: the SARIF log of the accepted audit.
    results: those of the audit now, as `results_of` lists them.
    source: where the log was read, for messages.
    Raises InputError if it is no SARIF log of this advisor.
    """
    before = _accepted_partitions(accepted, source)
    new = [result for result in results if _is_new(result, before)]
    now = {fingerprint(result) for result in results}
    gone = tuple(" ".join(mark.split("/", 1)).strip() for mark in before if mark not in now)
    return Changes(tuple(new), gone, len(results) - len(new))


def _is_new(result: Finding, before: dict[str, set[int]]) -> bool:
    mark = fingerprint(result)
    return mark not in before or not before[mark].issuperset(result.partitions)


def _accepted_partitions(accepted: str, source: str) -> dict[str, set[int]]:
    """The partitions of each accepted result, by its fingerprint."""
    refused = InputError(
        f"{source or 'the baseline'} is not a SARIF file of this advisor; write one with advisor "
        "audit --sarif, and accept what it says."
    )
    if not is_own_log(accepted):
        raise refused
    partitions: dict[str, set[int]] = {}
    try:
        for run in read_json(accepted)["runs"]:
            for result in run["results"]:
                mark = str(result["partialFingerprints"][FINGERPRINT])
                named = result["properties"].get("partitions", ())
                partitions.setdefault(mark, set()).update(map(int, named))
    except (ValueError, LookupError, TypeError, AttributeError):
        raise refused from None
    return partitions
