"""Zhu and Du, Understanding privacy risk of publishing decision trees, DBSec 2010: figures 3 to 9, and what is open."""

from privet.studies.papers.zhu_du import figures, unknown_subset

STUDIES = (*figures.STUDIES, unknown_subset.STUDY)
TASKS = {**figures.TASKS, unknown_subset.TASK: unknown_subset.measured}

__all__ = ["STUDIES", "TASKS"]
