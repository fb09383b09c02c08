"""Zhu and Du, Understanding privacy risk of publishing decision trees, DBSec 2010: figures 3 to 9."""

from privet.studies.papers.zhu_du.figures import STUDIES, TASKS

__all__ = ["STUDIES", "TASKS"]
