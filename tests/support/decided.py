"""The decision about a cluster, asked as `recommend` and `audit` ask it."""

from __future__ import annotations

from typing import Any

from advisor.advice.deciding import Decision
from advisor.advice.situation import Situation
from advisor.cluster import Cluster
from advisor.decision import Depth, Requirements, Verdict
from advisor.reliability.failures.failure_model import FailureModel


def decide(
    cluster: Cluster,
    model: FailureModel,
    requirements: Requirements | None = None,
    *,
    draws: int = 0,
    depth: Depth | None = None,
    allow_lower_durability: bool = False,
    **reading: Any,
) -> Verdict:
    """What every topic should be set to; `reading` are further arguments of `Situation.read`."""
    situation = Situation.read(cluster, shared=False, **reading)
    asked = Decision(situation, model, requirements or Requirements(), allow_lower_durability)
    return asked.answered(asked.exactly(draws), depth)
