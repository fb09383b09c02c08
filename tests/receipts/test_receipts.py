"""Receipts and checkpoints: what holds, what does not, and what stands in none of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from damaged_ledger import forge
from hypothesis import given, settings
from hypothesis import strategies as st
from postgres_server import shared_server
from receipts.signed_ledger import MODEL, charged, signed_ledger

import privet
from privet.errors import LedgerError, QuestionError, ReceiptError
from privet.kernel import Domain, Ledger
from privet.kernel.column import Nominal
from privet.receipts import (
    Checkpoint,
    KeptCheckpoints,
    Receipts,
    SigningKey,
    check,
    key_file,
    key_of_server,
    load_key,
    new_key,
    require_ledger_continues,
    rotate,
    rotations,
    vkeys,
)
from privet.receipts.keys import state_folder

CLASSIFIER = privet.DiffPID3Classifier(epsilon="0.3", max_depth=1)
DOMAIN = Domain((Nominal("sex", ("f", "m")), Nominal("old", ("no", "yes"))), target="old")


@pytest.fixture
def signed(tmp_path: Path) -> tuple[Receipts, SigningKey]:
    return signed_ledger(tmp_path)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def sentence(work: Callable[[], object]) -> str:
    with pytest.raises(ReceiptError) as refused:
        work()
    text = str(refused.value)
    assert "\n" not in text and text.endswith(".") and len(text) < 400 and refused.value.__cause__ is None
    return text


# -- what holds ---------------------------------------------------------------------------------


def test_an_answer_and_a_model_are_shown_with_what_they_cost(signed: tuple[Receipts, SigningKey]) -> None:
    receipts, key = signed
    shown = check(receipts.of_entry(1), pins=[key.vkey])
    assert (shown.kind, shown.loss, shown.released, shown.trusted) == (
        "answer",
        Fraction(1, 10),
        '{"answer":[40],"private":true}',
        True,
    )
    assert [line["serial"] for line in shown.charges] == [1] and shown.private
    shown = check(receipts.of_model(MODEL), MODEL.encode())
    assert (shown.kind, shown.loss, shown.trusted, shown.signers) == ("model", Fraction(1, 5), False, [key.vkey])
    assert [line["serial"] for line in shown.charges] == [2, 3]


def test_what_has_no_receipt_is_said(signed: tuple[Receipts, SigningKey], tmp_path: Path) -> None:
    receipts, _ = signed
    assert "has no entry 99" in sentence(lambda: receipts.of_entry(99))
    assert "no model with these bytes" in sentence(lambda: receipts.of_model(MODEL + " "))
    unsigned = Ledger.open(tmp_path / "other.ledger")
    assert "privet receipt key new" in sentence(lambda: Receipts(unsigned))
    assert "in memory" in sentence(lambda: new_key(Ledger.open(":memory:")))
    assert "letters" in sentence(lambda: new_key(unsigned, "two words"))
    assert key_of_server(Ledger.open(":memory:")) is None


def test_tables_give_receipts_of_releases_and_models(tmp_path: Path) -> None:
    frame = pd.DataFrame({"sex": ["f", "m", "m"] * 20, "old": ["no", "yes"] * 30})
    table = privet.open(frame, DOMAIN, budget=1, ledger=tmp_path / "people.ledger", name="people", analyst="ada")
    answer, model = table.count("0.1"), CLASSIFIER.fit(table).model_
    assert "no signing key" in sentence(lambda: table.receipt(answer))
    key = new_key(Ledger.open(tmp_path / "people.ledger"))
    shown = check(table.receipt(answer), pins=[key.vkey])
    assert json.loads(shown.released or "")["answer"] == [answer.value]
    model.save(tmp_path / "model.json")
    for text in (table.receipt(model), table.receipt(model)):  # it is written down once
        assert check(text, (tmp_path / "model.json").read_bytes()).line["serial"] == 1
    with pytest.raises(QuestionError, match="a receipt is of a release or a model, not of 3"):
        table.receipt(3)
    public = CLASSIFIER.__class__(epsilon="0.3", domain=DOMAIN).fit(frame[["sex"]], frame["old"]).model_
    assert "ledger" in sentence(lambda: privet.open(frame, DOMAIN, budget=1).receipt(public))


# -- changed bytes ------------------------------------------------------------------------------


def changed(data: bytes, place: int, mask: int) -> bytes:
    return data[:place] + bytes([data[place] ^ mask]) + data[place + 1 :]


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.data())
def test_a_changed_byte_anywhere_is_found(data: st.DataObject) -> None:
    """In the receipt of an answer, of a model, or in the model: any byte, turned to any other, dropped or doubled."""
    texts = _receipts_of_every_kind()
    which = data.draw(st.sampled_from(sorted(texts)))
    receipt, document = texts[which]
    file = data.draw(st.sampled_from(["receipt", "document"] if document else ["receipt"]))
    content = receipt.encode() if file == "receipt" else document or b""
    place = data.draw(st.integers(0, len(content) - 1))
    kind = data.draw(st.sampled_from(["turn", "drop", "double"]))
    other = {
        "turn": changed(content, place, data.draw(st.integers(1, 255))),
        "drop": content[:place] + content[place + 1 :],
        "double": content[:place] + content[place : place + 1] + content[place:],
    }[kind]
    if other == content:  # of two equal neighbours one was dropped and is still there
        return
    with pytest.raises((ReceiptError, UnicodeDecodeError)):
        if file == "receipt":
            check(other.decode(), document)
        else:
            check(receipt, other)


def test_what_reads_alike_is_not_the_same() -> None:
    """A receipt has one form: no value is exchanged for one that Python takes for it, and no member is added."""
    for text, document in _receipts_of_every_kind().values():
        content = json.loads(text)
        lines = content["lines"]
        (line, proof), *rest = lines
        others: list[object] = [
            *({**content, "privet-receipt": value} for value in (True, 1.0, "1", 2)),
            *({**content, "rotations": value} for value in ("", {}, dict.fromkeys(content["rotations"]))),
            *({**content, "keys": value} for value in (dict.fromkeys(content["keys"]), [*content["keys"]] * 2)),
            *({**content, "lines": [[line, value], *rest]} for value in (dict.fromkeys(proof), "", [*proof, ""])),
            *({**content, "lines": value} for value in (lines[1:], [*lines, lines[0]], [lines[0], *lines], {})),
            {**content, "remark": "checked by the owner"},
            {**content, "released": "0"} if document else {**content, "released": f"{content['released']} "},
            {**content, "limits": content["limits"] + " "},
            [content],
        ]
        for other in others:
            made = json.dumps(other, indent=1, sort_keys=True) + "\n"
            assert made != text
            sentence(lambda: check(made, document))  # noqa: B023


_MADE: dict[str, tuple[str, bytes | None]] = {}


def _receipts_of_every_kind() -> dict[str, tuple[str, bytes | None]]:
    if not _MADE:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            receipts, _ = signed_ledger(Path(folder))
            rotate(receipts._ledger)
            second = new_key(receipts._ledger, path=Path(folder) / "second.key", second=True)
            both = Receipts(receipts._ledger, others=[second])
            _MADE.update(answer=(both.of_entry(3), None), model=(both.of_model(MODEL), MODEL.encode()))
        for text, document in _MADE.values():
            check(text, document)
    return _MADE


def test_receipts_of_two_ledgers_do_not_mix(tmp_path: Path) -> None:
    """A line under another log's checkpoint, a charge of somebody else, an answer without its charge."""
    receipts, key = signed_ledger(tmp_path)
    others, _ = signed_ledger(tmp_path, "others.ledger")
    own, other = json.loads(receipts.of_entry(2)), json.loads(others.of_entry(2))
    mixed = [
        {**own, "lines": other["lines"]},
        {**own, "checkpoint": other["checkpoint"], "keys": other["keys"]},
        {**own, "lines": [json.loads(receipts.of_entry(1))["lines"][0], own["lines"][1]]},
        {**own, "lines": own["lines"][1:]},
        {**own, "lines": [own["lines"][0]] * 2 + own["lines"][1:]},
        {**own, "keys": []},
        {**own, "rotations": [own["checkpoint"]]},
        {name: value for name, value in own.items() if name != "released"},
    ]
    for content in mixed:
        assert "does not hold" in sentence(
            lambda content=content: check(json.dumps(content, indent=1, sort_keys=True) + "\n")
        )
    assert "trust" in sentence(lambda: check(others.of_entry(2), pins=[key.vkey]))


def test_no_file_passes_by_a_receipt_that_brings_its_own_content(signed: tuple[Receipts, SigningKey]) -> None:
    """`released` is signed by nobody: of a model only the file itself is compared with the hash of its line."""
    receipts, key = signed
    forged = json.dumps({**json.loads(receipts.of_model(MODEL)), "released": MODEL}, indent=1, sort_keys=True) + "\n"
    for document in (b'{"privet-model": 1, "of": "somebody else"}', b"", None):
        assert "was changed" in sentence(lambda document=document: check(forged, document, [key.vkey]))
    assert "changed" in sentence(lambda: check(forged, MODEL.encode(), [key.vkey]))  # nor is there room for one
    answer = receipts.of_entry(3)
    assert "was changed" in sentence(lambda: check(answer, MODEL.encode()))  # a good answer beside another file
    assert check(answer, answer.encode()).released == check(answer).released


# -- keys ---------------------------------------------------------------------------------------


def test_a_rotated_key_is_followed_from_the_first_one(signed: tuple[Receipts, SigningKey]) -> None:
    receipts, first = signed
    ledger = receipts._ledger
    before = receipts.of_entry(1)
    second, third = rotate(ledger), rotate(ledger)
    assert vkeys(ledger) == [first.vkey, second.vkey, third.vkey] and len(rotations(ledger)) == 2
    assert load_key(ledger) == third and key_file(ledger).stat().st_mode & 0o777 == 0o600
    after = receipts.of_entry(1)  # the same object, as in a server that goes on
    for pin in (first, second, third):
        assert check(after, pins=[pin.vkey]).signers == [third.vkey]
    assert check(before, pins=[first.vkey]).signers == [first.vkey]
    assert "trust" in sentence(lambda: check(before, pins=[third.vkey]))  # nothing leads back
    without = {**json.loads(after), "rotations": rotations(ledger)[1:]}
    text = json.dumps(without, indent=1, sort_keys=True) + "\n"
    assert check(text, pins=[second.vkey]) and "trust" in sentence(lambda: check(text, pins=[first.vkey]))
    impostor = SigningKey.new(first.name)
    note = f"privet key rotation\n{first.vkey}\n{impostor.vkey}\n"
    forged = {**without, "rotations": [f"{note}\n{impostor.signature(note)}"]}
    assert "does not hold" in sentence(lambda: check(json.dumps(forged, indent=1, sort_keys=True) + "\n"))


def test_a_rotation_that_was_interrupted_goes_on(
    signed: tuple[Receipts, SigningKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    receipts, first = signed
    ledger, replace = receipts._ledger, os.replace
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        rotate(ledger)
    monkeypatch.setattr(os, "replace", replace)
    assert load_key(ledger).vkey == vkeys(ledger)[-1] != first.vkey
    assert check(receipts.of_entry(1), pins=[first.vkey])


def test_a_key_whose_line_was_never_written_is_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process was killed between the file and the line; or two begin at once, and one of them is faster."""
    ledger = Ledger.open(tmp_path / "people.ledger")
    with monkeypatch.context() as patched:
        patched.setattr(ledger, "annotate", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            new_key(ledger)
    left = SigningKey.load(key_file(ledger))
    assert vkeys(ledger) == [] and key_of_server(ledger) == left and vkeys(ledger) == [left.vkey]

    other = Ledger.open(tmp_path / "other.ledger")
    write = other.annotate

    def slower(*line: Any, **seen: Any) -> None:
        write(*line, **seen)  # what the faster one has written, with the same file
        raise LedgerError("somebody else has written a signing key.")

    monkeypatch.setattr(other, "annotate", slower)
    assert new_key(other).vkey == vkeys(other)[0] and key_file(other).is_file()


def test_a_user_without_a_home_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError))
    assert "XDG_STATE_HOME" in sentence(state_folder)
    assert KeptCheckpoints("https://privet.example", several=False).newest is None


def test_two_keys_sign_and_both_can_be_demanded(signed: tuple[Receipts, SigningKey], tmp_path: Path) -> None:
    """The second one signs a checkpoint on a machine that has no ledger, and receipts are made under that."""
    receipts, first = signed
    ledger = receipts._ledger
    second = new_key(ledger, "owner.example", tmp_path / "elsewhere" / "second.key", second=True)
    alone = receipts.checkpoint()
    text = alone.note.rpartition("\n\n")[0] + "\n"
    both = Checkpoint(alone.note + second.signature(text))
    assert both.signers(vkeys(ledger) + vkeys(ledger, "second")) == [first.vkey, second.vkey]
    receipt = receipts.of_entry(2, both)
    assert check(receipt, pins=[first.vkey, second.vkey]).signers == [first.vkey, second.vkey]
    assert "trust" in sentence(lambda: check(receipts.of_entry(2), pins=[first.vkey, second.vkey]))
    charged(ledger)
    assert "newer than the checkpoint" in sentence(lambda: receipts.of_entry(5, both))
    stranger = SigningKey.new("stranger.example/x")
    assert "not known" in sentence(lambda: receipts.of_entry(2, Checkpoint(alone.note + stranger.signature(text))))


def test_a_key_that_others_can_read_is_refused_and_none_is_written_over(signed: tuple[Receipts, SigningKey]) -> None:
    ledger = signed[0]._ledger
    file = key_file(ledger)
    assert "already" in sentence(lambda: new_key(ledger))
    file.chmod(0o640)
    assert "chmod 600" in sentence(lambda: load_key(ledger))
    file.chmod(0o600)
    assert "would be lost" in sentence(lambda: new_key(ledger, path=file, second=True))
    assert signed[1].secret.hex() not in repr(signed[1]) and file.read_text().startswith("PRIVATE+KEY+")
    file.write_text("PRIVATE+KEY+x+00000000+AAAA\n")
    assert "no signing key" in sentence(lambda: load_key(ledger))
    file.unlink()
    SigningKey.new(signed[1].name).save(file)
    assert "not the one in force" in sentence(lambda: load_key(ledger))


# -- a ledger that went back --------------------------------------------------------------------


def test_a_restored_backup_is_noticed(tmp_path: Path) -> None:
    """Shorter than before, or longer again with other lines; and what has only grown is not."""
    receipts, key = signed_ledger(tmp_path)
    file, backup = tmp_path / "people.ledger", tmp_path / "backup"
    shutil.copy(file, backup)
    ledger = receipts._ledger
    charged(ledger)
    kept = receipts.checkpoint()
    charged(ledger)
    grown = receipts.checkpoint(kept.size)
    grown.require_continues(kept)
    assert require_ledger_continues(ledger, kept) == grown.size
    older = receipts.of_entry(1, kept)
    assert check(older, since=kept) and check(receipts.of_entry(5), since=kept, proof=receipts.checkpoint(kept.size))
    ledger.close()

    shutil.copy(backup, file)
    ledger = Ledger.open(file)
    restored = Receipts(ledger)
    assert "went back: it has 12 lines, and the checkpoint that was kept has 14" in sentence(
        lambda: require_ledger_continues(ledger, kept)
    )
    assert "went back" in sentence(lambda: check(restored.of_entry(1), since=kept))
    assert "went back" in sentence(lambda: restored.checkpoint(kept.size).require_continues(kept))
    charged(ledger, "grace")
    assert "two ledgers of 14 lines" in sentence(lambda: restored.checkpoint(kept.size).require_continues(kept))
    charged(ledger)
    for work in (
        lambda: require_ledger_continues(ledger, kept),
        lambda: check(restored.of_entry(5), since=kept, proof=restored.checkpoint(kept.size)),
        lambda: restored.checkpoint(kept.size).require_continues(kept),
    ):
        assert "was changed" in sentence(work)
    assert "brings no proof" in sentence(lambda: check(restored.of_entry(5), since=kept))
    assert key.vkey == vkeys(ledger)[-1]


def test_a_line_that_was_rewritten_with_hashes_that_fit_is_noticed(tmp_path: Path) -> None:
    """Whoever has the file in their hands can make it follow from itself, and not from what others have kept."""
    receipts, _ = signed_ledger(tmp_path)
    kept, ledger = receipts.checkpoint(), receipts._ledger
    ledger.close()
    forge(tmp_path / "people.ledger", "charge", 2, question="something harmless")
    ledger = Ledger.open(tmp_path / "people.ledger")
    assert "two ledgers" in sentence(lambda: require_ledger_continues(ledger, kept))
    assert "damaged" in sentence(lambda: _with_tree_of(receipts, ledger).of_entry(2))
    assert "other" in sentence(lambda: require_ledger_continues(signed_ledger(tmp_path, "b.ledger")[0]._ledger, kept))


def _with_tree_of(receipts: Receipts, ledger: Ledger) -> Receipts:
    """A server that was running when the file was exchanged under it."""
    other = Receipts(ledger)
    other._tree = receipts._tree
    return other


def test_checkpoints_survive_their_file(signed: tuple[Receipts, SigningKey]) -> None:
    receipts, key = signed
    for since in (0, 3, 8, 14):
        made = receipts.checkpoint(since)
        assert Checkpoint.read(made.to_text()) == made and made.signers([key.vkey]) == [key.vkey]
    for text in ("", "a\nb\n", "old 3\nAAAA\n\n" + receipts.checkpoint().note, "origin\n01\nAAAA\n\n\u2014 x y\n"):
        sentence(lambda text=text: Checkpoint.read(text))
    assert "does not hold" in sentence(lambda: receipts.checkpoint().signers([SigningKey.new("a/b").vkey]))


# -- several writers, and what stands in it -----------------------------------------------------


def test_servers_of_one_postgresql_ledger_sign_one_log() -> None:
    """Two of them write by turns and at once; every receipt of either holds, and each checkpoint continues the last."""
    address = shared_server().ledger()
    one, key = signed_ledger(address)
    two = Receipts(Ledger.open(address), load_key(one._ledger))
    assert key_file(one._ledger).parent.name == "keys"
    kept = one.checkpoint()

    def work(receipts: Receipts) -> None:
        for _ in range(10):
            assert check(receipts.of_entry(charged(receipts._ledger)), pins=[key.vkey])

    threads = [threading.Thread(target=work, args=(receipts,)) for receipts in (one, two)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for receipts in (one, two, one):
        fresh = receipts.checkpoint(kept.size)
        fresh.require_continues(kept)
        kept = fresh
        charged(two._ledger)
    assert kept.size == 12 + 40 + 2 * 2
    assert one.root(kept.size) == two.root(kept.size)


def test_ten_thousand_lines_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A receipt then reads what is new, and is a few thousand bytes."""
    receipts, key = signed_ledger(tmp_path)
    ledger = receipts._ledger
    with ledger._transaction(privet.kernel.ledger.ledger._RECORD) as log:  # one commit, or it takes minutes
        for number in range(10_000):
            log.append("config", None, None, {"event": "test", "n": number})
    receipts.checkpoint()
    read: list[int] = []
    leaves = ledger.leaves
    monkeypatch.setattr(ledger, "leaves", lambda after, most: read.append(after) or leaves(after, most))
    entry = charged(ledger)
    text = receipts.of_entry(entry)
    assert read == [10_012] and len(text) < 6_000
    assert check(text, pins=[key.vkey]).checkpoint.size == 10_014
    assert check(receipts.of_entry(1)).line["number"] == 5
    receipts.checkpoint(9_999).require_continues(Checkpoint(f"{key.name}\n9999\n{_root(receipts, 9_999)}\n\n", 0))


def _root(receipts: Receipts, size: int) -> str:
    import base64

    return base64.b64encode(receipts.root(size) or b"").decode()


def test_nothing_in_a_receipt_depends_on_rows_but_the_release(tmp_path: Path) -> None:
    """The same questions about 6 and 6,000 other people at another place: receipts differ in salts and hashes alone."""

    def receipt_of(rows: int, place: str) -> str:
        folder = tmp_path / place
        folder.mkdir()
        frame = pd.DataFrame({"sex": ["f", "m", "m"] * rows, "old": ["no", "yes", "yes"] * rows})
        frame.to_csv(folder / "people.csv", index=False)
        with privet.open(str(folder / "people.csv"), DOMAIN, budget=1, analyst="ada") as table:
            new_key(Ledger.open(folder / "people.csv.ledger"))
            return table.receipt(table.count("0.5"))

    small, large = receipt_of(2, "a"), receipt_of(2000, "somewhere-else")

    def plain(text: str) -> str:
        content = json.loads(text)
        content["released"] = ""
        return re.sub(r"[0-9a-f]{32,64}|[0-9a-f]{8}\+[\w+/=]+|[\w+/]{43,}=*", "#", json.dumps(content, indent=1))

    assert plain(small) == plain(large)
    for word in ("somewhere-else", "people.csv", str(tmp_path)):
        assert word not in large
    assert not re.search(r"\d\d:\d\d", plain(large))  # no time of day
    keys = {"analyst", "body", "dataset", "day", "kind", "ledger", "note", "number", "salt", "serial"}
    assert all(set(line) == keys for line, _ in json.loads(large)["lines"])


def test_lost_ledgers_are_said_in_one_sentence(signed: tuple[Receipts, SigningKey], tmp_path: Path) -> None:
    receipts, _ = signed
    receipts._ledger.close()
    os.unlink(tmp_path / "people.ledger")
    with pytest.raises(LedgerError):
        receipts.of_entry(1)
