"""Advice: which replication settings to use, what is wrong today, and how to change it.

In: a cluster, a failure model, a load, `Goals`. Out: a `Recommendation` (settings, reasons, shell
commands) or an `Audit` of the topics that exist, both with findings. Open `goals.py`, then
`recommendations/search.py` or `audits/audit.py`; `migration/` writes the commands and files.
"""

from advisor.advice.audits.audit import Audit, audit
from advisor.advice.audits.topic_audit import TopicAudit
from advisor.advice.findings.catalogue import RULES, Finding
from advisor.advice.findings.rule import Rule
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
