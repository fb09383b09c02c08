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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from privet.choice.policy import as_number
from privet.errors import PrivacyError, QuestionError
from privet.kernel import fraction_of
from privet.release import Public, Release, clean_value

SYNTHETIC, PUBLIC, CHARGED = "synthetic", "public", "charged"
ORIGINS = (SYNTHETIC, PUBLIC, CHARGED)

WAIT_SECONDS = 60.0  # for other processes that write into the same file
LONGEST = 1000  # characters of a name, of a text in a context, of what a reward comes from

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
_READ, _WRITE = "BEGIN", "BEGIN IMMEDIATE"
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
    `nodes` says what they chose. Policies learn from the rows of a `History`, not from rows that were made or changed
    otherwise.
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
    _kept: bool = field(default=False, init=False, repr=False, compare=False)  # by a history, which checked it

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
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        """Read what belongs together, or write all or nothing, after those who write now."""
        try:
            with self._lock, self._connection as connection:
                connection.execute(begin)
                yield connection
        except (sqlite3.Error, OverflowError):  # a disk that is full, a writer that stays, a file that is damaged
            wanted = "written: nothing was added" if begin == _WRITE else "read"
            raise QuestionError(
                f"the history '{self.path}' cannot be {wanted}. Look for a full disk, for a program that writes it "
                f"for longer than {WAIT_SECONDS:.0f} seconds, for a damaged file."
            ) from None

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
        cost: Public | None = None,
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
        cost : Public, optional
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
        cost: Public | None = None,
        nodes: Sequence[tuple[str, Public, Mapping[str, Release | Public]]] = (),
    ) -> None:
        """Add the rewards of several branches of one run, all or none of them; see `append`.

        `nodes` are the choices at the nodes of a run that has one reward for all of them, under the branch "": of each
        the branch, its share of the run and its context.
        """
        seen = _context_json(context)
        rows = [(_name(branch, "a branch", least=0), *_certified(branch, reward)) for branch, reward in rewards.items()]
        paid = None if cost is None else fraction_of(clean_value(cost))
        if cost is not None and (paid is None or paid < 0):
            raise QuestionError("the cost of a run is Public(number), and not below 0.")
        below = [
            (_name(branch, "a branch"), _number(clean_value(share)), _context_json(known))
            for branch, share, known in nodes
        ]
        site, run, data = _name(site, "a site"), _name(run, "a run"), _name(data or run, "a data set")
        with self._transaction(_WRITE) as connection:
            connection.execute(
                "INSERT OR IGNORE INTO runs (site, run, data, context) VALUES (?, ?, ?, ?)",
                (site, run, data, seen),
            )
            query = "SELECT id, data, context FROM runs WHERE site = ? AND run = ?"
            number, *known_as = connection.execute(query, (site, run)).fetchone()
            if known_as != [data, seen]:
                raise QuestionError(f"the run '{run}' of '{site}' is there with another context; give it another name.")
            for row in rows:
                added = connection.execute(
                    "INSERT OR IGNORE INTO rewards (run, branch, reward, origin, source) VALUES (?, ?, ?, ?, ?)",
                    (number, *row),
                )
                if added.rowcount and paid is not None:
                    connection.execute("INSERT INTO costs (reward, cost) VALUES (?, ?)", (added.lastrowid, str(paid)))
            connection.executemany(
                "INSERT INTO nodes (run, branch, share, context) VALUES (?, ?, ?, ?)",
                [(number, *node) for node in below],
            )

    def rows(self, site: str | None = None) -> list[HistoryRow]:
        """Return all rows in the order they were written, or those of one site.

        Raises
        ------
        QuestionError
            The file cannot be read, or has rows that privet did not write.
        """
        columns = "runs.id, site, runs.run, data, context, branch, rewards.reward, origin, source, cost"
        costs = "LEFT JOIN costs ON costs.reward = rewards.id"
        where, values = ("", ()) if site is None else (" WHERE site = ?", (site,))
        of_nodes = f"SELECT nodes.run, branch, share, nodes.context FROM nodes JOIN runs ON runs.id = nodes.run{where}"
        with self._transaction(_READ) as connection:  # both questions see the same runs
            below = connection.execute(f"{of_nodes} ORDER BY nodes.id", values).fetchall()
            rows = connection.execute(f"SELECT {columns} {_ROWS} {costs}{where} ORDER BY rewards.id", values).fetchall()
        read = functools.cache(_read_context)  # runs have few contexts between them
        nodes: dict[int, list[NodeChoice]] = {}
        try:
            for run, branch, share, text in below:
                nodes.setdefault(run, []).append(NodeChoice(_name(branch, "a branch"), _number(share), read(text)))
            return [_read_row(row, nodes.get(run, ()), read) for run, *row in rows]
        except (ValueError, TypeError, RecursionError):
            pass  # what is wrong would quote the file
        raise QuestionError(f"the history '{self.path}' has rows that privet did not write; go on with a new file.")

    def last(self, site: str) -> int:
        """Return a number that changes whenever a reward of the site is added."""
        with self._transaction(_READ) as connection:
            query = f"SELECT max(rewards.id) {_ROWS} WHERE site = ?"
            return int(connection.execute(query, (site,)).fetchone()[0] or 0)

    def runs(self, site: str) -> set[str]:
        """Return the runs that are there."""
        with self._transaction(_READ) as connection:
            return {run for (run,) in connection.execute("SELECT run FROM runs WHERE site = ?", (site,))}

    def origins(self, site: str) -> list[str]:
        """Return where the rewards of a site come from: what a policy that learns from them has to say."""
        query = f"SELECT origin, source, count(*) {_ROWS} WHERE site = ? GROUP BY origin, source ORDER BY rewards.id"
        found: dict[str, int] = {}
        with self._transaction(_READ) as connection:
            for origin, source, count in connection.execute(query, (site,)):
                # synthetic rows come from thousands of seeds: their number says enough
                name = origin if origin == SYNTHETIC else f"{origin}: {source}"
                found[name] = found.get(name, 0) + count
        return [f"{name} ({count} rewards)" for name, count in found.items()]

    def __iter__(self) -> Iterator[HistoryRow]:
        return iter(self.rows())

    def __len__(self) -> int:
        with self._transaction(_READ) as connection:
            return int(connection.execute("SELECT count(*) FROM rewards").fetchone()[0])

    def close(self) -> None:
        """Close the file, in this thread."""
        self._connection.close()
        self._local = threading.local()

    def __repr__(self) -> str:
        return f"<history '{self.path}', {len(self)} rewards>"


def _read_row(row: Sequence[Any], nodes: Sequence[NodeChoice], read: Any) -> HistoryRow:
    """Return a row of the file, if it is one: other programs may have written there, and choices publish it."""
    site, run, data, text, branch, reward, origin, source, cost = row
    paid = None if cost is None else fraction_of(cost)
    if origin not in ORIGINS or (cost is not None and (paid is None or paid < 0)):
        raise QuestionError("this origin is none of a history, or this cost none of a run.")
    found = HistoryRow(
        _name(site, "a site"),
        _name(run, "a run"),
        _name(data, "a data set"),
        read(text),
        _name(branch, "a branch", least=0),
        _number(reward),
        origin,
        _name(source, "an origin"),
        paid,
        () if branch else tuple(nodes),
    )
    object.__setattr__(found, "_kept", True)
    return found


def check_kept(rows: Iterable[HistoryRow]) -> None:
    """Refuse rows that no history has kept.

    Raises
    ------
    PrivacyError
        A row was made, or changed, by other code: nobody vouched for its reward.
    """
    if not all(row._kept for row in rows):
        raise PrivacyError(
            "a row that was made outside of a history may hold what nobody vouched for: append its reward to a History "
            "and learn from the rows of that."
        )


def _read_context(text: str) -> dict[str, Any]:
    content = json.loads(text)
    if not isinstance(content, dict):
        raise QuestionError("a context is a mapping.")
    return {name: _in_context(name, value) for name, value in content.items()}


def _context_json(context: Mapping[str, Release | Public]) -> str:
    """Return a context as the file keeps it: numbers and texts."""
    return json.dumps({_name(name, "a context"): _in_context(name, clean_value(own)) for name, own in context.items()})


def _in_context(name: str, value: Any) -> float | str:
    if isinstance(value, str):
        return _name(value, f"what '{name}' is in a context", least=0)
    number = as_number(value)
    if number is None:
        raise QuestionError(
            f"'{name}' in a context is a finite number or a text, which this {type(value).__name__} is not."
        )
    return number


def _name(text: object, what: str, least: int = 1) -> str:
    if not isinstance(text, str) or not least <= len(text) <= LONGEST:
        raise QuestionError(f"{what} is named by a text of {least} to {LONGEST} characters.")
    return str(text)


def _certified(branch: str, reward: object) -> tuple[float, str, str]:
    """The reward, its origin, and what it comes from."""
    if isinstance(reward, Public):
        origin, _, source = reward.origin.partition(":")
        if origin in (SYNTHETIC, PUBLIC) and source.strip():
            return _number(reward.value), origin, _name(source.strip(), "an origin")
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
        entry = f" for epsilon {about.epsilon}, ledger entry {about.entry}"
        return _number(reward.value), CHARGED, about.question[: LONGEST - len(entry)] + entry
    raise PrivacyError(
        f"a {type(reward).__name__} as the reward of '{branch}' cannot be kept: it may come from private rows. "
        'Give the release of a charged question, or Public(reward, origin="synthetic: ...") if the rows were public.'
    )


def _number(value: Any) -> float:
    number = as_number(value)
    if number is None or not -1e300 < number < 1e300:
        raise QuestionError(f"a reward is a finite number, which this {type(value).__name__} is not.")
    return number
