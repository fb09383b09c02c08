"""What every published model can do: predict, be drawn, be saved and read again.

A model is made of releases and public facts alone, so whoever holds its file holds all there is.
`Ensemble` (trees) and `Tables` (a sum of small tables) are the two kinds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privet.errors import DataError, ModelError
from privet.kernel import LONGEST_MODEL, LONGEST_TEXT, Domain, decimal_text, read_text, shown
from privet.models.privacy_record import Privacy

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

M = TypeVar("M", bound="Model")


class Model(ABC):
    """A published model over a public domain, and what it promises."""

    domain: Domain
    privacy: Privacy

    @property
    def private(self) -> bool:
        return self.privacy.private

    # -- prediction -------------------------------------------------------------------------

    @abstractmethod
    def predict_proba(self, frame: Any) -> Floats:
        """The share of each class for the rows of a frame; columns are found by name."""

    @abstractmethod
    def predict_codes(self, frame: Any) -> Integers:
        """The number of the class of each row: the largest share, the first of equals."""

    def predict(self, frame: Any) -> NDArray[Any]:
        """The class of each row of a frame."""
        return np.asarray(self.class_values[self.predict_codes(frame)])

    @cached_property
    def class_values(self) -> NDArray[Any]:
        """The classes as an array: of their own type, or of objects where they have several."""
        values = list(self.domain.classes)
        kinds = {type(value) for value in values}
        return np.array(values, dtype=None if len(kinds) == 1 else object)

    # -- looking at it ----------------------------------------------------------------------

    @property
    @abstractmethod
    def summary(self) -> str:
        """What the model consists of, in a few words."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What the model consists of, for programs."""

    @abstractmethod
    def details(self) -> dict[str, Any]:
        """Its parts, for programs."""

    @abstractmethod
    def rules(self) -> list[str]:
        """What the model says, a sentence for each leaf or cell."""

    @abstractmethod
    def text(self, max_depth: int | None = None) -> str:
        """The model as text."""

    @abstractmethod
    def page(self) -> str:
        """A page about the model, in one file that loads nothing."""

    @abstractmethod
    def _repr_html_(self) -> str: ...

    def to_html(self, path: str | Path | None = None) -> str:
        """A page that draws the model and says what it cost; written to a file if one is named."""
        content = self.page()
        if path is not None:
            Path(path).write_text(content, encoding="utf-8")
        return content

    def __repr__(self) -> str:
        promise = f"epsilon {decimal_text(self.privacy.epsilon)}" if self.private else "NOT PRIVATE"
        return f"<{self.privacy.algorithm}: {self.summary} for '{self.domain.target}', {promise}>"

    # -- JSON -------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The model as a JSON text; docs/model.md describes it."""
        from privet.models.schema import dump

        return dump(self)

    def save(self, path: str | Path) -> None:
        """Write the model as JSON."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls: type[M], path: str | Path) -> M:
        """Read a model that `save` wrote."""
        where = shown(str(path), LONGEST_TEXT)
        try:
            text = read_text(path, LONGEST_MODEL)
        except UnicodeDecodeError:
            raise ModelError(f"'{where}' is not UTF-8 text, so it is no model.") from None
        except OSError as error:
            raise ModelError(f"cannot read the model '{where}' ({error.strerror}); check the path.") from None
        if text is None:
            raise ModelError(f"'{where}' has more than {LONGEST_MODEL} characters, so it is no model.")
        try:
            return cls.from_json(text)
        except ModelError as error:
            raise ModelError(f"{where}: {error}") from None

    @classmethod
    def from_json(cls: type[M], text: str) -> M:
        """Read the JSON text of a model; nothing in it is executed, and what is wrong with it is one sentence."""
        from privet.models.schema import parse

        found = parse(text)
        if not isinstance(found, cls):
            raise ModelError(f"the model is one of {found.summary}, no {cls.__name__}; read it with privet.Model.")
        return found


def softmax(logits: Floats) -> Floats:
    """Shares whose logarithms differ as the logits of a row do."""
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True))


def column_of(frame: Any, name: str) -> Any:
    """A column of the rows to predict."""
    if not hasattr(frame, "columns"):
        raise DataError(
            f"a model predicts for the rows of a frame with named columns, not of a {type(frame).__name__}."
        )
    columns = list(getattr(frame, "column_names", frame.columns))
    if name not in columns:
        raise DataError(f"the rows to predict have no column '{name}', which the model looks at.")
    if columns.count(name) > 1:
        raise DataError(f"the rows to predict have several columns '{name}', which the model looks at; keep one.")
    return frame[name]
