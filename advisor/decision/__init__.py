"""The decision: which settings a topic should have, how sure that is, and what to measure.

In: questions about topics, and an evaluator of settings under one card. Out: a `Verdict`, which
every screen renders. Open `rule.py` for the arithmetic, `comparison.py` for what is compared, and
`decide.py` for how an answer is put together.
"""

from advisor.decision.comparison import (
    Requirements,
    SettingChoice,
)
from advisor.decision.decide import (
    Depth,
    decide_cluster,
    decide_topic,
    floor_of_reliability,
    verdict_of_reliability,
)
from advisor.decision.evaluator import ExactEvaluator, Measured
from advisor.decision.settings import Setting, TopicQuestion
from advisor.decision.verdict import Action, Verdict

__all__ = [
    "Action",
    "Depth",
    "ExactEvaluator",
    "Measured",
    "Requirements",
    "Setting",
    "SettingChoice",
    "TopicQuestion",
    "Verdict",
    "decide_cluster",
    "decide_topic",
    "floor_of_reliability",
    "verdict_of_reliability",
]
