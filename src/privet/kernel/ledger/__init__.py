"""The durable record: what was charged, under which cap, and what was answered."""

from privet.kernel.ledger.ledger import Ledger
from privet.kernel.ledger.sqlite import MEMORY
from privet.kernel.ledger.state import Charge, Entry, no_budget

__all__ = ["MEMORY", "Charge", "Entry", "Ledger", "no_budget"]
