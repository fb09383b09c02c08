"""`privet audit`: what a published tree reveals about the people in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

import privet
from privet.cli.common import JsonOption, print_json, say
from privet.cli.outputs import check_output, write_text, written_whole
from privet.errors import QuestionError
from privet.kernel import LONGEST_DOMAIN, Domain, number_of
from privet.text import read_text

if TYPE_CHECKING:
    import pandas as pd

    from privet.risk import Audit

DEEPEST, WIDEST = 5, 100_000  # the most levels and leaves of a private tree that is tried as a remedy
EXPOSED = 3  # the exit code of --strict


def audit(
    tree: Annotated[
        Path, typer.Argument(metavar="FILE", help="What is to be published: a model, tree, table or rules.")
    ],
    qi: Annotated[Path, typer.Option("--qi", metavar="FILE", help="Everybody's quasi-identifiers, .csv or .parquet.")],
    sensitive: Annotated[str, typer.Option("--sensitive", "-s", help="The sensitive column, which the tree predicts.")],
    beside: Annotated[
        Path | None, typer.Argument(metavar="FILE2", help="A second one to compare, as a private tree.")
    ] = None,
    also: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Published about these people too, and held against it; may be repeated."),
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
    stopping: Annotated[
        str | None, typer.Option(help="Was a text of scikit-learn grown until its leaves were pure? full, or none.")
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For the owner: the sensitive column, row by row as in --qi.")
    ] = None,
    training: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column that says which rows the tree was grown on, or unknown."),
    ] = None,
    share: Annotated[
        float | None, typer.Option(help="With --training unknown: the share of the people whose rows were drawn.")
    ] = None,
    measure: Annotated[
        str, typer.Option(help="What counts: disclosure, what the own row adds, or posterior (Zhu and Du).")
    ] = "disclosure",
    threshold: Annotated[
        float | None,
        typer.Option(help="From where on a person counts: 0.1 of disclosure, 0.8 of a posterior, if nothing is said."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="V=SHARE,…|FILE", help="How frequent the values are to who has not seen the model."),
    ] = None,
    names: Annotated[
        bool, typer.Option("--names", help="Show the quasi-identifiers of the people concerned in reports.")
    ] = False,
    top: Annotated[int, typer.Option(min=0, help="How many of the most exposed to name.")] = 20,
    fix: Annotated[
        bool, typer.Option("--fix", help="Merge leaves until nobody is concerned, and write that tree.")
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
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 3 unless the verdict is to publish.")] = False,
    fail_above: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="Exit with 3 if somebody's measure is above it, for pipelines."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compute what a published model, table or list of rules reveals about people.

    The verdict is publish, publish after these changes, or do not publish. It follows what a
    person's own row adds to what the tree tells about anybody like them (disclosure), apart from
    what is learnt from others (inference) and from the shares of the values (baseline). With
    --measure posterior it follows what somebody can conclude who has the tree and knows
    everybody's quasi-identifiers, by maximum entropy or by counting possible worlds. The remedy
    that costs the least accuracy is tried. A private tree is audited in the same way.

    Read are trees and forests of many programs, boosted trees, PMML, decision lists (PART,
    JRip), association rules (Apriori, arules, mlxtend), and tables of counts with margins and
    suppressed cells. What was published before about the same people is named with --also.

    The table and the truth are read here and sent nowhere. Reports and the JSON name leaves;
    with --names they quote people, as --individuals does: those are for the owner alone.

    \b
    Examples:
      privet audit raw.json --qi people.csv --sensitive income -o report.html
      privet audit raw.json private.json --qi people.csv -s income --truth people.csv -o report.html
      privet audit j48.txt --qi people.csv -s education --values @levels.txt --criterion none
      privet audit raw.json --qi people.csv -s income --fix -o safe.json
      privet audit raw.json --qi people.csv -s income --published labels --fail-above 0.1 --json
      privet audit table2.csv --also table1.csv --qi people.csv -s disease
    """
    files = _Files(tree, beside, qi, truth, output, html, individuals, tuple(also or ()))
    _check(files, fix, remedies)
    if fail_above is not None and not 0 <= fail_above <= 1:
        raise QuestionError(f"--fail-above {fail_above:g} is no probability; say one from 0 to 1, as 0.1.")
    table = _rows(qi)
    answers = table if truth is not None and truth == qi else None if truth is None else _rows(truth)
    options: dict[str, Any] = {
        "sensitive": sensitive,
        "values": None if values is None else _values(values),
        "published": published,
        "criterion": criterion,
        "stopping": stopping,
        "truth": answers,
        "measure": measure,
        "threshold": threshold,
        "names": names,
        "columns": None if columns is None else _split(columns),
        "marginal": None if marginal is None else _marginal(marginal, "--marginal"),
        "baseline": None if baseline is None else _marginal(baseline, "--baseline"),
        "training": training,
        "share": share,
        "remedies": remedies,
        "top": top,
    }
    refit = None
    if remedies and epsilon_trials and answers is not None and training is None:
        refit = _refit(tree, table, answers, sensitive, options["columns"])
    trees = files.trees
    titles = [" with ".join(each.name for each in (path, *files.also)) for path in trees]
    titles = titles if len({*titles}) == len(trees) else list(map(str, trees))
    audits = []
    with Console(stderr=True).status("reading") as status:
        for path, name in zip(trees, titles, strict=True):
            own_refit = refit if path is tree else None
            result = privet.audit(
                [path, *files.also] if files.also else path,
                table,
                **options,
                name=name,
                refit=own_refit,
                progress=_progress_line(status, name),
            )
            audits.append(result)
            if options["baseline"] is None and "marginal" in result.beliefs:  # one baseline for both
                shares = result.beliefs["marginal"].shares[0].tolist()
                options["baseline"] = dict(zip(result.values, shares, strict=True))
    written = _write(audits, replace(files, output=None) if fix else files)
    if fix:
        assert output is not None
        written.append(_write_fixed(audits[0], tree, output))
    _print(audits, as_json)
    if written:
        say(f"wrote {' and '.join(written)}")
    if strict and not fix and any(not result.safe for result in audits):
        raise typer.Exit(EXPOSED)
    if fail_above is not None and any(result.worst > fail_above for result in audits):
        raise typer.Exit(EXPOSED)


@dataclass(frozen=True)
class _Files:
    """The files of an audit: trees and tables to read, then what to write."""

    tree: Path
    beside: Path | None
    qi: Path
    truth: Path | None
    output: Path | None
    html: Path | None
    individuals: Path | None
    also: tuple[Path, ...] = ()

    @property
    def trees(self) -> list[Path]:
        """The trees to audit."""
        return [self.tree] if self.beside is None else [self.tree, self.beside]


# -- input --------------------------------------------------------------------------------------


def _check(files: _Files, fix: bool, remedies: bool) -> None:
    """Refuse wrong options before anything is computed."""
    output = files.output
    if fix and output is None:
        raise QuestionError("--fix needs a file for the safer tree, as -o safe.json.")
    if fix and not remedies:
        raise QuestionError("--fix is a remedy; leave out --no-remedies.")
    if files.also and files.beside is not None:
        raise QuestionError("--also holds publications together; leave out the second file, which is to compare.")
    if fix and files.also:
        raise QuestionError("--fix mends one tree; leave out --also.")
    if fix and files.beside is not None:
        raise QuestionError("--fix mends one tree; leave out the second.")
    ending = "" if output is None else output.suffix.lower()
    if fix and ending in (".html", ".htm"):
        raise QuestionError(f"with --fix, '{output}' is where the tree goes; write the report with --html.")
    if not fix and output is not None and ending not in (".html", ".json"):
        raise QuestionError(f"cannot tell what to write to '{output}'; a report ends in .html, the audit in .json.")
    for path in (output, files.html, files.individuals):
        if path is None:
            continue
        if any(path.resolve() == tree.resolve() for tree in (*files.trees, *files.also)):
            raise QuestionError(f"'{path}' is the tree that is audited; write to another file.")
        if any(table is not None and path.resolve() == table.resolve() for table in (files.qi, files.truth)):
            raise QuestionError(f"'{path}' is the table that is read; write to another file.")
        check_output(path)
    written = [path.resolve() for path in (output, files.html, files.individuals) if path is not None]
    if len({*written}) < len(written):
        raise QuestionError("two outputs have one name; name a file for each.")


def _rows(path: Path) -> pd.DataFrame:
    """Read all rows of a file."""
    import pandas as pd

    from privet.rows import read

    return pd.concat(list(read(path)), ignore_index=True)


def _split(words: str) -> list[str]:
    """Return words that are separated by commas."""
    return [word.strip() for word in words.split(",") if word.strip()]


def _values(words: str) -> list[str]:
    """Return values, written as v,w or one a line in a file."""
    values = [line.strip() for line in _text(words[1:]).splitlines()] if words.startswith("@") else _split(words)
    if not any(values):
        raise QuestionError(f"--values {words} names no value; write them as v,w or one a line into a file.")
    return [value for value in values if value]


def _marginal(words: str, option: str) -> Mapping[str, float]:
    """Return shares, written as v=0.3,w=0.7 or in a JSON file."""
    how = "write it as v=0.3,w=0.7 or as a JSON object of numbers in a .json file"
    if words.lower().endswith(".json"):
        text = _text(words)
        try:
            return {str(value): float(share) for value, share in json.loads(text).items()}
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            raise QuestionError(f"{option} '{words}' holds no shares of values; {how}.") from None
    shares = {}
    for pair in _split(words):
        value, _, share = pair.rpartition("=")
        number = number_of(share)
        if not value.strip() or number is None:
            raise QuestionError(f"{option} '{words}' gives no shares of values; {how}.")
        shares[value.strip()] = number
    return shares


def _text(path: str) -> str:
    """Read a small text file."""
    try:
        text = read_text(path, LONGEST_DOMAIN, "utf-8-sig")
    except UnicodeDecodeError:
        raise QuestionError(f"'{path}' is not UTF-8 text; save it as UTF-8.") from None
    except OSError as error:
        raise QuestionError(f"cannot read '{path}' ({error.strerror}); check the path.") from None
    if text is None:
        raise QuestionError(f"'{path}' has more than {LONGEST_DOMAIN} characters; name another file.")
    return text


# -- remedies and progress ----------------------------------------------------------------------


def _refit(
    tree: Path, table: pd.DataFrame, answers: pd.DataFrame, sensitive: str, columns: Sequence[str] | None
) -> Callable[[float], Any] | None:
    """Return a function that fits a private tree on the same people; None unless the tree is a plain privet model."""
    from privet.models.tree import Ensemble
    from privet.risk.readers import read_tree
    from privet.risk.tree import PublishedTree

    if tree.suffix.lower() != ".json":
        return None
    published = read_tree(tree)
    if not isinstance(published, PublishedTree) or not isinstance(published.model, Ensemble):
        return None
    if published.epsilon is not None:
        return None
    known = [name for name in (columns or table.columns) if name != sensitive and name in table.columns]
    whole = published.model.domain
    domain = replace(whole, columns=tuple(column for column in whole if column.name in (*known, sensitive)), rows=None)
    depth = _depth(domain, min(published.depth, DEEPEST))
    if not depth:
        return None

    def fit(epsilon: float) -> Any:
        """Fit a private tree with this epsilon."""
        classifier = privet.DiffPID3Classifier(epsilon=epsilon, max_depth=depth, criterion="max", domain=domain)
        return classifier.fit(table[list(domain.attributes)], answers[sensitive])

    return fit


def _depth(domain: Domain, deepest: int) -> int:
    """Return the largest depth at which a tree cannot have too many leaves; 0 if there is none."""
    sizes = sorted((domain[name].size for name in domain.attributes), reverse=True)
    return max((depth for depth in range(1, deepest + 1) if prod(sizes[:depth]) <= WIDEST and sizes), default=0)


def _progress_line(status: Any, name: str) -> Callable[[str], None]:
    """Return a function that shows progress as one line, in which a path of the tree is not read as markup."""
    from privet.text import clean, shortened

    return lambda text: status.update(Text(shortened(clean(f"{name}: {text}"), 76)))


# -- output -------------------------------------------------------------------------------------


def _write(audits: list[Audit], files: _Files) -> list[str]:
    """Write reports and individuals, and return the files that were written."""
    written = []
    beside = audits[1] if len(audits) > 1 else None
    for path in (files.output, files.html):
        if path is None:
            continue
        if path is files.output and path.suffix.lower() == ".json":
            write_text(path, json.dumps(_dict(audits), indent=2, ensure_ascii=False) + "\n")
        else:
            write_text(path, audits[0].to_html(beside=beside))
        written.append(str(path))
    if files.individuals is not None:
        import pandas as pd

        frames = [result.individuals for result in audits]
        if beside is not None:
            frames = [
                frame.assign(model=result.name)[["model", *frame]] for result, frame in zip(audits, frames, strict=True)
            ]
        with written_whole(files.individuals) as file:
            pd.concat(frames, ignore_index=True).to_csv(file, index=False, lineterminator="\n")
        written.append(str(files.individuals))
    return written


def _write_fixed(result: Audit, tree: Path, output: Path) -> str:
    """Write the tree with leaves merged, and return what was written.

    Raises `QuestionError` if merging leaves is not enough; its sentence says what is.
    """
    from privet.risk.readers.weka import write
    from privet.risk.remedies import withheld

    if result.publication is not None:
        whole, level = result.publication.tree, result.publication.level
        smaller = withheld(whole, level)
        if smaller is not whole and whole.model is not None and output.suffix.lower() == ".json":
            raise QuestionError(
                f"'{output}' would be a privet model, which holds the counts of its leaves, and {level} alone are to "
                "be published; write the tree as text, as -o safe.txt."
            )
        if result.safe and smaller is not whole:
            write_text(output, write(smaller))
            return f"{output}, the tree with {level} alone: {_nobody(result)}"
    if result.safe:
        output.write_bytes(tree.read_bytes())
        return f"{output}, the tree as it is: {_nobody(result)}"
    if result.publication is None:
        without = "publish a private model instead." if result.epsilon is None else "fit it with less epsilon."
        helps = f"what helps: {result.best.told}" if result.best is not None else without
        raise QuestionError(f"'{tree}' is no single tree, so it has no leaves that --fix could merge; {helps}")
    merge = next(remedy for remedy in result.remedies if remedy.kind == "merge leaves")
    if not merge.enough:
        other = result.best
        helps = f"what helps: {other.told}" if other is not None else "no remedy was found, so raise --threshold."
        number = "disclosure" if result.by_own_row else "posterior"
        why = f"the worst {number} stays {merge.worst:.3g}" if merge.worst is not None else merge.told
        raise QuestionError(
            f"--fix cannot bring every {number} of '{tree}' below {result.threshold:g} by merging leaves: "
            f"{why.removeprefix('Merging leaves does not help: ').rstrip('.')}; {helps}"
        )
    merge.save(output)
    return f"{output}, where the worst {'disclosure' if result.by_own_row else 'posterior'} is {merge.worst:.3g}"


def _nobody(result: Audit) -> str:
    """Return that nobody reaches the threshold."""
    if result.by_own_row:
        return f"nobody's own row adds {result.threshold:g} or more"
    return f"nobody is known with probability {result.threshold:g}"


def _dict(audits: list[Audit]) -> Any:
    """Return one audit as a dict, several as a list."""
    return audits[0].to_dict() if len(audits) == 1 else [result.to_dict() for result in audits]


def _print(audits: list[Audit], as_json: bool) -> None:
    """Print audits as JSON or as a summary."""
    from privet.risk.summary import show

    if as_json:
        print_json(_dict(audits))
    else:
        show(audits[0], Console(), audits[1] if len(audits) > 1 else None)
