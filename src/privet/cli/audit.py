"""`privet audit`: what does a published tree tell about the people in it?"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

import privet
from privet.cli.common import JsonOption, print_json, say
from privet.errors import QuestionError
from privet.kernel import LONGEST_DOMAIN, Domain, number_of, read_text

if TYPE_CHECKING:
    import pandas as pd

    from privet.risk import Audit

DEEPEST, WIDEST = 5, 100_000  # levels and leaves of a private tree that is tried as a remedy
EXPOSED = 3  # the exit code of --strict


def audit(
    tree: Annotated[Path, typer.Argument(metavar="TREE", help="A privet model, export_text, or Weka's J48 text.")],
    qi: Annotated[Path, typer.Option("--qi", metavar="FILE", help="Everybody's quasi-identifiers, .csv or .parquet.")],
    sensitive: Annotated[str, typer.Option("--sensitive", "-s", help="The sensitive column, which the tree predicts.")],
    beside: Annotated[
        Path | None, typer.Argument(metavar="TREE2", help="A second tree to compare, as the private one.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="The quasi-identifiers; else all other columns of the table.")
    ] = None,
    values: Annotated[
        str | None,
        typer.Option(metavar="V,W|@FILE", help="The public values of the sensitive column; @FILE has one a line."),
    ] = None,
    published: Annotated[
        str, typer.Option(help="What was published of leaves: labels, rates, counts, or auto, all there is.")
    ] = "auto",
    marginal: Annotated[
        str | None,
        typer.Option(metavar="V=SHARE,…|FILE", help="Published shares of the values: v=0.3,w=0.7 or a .json file."),
    ] = None,
    criterion: Annotated[
        str | None, typer.Option(help="What chose the splits: gini, entropy, gain-ratio or none; else the tree's own.")
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For the owner: the sensitive column, row by row as in --qi.")
    ] = None,
    training: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column that says which rows the tree was grown on, or unknown."),
    ] = None,
    threshold: Annotated[float, typer.Option(help="The probability from which on a value counts as known.")] = 0.8,
    top: Annotated[int, typer.Option(min=0, help="How many of the most exposed to name.")] = 20,
    fix: Annotated[
        bool, typer.Option("--fix", help="Merge leaves until nobody is known, and write that tree.")
    ] = False,
    remedies: Annotated[bool, typer.Option("--remedies/--no-remedies", help="Look for what would help.")] = True,
    epsilon_trials: Annotated[
        bool,
        typer.Option("--epsilon-trials/--no-epsilon-trials", help="With --truth, grow private trees as remedies."),
    ] = True,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="A report .html, the audit .json; with --fix the tree."),
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also write the report here.")] = None,
    individuals: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write a row for each profile here, as .csv.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 3 if somebody is known.")] = False,
    as_json: JsonOption = False,
) -> None:
    """What does a published tree tell about the people in it?

    Whoever holds the tree and knows everybody's quasi-identifiers believes something of each of
    them. Two such adversaries are computed, maximum entropy and possible worlds, and held
    against those who have not seen the tree; then who is exposed most, by which path of the
    tree, and which remedy brings every probability below the threshold, at which accuracy.
    A private tree is audited in the same way: its numbers are computed, not asserted.

    The table and the truth stay here. Report, JSON and --individuals quote them: they are for
    the owner and not for publishing.

    \b
    Examples:
      privet audit raw.json --qi people.csv --sensitive income -o report.html
      privet audit raw.json private.json --qi people.csv -s income --truth people.csv -o report.html
      privet audit j48.txt --qi people.csv -s education --values @levels.txt --criterion none
      privet audit raw.json --qi people.csv -s income --fix --threshold 0.8 -o safe.json
      privet audit raw.json --qi people.csv -s income --published labels --strict --json
    """
    _check(tree, beside, qi, truth, fix, remedies, output, html, individuals)
    table = _rows(qi)
    answers = table if truth is not None and truth == qi else None if truth is None else _rows(truth)
    asked: dict[str, Any] = {
        "sensitive": sensitive,
        "values": None if values is None else _values(values),
        "published": published,
        "criterion": criterion,
        "truth": answers,
        "threshold": threshold,
        "columns": None if columns is None else _split(columns),
        "marginal": None if marginal is None else _marginal(marginal),
        "training": training,
        "remedies": remedies,
        "top": top,
    }
    refit = None
    if remedies and epsilon_trials and answers is not None and training is None:
        refit = _refit(tree, table, answers, sensitive, asked["columns"])
    paths = [tree] if beside is None else [tree, beside]
    names = [path.name for path in paths] if len({path.name for path in paths}) == len(paths) else list(map(str, paths))
    audits = []
    with Console(stderr=True).status("reading") as status:
        for path, name in zip(paths, names, strict=True):
            found = privet.audit(
                path, table, **asked, name=name, refit=refit if path is tree else None, progress=_teller(status, name)
            )
            audits.append(found)
    wrote = _write(audits, None if fix else output, html, individuals)
    if fix:
        assert output is not None
        wrote.append(_mend(audits[0], tree, output))
    _print(audits, as_json)
    if wrote:
        say(f"wrote {' and '.join(wrote)}")
    if strict and not fix and any(not each.safe for each in audits):
        raise typer.Exit(EXPOSED)


# -- what comes in ------------------------------------------------------------------------------


def _check(
    tree: Path,
    beside: Path | None,
    qi: Path,
    truth: Path | None,
    fix: bool,
    remedies: bool,
    output: Path | None,
    html: Path | None,
    individuals: Path | None,
) -> None:
    """Whatever can be refused is refused before anything is computed."""
    if fix and output is None:
        raise QuestionError("--fix needs a file for the safer tree, as -o safe.json.")
    if fix and not remedies:
        raise QuestionError("--fix is a remedy; leave out --no-remedies.")
    if fix and beside is not None:
        raise QuestionError("--fix mends one tree; leave out the second.")
    ending = "" if output is None else output.suffix.lower()
    if fix and ending in (".html", ".htm"):
        raise QuestionError(f"with --fix, '{output}' is where the tree goes; write the report with --html.")
    if not fix and output is not None and ending not in (".html", ".json"):
        raise QuestionError(f"cannot tell what to write to '{output}'; a report ends in .html, the audit in .json.")
    for path in (output, html, individuals):
        if path is None:
            continue
        if not path.parent.is_dir():
            raise QuestionError(f"there is no folder '{path.parent}' to write '{path.name}' to; make it first.")
        if any(each is not None and path.resolve() == each.resolve() for each in (tree, beside)):
            raise QuestionError(f"'{path}' is the tree that is audited; write to another file.")
        if any(each is not None and path.resolve() == each.resolve() for each in (qi, truth)):
            raise QuestionError(f"'{path}' is the table that is read; write to another file.")


def _rows(path: Path) -> pd.DataFrame:
    import pandas as pd

    from privet.rows import read

    return pd.concat(list(read(path)), ignore_index=True)


def _split(words: str) -> list[str]:
    return [word.strip() for word in words.split(",") if word.strip()]


def _values(words: str) -> list[str]:
    """Values as v,w or from a file with one a line."""
    found = [line.strip() for line in _text(words[1:]).splitlines()] if words.startswith("@") else _split(words)
    if not any(found):
        raise QuestionError(f"--values {words} names no value; write them as v,w or one a line into a file.")
    return [value for value in found if value]


def _marginal(words: str) -> Mapping[str, float]:
    """Shares as v=0.3,w=0.7 or from a JSON file."""
    how = "write it as v=0.3,w=0.7 or as a JSON object of numbers in a .json file"
    if words.lower().endswith(".json"):
        text = _text(words)
        try:
            return {str(value): float(share) for value, share in json.loads(text).items()}
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            raise QuestionError(f"--marginal '{words}' holds no shares of values; {how}.") from None
    shares = {}
    for pair in _split(words):
        value, _, share = pair.rpartition("=")
        number = number_of(share)
        if not value.strip() or number is None:
            raise QuestionError(f"--marginal '{words}' gives no shares of values; {how}.")
        shares[value.strip()] = number
    return shares


def _text(path: str) -> str:
    try:
        text = read_text(path, LONGEST_DOMAIN, "utf-8-sig")
    except UnicodeDecodeError:
        raise QuestionError(f"'{path}' is not UTF-8 text; save it as UTF-8.") from None
    except OSError as error:
        raise QuestionError(f"cannot read '{path}' ({error.strerror}); check the path.") from None
    if text is None:
        raise QuestionError(f"'{path}' has more than {LONGEST_DOMAIN} characters; name another file.")
    return text


# -- what is tried ------------------------------------------------------------------------------


def _refit(
    tree: Path, table: pd.DataFrame, answers: pd.DataFrame, sensitive: str, columns: Sequence[str] | None
) -> Callable[[float], Any] | None:
    """How private trees of the same people grow, where a privet model declares the values of their columns."""
    from privet.models.tree import Ensemble
    from privet.risk.reading import read_tree
    from privet.risk.tree import PublishedTree

    found = read_tree(tree)
    if not isinstance(found, PublishedTree) or not isinstance(found.model, Ensemble) or found.epsilon is not None:
        return None
    known = [name for name in (columns or table.columns) if name != sensitive and name in table.columns]
    whole = found.model.domain
    domain = replace(whole, columns=tuple(each for each in whole if each.name in (*known, sensitive)), rows=None)
    depth = _depth(domain, min(found.depth, DEEPEST))
    if not depth:
        return None

    def grown(epsilon: float) -> Any:
        classifier = privet.DiffPID3Classifier(epsilon=epsilon, max_depth=depth, criterion="max", domain=domain)
        return classifier.fit(table[list(domain.attributes)], answers[sensitive])

    return grown


def _depth(domain: Domain, deepest: int) -> int:
    """The largest depth at which a tree cannot become too wide; 0 where there is none."""
    sizes = sorted((domain[name].size for name in domain.attributes), reverse=True)
    return max((depth for depth in range(1, deepest + 1) if prod(sizes[:depth]) <= WIDEST and sizes), default=0)


def _teller(status: Any, name: str) -> Callable[[str], None]:
    """Progress as one line; a path of the tree is no markup."""
    from privet.trees.layout import clean, shortened

    return lambda text: status.update(Text(shortened(clean(f"{name}: {text}"), 76)))


# -- what goes out ------------------------------------------------------------------------------


def _write(audits: list[Audit], output: Path | None, html: Path | None, individuals: Path | None) -> list[str]:
    """Write what was asked for, and say what it was."""
    wrote = []
    beside = audits[1] if len(audits) > 1 else None
    for path in (output, html):
        if path is None:
            continue
        if path is output and path.suffix.lower() == ".json":
            path.write_text(json.dumps(_dict(audits), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        else:
            audits[0].to_html(path, beside)
        wrote.append(str(path))
    if individuals is not None:
        import pandas as pd

        frames = [each.individuals for each in audits]
        if beside is not None:
            frames = [
                frame.assign(model=each.name)[["model", *frame]] for each, frame in zip(audits, frames, strict=True)
            ]
        pd.concat(frames, ignore_index=True).to_csv(individuals, index=False, lineterminator="\n")
        wrote.append(str(individuals))
    return wrote


def _mend(found: Audit, tree: Path, output: Path) -> str:
    """Write the tree with leaves merged; or one sentence about why that is not enough, and what is."""
    from privet.risk.merging import withheld
    from privet.risk.weka import write
    from privet.risk.words import best

    if found.publication is not None:
        whole, level = found.publication.tree, found.publication.level
        smaller = withheld(whole, level)
        if smaller is not whole and whole.model is not None and output.suffix.lower() == ".json":
            raise QuestionError(
                f"'{output}' would be a privet model, which holds the counts of its leaves, and {level} alone are to "
                "be published; write the tree as text, as -o safe.txt."
            )
        if found.safe and smaller is not whole:
            output.write_text(write(smaller), encoding="utf-8")
            return f"{output}, the tree with {level} alone: nobody is known with probability {found.threshold:g}"
    if found.safe:
        output.write_bytes(tree.read_bytes())
        return f"{output}, the tree as it is: nobody is known with probability {found.threshold:g}"
    if found.publication is None:
        raise QuestionError(
            f"'{tree}' is no single tree, so it has no leaves that --fix could merge; fit it with less epsilon."
        )
    merge = next(remedy for remedy in found.remedies if remedy.kind == "merge leaves")
    if not merge.enough:
        other = best(found.remedies)
        helps = f"what helps: {other.told}" if other is not None else "no remedy was found, so raise --threshold."
        why = f"the worst posterior stays {merge.worst:.3g}" if merge.worst is not None else merge.told
        raise QuestionError(
            f"--fix cannot bring every posterior of '{tree}' below {found.threshold:g} by merging leaves: "
            f"{why.removeprefix('Merging leaves does not help: ').rstrip('.')}; {helps}"
        )
    merge.save(output)
    return f"{output}, where the worst posterior is {merge.worst:.3g}"


def _dict(audits: list[Audit]) -> Any:
    """One audit as it is, two as a list."""
    return audits[0].to_dict() if len(audits) == 1 else [each.to_dict() for each in audits]


def _print(audits: list[Audit], as_json: bool) -> None:
    from privet.risk.summary import show

    if as_json:
        print_json(_dict(audits))
    else:
        show(audits[0], Console(), audits[1] if len(audits) > 1 else None)
