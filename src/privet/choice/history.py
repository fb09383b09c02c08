"""What earlier choices came to: an append-only file of rewards, each with its origin.

A policy that learns from rewards publishes them. So a reward is clean or it is refused, by its type: computed
from rows that somebody declared public (`Public`, with an origin), or itself released by a charged question
(`Release`). An accuracy measured on private rows without noise, a running time, the number of failures are
neither; they cannot be written down. What a policy learned from charged rewards carries their origins in its header.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privet.errors import PrivacyError, QuestionError
from privet.kernel import Public, Release, known

SYNTHETIC, PUBLIC, CHARGED = "synthetic", "public", "charged"
ORIGINS = (SYNTHETIC, PUBLIC, CHARGED)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT, site TEXT NOT NULL, run TEXT NOT NULL, data TEXT NOT NULL,
    context TEXT NOT NULL, UNIQUE (site, run));
CREATE TABLE IF NOT EXISTS rewards (
    id INTEGER PRIMARY KEY AUTOINCREMENT, run INTEGER NOT NULL REFERENCES runs, branch TEXT NOT NULL,
    reward REAL NOT NULL, origin TEXT NOT NULL, source TEXT NOT NULL, UNIQUE (run, branch));
"""
_SCHEMA += "".join(
    f"CREATE TRIGGER IF NOT EXISTS {table}_{verb} BEFORE {verb} ON {table} "
    "BEGIN SELECT RAISE(ABORT, 'append-only'); END;\n"
    for table in ("runs", "rewards")
    for verb in ("UPDATE", "DELETE")
)
_ROWS = "FROM rewards JOIN runs ON runs.id = rewards.run"


@dataclass(frozen=True)
class HistoryRow:
    """One branch of one run, and its reward. Rows of one `run` share their context, runs on one `data` their rows."""

    site: str
    run: str
    data: str
    context: Mapping[str, Any]
    branch: str
    reward: float
    origin: str
    source: str

    @property
    def choices(self) -> tuple[tuple[str, float, Mapping[str, Any]], ...]:
        """What was chosen: branch, share of the run, context."""
        return ((self.branch, 1.0, self.context),)

    @property
    def described(self) -> str:
        """Where the reward comes from; synthetic rows come from thousands of seeds, so that the word says enough."""
        return self.origin if self.origin == SYNTHETIC else f"{self.origin}: {self.source}"


class History:
    """A history in a file, or in memory for a test.

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
        try:
            self._connection = sqlite3.connect(self.path, isolation_level=None)
            self._connection.executescript(_SCHEMA)
        except sqlite3.Error:
            raise QuestionError(
                f"'{self.path}' is no history and cannot become one; name a new file in a folder that can be written."
            ) from None

    def append(
        self,
        site: str,
        context: Mapping[str, Release | Public],
        branch: str,
        reward: Release | Public,
        *,
        run: str,
        data: str = "",
    ) -> None:
        """Add the reward of one branch. A branch of a run that is there already stays as it is."""
        self.extend(site, context, {branch: reward}, run=run, data=data)

    def extend(
        self,
        site: str,
        context: Mapping[str, Release | Public],
        rewards: Mapping[str, Release | Public],
        *,
        run: str,
        data: str = "",
    ) -> None:
        """Add the rewards of several branches of one run, all or none of them."""
        seen = json.dumps({name: _plain(known(value)) for name, value in context.items()})
        rows = [(branch, *_certified(branch, reward)) for branch, reward in rewards.items()]
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute(
                "INSERT OR IGNORE INTO runs (site, run, data, context) VALUES (?, ?, ?, ?)",
                (site, run, data or run, seen),
            )
            query = "SELECT id, data, context FROM runs WHERE site = ? AND run = ?"
            number, *known_as = self._connection.execute(query, (site, run)).fetchone()
            if known_as != [data or run, seen]:
                raise QuestionError(f"the run '{run}' of '{site}' is there with another context; give it another name.")
            self._connection.executemany(
                "INSERT OR IGNORE INTO rewards (run, branch, reward, origin, source) VALUES (?, ?, ?, ?, ?)",
                [(number, *row) for row in rows],
            )

    def rows(self, site: str | None = None) -> list[HistoryRow]:
        """All rows in the order they were written, or those of one site."""
        columns = "site, runs.run, data, context, branch, reward, origin, source"
        where, values = ("", ()) if site is None else (" WHERE site = ?", (site,))
        query = f"SELECT {columns} {_ROWS}{where} ORDER BY rewards.id"
        contexts: dict[str, Mapping[str, Any]] = {}
        found = []
        with closing(self._connection.execute(query, values)) as answer:
            for name, run, data, text, branch, reward, origin, source in answer:
                context = contexts.setdefault(text, json.loads(text) if text not in contexts else {})
                found.append(HistoryRow(name, run, data, context, branch, reward, origin, source))
        return found

    def runs(self, site: str) -> set[str]:
        """The runs that are there."""
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
        return int(self._connection.execute("SELECT count(*) FROM rewards").fetchone()[0])

    def close(self) -> None:
        self._connection.close()

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
