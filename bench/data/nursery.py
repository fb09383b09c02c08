"""Nursery (UCI): how strongly is a child recommended for a nursery school? Five classes."""

from privet import datasets


def load() -> datasets.Dataset:
    return datasets.load("nursery")
