"""Goals, findings, the search for settings, and the commands that get there."""

from advisor.advice.auditing import Audit, TopicAudit, audit
from advisor.advice.findings import RULES, Finding, Rule
from advisor.advice.goals import Goals
from advisor.advice.recommendation import Recommendation
from advisor.advice.search import recommend

__all__ = [
    "RULES",
    "Audit",
    "Finding",
    "Goals",
    "Recommendation",
    "Rule",
    "TopicAudit",
    "audit",
    "recommend",
]
