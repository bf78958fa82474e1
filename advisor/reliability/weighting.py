"""How years were sampled, and how well weighted losses stand for the real ones."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.formatting import significant

CRUDE, IMPORTANCE = "crude", "importance"
"""Methods: years as they come, and cycles in which failures are likelier than they are."""


@dataclass(frozen=True)
class Weights:
    """How well weighted losses stand for the real ones.

    Attributes
    ----------
    losses : int
        Cycles with a loss that were drawn.
    effective : float
        As many losses of equal weight would say as much: (sum of weights)^2 / sum of squares
        (Kish, Survey Sampling, 1965).
    largest_share : float
        Part of all weight that the heaviest of them has; much more than 1 / ``effective``
        would say that a rare, heavy loss may be missing.
    """

    losses: int
    effective: float
    largest_share: float


def method_lines(method: str, why: str, weights: Weights | None) -> list[str]:
    """Say how the years were sampled, if not as they come, and why if that was not asked for."""
    lines = [f"Method {method}: {why}."] if why else []
    if weights is None:
        return lines
    seen = "no loss was drawn"
    if weights.losses:
        seen = (
            f"{weights.losses:,} losses drawn, worth {significant(weights.effective)} of equal "
            f"weight; the heaviest has {significant(100 * weights.largest_share)} % of the weight"
        )
    return [*lines, f"Importance sampling (failures likelier than they are): {seen}."]
