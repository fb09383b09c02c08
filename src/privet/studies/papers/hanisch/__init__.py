"""Hanisch, Differential Privacy for Decision Trees: random trees filled by counting queries to a database.

With the table of Jagannathan et al. that it quotes.
"""

from __future__ import annotations

from privet.studies.papers.hanisch import (
    anonymous_table,
    forests,
    income,
    jagannathan,
    plain,
    queries,
    random_trees,
    trees,
)
from privet.studies.study import Study
from privet.studies.trial import Work

_FIGURES: tuple[Study, ...] = (
    *queries.STUDIES,
    *income.STUDIES,
    *jagannathan.FIGURES,
    *plain.STUDIES,
    *trees.STUDIES,
    *forests.STUDIES,
)

STUDIES: tuple[Study, ...] = (
    *sorted(_FIGURES, key=lambda study: int(study.name.rpartition("-")[2])),
    *jagannathan.STUDIES,
    anonymous_table.STUDY,
)
TASKS: dict[str, Work] = {
    **queries.TASKS,
    **income.TASKS,
    **plain.TASKS,
    **random_trees.TASKS,
    **jagannathan.TASKS,
    anonymous_table.TASK: anonymous_table.measured,
}
