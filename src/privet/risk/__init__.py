"""What a published model tells about the people in it: `audit`, after Zhu and Du (2010), corrected."""

from privet.risk.auditor import AuditOptions, audit
from privet.risk.findings import Audit, Recommendation

__all__ = ["Audit", "AuditOptions", "Recommendation", "audit"]
