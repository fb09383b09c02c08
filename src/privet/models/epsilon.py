"""What an epsilon means for a person: the one calculation, and the one sentence, of all pages and warnings.

Take an adversary who knows the rows of everybody else, and two tables that differ by one person. Pure epsilon says
that anything published is at most e^epsilon times as likely on one of them as on the other, so by Bayes' rule the
adversary's odds that the person is in the table change by at most that factor. Two rows that the person may have are
two such steps apart (out with one, in with the other), so the odds of one fact of theirs against another change by at
most e^(2 epsilon). docs/explanation/epsilon.md explains it to people.
"""

from __future__ import annotations

import math

PAGE = "Epsilon for a person (docs/explanation/epsilon.md)"


def belief(prior: float, loss: float) -> float:
    """Return the most that somebody can believe afterwards.

    Parameters
    ----------
    prior : float
        What they believed before, between 0 and 1.
    loss : float
        The logarithm of the factor by which their odds may change: epsilon, or twice that for a fact of a person
        who is known to be in the table.

    Returns
    -------
    float
        p e^loss / (p e^loss + 1 - p).

    Examples
    --------
    >>> round(belief(0.5, 0.5), 4), round(belief(0.01, 0.5), 4), belief(0.0, 3.0), belief(1.0, 3.0)
    (0.6225, 0.0164, 0.0, 1.0)
    """
    return prior / (prior + (1 - prior) * math.exp(-loss)) if prior else 0.0


def percent(probability: float) -> str:
    """Return a probability in percent, with up to three digits where they keep it apart from 50% and from 100%.

    >>> [percent(belief(0.5, loss)) for loss in (0.5, 10, 40, 0.001, 1e-9)]
    ['62%', '99.995%', '100%', '50.02%', '50%']
    """
    for digits in range(4):
        number = float(f"{100 * probability:.{digits}f}")
        if number not in (50.0, 100.0):
            return f"{number:.{digits}f}%"
    return f"{100 * probability:.0f}%"


def sentence(epsilon: float) -> str:
    """Return what an epsilon means for a person, in two sentences.

    Parameters
    ----------
    epsilon : float
        The loss of the person in all that was published, above 0.

    Returns
    -------
    str

    Examples
    --------
    >>> print(sentence(0.5))
    Somebody who knows all about everybody else, and thinks it 50% likely that a person is in the table, will afterwards think it at most about 62% likely. If they know that the person is in it, a yes-or-no fact of that person goes from 50% to at most about 73%.
    """  # noqa: E501
    return (
        "Somebody who knows all about everybody else, and thinks it 50% likely that a person is in the table, will "
        f"afterwards think it at most about {percent(belief(0.5, epsilon))} likely. If they know that the person is "
        f"in it, a yes-or-no fact of that person goes from 50% to at most about {percent(belief(0.5, 2 * epsilon))}."
    )


def factor(epsilon: float) -> str:
    """Return e^epsilon for people.

    >>> factor(0.5), factor(10), factor(100), factor(1e6)
    ('e^0.5 = 1.65', 'e^10, about 22,000', 'e^100, about 10^43', 'e^1000000, about 10^434294')
    """
    digits = epsilon / math.log(10)
    if digits < 4:
        return f"e^{epsilon:.10g} = {math.exp(epsilon):.3g}"
    number = f"{round(math.exp(epsilon), 1 - int(digits)):,.0f}" if digits < 12 else f"10^{int(digits)}"
    return f"e^{epsilon:.10g}, about {number}"
