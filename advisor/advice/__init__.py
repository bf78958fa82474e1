"""Goals, findings, the search for settings, and the commands that get there."""

from advisor.advice.audits.audit import Audit, TopicAudit, audit
from advisor.advice.findings.catalogue import RULES, Finding, Rule
from advisor.advice.goals import Goals
from advisor.advice.recommendations.recommendation import Recommendation
from advisor.advice.recommendations.search import recommend

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
