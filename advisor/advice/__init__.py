"""Advice: which replication settings to use, what is wrong today, and how to change it.

In: a cluster, a failure model, a load, `Goals`. Out: a `Recommendation` (settings, reasons, shell
commands) or an `Audit` of the topics that exist, both with a verdict and findings. Open
`situation.py`, what is read, and `deciding.py`, what is asked; then `audits/audit.py` or
`recommendations/recommendation.py`; `migration/` writes the commands and files.
"""

from advisor.advice.audits.audit import Audit, audit
from advisor.advice.audits.topic_audit import TopicAudit
from advisor.advice.findings.catalogue import Finding
from advisor.advice.goals import Goals
from advisor.advice.recommendations.recommendation import Recommendation, recommend

__all__ = [
    "Audit",
    "Finding",
    "Goals",
    "Recommendation",
    "TopicAudit",
    "audit",
    "recommend",
]
