"""The version of privet, which models, evidence and every line of a ledger name."""

__version__ = "0.1.0"
