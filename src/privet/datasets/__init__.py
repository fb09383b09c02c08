"""Public tables to try things on: four from the UCI repository, and synthetic ones of any size.

`load` looks for the UCI files in the folder named by the environment variable
PRIVET_DATA; without it, in a cache folder, where it downloads them once. Every
file is checked against its published SHA-256 checksum, so that a study means
the same rows everywhere. The domains come with the package and need no file.
`census` makes up a working population, `random_tree` rows whose class follows
from a random decision tree.
"""

from privet.datasets.dataset import Dataset
from privet.datasets.people import census, census_domain
from privet.datasets.rebalanced import rebalanced_census
from privet.datasets.trees import random_tree
from privet.datasets.uci import domain, load

__all__ = ["Dataset", "census", "census_domain", "domain", "load", "random_tree", "rebalanced_census"]
