"""The verifier that needs nothing: vectors of others, cryptography as its oracle, and alone in a bare Python."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st
from receipts.signed_ledger import MODEL, charged, signed_ledger

from privet.errors import ReceiptError
from privet.receipts import SigningKey, check, verifier
from privet.receipts.verifier import LIMITS, Unproved, open_note, signature_holds

FILE = Path(verifier.__file__)
# https://c2sp.org/signed-note
VKEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
NOTE = (
    "This is an example message.\n\n\u2014 example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZ"
    "XsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
)
# RFC 8032, 7.1: public key, message, signature
RFC_8032 = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe"
        "24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302a"
        "eeb00d291612bb0c00",
    ),
]


def holds(public: bytes, message: bytes, signature: bytes) -> bool:
    try:
        return signature_holds(public, message, signature)
    except Unproved:
        return False


def test_the_note_of_the_specification_is_read() -> None:
    assert open_note(NOTE, [VKEY]) == ("This is an example message.\n", [VKEY])
    for changed in (NOTE.replace("example message", "exbmple message"), NOTE.replace("Uw2Q", "Uw2R"), NOTE + "\n"):
        with pytest.raises((Unproved, ValueError)):
            open_note(changed, [VKEY])


def test_signatures_of_rfc_8032_hold() -> None:
    for public, message, signature in RFC_8032:
        assert holds(bytes.fromhex(public), bytes.fromhex(message), bytes.fromhex(signature))
        assert not holds(bytes.fromhex(public), b"other", bytes.fromhex(signature))


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.binary(max_size=40), st.integers(0, 8 * 96 - 1))
def test_it_judges_signatures_as_cryptography_does(secret: bytes, message: bytes, bit: int) -> None:
    """A good one, and the same with any one bit of the key or the signature turned."""
    key = Ed25519PrivateKey.from_private_bytes(secret)
    good = key.public_key().public_bytes_raw() + key.sign(message)
    turned = bytearray(good)
    turned[bit // 8] ^= 1 << bit % 8
    for data in (good, bytes(turned)):
        try:
            Ed25519PublicKey.from_public_bytes(data[:32]).verify(data[32:], message)
            expected = True
        except InvalidSignature:
            expected = False
        assert holds(data[:32], message, data[32:]) is expected
    # the same signature with the group's order added to its scalar: RFC 8032 refuses it
    scalar = int.from_bytes(good[64:], "little") + verifier.L
    assert not holds(good[:32], message, good[32:64] + scalar.to_bytes(32, "little"))


def test_notes_of_keys_made_here_are_read_by_it() -> None:
    key = SigningKey.new("hospital.example/people")
    note = "text\n\n" + key.signature("text\n")
    assert open_note(note, [VKEY, key.vkey]) == ("text\n", [key.vkey])


# -- on its own ---------------------------------------------------------------------------------


def test_it_is_short_and_needs_the_standard_library_alone() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert text.count("\n") <= 150 and max(map(len, text.splitlines())) <= 120
    imported = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""])
    }
    assert imported == {"base64", "hashlib", "json", "pathlib", "sys"} <= sys.stdlib_module_names


def alone(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run it without the environment, site packages or anything of privet."""
    return subprocess.run(
        [sys.executable, "-I", "-S", str(cwd / "check_receipt.py"), *words], cwd=cwd, capture_output=True, text=True
    )


def test_alone_it_says_what_the_package_says(tmp_path: Path) -> None:
    receipts, key = signed_ledger(tmp_path)
    (tmp_path / "check_receipt.py").write_text(FILE.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "model.json").write_text(MODEL, encoding="utf-8")
    model, answer = receipts.of_model(MODEL), receipts.of_entry(3)
    other = SigningKey.new(key.name).vkey
    forged = json.loads(answer)
    forged["released"] = forged["released"].replace("42", "43")
    cases = {
        "good": (answer, []),
        "pinned": (answer, [key.vkey]),
        "another key": (answer, [other]),
        "another answer": (json.dumps(forged, indent=1, sort_keys=True) + "\n", []),
        "a blank more": (answer.replace('"keys":', '"keys": '), []),
        "no receipt": ("{}\n", []),
    }
    for name, (text, pins) in cases.items():
        (tmp_path / "answer.json").write_text(text, encoding="utf-8")
        done = alone("answer.json", *pins, cwd=tmp_path)
        try:
            check(text, None, pins)
            assert done.stdout.startswith("good:" if pins else "good, if the key is the owner's:")
            assert done.returncode == 0 and LIMITS in done.stdout and "answer of 'people', line 9 of" in done.stdout
        except ReceiptError as error:
            assert name not in ("good", "pinned") and done.returncode == 1 and done.stdout == ""
            why = done.stderr.strip().removeprefix("NOT GOOD: ")
            assert why in str(error) or "cannot be read as a receipt" in str(error)
    seeded = receipts.of_entry(charged(receipts._ledger, private=False))
    (tmp_path / "answer.json").write_text(seeded, encoding="utf-8")
    assert "NOT PRIVATE" in alone("answer.json", cwd=tmp_path).stdout
    (tmp_path / "model.json.receipt").write_text(model, encoding="utf-8")
    assert alone("model.json", key.vkey, cwd=tmp_path).returncode == 0
    (tmp_path / "model.json").write_text(MODEL + " ", encoding="utf-8")
    assert "what it is about was changed" in alone("model.json", cwd=tmp_path).stderr
    assert "No such file" in alone("nothing.json", cwd=tmp_path).stderr
    asked = alone(cwd=tmp_path)
    assert asked.returncode == 1 and "check_receipt.py model.json" in asked.stderr and asked.stdout == ""
