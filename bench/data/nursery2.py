"""Nursery with two classes (UCI): has a child special priority?"""

from dataclasses import replace

from privet import datasets
from privet.kernel import Nominal


def load() -> datasets.Dataset:
    found = datasets.load("nursery")
    frame = found.frame.assign(**{"class": found.frame["class"].where(found.frame["class"] == "spec_prior", "rest")})
    target = Nominal("class", ("rest", "spec_prior"))
    columns = tuple(target if column.name == "class" else column for column in found.domain)
    return datasets.Dataset(frame, replace(found.domain, columns=columns))
