"""A bar that shows the progress of a fit: one in a notebook, one line on a terminal."""

from __future__ import annotations

import html
import shutil
import sys
from collections.abc import Callable
from typing import Any, TextIO

from privet.learners.algorithm import Progress

_CELLS = 16  # letters of a bar on a terminal


class ProgressBar:
    """Shows the progress of one fit where it runs: what `verbose=True` means.

    In a notebook it is one bar, and on a terminal one line, that is written anew with each step; in a file or a pipe
    each step has a line of its own.

    Parameters
    ----------
    stream : text file, optional
        Where lines go; standard error if left out.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._display = _notebook_display()
        self._handle: Any = None
        self._last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        """Show a step that begins."""
        self._last = progress
        if self._display is not None:
            self._show(progress.done, str(progress))
        elif self._stream.isatty():
            self._write("\r", _line(progress), "\x1b[K")
        else:
            self._write(str(progress), "\n")

    def close(self, finished: bool) -> None:
        """Show that the fit has ended.

        Parameters
        ----------
        finished : bool
            Whether it has its model; else the bar stays where it is.
        """
        last = self._last
        if last is None:
            return
        if self._display is not None and finished:
            self._show(last.total or 1, "fitted")
        elif self._display is None and self._stream.isatty():
            self._write(*["\r", "fitted", "\x1b[K"] * finished, "\n")

    def _write(self, *texts: str) -> None:
        self._stream.write("".join(texts))
        self._stream.flush()

    def _show(self, done: int, text: str) -> None:
        """Draw the bar, or draw it anew."""
        assert self._display is not None and self._last is not None
        total = self._last.total
        value = f'value="{done}" max="{total}"' if total else ""  # without them a bar says that something goes on
        bar = f'<progress {value} style="width:16em"></progress> {html.escape(text)}'
        bundle = {"text/plain": text, "text/html": bar}
        if self._handle is None:
            self._handle = self._display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def _notebook_display() -> Callable[..., Any] | None:
    """Return IPython's `display` if this process is the kernel of a notebook; else None."""
    module = sys.modules.get("IPython")  # not imported: no notebook runs without it
    shell = getattr(module, "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is None:
        return None
    display: Callable[..., Any] | None = getattr(sys.modules.get("IPython.display"), "display", None)
    return display


def _line(progress: Progress) -> str:
    """Return a step with a bar before it, as much as fits on the terminal."""
    filled = round(_CELLS * progress.done / progress.total) if progress.total else 0
    line = f"{'█' * filled}{'░' * (_CELLS - filled)} {progress}" if progress.total else str(progress)
    return line[: max(20, shutil.get_terminal_size().columns - 1)]
