"""Everything that draws: pages, charts, pictures of trees and of tables, cells of notebooks.

One stylesheet (`style.css`) has all colours; templates escape every value; a page is one file that loads nothing.
`privet.pictures` is the way from a value to here: nothing is imported before the first picture.
"""

from privet.models.model import Model
from privet.models.tables import Tables
from privet.models.tree import Ensemble
from privet.report.model_page import page as page
from privet.report.notebook import picture as picture
from privet.report.table_text import tables_text
from privet.report.tree_picture import model_text


def text(model: Model, max_depth: int | None = None) -> str:
    """Return a model as text; of trees no deeper than `max_depth`."""
    if isinstance(model, Ensemble):
        return model_text(model, max_depth)
    assert isinstance(model, Tables)
    return tables_text(model)
