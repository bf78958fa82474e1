"""A setting judged at each price of a loss: the `Verdict` in the form that `explorer.js` shows.

The verdict decides and has the words; here they are only laid out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.decision import Verdict
from advisor.decision.comparison import OUT_OF_REACH
from advisor.decision.evaluator import LOSS_PROBABILITY, WRITES
from advisor.decision.rows import around
from advisor.decision.verdict import plain
from advisor.present.interactive.settings_grid import rounded

_DRAWN = {LOSS_PROBABILITY: "loss", WRITES: "refused"}
"""Measures that the pictures draw."""


def verdict_json(
    verdict: Verdict, better: Mapping[str, Any] | None, has_ranges: bool
) -> dict[str, Any]:
    """Return a verdict on one topic as JSON data.

    verdict: of the setting shown, which is taken for today's.
    better: what is drawn and chosen of the setting after the change; None to keep the one shown.
    has_ranges: whether numbers of the card have ranges; without any, the middle values are all
        there is.
    """
    (action,) = verdict.actions
    said, choice = around(verdict), action.choice
    return {
        "severity": verdict.severity,
        "known": choice.draws > 0 or not has_ranges,
        "confidence": verdict.confidence,
        "headline": verdict.headline,
        "text": verdict.text,
        "floor": said.floor,
        "sure": said.sure,
        "goals": [*said.goals],
        "unreached": sorted(
            _DRAWN[goal.goal]
            for goal in action.goals
            if goal.goal in _DRAWN and goal.state == OUT_OF_REACH
        ),
        "pays": [_end(choice.pays_from_minutes), _end(choice.pays_to_minutes)],
        "better": None if better is None else dict(better),
    }


def _end(minutes: float | None) -> Any:
    return None if minutes is None else plain(rounded(minutes))
