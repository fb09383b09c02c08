"""Mushroom (UCI): is a mushroom edible?"""

from privet import datasets


def load() -> datasets.Dataset:
    return datasets.load("mushroom")
