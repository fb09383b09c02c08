"""Published models: how they predict, what they promise, and how they are written."""

# Both kinds, so that a file of either is read whatever part of this package was imported.
from privet.models.tables import Tables as Tables
from privet.models.tree import Ensemble as Ensemble
