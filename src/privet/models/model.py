"""Model: what every published model can do. It predicts, is drawn, saved and loaded.

A model consists of releases and public facts alone, so its file holds all there is to know about it.
There are two kinds: `Ensemble` (trees) and `Tables` (a sum of small tables).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from privet import pictures
from privet.errors import DataError, DomainError, ModelError, did_you_mean
from privet.kernel import LONGEST_MODEL, LONGEST_TEXT, Domain
from privet.models.privacy_record import Privacy
from privet.text import read_text, shown

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FORMAT, VERSION = "privet-model", 1  # docs/reference/model.md describes the format

M = TypeVar("M", bound="Model")


class Model(ABC):
    """A published model over a public domain, with its privacy record.

    Attributes
    ----------
    domain : Domain
        The public domain of the rows.
    privacy : Privacy
        What the model promises and what it cost.
    """

    domain: Domain
    privacy: Privacy

    _kinds: ClassVar[dict[str, type[Model]]] = {}  # by what their JSON has

    def __init_subclass__(cls, *, key: str, **more: Any) -> None:
        """Let models of this kind be read: their JSON has the `key`."""
        super().__init_subclass__(**more)
        Model._kinds[key] = cls

    @property
    def private(self) -> bool:
        """Whether the model is differentially private."""
        return self.privacy.private

    # -- prediction -------------------------------------------------------------------------

    @abstractmethod
    def predict_proba(self, frame: Any) -> Floats:
        """Predict the share of each class.

        Parameters
        ----------
        frame : frame
            Rows with named columns; others than those of the domain are ignored.

        Returns
        -------
        array of float
            [row, class], in the order of the domain.

        Raises
        ------
        DataError
            A column that the model looks at is missing, or is there twice.
        """

    @abstractmethod
    def predict_codes(self, frame: Any) -> Integers:
        """Predict the class of each row, as its number in the domain.

        Parameters
        ----------
        frame : frame
            Rows with named columns.

        Returns
        -------
        array of int
            The class with the largest share, the first of equals.

        Raises
        ------
        DataError
            A column that the model looks at is missing, or is there twice.
        """

    def predict(self, frame: Any) -> NDArray[Any]:
        """Predict the class of each row.

        Parameters
        ----------
        frame : frame
            Rows with named columns.

        Returns
        -------
        array
            Values of the target.

        Raises
        ------
        DataError
            A column that the model looks at is missing, or is there twice.
        """
        return np.asarray(self.class_values[self.predict_codes(frame)])

    @cached_property
    def class_values(self) -> NDArray[Any]:
        """The classes as an array, of objects if they have several types."""
        values = list(self.domain.classes)
        kinds = {type(value) for value in values}
        return np.array(values, dtype=None if len(kinds) == 1 else object)

    # -- description ------------------------------------------------------------------------

    @property
    @abstractmethod
    def summary(self) -> str:
        """What the model consists of, such as "a tree with 5 leaves"."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return the size of the model, as a dict for JSON."""

    @abstractmethod
    def details(self) -> dict[str, Any]:
        """Return the trees or tables of the model, as a dict for JSON."""

    @abstractmethod
    def rules(self) -> list[str]:
        """Return a sentence for each leaf of a tree or cell of a table."""

    def text(self, max_depth: int | None = None) -> str:
        """Return the model as text.

        Parameters
        ----------
        max_depth : int, optional
            Show trees no deeper than this; tables have no depth.

        Returns
        -------
        str
        """
        return pictures.text(self, max_depth)

    def page(self) -> str:
        """Return an HTML page that draws the model. It loads nothing from elsewhere."""
        return pictures.page(self)

    def _repr_html_(self) -> str:
        """Return the picture that a notebook shows."""
        return pictures.picture(self)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return an HTML page that draws the model and lists what it cost.

        Parameters
        ----------
        path : str or Path, optional
            Also write the page to this file.

        Returns
        -------
        str
        """
        content = self.page()
        if path is not None:
            Path(path).write_text(content, encoding="utf-8")
        return content

    def __repr__(self) -> str:
        promise = self.privacy.promise if self.private else "NOT PRIVATE"
        return f"<{self.privacy.algorithm}: {self.summary} for '{self.domain.target}', {promise}>"

    # -- JSON -------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Return the model as JSON; docs/reference/model.md describes the format."""
        content = {
            "format": FORMAT,
            "version": VERSION,
            "privacy": self.privacy.to_dict(),
            "domain": self.domain.to_toml(),
            **self._content(),
        }
        return json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n"

    @abstractmethod
    def _content(self) -> dict[str, Any]:
        """Return what the JSON has besides the privacy record and the domain."""

    @classmethod
    @abstractmethod
    def _read(cls, content: dict[str, Any], domain: Domain) -> Model:
        """Return the model that such content describes; a ModelError if it describes none."""

    def save(self, path: str | Path) -> None:
        """Write the model as JSON.

        Parameters
        ----------
        path : str or Path
        """
        Path(path).write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls: type[M], path: str | Path) -> M:
        """Read a model that `save` wrote.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        Model

        Raises
        ------
        ModelError
            The file cannot be read, or is not a model of this kind.
        """
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
        """Read a model from JSON. Nothing in the text is executed.

        Parameters
        ----------
        text : str
            What `to_json` returned.

        Returns
        -------
        Model

        Raises
        ------
        ModelError
            The text is not a model of this kind. The message is one sentence.
        """
        content, domain = _parsed(text)
        model = Model._kinds["tables" if "tables" in content else "trees"]._read(content, domain)
        if not isinstance(model, cls):
            raise ModelError(f"the model is one of {model.summary}, no {cls.__name__}; read it with privet.Model.")
        return model


def _parsed(text: str) -> tuple[dict[str, Any], Domain]:
    """Return what the JSON of a model says, which anybody may have sent, and its domain."""
    if len(text) > LONGEST_MODEL:
        raise ModelError(f"the model has more than {LONGEST_MODEL} characters; it was not written by privet.")
    try:
        content = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ModelError("the model is not valid JSON; it was cut short, or is no model that privet wrote.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ModelError("this JSON is not a privet model.")
    if content.get("version") != VERSION or content["version"] is True:
        raise ModelError(f"the model has a version other than {VERSION}; read it with the privet that wrote it.")
    try:
        declared = content.get("domain")
        domain = Domain.parse(declared if isinstance(declared, str) else "")
        domain.to_toml().encode()  # half a surrogate pair cannot be written
    except (DomainError, DataError) as error:
        raise ModelError(f"the model's domain cannot be used: {error}") from None
    except Exception:
        raise ModelError("the model's domain cannot be used; it was not written by privet.") from None
    if domain.target is None:
        raise ModelError("the model's domain has no target.")
    return content, domain


def _no_constant(name: str) -> float:
    """Refuse NaN and Infinity, which Python's JSON reads."""
    raise ValueError(name)


def softmax(logits: Floats) -> Floats:
    """Return the class shares that belong to logits.

    Parameters
    ----------
    logits : array of float
        [..., class]

    Returns
    -------
    array of float
        Positive shares of the same shape, which add up to 1 over the classes.
    """
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True))


def column_of(frame: Any, name: str) -> Any:
    """Return a column of the rows to predict.

    Parameters
    ----------
    frame : frame
    name : str

    Returns
    -------
    column of the frame

    Raises
    ------
    DataError
        There is no such column or more than one, or the rows have no named columns.
    """
    if not hasattr(frame, "columns"):
        raise DataError(
            f"a model predicts for the rows of a frame with named columns, not of a {type(frame).__name__}."
        )
    columns = list(getattr(frame, "column_names", frame.columns))
    if name not in columns:
        meant = did_you_mean(name, map(str, columns))
        raise DataError(f"the rows to predict have no column '{name}', which the model looks at{meant}.")
    if columns.count(name) > 1:
        raise DataError(f"the rows to predict have several columns '{name}', which the model looks at; keep one.")
    return frame[name]
