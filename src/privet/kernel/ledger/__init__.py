"""The durable record: what was charged, under which cap, and what was answered."""

from privet.kernel.ledger.ledger import Charge, Entry, Ledger, no_budget
from privet.kernel.ledger.sqlite import MEMORY

__all__ = ["MEMORY", "Charge", "Entry", "Ledger", "no_budget"]
