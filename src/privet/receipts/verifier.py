"""Check a receipt of privet with Python's standard library alone: offline, without privet, without trust in a server.

    python check_receipt.py model.json [VKEY ...]   # model.json.receipt lies beside it; an answer stands in its receipt
Formats: c2sp.org/signed-note, c2sp.org/tlog-checkpoint, RFC 6962 and 9162 (trees and proofs), RFC 8032 (Ed25519)."""

import base64
import hashlib
import json
import pathlib
import sys

LIMITS = (
    "This shows that the ledger holds these lines, and that whoever has the key says so. It does not show that noise "
    "was added, that the rows were real, that the server ran this program, or that no copy of the rows was asked "
    "elsewhere. Without a key that the owner of the data has published, anybody can have signed it."
)
P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D, ROOT = -121665 * pow(121666, -1, P) % P, pow(2, (P - 1) // 4, P)
Point = tuple[int, int, int, int]


class Unproved(Exception):
    """A receipt that does not hold; the text says why."""


def require(holds: bool, why: str) -> None:
    if not holds:
        raise Unproved(why)


def _point(data: bytes) -> Point:
    y, odd = int.from_bytes(data, "little") & (1 << 255) - 1, data[31] >> 7
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if (x * x - square) % P == 0 else x * ROOT % P
    require(y < P and (x * x - square) % P == 0 and (x > 0 or not odd), "no point of the curve")
    x = x if x & 1 == odd else P - x
    return x, y, 1, x * y % P


def _add(p: Point, q: Point) -> Point:
    a, b = (p[1] - p[0]) * (q[1] - q[0]), (p[1] + p[0]) * (q[1] + q[0])
    c, d = 2 * p[3] * q[3] * D, 2 * p[2] * q[2]
    return (b - a) * (d - c) % P, (d + c) * (b + a) % P, (d - c) * (d + c) % P, (b - a) * (b + a) % P


def _times(scalar: int, point: Point) -> Point:
    result = (0, 1, 1, 0)
    while scalar:
        result, point, scalar = _add(result, point) if scalar & 1 else result, _add(point, point), scalar >> 1
    return result


def signature_holds(public: bytes, message: bytes, mark: bytes) -> bool:
    """Return whether 64 bytes are an Ed25519 signature of a message (RFC 8032, 5.1.7), Unproved if no points."""
    key, nonce, base = _point(public), _point(mark[:32]), _point(b"\x58" + b"\x66" * 31)
    scalar, digest = int.from_bytes(mark[32:], "little"), hashlib.sha512(mark[:32] + public + message).digest()
    x, y = _times(scalar, base), _add(nonce, _times(int.from_bytes(digest, "little") % L, key))
    return scalar < L and (x[0] * y[2] - y[0] * x[2]) % P == (x[1] * y[2] - y[1] * x[2]) % P == 0


def decoded(text: str, length: int) -> bytes:
    data = base64.b64decode(text, validate=True)
    require(len(data) == length and base64.b64encode(data).decode() == text, "a hash, key or signature was changed")
    return data


def read_key(vkey: str) -> tuple[str, bytes, bytes]:
    """Return the name, the id and the bytes of a public key."""
    name, identity, text = vkey.split("+", 2)
    key = decoded(text, 33)
    known = hashlib.sha256(f"{name}\n".encode() + key).digest()[:4]
    require(key[0] == 1 and known.hex() == identity and name.split() == [name], "a key was changed")
    return name, known, key[1:]


def open_note(note: str, vkeys: list[str]) -> tuple[str, list[str]]:
    """Return the text of a signed note, and which of these keys signed it; it has no other signatures."""
    text, signatures = note[: note.rindex("\n\n") + 1], note[note.rindex("\n\n") + 2 :].split("\n")
    keys, signers = {read_key(vkey)[:2]: vkey for vkey in vkeys}, []
    for dash, name, data in (line.split(" ") for line in signatures[:-1]):
        mark = decoded(data, 68)
        vkey = keys.pop((name, mark[:4]), "")
        holds = vkey != "" and signature_holds(read_key(vkey)[2], text.encode(), mark[4:])
        require(holds and dash == "\u2014", "a signature does not hold, or its key is not known")
        signers.append(vkey)
    require(signers != [] and signatures[-1] == "", "a signature is missing or was changed")
    return text, signers


def read_checkpoint(text: str) -> tuple[str, int, bytes]:
    """Return the origin, the number of lines and the root that a checkpoint states."""
    origin, size, root, end = text.split("\n")
    require(end == "" and size == str(int(size)), "the checkpoint was changed")
    return origin, int(size), decoded(root, 32)


def follow(old: bytes, new: bytes, position: int, last: int, path: list[bytes]) -> tuple[bytes, bytes]:
    """Return the two roots that a proof leads to (RFC 9162, 2.1.3.2 and 2.1.4.2)."""
    for other in path:
        require(last > 0, "a proof is too long")
        left = position & 1 == 1 or position == last
        old = hashlib.sha256(b"\1" + other + old).digest() if left else old
        new = hashlib.sha256(b"\1" + (other + new if left else new + other)).digest()
        levels = max(1, (position & -position).bit_length()) if left else 1  # above an end that has no right neighbour
        position, last = position >> levels, last >> levels
    require(last == 0, "a proof is too short")
    return old, new


def check(text: str, document: bytes | None, pins: list[str]) -> str:
    """Return what a receipt shows. Of the keys `pins` each, or one that it was rotated to, must have signed it."""
    receipt = json.loads(text)
    *charges, subject = (line for line, _ in receipt["lines"])
    names = "checkpoint keys lines rotations".split() + ["released"] * (subject["kind"] == "answer")
    known = {"privet-receipt": 1, "limits": LIMITS, **{name: receipt[name] for name in names}}  # one form, and no other
    require(json.dumps(known, indent=1, sort_keys=True) + "\n" == text, "it was changed, or is of another version")
    note, signers = open_note(receipt["checkpoint"], receipt["keys"])
    origin, size, root = read_checkpoint(note)
    require(signers == receipt["keys"] and read_key(signers[0])[0] == origin, "the keys are not those that signed")
    trusted = [{pin} for pin in pins]
    for rotation in receipt["rotations"] + []:  # a list of notes that name a new key, each signed by the old one
        head, old, new, _ = open_note(rotation, rotation.split("\n")[1:2])[0].split("\n")
        require(head == "privet key rotation" and read_key(new)[0] == read_key(old)[0], "no rotation of one key")
        trusted = [keys | {new} if old in keys else keys for keys in trusted]
    require(all(keys & {*signers} for keys in trusted), "it is not signed by a key that you trust")
    for line, proof in receipt["lines"]:
        leaf = hashlib.sha256(b"\0" + json.dumps(line, sort_keys=True, separators=(",", ":")).encode()).digest()
        shown = follow(leaf, leaf, line["number"] - 1, size - 1, [decoded(step, 32) for step in proof[:]])
        require(0 < line["number"] <= size and shown[1] == root, "a line is not in the log")
    of_one = len({(line["ledger"], line["dataset"], line["analyst"]) for line, _ in receipt["lines"]}) == 1
    require(of_one and origin.endswith("/" + subject["ledger"]), "its lines are not of one log and one analyst")
    body, numbers = subject["body"], [line["serial"] for line in charges if line["kind"] == "charge"]
    paid = {"answer": [body.get("entry")], "model": body.get("entries")}[subject["kind"]]
    require(numbers == paid and len(numbers) == len(charges), "its charges are not those that paid for it")
    content = receipt["released"].encode() if subject["kind"] == "answer" else document or b""  # of a model: the file
    same = hashlib.sha256(content).hexdigest() == body["sha256"] and document in (None, content, text.encode())
    require(same, "what it is about was changed, or is not there")
    kind = subject["kind"] + ("" if body.get("private", True) else ", NOT PRIVATE: its noise was seeded,")
    return f"{kind} of {subject['dataset']!a}, line {subject['number']} of {size}, by {', '.join(signers)!a}"


if __name__ == "__main__":
    try:
        file, pins = pathlib.Path(sys.argv[1] if sys.argv[1:] else sys.exit(__doc__)), sys.argv[2:]
        beside = file.with_name(file.name + ".receipt")
        shown = check((beside if beside.exists() else file).read_text(encoding="ascii"), file.read_bytes(), pins)
        print("good:" if pins else "good, if the key is the owner's:", shown, LIMITS, sep="\n")
    except Exception as error:
        sys.exit(f"NOT GOOD: {error if isinstance(error, Unproved | OSError) else 'it cannot be read as a receipt'}")
