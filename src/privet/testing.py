"""For tests: noise that can be repeated. Nothing made with it is private.

A table gets its source of noise when it is opened, and keeps it. So a seed affects the tables that are opened with
it, and no others.

>>> import pandas as pd
>>> import privet
>>> from privet import Domain, Nominal
>>> people = pd.DataFrame({"sex": ["f"] * 40 + ["m"] * 60})
>>> with seeded_noise(3):
...     table = privet.open(people, Domain((Nominal("sex", ("f", "m")),)), budget=1)
>>> table.count("0.5")
102 (± 6 at 95%, epsilon 0.5, NOT PRIVATE)
>>> privet.testing.open(people, table.domain, budget=1, seed=3).count("0.5")
102 (± 6 at 95%, epsilon 0.5, NOT PRIVATE)

A mechanism without a table is given its source of noise:

>>> import numpy as np
>>> from privet.kernel import IntegerLaplace, as_epsilon
>>> IntegerLaplace(as_epsilon("0.5")).release(np.array([40, 0]), SeededEntropy(7))
array([40, -2])
"""

from privet.kernel import SeededEntropy, seeded_noise
from privet.open_table import open_seeded as open

__all__ = ["SeededEntropy", "open", "seeded_noise"]
