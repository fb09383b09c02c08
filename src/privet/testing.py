"""For tests: noise that can be repeated. Nothing made with it is private.

>>> import numpy as np
>>> from privet.kernel import IntegerLaplace, as_epsilon
>>> with seeded_noise(7):
...     IntegerLaplace(as_epsilon("0.5")).release(np.array([40, 0]))
array([40, -2])
"""

from privet.kernel import seeded_noise

__all__ = ["seeded_noise"]
