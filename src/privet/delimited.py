"""Text files whose cells are separated by commas, semicolons, tabs, bars or spaces, read in any encoding.

Tables are opened from comma-separated UTF-8 files with a header that names every column once. Owners have others:
a draft reads them as they are, and `convert` writes them as tables are opened.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path

from privet.errors import DataError
from privet.kernel import number_of

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
_WORDS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|", "pipe": "|", "space": " "}
_LOOKED_AT = 50  # records that a delimiter is detected by
_LONGEST_LINE = 2**24  # characters
_DECIMAL_COMMA = re.compile(r"\s*[+-]?[0-9]+,[0-9]+\s*")
_ORDER_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


class DelimitedFile:
    """A file of cells with delimiters.

    Parameters
    ----------
    path : Path
    names : sequence of str, optional
        The names of the columns, if the file has no header.
    delimiter : str, optional
        One character, or `comma`, `semicolon`, `tab`, `bar` or `space`; detected if left out.
    encoding : str, optional
        UTF-8 if left out, with or without a byte order mark.

    Attributes
    ----------
    names : list of str
        The names of the columns; a repeated one is numbered, `x`, `x.1`, as pandas does it.
    repeats : dict of int to int
        The places of columns whose name stands before, and the place where it stands first.
    notes : list of str
        What stands in the way of opening such a file as a table, and the command that converts it.

    Raises
    ------
    DataError
        The file has no header, or cannot be read this way.
    """

    def __init__(
        self,
        path: Path,
        *,
        names: Sequence[str] | None = None,
        delimiter: str | None = None,
        encoding: str | None = None,
    ) -> None:
        self.path, self._named = path, names is not None
        self.encoding = _checked_encoding(encoding)
        self._refuse_other_files()
        self.delimiter = self._detected() if delimiter is None else _checked_delimiter(delimiter)
        first = next(self._records(), [])
        if not any(cell.strip() for cell in first):
            raise DataError(f"'{path}' is empty or has an empty first line; its first line must name the columns.")
        self.repeated: list[str] = []
        self.repeats: dict[int, int] = {}
        if names is None:
            self._refuse_numbers(first)
            self.repeated = [name for name, times in Counter(first).items() if times > 1 and name.strip()]
            self.names = _numbered(first)
            self.repeats = {
                place: first.index(name) for place, name in enumerate(first) if name.strip() and name in first[:place]
            }
        else:
            self.names = _checked_names(path, names, len(first))

    def rows(self, *, private: bool = False) -> Iterator[list[str]]:
        """Yield the cells of every row; in a file with decimal commas, numbers with points.

        Parameters
        ----------
        private : bool, default False
            Whether rows are private: then a line with too many or too few cells is passed on without a word.

        Raises
        ------
        DataError
            A line has more or fewer cells than there are columns, or a quote is not closed.
        """
        for number, record in enumerate(self._records(strict=not private)):
            if number == 0 and not self._named:
                continue
            if len(record) != len(self.names) and not private:
                raise DataError(
                    f"line {self._line} of '{self.path}' has {len(record)} cells, the header names {len(self.names)}; "
                    f"repair the line, or say how cells are separated (now by {DELIMITERS.get(self.delimiter, 'it')})."
                )
            yield self._with_points(record)

    def check_header(self, counts: Sequence[Collection[str]]) -> None:
        """Refuse a first line that looks like a row.

        Parameters
        ----------
        counts : sequence of collections of str
            The texts of each column below the first line.

        Raises
        ------
        DataError
            Half of the names are values of their own columns.
        """
        alike = [name for name, texts in zip(self.names, counts, strict=True) if name in texts]
        if not self._named and 2 * len(alike) >= len(self.names) and alike:
            raise DataError(
                f"'{self.path}' has no header: {alike[0]!r} in its first line is also a value below it; name the "
                "columns with --names a,b,c (in Python, names=)."
            )

    @property
    def notes(self) -> list[str]:
        """What stands in the way of opening the file as a table, and the command that converts it."""
        reasons = []
        if self.delimiter != ",":
            reasons.append(f"separates its cells by {DELIMITERS.get(self.delimiter, repr(self.delimiter))}")
        if self.encoding != "utf-8-sig":
            reasons.append(f"is written in {self.encoding}")
        if self._named:
            reasons.append("has no header")
        if self.repeated:
            reasons.append(f"names the column {self.repeated[0]!r} twice")
        if not reasons:
            return []
        options = f" --encoding {self.encoding}" if self.encoding != "utf-8-sig" else ""
        options += " --names NAMES" if self._named else ""
        return [
            f"The sample {', '.join(reasons)}. Tables are opened from comma-separated UTF-8",
            "with a header that names every column once; convert a file of this form with",
            f"  privet domain convert FILE.csv -o NEW.csv{options}",
        ]

    # -- reading ----------------------------------------------------------------------------

    def _records(self, *, strict: bool = True) -> Iterator[list[str]]:
        """Yield the records of the file, its header among them; blank lines are none."""
        try:
            with self.path.open(encoding=self.encoding, newline="") as file:
                lines = (line.strip(" \r\n") + "\n" for line in file) if self.delimiter == " " else file
                reader = csv.reader(
                    lines, delimiter=self.delimiter, skipinitialspace=self.delimiter == " ", strict=strict
                )
                for record in reader:
                    self._line = reader.line_num
                    if record and not (self.delimiter == " " and record == [""]):
                        yield record
        except csv.Error:
            raise DataError(f"line {reader.line_num} of '{self.path}' is not CSV; check its quotes.") from None
        except UnicodeError:
            raise self._wrong_encoding() from None

    def _wrong_encoding(self) -> DataError:
        if self.encoding != "utf-8-sig":
            return DataError(f"'{self.path}' is not written in {self.encoding}; name another encoding.")
        return DataError(
            f"'{self.path}' is not UTF-8 text; if Windows or an old system wrote it, add --encoding latin-1 (in "
            "Python, encoding='latin-1')."
        )

    def _refuse_other_files(self) -> None:
        with self.path.open("rb") as file:
            start = file.read(4096)
        if self.encoding == "utf-8-sig" and start[:2] in _ORDER_MARKS:
            raise DataError(f"'{self.path}' is UTF-16 text; add --encoding utf-16 (in Python, encoding='utf-16').")
        if b"\0" in start and not self.encoding.startswith(("utf-16", "utf-32")):
            raise DataError(f"'{self.path}' is not a CSV file; give a CSV or Parquet sample or a .names codebook.")

    def _detected(self) -> str:
        """Return the delimiter that cuts the first line into most cells, and the next lines into as many."""
        best, delimiter = (0.0, 1), ","
        for candidate in DELIMITERS:
            self.delimiter = candidate
            try:
                first, *others = list(islice(self._records(), _LOOKED_AT)) or [[]]
            except DataError:
                if not self._is_text():
                    raise
                continue
            agreeing = sum(len(record) == len(first) for record in others) / max(len(others), 1) if others else 1.0
            if len(first) > 1 and (candidate != " " or agreeing == 1) and (agreeing, len(first)) > best:
                # Spaces also stand inside cells: they count only where no other delimiter does.
                if candidate == " " and best[0] > 0:
                    continue
                best, delimiter = (agreeing, len(first)), candidate
        return delimiter

    def _is_text(self) -> bool:
        with self.path.open(encoding=self.encoding) as file:
            try:
                file.read(2**20)
            except UnicodeError:
                return False
        return True

    def _refuse_numbers(self, header: Sequence[str]) -> None:
        numbers = [name for name in header if (number := number_of(name)) is not None and not 1800 <= number <= 2200]
        if numbers:
            raise DataError(
                f"'{self.path}' has no header: {numbers[0]!r} in its first line is no name; name the columns with "
                "--names a,b,c (in Python, names=)."
            )

    def _with_points(self, record: list[str]) -> list[str]:
        """Return cells with decimal points for decimal commas, which only files without commas can have."""
        if self.delimiter == ",":
            return record
        return [cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell) else cell for cell in record]


def convert(
    path: Path,
    output: Path,
    *,
    names: Sequence[str] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
) -> None:
    """Write a file with delimiters as a table is opened: comma-separated UTF-8, with a header of different names.

    Parameters
    ----------
    path, output : Path
        What is read, and what is written. An existing file is not replaced.
    names, delimiter, encoding
        As of `DelimitedFile`.

    Raises
    ------
    DataError
        The file cannot be read this way. Nothing is left of the output.
    """
    file = DelimitedFile(path, names=names, delimiter=delimiter, encoding=encoding)
    try:
        with output.open("x", encoding="utf-8", newline="") as target:
            writer = csv.writer(target)
            writer.writerow(file.names)
            writer.writerows(file.rows(private=True))  # a table leaves lines of another shape out
    except DataError:
        output.unlink()
        raise


def _checked_delimiter(delimiter: str) -> str:
    delimiter = _WORDS.get(delimiter.lower(), delimiter)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise DataError(f"a delimiter is one character, or comma, semicolon, tab, bar or space, not {delimiter!r}.")
    return delimiter


def _checked_encoding(encoding: str | None) -> str:
    if encoding is None:
        return "utf-8-sig"
    try:
        name = codecs.lookup(encoding).name
        b"".decode(name)
    except (LookupError, ValueError):
        raise DataError(f"there is no encoding {encoding!r}; common ones are utf-8, latin-1 and utf-16.") from None
    return "utf-8-sig" if name == "utf-8" else name


def _checked_names(path: Path, names: Sequence[str], columns: int) -> list[str]:
    names = [name.strip() for name in names]
    if len(names) != columns:
        raise DataError(f"'{path}' has {columns} columns and {len(names)} names were given; name every column.")
    if not all(names) or len(set(names)) < len(names):
        raise DataError("the names of columns must be different and not empty; mend the list.")
    return names


def _numbered(header: Sequence[str]) -> list[str]:
    """Return names of which each stands once.

    >>> _numbered(["a", "b", "a", "a", "a.1", "", ""])
    ['a', 'b', 'a.2', 'a.3', 'a.1', '', '']
    """
    taken, names = set(header), []
    seen: set[str] = set()
    for name in header:
        free = name
        number = 0
        while name.strip() and (free in seen or (number > 0 and free in taken)):
            number += 1
            free = f"{name}.{number}"
        seen.add(free)
        names.append(free)
    return names
