"""A server in a process of its own, started as its owner starts it, and always stopped."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class ServerProcess:
    """`privet serve` with some words; what it prints is kept."""

    def __init__(self, *words: str, cwd: Path, command: tuple[str, ...] = (sys.executable, "-m", "privet")) -> None:
        self.lines: queue.Queue[str | None] = queue.Queue()
        self.said: list[str] = []
        self.token = ""
        self.process = subprocess.Popen(
            [*command, "serve", *words],
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PRIVET_TOKEN": ""},
        )
        assert self.process.stdout is not None and self.process.stderr is not None
        self._readers = [
            threading.Thread(target=self._read, args=(stream,), daemon=True)
            for stream in (self.process.stdout, self.process.stderr)
        ]
        for reader in self._readers:
            reader.start()
        self.url = self._until(" at http").rpartition(" at ")[2]

    def _read(self, stream) -> None:  # type: ignore[no-untyped-def]
        for line in stream:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def _until(self, words: str) -> str:
        ended = 0
        while True:
            line = self.lines.get(timeout=120)
            ended += line is None
            if line is None:
                assert ended < 2, f"the server has ended: {self.said}"
                continue
            self.said.append(line)
            if words in line:
                return line

    def first_token(self) -> str:
        """The token that is shown once."""
        if not self.token:  # its stream and that of the address are read by two threads: either may come first
            self.token = next((line for line in self.said if "pvt_a_" in line), "") or self._until("pvt_a_")
        return self.token

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it by a signal; return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(timeout=120)
        for reader in self._readers:
            reader.join()
        while not self.lines.empty():
            line = self.lines.get()
            self.said += [line] if line is not None else []
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return code


@contextmanager
def serving(*words: str, cwd: Path) -> Iterator[ServerProcess]:
    """A server that runs until the block ends."""
    server = ServerProcess(*words, cwd=cwd)
    try:
        yield server
    finally:
        server.stop(signal.SIGKILL)
