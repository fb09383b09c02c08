"""`privet receipt`: proofs that an answer or a model stands in a ledger, for whoever wants to check it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from privet import receipts
from privet.cli.budget import open_book
from privet.cli.common import STYLE, JsonOption, LedgerArgument, print_json, say
from privet.cli.outputs import check_output, write_text, written_whole
from privet.errors import QuestionError, ReceiptError
from privet.kernel import LONGEST_MODEL
from privet.ledger_lines import key_lines
from privet.receipts import Checkpoint, KeptCheckpoints, Receipts, Shown, SigningKey
from privet.receipts.receipt import LONGEST, loss_of
from privet.receipts.verifier import Unproved, read_key
from privet.text import clean, read_text, short_text, shown

app = typer.Typer(help="Receipts: proofs that an answer or a model stands in a ledger, checked offline.", **STYLE)
key_app = typer.Typer(help="The key that signs the checkpoints of a ledger.", **STYLE)
app.add_typer(key_app, name="key")

_BEGINS = '{\n "checkpoint": "'  # a receipt, if it is cut off before it says that it is one

OutputOption = Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write here instead.")]
KeyFileOption = Annotated[
    Path | None, typer.Option("--key-file", metavar="FILE", help="The signing key, if it is not beside the ledger.")
]
SinceOption = Annotated[
    Path | None, typer.Option("--since", metavar="FILE", help="An older checkpoint, which the log must continue.")
]


@app.command("make", short_help="Make the receipt of a model or an answer.")
def make(
    ledger: LedgerArgument,
    model: Annotated[Path | None, typer.Argument(metavar="MODEL", help="A model file that `privet fit` wrote.")] = None,
    entry: Annotated[
        int | None, typer.Option(help="Of the answer to this entry, as `privet budget show --entries` numbers it.")
    ] = None,
    under: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A checkpoint that was signed before, by a second key say.")
    ] = None,
    since: SinceOption = None,
    key_file: KeyFileOption = None,
    output: OutputOption = None,
) -> None:
    """Make the receipt of a model, as MODEL.receipt, or of the answer to an entry.

    With --since a proof that the log continues that checkpoint is written beside it, as MODEL.checkpoint.

    \b
    Examples:
      privet receipt make people.csv model.json
      privet receipt make people.csv --entry 5 -o answer.json
    """
    if (model is None) == (entry is None):
        raise QuestionError("a receipt is of a model or of an entry; name the file of the model, or give --entry.")
    maker = _receipts(ledger, key_file)
    older = None if since is None else _checkpoint(since)
    checkpoint = _checkpoint(under) if under is not None else maker.checkpoint(older.size if older else 0)
    if model is None:
        assert entry is not None
        target, text = output, maker.of_entry(entry, checkpoint)
    else:
        target = output or model.with_name(f"{model.name}.receipt")
        text = maker.of_model(_text(model), checkpoint)
    check_output(target, reads=(model, under, since))
    if older is not None:
        checkpoint.require_continues(older)
        beside = model or output
        if beside is None:
            raise QuestionError("with --since the proof is written beside the answer; name a file with -o.")
        write_text(beside.with_name(f"{beside.name}.checkpoint"), checkpoint.to_text())
    with written_whole(target) as file:
        file.write(text)
    if target is not None:
        say(f"wrote {target}; anybody can check it with `privet receipt check {model or target}`")


@app.command("check", short_help="Check a receipt, a checkpoint or a ledger, offline.")
def check(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A model, an answer's receipt, a checkpoint, or data with a ledger.")
    ],
    receipt: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The receipt of a model, if it is not beside it.")
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(metavar="VKEY", help="A public key that must have signed; may be repeated. Owners publish it."),
    ] = None,
    since: SinceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check a receipt, a checkpoint, or a ledger against an older checkpoint. Nothing is sent anywhere.

    A model is checked with the receipt beside it, MODEL.receipt. Without --key it is shown who has signed, and
    it is for you to compare that with what the owner of the data has published.

    With --since a ledger that was restored from an old backup, or changed, is noticed.

    \b
    Examples:
      privet receipt check model.json --key hospital.example/5f0c…+3619a38e+AcD8…
      privet receipt check answer.json
      privet receipt check people.csv --since last-year.checkpoint
    """
    pins, older = tuple(_vkey(own) for own in key or ()), None if since is None else _checkpoint(since)
    path = Path(file)
    if receipt is None and path.suffix == ".receipt" and path.with_suffix("").is_file():
        path, receipt = path.with_suffix(""), path  # the receipt of a model was named, which lies beside it
    beside = receipt or path.with_name(f"{path.name}.receipt")
    if receipt is not None or beside.is_file():
        facts = _check_receipt(path, _text(beside), path.read_bytes(), pins, older)
    elif (text := _text_or_none(path)) is not None and ('"privet-receipt"' in text or text.startswith(_BEGINS)):
        facts = _check_receipt(path, text, None, pins, older)
    elif text is not None and _is_checkpoint(text):
        facts = _check_checkpoint(Checkpoint.read(text), pins, older)
    elif text is not None and text.lstrip().startswith("{"):
        raise ReceiptError(
            f"there is no receipt beside '{shown(file)}'; its owner makes one with `privet receipt make`."
        )
    elif path.suffix in (".json", ".receipt", ".checkpoint") and not path.is_dir():
        raise ReceiptError(_no_receipt(path))
    else:
        facts = _check_ledger(file, pins, older)
    text = facts.pop("text")
    if as_json:
        print_json(facts)
        return
    print("\n".join(text))


@app.command("checkpoint", short_help="Sign how many lines a ledger has, and their hash.")
def checkpoint(
    ledger: LedgerArgument, since: SinceOption = None, key_file: KeyFileOption = None, output: OutputOption = None
) -> None:
    """Sign how many lines a ledger has, and the root of the tree over them. Kept, it shows later that nothing is lost.

    Example: privet receipt checkpoint people.csv -o 2026.checkpoint
    """
    maker = _receipts(ledger, key_file)
    older = None if since is None else _checkpoint(since)
    signed = maker.checkpoint(older.size if older else 0)
    if older is not None:
        signed.require_continues(older)
    check_output(output, reads=(since,))
    with written_whole(output) as file:
        file.write(signed.to_text())
    if output is not None:
        say(f"wrote {output}, of {signed.size} lines; keep it where nobody can change it together with the ledger")


@app.command("cosign", short_help="Add the signature of a second key to a checkpoint.")
def cosign(
    file: Annotated[Path, typer.Argument(metavar="CHECKPOINT", help="What `privet receipt checkpoint` wrote.")],
    key: Annotated[str, typer.Option(metavar="VKEY", help="The public key of the log, which must have signed.")],
    key_file: Annotated[Path, typer.Option("--key-file", metavar="FILE", help="The second key.")],
    since: SinceOption = None,
    output: OutputOption = None,
) -> None:
    """Add the signature of a second key to a checkpoint, on a machine that has no ledger.

    With --since only a log that continues that checkpoint is signed: take the one that was signed last. The
    owner then makes receipts with `privet receipt make --under`, and who checks them names both keys.

    Example: privet receipt cosign new.checkpoint --key VKEY --key-file second.key --since last.checkpoint -o signed
    """
    signed = _checkpoint(file)
    signed.signers([_vkey(key)])
    if since is not None:
        signed.require_continues(_checkpoint(since))
    text = signed.note[: signed.note.rindex("\n\n") + 1]
    check_output(output, reads=(file, since, key_file))
    with written_whole(output) as out:
        out.write(signed.note + SigningKey.load(key_file).signature(text))


@app.command("forget", short_help="Forget the key and the checkpoint of a server.")
def forget(url: Annotated[str, typer.Argument(metavar="URL", help="The address of the server.")]) -> None:
    """Forget the key and the newest checkpoint that were kept of a server.

    Do this if its owner says why its ledger is another one, or is signed by another key: the next connection
    then trusts what it finds.

    Example: privet receipt forget https://privet.hospital.example
    """
    kept = KeptCheckpoints(url.rstrip("/"), several=False)
    known = kept.newest is not None
    kept.forget()
    say(f"nothing is remembered of {url} now" if known else f"nothing was remembered of {url}")


@app.command("verifier", short_help="Print a program that checks receipts without privet.")
def verifier() -> None:
    """Print a program that checks receipts with Python's standard library alone, in at most 150 lines.

    Example: privet receipt verifier > check_receipt.py
    """
    print((Path(receipts.__file__).parent / "verifier.py").read_text(encoding="utf-8"), end="")


# -- keys ---------------------------------------------------------------------------------------

SecondOption = Annotated[bool, typer.Option("--second", help="The owner's second key, which needs --key-file.")]


@key_app.command("new", short_help="Make the signing key of a ledger.")
def new(
    ledger: LedgerArgument,
    name: Annotated[
        str | None, typer.Option(help="Who signs, as hospital.example; else as the first key says, or privet.")
    ] = None,
    second: SecondOption = False,
    key_file: KeyFileOption = None,
) -> None:
    """Make the signing key of a ledger, and write its public half to the ledger. Publish what is printed.

    The key lies beside the ledger, as people.csv.ledger.key, for its owner alone. A second key signs checkpoints
    too, with `privet receipt cosign`: keep it on another machine, and whoever breaks into one can forge nothing.

    \b
    Examples:
      privet receipt key new people.csv --name hospital.example
      privet receipt key new people.csv --second --key-file /media/stick/second.key
    """
    if second and key_file is None:
        raise QuestionError("a second key is kept elsewhere than the first one; name its file with --key-file.")
    made = receipts.new_key(open_book(ledger), name, key_file, second)
    say("publish this key, where those who check receipts find it:")
    print(made.vkey)


@key_app.command("show", short_help="Show the public keys of a ledger, oldest first.")
def show(ledger: LedgerArgument, as_json: JsonOption = False) -> None:
    """Show the public keys of a ledger, oldest first; what each is goes to standard error.

    Example: privet receipt key show people.csv
    """
    book = open_book(ledger)
    in_force = {vkey for role in receipts.ROLES for vkey in receipts.vkeys(book, role)[-1:]}
    keys = [
        {
            "role": body.get("role", "log"),
            "vkey": body["vkey"],
            "rotated": "rotation" in body,
            "in_force": body["vkey"] in in_force,
        }
        for body in (line.body for line in key_lines(book))
    ]
    if as_json:
        print_json(keys)
        return
    for key in keys:
        since = "" if key["in_force"] else ", replaced since"
        say(f"the {'signing' if key['role'] == 'log' else 'second'} key{since}:")
        print(key["vkey"])
    if not keys:
        say("this ledger has no signing key; `privet receipt key new` makes one")


@key_app.command("rotate", short_help="Replace the signing key by a new one.")
def rotate(ledger: LedgerArgument, second: SecondOption = False, key_file: KeyFileOption = None) -> None:
    """Replace the signing key by a new one, which the old one signs. The old one is deleted.

    Who trusts the old key goes on to trust what is signed: every receipt brings the proof along. A key that was
    stolen is another matter: tell those who have it, for the thief can rotate it too.

    Example: privet receipt key rotate people.csv
    """
    if second and key_file is None:
        raise QuestionError("a second key is kept elsewhere than the first one; name its file with --key-file.")
    made = receipts.rotate(open_book(ledger), key_file, second)
    say("the key is now this one; publish it beside the old one:")
    print(made.vkey)


# -- small things -------------------------------------------------------------------------------


def _receipts(ledger: str, key_file: Path | None) -> Receipts:
    book = open_book(ledger)
    return Receipts(book, None if key_file is None else receipts.load_key(book, key_file))


def _text(path: Path) -> str:
    text = _text_or_none(path)
    if text is None:
        raise ReceiptError(f"'{shown(str(path))}' cannot be read as a text; check the path.")
    return text


def _text_or_none(path: Path) -> str | None:
    try:
        return read_text(path, max(LONGEST, LONGEST_MODEL))
    except (OSError, ValueError):
        return None


def _no_receipt(path: Path) -> str:
    """Return why a file is neither a receipt nor a checkpoint, in a sentence."""
    name, most = shown(str(path)), max(LONGEST, LONGEST_MODEL)
    if not path.exists():
        return f"there is no file '{name}'; check the path."
    size = path.stat().st_size
    why = ": it is empty" if not size else f": it is longer than {most:,} bytes, as none is" if size > most else ""
    return f"'{name}' is no receipt and no checkpoint{why}. Ask whoever gave it to you for it again."


def _vkey(text: str) -> str:
    """Return a public key that somebody wrote, if it is one."""
    try:
        read_key(text)
    except (Unproved, ValueError, LookupError):
        told = (
            "a public key is one line as `privet receipt key show` prints it, with two signs +, and each letter counts"
        )
        raise QuestionError(f"'{shown(text)}' is no public key; {told}.") from None
    return text


def _checkpoint(path: Path) -> Checkpoint:
    try:
        return Checkpoint.read(_text(path))
    except ReceiptError as error:
        raise ReceiptError(f"'{shown(str(path))}': {error}") from None


def _is_checkpoint(text: str) -> bool:
    try:
        return bool(Checkpoint.read(text))
    except ReceiptError:
        return False


def _check_receipt(
    path: Path, text: str, document: bytes | None, pins: tuple[str, ...], older: Checkpoint | None
) -> dict[str, Any]:
    beside = path.with_name(f"{path.name}.checkpoint")
    proof = _checkpoint(beside) if older is not None and beside.is_file() else None
    return facts_of(receipts.check(text, document, pins, older, proof), str(path))


def facts_of(result: Shown, name: str) -> dict[str, Any]:
    """Return what a receipt shows, for JSON and as lines of text."""
    line, body, last = result.line, result.line["body"], result.charges[-1]["body"]
    compare = "" if result.trusted else " (compare it with what the owner has published)"
    unit = "rho " if last.get("unit") == "rho" else ""
    spent, cap = (short_text(loss_of(last[part])) for part in ("dataset_spent", "dataset_cap"))
    text = [
        f"good: {clean(name)} is {'an answer' if result.kind == 'answer' else 'a model'} of "
        f"'{clean(line['dataset'])}', {clean(line['day'])}, line {line['number']} of {result.checkpoint.size}",
        f"  charged {unit}{short_text(result.loss)} in {_entries(result)}; {unit}{spent} of {cap} was spent then",
        *([f"  under the permit '{clean(last['permit'])}'{_purpose(last)}"] if "permit" in last else []),
        *([f"  asked {clean(last['question'])} on {clean(last['scope'])}"] if result.kind == "answer" else []),
        *(["  NOT PRIVATE: its noise was seeded, for tests"] if not result.private else []),
        *(f"  signed by {clean(vkey)}{compare}" for vkey in result.signers),
        receipts.LIMITS,
    ]
    return {
        "good": True,
        "kind": result.kind,
        "dataset": line["dataset"],
        "day": line["day"],
        "line": line["number"],
        "lines": result.checkpoint.size,
        "entries": [charge["serial"] for charge in result.charges],
        "charged": str(result.loss),
        "private": result.private,
        "sha256": body["sha256"],
        "signers": result.signers,
        "trusted": result.trusted,
        "limits": receipts.LIMITS,
        "text": text,
    }


def _purpose(charge: Mapping[str, Any]) -> str:
    return f", for: {clean(charge['purpose'])}" if charge.get("purpose") else ""


def _entries(result: Shown) -> str:
    numbers = [charge["serial"] for charge in result.charges]
    if len(numbers) == 1:
        return f"entry {numbers[0]}"
    together = numbers[-1] - numbers[0] == len(numbers) - 1
    return f"entries {numbers[0]} to {numbers[-1]}" if together else f"{len(numbers)} entries from {numbers[0]} on"


def _check_checkpoint(signed: Checkpoint, pins: tuple[str, ...], older: Checkpoint | None) -> dict[str, Any]:
    if not pins:
        raise QuestionError("a checkpoint does not bring its keys; name those that must have signed with --key.")
    signers = signed.signers(pins)
    if older is not None:
        older.signers(pins)
        signed.require_continues(older)
    origin, size, _ = signed.body
    since = "" if older is None else f", and continues the one of {older.size}"
    text = [f"good: the checkpoint of {clean(origin)} with {size} lines is signed{since}"]
    return {"good": True, "kind": "checkpoint", "origin": origin, "lines": size, "signers": signers, "text": text}


def _check_ledger(target: str, pins: tuple[str, ...], older: Checkpoint | None) -> dict[str, Any]:
    """Check all lines of a ledger, which its opening does, and that it continues a checkpoint."""
    book = open_book(target)
    keys = receipts.vkeys(book)
    if older is not None:
        try:
            older.signers([*keys, *receipts.vkeys(book, "second"), *pins])
        except ReceiptError as error:
            told = (
                "If it is of this ledger, name its key with --key: a ledger that went back to before the key was made"
            )
            raise ReceiptError(f"{error} {told} does not know it.") from None
    size = receipts.require_ledger_continues(book, older)
    since = "" if older is None else f", and continues the checkpoint of {older.size}"
    text = [f"good: the ledger has {size} lines that follow from each other{since}"]
    return {"good": True, "kind": "ledger", "lines": size, "keys": keys, "text": text}
