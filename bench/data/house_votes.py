"""House votes 1984 (UCI): is a member of Congress a Democrat or a Republican? A small table."""

from privet import datasets


def load() -> datasets.Dataset:
    return datasets.load("house-votes")
