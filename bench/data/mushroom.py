"""Mushroom (UCI): is a mushroom edible?"""

from privet import datasets


def load(seed: int) -> datasets.Dataset:
    return datasets.load("mushroom")
