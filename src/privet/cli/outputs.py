"""Files that commands write: checked before anything is computed or charged, written whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from privet.errors import ModelError, QuestionError

_RESERVED = 2**20  # bytes that must be free for a file before a command starts
_MODEL_START = b'"privet-model"'  # in the first bytes of every model file


def check_output(path: Path | None, *, reads: Sequence[str | Path | None] = ()) -> None:
    """Refuse a file that cannot be written, or whose writing would lose something.

    Parameters
    ----------
    path : Path or None
        The file to write; None for none.
    reads : sequence of str, Path or None
        Files that the command reads. None of them is written.

    Raises
    ------
    QuestionError
        It is a folder, its folder does not exist or cannot be written to, the disk is full, or the file is a ledger,
        a model or one that the command reads.
    """
    if path is None:
        return
    _check_place(path)
    if any(source is not None and _same_file(path, Path(source)) for source in reads):
        raise QuestionError(f"'{path}' is a file that this command reads; write to another one.")
    if path.suffix == ".ledger":
        raise QuestionError(f"'{path}' is the name of a ledger; write to another file.")
    if is_model(path):
        raise QuestionError(f"'{path}' is a model, which would be lost; write to another file.")
    _check_folder(path)


def check_model_output(path: Path, *, force: bool, reads: Sequence[str | Path | None] = ()) -> None:
    """Refuse a file for a model as `check_output` does, and one that exists unless `force` is true.

    Raises
    ------
    QuestionError
    """
    if force:
        if path.is_file() and not is_model(path):
            raise QuestionError(f"'{path}' is no model, and --force overwrites models alone; write to another file.")
        _check_place(path)
        _check_folder(path)
    elif path.is_file():
        raise QuestionError(f"'{path}' exists already; name another file with -o, or overwrite a model with --force.")
    else:
        check_output(path, reads=reads)


def is_model(path: Path) -> bool:
    """Return whether a file is a model that privet wrote."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return _MODEL_START in file.read(200)
    except OSError:
        return False


def write_text(path: Path, text: str) -> None:
    """Write a file as a whole: a reader sees the old one or the new one, and an error leaves the old one.

    Parameters
    ----------
    path : Path
    text : str

    Raises
    ------
    OSError
    """
    with written_whole(path) as file:
        file.write(text)


@contextmanager
def written_whole(path: Path | None) -> Iterator[TextIO]:
    """Open a file beside `path` for writing, and give it that name if the block ends well.

    Parameters
    ----------
    path : Path or None
        None for standard output. What is no plain file, such as /dev/stdout, is written as it is.

    Yields
    ------
    text file
    """
    if path is None:
        yield sys.stdout
        return
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8", newline="") as file:
            yield file
        return
    target = Path(os.path.realpath(path))  # a link stays a link
    unfinished = _beside(target)
    try:
        with unfinished.open("x", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, target)
    finally:
        with suppress(OSError):
            unfinished.unlink()


def write_paid_model(path: Path, text: str, key: str | None = None) -> None:
    """Write a model that was charged. If `path` cannot be written any more, write it elsewhere.

    Parameters
    ----------
    path : Path
    text : str
        The model as JSON.
    key : str, optional
        The key under which the ledger keeps the model.

    Raises
    ------
    ModelError
        The model is elsewhere; the sentence says where.
    """
    try:
        write_text(path, text)
        return
    except OSError as error:
        problem = f"cannot write '{path}' ({error.strerror})"
    again = f", and the same command with --key {key} writes it again at no cost" if key else ""
    for folder in dict.fromkeys((Path.cwd(), Path(tempfile.gettempdir()), Path.home())):
        elsewhere = folder / f"{path.stem}-{secrets.token_hex(4)}.json"
        with suppress(OSError):
            write_text(elsewhere, text)
            raise ModelError(f"{problem}, so the model was written to '{elsewhere}'; its charge stands{again}.")
    print(text, flush=True)
    raise ModelError(f"{problem}, nor any other folder, so the model was printed; its charge stands{again}.")


def write_receipt(model: Path, text: str | None) -> Path | None:
    """Write the receipt of a model beside it; without one, remove that of a model which was there before.

    Returns
    -------
    Path or None
        Where it is; None if there is none, or it cannot be written: the ledger makes it again at no cost.
    """
    path = model.with_name(f"{model.name}.receipt")
    with suppress(OSError, ValueError):
        if text is not None:
            write_text(path, text)
            return path
        if path.is_file() and '"privet-receipt"' in path.read_text(encoding="utf-8"):
            path.unlink()
    return None


def _check_place(path: Path) -> None:
    """Refuse a folder, and a name whose folder is not there."""
    if path.is_dir():
        raise QuestionError(f"'{path}' is a folder; name a file in it, as {path / 'model.json'}.")
    if not path.parent.exists():
        raise QuestionError(f"there is no folder '{path.parent}' to write '{path.name}' to; make it first.")
    if not path.parent.is_dir():
        raise QuestionError(f"'{path.parent}' is a file, so '{path.name}' cannot be written into it; name a folder.")


def _check_folder(path: Path) -> None:
    """Refuse a folder in which no file of some size can be made, by making one."""
    if path.exists() and not path.is_file():
        return  # a device or a pipe
    trial = _beside(Path(os.path.realpath(path)))
    try:
        with trial.open("xb") as file:
            if hasattr(os, "posix_fallocate"):
                with _unless_unsupported():
                    os.posix_fallocate(file.fileno(), 0, _RESERVED)
    except OSError as error:
        raise QuestionError(f"cannot write '{path}' ({error.strerror}); name another file. Nothing was done.") from None
    finally:
        with suppress(OSError):
            trial.unlink()


@contextmanager
def _unless_unsupported() -> Iterator[None]:
    """Pass over file systems that cannot reserve space."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.ENODEV):
            raise


def _beside(path: Path) -> Path:
    """Return a new name in the folder of a file."""
    return path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.part")


def _same_file(path: Path, other: Path) -> bool:
    """Return whether two names are those of one file."""
    with suppress(OSError):
        return path.samefile(other)
    return False
