"""Studies: many fits on public or generated rows, each recorded once."""

from privet.studies.trial import Outcome, Plain, Trial, forget, recorded, run

__all__ = ["Outcome", "Plain", "Trial", "forget", "recorded", "run"]
