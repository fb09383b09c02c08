"""What earlier choices came to: an append-only file of rewards, each with its origin.

A policy that learns from rewards publishes them. So a reward is clean or it is refused, by its type: computed
from rows that somebody declared public (`Public`, with an origin), or itself released by a charged question
(`Release`). An accuracy measured on private rows without noise, a running time, the number of failures are
neither; they cannot be written down. What a policy learned from charged rewards carries their origins in its header.
"""

from __future__ import annotations

import functools
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from privet.errors import PrivacyError, QuestionError
from privet.release import Public, Release, clean_value

SYNTHETIC, PUBLIC, CHARGED = "synthetic", "public", "charged"
ORIGINS = (SYNTHETIC, PUBLIC, CHARGED)

WAIT_SECONDS = 60.0  # for other processes that write into the same file

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT, site TEXT NOT NULL, run TEXT NOT NULL, data TEXT NOT NULL,
    context TEXT NOT NULL, UNIQUE (site, run));
CREATE TABLE IF NOT EXISTS rewards (
    id INTEGER PRIMARY KEY AUTOINCREMENT, run INTEGER NOT NULL REFERENCES runs, branch TEXT NOT NULL,
    reward REAL NOT NULL, origin TEXT NOT NULL, source TEXT NOT NULL, UNIQUE (run, branch));
CREATE TABLE IF NOT EXISTS costs (
    id INTEGER PRIMARY KEY AUTOINCREMENT, reward INTEGER NOT NULL UNIQUE REFERENCES rewards, cost TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS nodes (
    id INTEGER PRIMARY KEY AUTOINCREMENT, run INTEGER NOT NULL REFERENCES runs, branch TEXT NOT NULL,
    share REAL NOT NULL, context TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS nodes_run ON nodes (run);
"""
_SCHEMA += "".join(
    f"CREATE TRIGGER IF NOT EXISTS {table}_{verb} BEFORE {verb} ON {table} "
    "BEGIN SELECT RAISE(ABORT, 'append-only'); END;\n"
    for table in ("runs", "rewards", "costs", "nodes")
    for verb in ("UPDATE", "DELETE")
)
_ROWS = "FROM rewards JOIN runs ON runs.id = rewards.run"


@dataclass(frozen=True)
class NodeChoice:
    """The choice at one node of a run, and the share of the run's rows that it was about."""

    branch: str
    share: float
    context: Mapping[str, Any]


@dataclass(frozen=True)
class HistoryRow:
    """One branch of one run, and its reward. Rows of one `run` share their context, runs on one `data` their rows.

    A run in which several nodes chose, each by itself, has one reward for all of them: its `branch` is empty, and
    `nodes` says what they chose.
    """

    site: str
    run: str
    data: str
    context: Mapping[str, Any]
    branch: str
    reward: float
    origin: str
    source: str
    cost: Fraction | None = None
    nodes: tuple[NodeChoice, ...] = ()

    @property
    def choices(self) -> tuple[tuple[str, float, Mapping[str, Any]], ...]:
        """What was chosen: branch, share of the run, context."""
        if not self.branch:
            return tuple((node.branch, node.share, {**self.context, **node.context}) for node in self.nodes)
        return ((self.branch, 1.0, self.context),)

    @property
    def described(self) -> str:
        """Where the reward comes from. Synthetic rows come from thousands of seeds, and every run has its ledger entry:
        the fingerprint of a policy tells these apart."""
        return self.origin if self.origin == SYNTHETIC else f"{self.origin}: {self.source.split(', ledger entry')[0]}"


class History:
    """A history in a file that programs and processes may share, or in memory.

    >>> history = History()
    >>> context = {"log rows": Public(8.5)}
    >>> history.append("learner", context, "boosted", Public(0.83, origin="synthetic: trees 7"), run="trees 7")
    >>> history.append("learner", context, "prior", 0.61, run="trees 7")
    Traceback (most recent call last):
    privet.errors.PrivacyError: a float as the reward of 'prior' cannot be kept: it may come from private rows. Give
    the release of a charged question, or Public(reward, origin="synthetic: ...") if the rows were public.
    >>> [(row.branch, row.reward, row.origin) for row in history]
    [('boosted', 0.83, 'synthetic')]
    """

    def __init__(self, path: str | Path = ":memory:") -> None:
        self.path = str(path)
        self._local = threading.local()
        self._lock = threading.RLock()
        self._shared = self._open() if self.path == ":memory:" else None
        self._connection.execute("SELECT count(*) FROM runs")

    def _open(self) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(
                self.path, WAIT_SECONDS, isolation_level=None, check_same_thread=self.path != ":memory:"
            )
            connection.executescript(_SCHEMA)
        except sqlite3.Error:
            raise QuestionError(
                f"'{self.path}' is no history and cannot become one; name a new file in a folder that can be written."
            ) from None
        return connection

    @property
    def _connection(self) -> sqlite3.Connection:
        """The connection of this thread of this process: SQLite's must not cross a fork."""
        if self._shared is not None:
            return self._shared
        if getattr(self._local, "process", None) != os.getpid():
            self._local.connection, self._local.process = self._open(), os.getpid()
        connection: sqlite3.Connection = self._local.connection
        return connection

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Write all or nothing, after those who write now."""
        with self._lock, self._connection as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                raise QuestionError(
                    f"the history '{self.path}' is being written by others for {WAIT_SECONDS:.0f} seconds, or cannot "
                    "be written; try again."
                ) from None
            yield connection

    def __reduce__(self) -> tuple[type[History], tuple[str]]:
        """Go to another process as the name of the file."""
        if self._shared is not None:
            raise QuestionError("a history in memory stays in its process; give History a file to share it.")
        return History, (self.path,)

    def append(
        self,
        site: str,
        context: Mapping[str, Release | Public],
        branch: str,
        reward: Release | Public,
        *,
        run: str,
        data: str = "",
        cost: Fraction | None = None,
    ) -> None:
        """Add the reward of one branch. A branch of a run that is there already stays as it is.

        Parameters
        ----------
        site : str
            The name of the choice.
        context : mapping of str to Release or Public
            What it was made from.
        branch : str
        reward : Release or Public
            Charged, or measured on public rows and with an origin.
        run : str
            The name of the run.
        data : str, optional
            The name of the rows it was about; by default they are its own.
        cost : Fraction, optional
            What the run was charged.

        Raises
        ------
        PrivacyError
            The reward or a value of the context may come from private rows. Nothing was written.
        QuestionError
            The run is there with another context, or the file cannot be written.
        """
        self.extend(site, context, {branch: reward}, run=run, data=data, cost=cost)

    def extend(
        self,
        site: str,
        context: Mapping[str, Release | Public],
        rewards: Mapping[str, Release | Public],
        *,
        run: str,
        data: str = "",
        cost: Fraction | None = None,
        nodes: Sequence[NodeChoice] = (),
    ) -> None:
        """Add the rewards of several branches of one run, all or none of them; see `append`."""
        seen = json.dumps({name: _plain(clean_value(value)) for name, value in context.items()})
        rows = [(branch, *_certified(branch, reward)) for branch, reward in rewards.items()]
        with self._writing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO runs (site, run, data, context) VALUES (?, ?, ?, ?)",
                (site, run, data or run, seen),
            )
            query = "SELECT id, data, context FROM runs WHERE site = ? AND run = ?"
            number, *known_as = connection.execute(query, (site, run)).fetchone()
            if known_as != [data or run, seen]:
                raise QuestionError(f"the run '{run}' of '{site}' is there with another context; give it another name.")
            for row in rows:
                added = connection.execute(
                    "INSERT OR IGNORE INTO rewards (run, branch, reward, origin, source) VALUES (?, ?, ?, ?, ?)",
                    (number, *row),
                )
                if added.rowcount and cost is not None:
                    connection.execute("INSERT INTO costs (reward, cost) VALUES (?, ?)", (added.lastrowid, str(cost)))
            connection.executemany(
                "INSERT INTO nodes (run, branch, share, context) VALUES (?, ?, ?, ?)",
                [(number, node.branch, node.share, json.dumps(dict(node.context))) for node in nodes],
            )

    def rows(self, site: str | None = None) -> list[HistoryRow]:
        """All rows in the order they were written, or those of one site."""
        columns = "runs.id, site, runs.run, data, context, branch, rewards.reward, origin, source, cost"
        costs = "LEFT JOIN costs ON costs.reward = rewards.id"
        where, values = ("", ()) if site is None else (" WHERE site = ?", (site,))
        read = functools.cache(json.loads)  # runs have few contexts between them
        nodes: dict[int, list[NodeChoice]] = {}
        found = []
        with self._lock, self._connection as connection:
            connection.execute("BEGIN")  # both questions see the same runs
            own = f"SELECT nodes.run, branch, share, nodes.context FROM nodes JOIN runs ON runs.id = nodes.run{where}"
            for number, branch, share, text in connection.execute(f"{own} ORDER BY nodes.id", values):
                nodes.setdefault(number, []).append(NodeChoice(branch, share, read(text)))
            query = f"SELECT {columns} {_ROWS} {costs}{where} ORDER BY rewards.id"
            for number, name, run, data, text, branch, reward, origin, source, cost in connection.execute(
                query, values
            ):
                paid = None if cost is None else Fraction(cost)
                of_run = () if branch else tuple(nodes.get(number, ()))
                found.append(HistoryRow(name, run, data, read(text), branch, reward, origin, source, paid, of_run))
        return found

    def last(self, site: str) -> int:
        """A number that changes whenever a reward of the site is added."""
        query = f"SELECT max(rewards.id) {_ROWS} WHERE site = ?"
        with self._lock:
            return int(self._connection.execute(query, (site,)).fetchone()[0] or 0)

    def runs(self, site: str) -> set[str]:
        """The runs that are there."""
        with self._lock:
            return {run for (run,) in self._connection.execute("SELECT run FROM runs WHERE site = ?", (site,))}

    def origins(self, site: str) -> list[str]:
        """Where the rewards of a site come from: what a policy that learns from them has to say."""
        query = f"SELECT origin, source, count(*) {_ROWS} WHERE site = ? GROUP BY origin, source ORDER BY rewards.id"
        found: dict[str, int] = {}
        for origin, source, count in self._connection.execute(query, (site,)):
            # synthetic rows come from thousands of seeds: their number says enough
            name = origin if origin == SYNTHETIC else f"{origin}: {source}"
            found[name] = found.get(name, 0) + count
        return [f"{name} ({count} rewards)" for name, count in found.items()]

    def __iter__(self) -> Iterator[HistoryRow]:
        return iter(self.rows())

    def __len__(self) -> int:
        with self._lock:
            return int(self._connection.execute("SELECT count(*) FROM rewards").fetchone()[0])

    def close(self) -> None:
        """Close the file, in this thread."""
        self._connection.close()
        self._local = threading.local()

    def __repr__(self) -> str:
        return f"<history '{self.path}', {len(self)} rewards>"


def _certified(branch: str, reward: object) -> tuple[float, str, str]:
    """The reward, its origin, and what it comes from."""
    if isinstance(reward, Public):
        origin, _, source = reward.origin.partition(":")
        if origin in (SYNTHETIC, PUBLIC) and source.strip():
            return _number(reward.value), origin, source.strip()
        raise PrivacyError(
            f"a public reward for '{branch}' must say which rows it was measured on: "
            'Public(reward, origin="synthetic: ...") or Public(reward, origin="public: ...").'
        )
    if isinstance(reward, Release):
        if not reward.private:
            raise PrivacyError(
                f"the reward for '{branch}' was released with seeded noise or from public rows; if the rows are "
                "public, say so with Public(reward, origin=...)."
            )
        clean_value(reward)
        about = reward.about
        source = f"{about.question} for epsilon {about.epsilon}, ledger entry {about.entry}"
        return _number(reward.value), CHARGED, source
    raise PrivacyError(
        f"a {type(reward).__name__} as the reward of '{branch}' cannot be kept: it may come from private rows. "
        'Give the release of a charged question, or Public(reward, origin="synthetic: ...") if the rows were public.'
    )


def _number(value: Any) -> float:
    number: Callable[[Any], float] = float
    try:
        found = number(value)
    except (TypeError, ValueError):
        raise QuestionError(f"a reward is a number, not a {type(value).__name__}.") from None
    if not -1e300 < found < 1e300:
        raise QuestionError("a reward is a finite number.")
    return found


def _plain(value: Any) -> float | str:
    """A context value as JSON writes it."""
    return value if isinstance(value, str) else float(value)
