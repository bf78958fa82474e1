"""A rule of the catalogue of findings."""

from __future__ import annotations

from dataclasses import dataclass

BROKEN, RISK, NOTE = "broken", "risk", "note"


@dataclass(frozen=True)
class Rule:
    """One entry of the catalogue.

    code: stable code, such as "KRA101".
    weight (one of "broken", "risk", "note"): broken: does not work at present. Risk: records may be
        lost or writes refused. Note: information.
    title, why, remedy: the rule in few words, why it matters, what to do.
    """

    code: str
    weight: str
    title: str
    why: str
    remedy: str
