"""Adult (UCI): is a person's income above 50,000 dollars a year? Census of 1994, all complete rows."""

from privet import datasets


def load() -> datasets.Dataset:
    return datasets.load("adult")
