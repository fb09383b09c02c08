"""The records of a CSV file, read in bounded memory whatever the file holds.

A record is what Python's `csv` module reads with its default dialect:

* fields end at a comma, records at a line feed, a carriage return, or both in this order;
* a field that begins with a double quote ends at the next one that is not doubled; commas and line ends inside
  it are part of it; what follows the closing quote, up to the next comma or line end, is added to it as it is;
* a double quote anywhere else is an ordinary character; an empty line is no record.

Beyond that: a byte order mark at the start of the file is skipped; bytes that are not UTF-8 are read as U+FFFD; a
record with another number of fields than the header is left out; a field is cut after `LONGEST_FIELD` bytes, which no
declared value and no number reaches; a file that ends inside quotes is refused.

Where a record begins depends on nothing but the bytes before it, wherever a buffer ends: that is why no SQL engine cuts
the file. (DuckDB forgets at the end of a buffer that it is inside quotes, and invents records.)
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from privet.compiled import compiled
from privet.errors import DataError
from privet.kernel.column import LONGEST_NUMBER

LONGEST_FIELD = LONGEST_NUMBER + 1  # bytes
LONGEST_HEADER = 2**24  # characters
PIECE = 2**25  # bytes: a piece ends with the first record at or beyond this size
_CHUNK = 2**22  # bytes read at once
_QUOTE_MARK, _COMMA, _LINE_FEED, _RETURN = b'",\n\r'
_ORDER_MARK = b"\xef\xbb\xbf"
_OTHER_SIGNS = {";": "semicolons", "\t": "tabs", "|": "vertical bars", " ": "spaces"}  # between columns
_OTHER_FILES = {  # how files begin that are no text in UTF-8
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
    b"PK\x03\x04": "a workbook or a zip archive; save its table as CSV",
    b"\xd0\xcf\x11\xe0": "an old workbook; save its table as CSV",
    b"\x1f\x8b": "compressed by gzip; unpack it",
    b"PAR1": "a Parquet file; give it the ending .parquet",
}

# Where the scanner is inside a record.
_NEW, _PLAIN, _QUOTED, _QUOTE = range(4)  # _QUOTE: after a quote inside quotes, which ends them unless another follows
# What the scanner remembers between two calls, by place in an array.
_MODE, _FIELD, _LENGTH, _START, _AFTER_RETURN, _RECORDS, _MISSHAPEN, _WRITTEN = range(8)


class CsvFile:
    """A CSV file: the names in its header, and its records.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text('sex,note,age\\nf,"a, b\\nc",31\\nm,,"4""5"\\n')
    >>> file = CsvFile(path)
    >>> file.names
    ['sex', 'note', 'age']
    >>> b"".join(file.pieces(["age", "sex"]))
    b'"f","31"\\n"m","4""5"\\n'
    >>> file.records
    2
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.names = _header(path)
        self.records = 0  # that `pieces` has read, without the header
        self.misshapen = 0  # those of them that have more or fewer fields than the header

    def fields(self, names: Sequence[str]) -> list[str]:
        """Those of the names that the file has, in its order: the fields of `pieces`."""
        return [name for name in self.names if name in names]

    def check_names(self, names: Sequence[str]) -> None:
        """Refuse a header that lacks one of the names, and say why as far as the names tell it.

        The sentence depends on where the given names occur in the header, and on no other name of it: a file without a
        header begins with a row.

        Raises
        ------
        DataError
        """
        missing = [name for name in names if name not in self.names]
        if not missing:
            return
        for sign, word in _OTHER_SIGNS.items():
            cells = {cell.strip(' "') for cell in ",".join(self.names).split(sign)}
            if len(names) > 1 and sum(name in cells for name in names) > len(names) - len(missing):
                raise DataError(f"'{self._path}' separates its columns by {word}; save it with commas between them.")
        what = f"the table '{self._path}' has no column '{missing[0]}', which the domain declares"
        if any(name.strip().casefold() == missing[0].strip().casefold() for name in self.names):
            raise DataError(
                f"{what}, but one that differs in spaces around the name or in upper and lower case; write both alike."
            )
        if len(missing) == len(names) > 1:
            raise DataError(
                f"the first line of '{self._path}' names none of the columns that the domain declares; add a header "
                "line if there is none, and check that the domain is of this file."
            )
        raise DataError(f"{what}; check the domain file.")

    def pieces(self, names: Sequence[str]) -> Iterator[bytes]:
        """Yield the records with these fields alone, every field in quotes, in pieces of about `PIECE` bytes.

        Raises
        ------
        DataError
            If the file ends inside quotes. It is raised in place of the last piece.
        """
        keep = np.array([name in names for name in self.names])
        largest = int(keep.sum()) * (2 * LONGEST_FIELD + 3)  # a record, with every quote doubled
        out = np.empty(PIECE + largest + 3 * _CHUNK, dtype=np.uint8)
        state = np.zeros(8, dtype=np.int64)
        first = True
        for chunk in _chunks(self._path):
            at = 0
            while at < len(chunk):
                at = _scan(chunk, at, out, keep, state, LONGEST_FIELD, 0 if first else PIECE)
                if first and state[_RECORDS]:  # the header
                    first = False
                    _take(out, state)
                elif state[_START] >= PIECE:
                    yield _take(out, state)
        if state[_MODE] == _QUOTED:
            raise DataError(
                f"'{self._path}' ends inside quotes: a double quote was never closed. Close it, and write two for one "
                "inside a quoted field."
            )
        if state[_MODE] != _NEW or state[_FIELD]:  # the last line has no end
            _scan(np.frombuffer(b"\n", dtype=np.uint8), 0, out, keep, state, LONGEST_FIELD, PIECE)
            if first:
                _take(out, state)
        self.records, self.misshapen = max(0, int(state[_RECORDS]) - 1), int(state[_MISSHAPEN])
        yield _take(out, state)


def _chunks(path: Path) -> Iterator[NDArray[np.uint8]]:
    with path.open("rb") as file:
        chunk = file.read(_CHUNK).removeprefix(_ORDER_MARK)
        while chunk:
            yield np.frombuffer(chunk, dtype=np.uint8)
            chunk = file.read(_CHUNK)


def _take(out: NDArray[np.uint8], state: NDArray[np.int64]) -> bytes:
    """Remove the finished records from the buffer and return them, what is not UTF-8 as U+FFFD; keep the unfinished."""
    start, written = int(state[_START]), int(state[_WRITTEN])
    taken = out[:start].tobytes()
    out[: written - start] = out[start:written].copy()
    state[_START], state[_WRITTEN] = 0, written - start
    try:
        taken.decode()
    except UnicodeDecodeError:
        return taken.decode(errors="replace").encode()  # never takes an ASCII byte for a part of another
    return taken


@partial(compiled, nogil=True)
def _scan(chunk, at, out, keep, state, longest, enough):  # type: ignore[no-untyped-def]
    """Read a chunk from `at` on and write its records; stop where a record ends with `enough` bytes of them written.

    `keep` says which fields are written. Returns where it stopped.
    """
    mode, field, length = state[_MODE], state[_FIELD], state[_LENGTH]
    start, written, records = state[_START], state[_WRITTEN], state[_RECORDS]
    after_return = state[_AFTER_RETURN]
    fields = len(keep)
    kept = field < fields and keep[field]
    while at < len(chunk):
        byte = chunk[at]
        at += 1
        if after_return:
            after_return = 0
            if byte == _LINE_FEED:
                continue
        if mode == _QUOTED:
            if byte == _QUOTE_MARK:
                mode = _QUOTE
                continue
        elif mode == _QUOTE and byte == _QUOTE_MARK:
            mode = _QUOTED
        elif byte == _COMMA or byte == _LINE_FEED or byte == _RETURN:
            ends = byte != _COMMA
            after_return = byte == _RETURN
            if ends and mode == _NEW and field == 0:  # an empty line
                continue
            if kept:
                if mode == _NEW:
                    out[written] = _QUOTE_MARK
                    written += 1
                out[written], out[written + 1] = _QUOTE_MARK, _COMMA
                written += 2
            mode, field, length = _NEW, field + 1, 0
            if ends:
                records += 1
                if field == fields:
                    out[written - 1] = _LINE_FEED  # for the comma after the last field
                else:
                    written = start
                    state[_MISSHAPEN] += 1
                start, field = written, 0
            kept = field < fields and keep[field]
            if ends and start >= enough:
                break
            continue
        else:
            quoted = mode == _NEW and byte == _QUOTE_MARK
            if mode == _NEW and kept:
                out[written] = _QUOTE_MARK
                written += 1
            mode = _QUOTED if quoted else _PLAIN
            if quoted:
                continue
        if kept and length < longest:
            length += 1
            out[written] = byte
            written += 1
            if byte == _QUOTE_MARK:
                out[written] = _QUOTE_MARK
                written += 1
    state[_MODE], state[_FIELD], state[_LENGTH] = mode, field, length
    state[_START], state[_WRITTEN], state[_RECORDS] = start, written, records
    state[_AFTER_RETURN] = after_return
    return at


def _lines(file: TextIO, path: Path) -> Iterator[str]:
    """Yield the lines of a header, and refuse one of more than `LONGEST_HEADER` characters."""
    left = LONGEST_HEADER
    while line := file.readline(left + 1):
        if len(line) > left:
            raise DataError(
                f"the header of '{path}' has more than {LONGEST_HEADER} characters; shorten the names of its columns."
            )
        left -= len(line)
        yield line


def _header(path: Path) -> list[str]:
    """The column names of a CSV file: its first record, whatever bytes come after it."""
    names: list[str] = []
    try:
        with path.open("rb") as raw:
            start = raw.read(8)
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            names = next((record for record in csv.reader(_lines(file, path)) if record), [])
    except OSError as error:
        raise DataError(f"cannot read '{path}' ({error.strerror}); check who may read it.") from None
    except csv.Error:
        pass
    for beginning, what in _OTHER_FILES.items():
        if start.startswith(beginning):
            raise DataError(f"'{path}' is {what}.")
    if not start:
        raise DataError(f"'{path}' is empty; it needs a first line with the names of the columns.")
    if not any(names):
        raise DataError(f"the first line of '{path}' is not a list of column names in UTF-8; add a header line.")
    try:
        ",".join(names).encode()
    except UnicodeEncodeError:
        raise DataError(
            f"the first line of '{path}' is not a list of column names in UTF-8; save the file as UTF-8."
        ) from None
    return names
