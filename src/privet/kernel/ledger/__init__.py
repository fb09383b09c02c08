"""The durable record: what was charged, under which cap, and what was answered."""

from privet.kernel.ledger.ledger import Ledger
from privet.kernel.ledger.log import CapChange, Charge, Entry, Line, Under, cells_of
from privet.kernel.ledger.store import MEMORY

__all__ = ["MEMORY", "CapChange", "Charge", "Entry", "Ledger", "Line", "Under", "cells_of"]
