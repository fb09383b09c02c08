"""The format of the ledger: what every line says, which hash covers it, and what stands in no line.

The golden file holds a ledger as it is written. A change to it is a change of the format, which needs a new number:
`PRIVET_UPDATE_GOLDEN=1` writes it anew.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from damaged_ledger import unprotected
from kernel.ledger.small_ledger import append_line
from merkle import DATA, ROOTS, consistency_proof, inclusion_proof, root
from postgres_server import shared_server

import privet
from privet.errors import BudgetExceeded, LedgerError, PrivetError
from privet.kernel import Charge, Ledger, session
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.ledger import log
from privet.kernel.ledger.log import KINDS, canonical, leaf_hash
from privet.kernel.ledger.store import FORMAT, OWNER_KINDS, Purpose

GOLDEN = Path(__file__).parent / "golden" / "ledger.json"
UPDATE = os.environ.get("PRIVET_UPDATE_GOLDEN") == "1"
DOMAIN = Domain(
    (Nominal("sex", ("f", "m")), Numeric("age", Fraction(0), Fraction(100), Fraction(1), bins=10)), rows_per_person=2
)
WRITE = Purpose("write")
TENTH = Fraction(1, 10)


def counted_bytes() -> Callable[[int], bytes]:
    """Bytes that a counter makes, in place of random ones."""
    numbers = itertools.count(1)
    return lambda size: hashlib.sha256(str(next(numbers)).encode()).digest()[:size]


def counted_time() -> Callable[[], str]:
    """A clock on which a second passes with every look."""
    seconds = itertools.count(0)
    return lambda: f"2026-11-18T12:00:{next(seconds):02}+00:00"


def charge(loss: str = "1/10", key: str | None = None, question: str = "count") -> Charge:
    text = canonical({"question": question})
    return Charge(
        question, text, hashlib.sha256(text.encode()).hexdigest(), "all rows", loss, Fraction(loss), key, "o 0 1"
    )


TOKEN = {
    "event": "token",
    "expires": "2027-02-16T09:00:00+00:00",
    "role": "analyst",
    "tables": ["people"],
    "token": "3f2a90c1b7de",
}


def every_kind(path: Path | str = ":memory:") -> Ledger:
    """A ledger with lines of every kind, the same each time."""
    ledger = Ledger.open(path, clock=counted_time(), random_bytes=counted_bytes())
    append_line(ledger, "config", TOKEN)
    append_line(ledger, "key", {"vkey": "privet.example/people+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"})
    ledger.register("people", source="/data/people.csv", budget=Fraction(2), domain=DOMAIN, aliases=["its file"])
    ledger.register("people", source="/backup/people.csv", budget=None, domain=DOMAIN)
    ledger.set_cap("people", "ada", Fraction(1, 3))
    hold = ledger.hold("people", "ada", Fraction(1, 4))
    entry, _ = ledger.charge("people", "ada", charge(key="monday"), None, hold)
    ledger.store(entry.id, '{"answer":[42],"private":true}', opening_token="o 0 1")
    ledger.end(hold)
    more, _ = ledger.charge("people", "ärztin", charge("1/7", question="histogram(sex)"))
    ledger.store(more.id, '{"answer":[[20,22]],"private":false}', private=False, opening_token="o 0 1")
    paid = {"epsilon": "0.1", "entries": [entry.id], "spent": "1/10"}
    append_line(ledger, "model", {"name": "tree.json", "sha256": "0" * 64, **paid}, "people", "ada")
    append_line(ledger, "config", {"token": "created"}, "people", "ada")
    ledger.declare("people", Domain(DOMAIN.columns, rows_per_person=3))
    ledger.hold("people", "ärztin", TENTH)
    return ledger


def tables(ledger: Ledger) -> dict[str, list[list[Any]]]:
    names = {"format": "version", "lines": "number", "analysts": "id", "sources": "id", "open_holds": "hold"}
    with ledger._transaction(Purpose("look"), write=False) as log:
        return {
            table: [list(row) for row in log.run(f"SELECT * FROM {table} ORDER BY {order}").fetchall()]
            for table, order in names.items()
        }


@pytest.fixture(autouse=True)
def version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "__version__", "1.2.3")


@pytest.fixture(params=["sqlite", "postgres"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    return tmp_path / "people.ledger" if request.param == "sqlite" else shared_server().ledger()


# -- what is written ----------------------------------------------------------------------------


def test_a_ledger_is_written_as_it_always_was(path: Path | str) -> None:
    """Both stores hold the same, down to the hashes."""
    written = tables(every_kind(path))
    if UPDATE and isinstance(path, Path):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert written == json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_the_golden_ledger_can_still_be_read(tmp_path: Path) -> None:
    """As somebody finds it who has kept it: the rows alone, put into an empty ledger."""
    file = tmp_path / "kept.ledger"
    Ledger.open(file).close()
    with unprotected(file) as raw:
        raw.execute("DELETE FROM format")
        for table, rows in json.loads(GOLDEN.read_text(encoding="utf-8")).items():
            for row in rows:
                raw.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    kept, made = Ledger.open(file), every_kind()
    assert kept.entries("people") == made.entries("people") and kept.holds("people") == made.holds("people")
    assert kept.analysts("people") == ["ada", "ärztin"] and kept.name_of(["its file"]) == "people"
    assert kept.spent("people") == Fraction(3, 2) * (TENTH + Fraction(1, 7))


def test_the_page_shows_the_golden_ledger() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "ledger.md").read_text(encoding="utf-8")
    shown = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL)]
    lines = {line.kind: line for line in reversed(every_kind().lines())}  # the first of each kind
    bodies = [lines[kind].body for kind in KINDS]
    assert shown == [json.loads(lines["charge"].text), lines["charge"].note, *bodies]


def test_there_is_a_line_of_every_kind_and_its_leaf_is_its_hash() -> None:
    ledger = every_kind()
    lines = ledger.lines()
    assert {line.kind for line in lines} == set(KINDS)
    for line in lines:
        said = json.loads(line.text)
        assert line.text == json.dumps(said, sort_keys=True, separators=(",", ":"))
        assert line.leaf == hashlib.sha256(b"\0" + line.text.encode()).hexdigest() == leaf_hash(line.text)
        assert said["note"] == hashlib.sha256(line.note_text.encode()).hexdigest()
        assert (said["number"], said["serial"], said["day"], said["ledger"]) == (
            *(line.number, line.serial, "2026-11-18", ledger.id),
        )
        assert len(bytes.fromhex(said["salt"])) == len(bytes.fromhex(line.note["salt"])) == 16
    assert ledger.lines(after=3, most=2) == lines[3:5]


def test_no_two_lines_share_a_salt_and_no_two_ledgers_an_id() -> None:
    ledgers = [Ledger.open(":memory:") for _ in range(2)]
    for ledger in ledgers:
        ledger.register("people", source="here", budget=Fraction(1))
        ledger.charge("people", "ada", charge())
        ledger.charge("people", "ada", charge())
    salts = [
        json.loads(part)["salt"] for each in ledgers for line in each.lines() for part in (line.text, line.note_text)
    ]
    assert len(salts) == len(set(salts)) == 16
    ids = [{line.analyst for line in each.lines()} - {None} for each in ledgers]
    assert ledgers[0].id != ledgers[1].id and not ids[0] & ids[1] and len(ids[0]) == 1


def test_a_line_names_neither_analysts_nor_files_nor_times_of_day() -> None:
    for line in every_kind().lines():
        for secret in ('"ada"', "rztin", "/data", "/backup", "its file", "12:00", "o 0 1", "[42]"):
            assert secret not in line.text


def test_an_answer_tells_no_time_but_the_day_of_its_charge() -> None:
    times = iter(["2026-11-18T23:59:00", "2026-11-18T23:59:01", "2026-11-18T23:59:02"])
    ledger = Ledger.open(":memory:", clock=lambda: next(times))
    ledger.register("people", source="here", budget=Fraction(1))
    entry, _ = ledger.charge("people", "ada", charge())
    ledger.store(entry.id, "[1]")  # without a look at the clock
    answer = ledger.lines()[-1]
    assert (answer.kind, answer.day, answer.note["at"]) == ("answer", "2026-11-18", "2026-11-18")
    assert entry.at == "2026-11-18T23:59:02"


def test_a_charge_can_be_read_alone() -> None:
    lines = [line for line in every_kind().lines() if line.kind == "charge"]
    terms = next(line for line in every_kind().lines() if line.kind == "register").body
    assert {name: lines[0].body[name] for name in ("unit", "rows_per_person", "domain")} == {
        name: terms[name] for name in ("unit", "rows_per_person", "domain")
    }
    assert terms["domain"] == hashlib.sha256(canonical(terms["cells"]).encode()).hexdigest()
    totals = [(b["loss"], b["dataset_spent"], b["dataset_cap"], b["analyst_spent"]) for b in (x.body for x in lines)]
    assert totals[0] == ("1/10", "1/10", "2", "1/10") and totals[1] == ("1/7", "17/70", "2", "1/7")
    assert (lines[0].body["analyst_cap"], lines[0].body["key"]) == ("1/3", "monday")
    assert (lines[0].body["reservation"], lines[0].body["reservation_spent"]) == (1, "1/10")
    assert not {"analyst_cap", "key", "reservation", "delta"} & set(lines[1].body)
    assert lines[1].note["fingerprint"] == hashlib.sha256(lines[1].note["question"].encode()).hexdigest()


# -- models, keys, settings: reserved ------------------------------------------------------------


def test_a_model_refers_to_entries_of_its_own_analyst(path: Path | str) -> None:
    ledger = every_kind(path)
    entries = [ledger.charge("people", "ada", charge("1/100"))[0].id for _ in range(3)]
    append_line(ledger, "model", {"entries": entries}, "people", "ada")
    ledger.check()
    for wrong in ([2], [99], [0], [*entries, 2]):
        other = every_kind()
        append_line(other, "model", {"entries": wrong}, "people", "ada")
        with pytest.raises(LedgerError, match="damaged"):
            other.check()


def test_keys_and_settings_are_kept_as_they_are_given(path: Path | str) -> None:
    ledger = Ledger.open(path)
    body = {"b": [1, None, True], "a": {"ü": "\0"}}
    for number, kind in enumerate(("key", "config"), 1):
        assert append_line(ledger, kind, body) == number
    assert [(line.kind, line.body) for line in ledger.lines()] == [("key", body), ("config", body)]
    ledger.check()
    append_line(ledger, "config", {}, "people")
    with pytest.raises(LedgerError, match="damaged"):  # there is no such data set
        ledger.check()


# -- terms that are not known yet ---------------------------------------------------------------


def test_a_data_set_with_unknown_terms_is_kept_and_not_opened(path: Path | str) -> None:
    terms, what = {"weights": "w"}, "it pins 'weights'"
    ledger = Ledger.open(path)
    known = ledger_terms_of(DOMAIN)
    with ledger._transaction(WRITE) as log:
        source = log.new_source_id("people", "frame people")
        log.append("register", "people", None, {**known, **terms, "sources": [source]})
        log.append("cap", "people", None, {"cap": "1"})
    frame = pd.DataFrame({"sex": ["f"], "age": [1]})
    for use in (
        lambda: privet.open(frame, DOMAIN, ledger=path, name="people"),
        lambda: Ledger.open(path).charge("people", "ada", charge()),
        lambda: Ledger.open(path).declare("people", Domain(DOMAIN.columns)),
    ):
        with pytest.raises(
            LedgerError, match=f"cannot be used: {what}, which this version .* does not know"
        ) as refused:
            use()
        assert str(refused.value).endswith("open it with the version that registered it.")
    assert (ledger.cap("people"), ledger.analysts("people")) == (1, [])  # its owner can look at it


def ledger_terms_of(domain: Domain) -> dict[str, Any]:
    ledger = Ledger.open(":memory:")
    ledger.register("people", source="here", budget=Fraction(1), domain=domain)
    return {name: value for name, value in ledger.lines()[0].body.items() if name != "sources"}


# -- older files --------------------------------------------------------------------------------

FORMAT_3 = """
CREATE TABLE format (version INTEGER NOT NULL);
CREATE TABLE datasets (name TEXT PRIMARY KEY, at TEXT NOT NULL, checksum TEXT NOT NULL);
CREATE TABLE entries (id INTEGER PRIMARY KEY AUTOINCREMENT, dataset TEXT NOT NULL, loss TEXT NOT NULL);
INSERT INTO format VALUES (3);
"""


def test_a_file_of_format_3_is_refused_and_left_alone(tmp_path: Path) -> None:
    data = tmp_path / "people.csv"
    pd.DataFrame({"sex": ["f"], "age": [1]}).to_csv(data, index=False)
    old = Path(f"{data}.ledger")
    raw = sqlite3.connect(old)
    raw.executescript(FORMAT_3)
    raw.close()
    before = old.read_bytes()
    for opening in (lambda: Ledger.open(old), lambda: privet.open(data, DOMAIN, budget=1)):
        with pytest.raises(LedgerError, match=r"is of format 3, and .* reads format 5 alone; go on with") as refused:
            opening()
        assert "\n" not in str(refused.value) and str(refused.value).endswith("the version that wrote it.")
    assert FORMAT == 5 and old.read_bytes() == before


def test_a_schema_of_format_3_is_refused_and_left_alone() -> None:
    address = shared_server().ledger()
    schema = address.split("schema=")[1]
    statements = FORMAT_3.replace("INTEGER PRIMARY KEY AUTOINCREMENT", "BIGINT PRIMARY KEY").strip()
    shared_server().run(f"CREATE SCHEMA {schema}; SET search_path = {schema}; {statements}")
    with pytest.raises(LedgerError, match=r"is of format 3, and .* reads format 5 alone; go on with"):
        Ledger.open(address)


# -- the tree -----------------------------------------------------------------------------------

# Proofs of the reference implementation of RFC 6962.
LEAVES = [hashlib.sha256(b"\0" + bytes.fromhex(data)).hexdigest() for data in DATA]
INCLUSION = {  # by the number of leaves and the index
    (1, 0): [],
    (8, 0): ["96a296d2", "5f083f0a", "6b47aaf2"],
    (8, 5): ["bc1a0643", "ca854ea1", "d37ee418"],
    (3, 2): ["fac54203"],
    (5, 1): ["6e340b9c", "5f083f0a", "bc1a0643"],
}
CONSISTENCY = {  # by the number of leaves and that of the smaller tree
    (1, 1): [],
    (8, 1): ["96a296d2", "5f083f0a", "6b47aaf2"],
    (8, 6): ["0ebc5d34", "ca854ea1", "d37ee418"],
    (5, 2): ["5f083f0a", "bc1a0643"],
    (7, 6): ["0ebc5d34", "b08693ec", "d37ee418"],
}


def node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


def included(leaf: str, index: int, size: int, proof: list[str]) -> str:
    """The root that a proof makes of a leaf, by the steps of RFC 9162, section 2.1.3.2."""
    first, last, found = index, size - 1, bytes.fromhex(leaf)
    for step in map(bytes.fromhex, proof):
        assert last > 0
        if first % 2 or first == last:
            found = node(step, found)
            while not first % 2 and first:
                first, last = first >> 1, last >> 1
        else:
            found = node(found, step)
        first, last = first >> 1, last >> 1
    assert last == 0
    return found.hex()


def extended(size: int, total: int, smaller: str, proof: list[str]) -> tuple[str, str]:
    """The two roots that a proof makes, by the steps of RFC 9162, section 2.1.4.2."""
    if size == total:
        assert proof == []
        return smaller, smaller
    steps = [bytes.fromhex(step) for step in ([smaller, *proof] if size & (size - 1) == 0 else proof)]
    first, last = size - 1, total - 1
    while first % 2:
        first, last = first >> 1, last >> 1
    before = after = steps[0]
    for step in steps[1:]:
        assert last > 0
        if first % 2 or first == last:
            before, after = node(step, before), node(step, after)
            while not first % 2 and first:
                first, last = first >> 1, last >> 1
        else:
            after = node(after, step)
        first, last = first >> 1, last >> 1
    assert last == 0
    return before.hex(), after.hex()


def test_roots_and_proofs_are_those_of_the_reference_tree() -> None:
    assert [root(LEAVES[:size]) for size in range(9)] == ROOTS
    for (size, index), proof in INCLUSION.items():
        assert [step[:8] for step in inclusion_proof(LEAVES[:size], index)] == proof
    for (size, smaller), proof in CONSISTENCY.items():
        assert [step[:8] for step in consistency_proof(LEAVES[:size], smaller)] == proof


def test_every_proof_convinces_and_none_for_another_leaf_or_tree() -> None:
    leaves = [leaf_hash(str(number)) for number in range(20)]
    roots = [root(leaves[:size]) for size in range(21)]
    for size in range(1, 21):
        for index in range(size):
            proof = inclusion_proof(leaves[:size], index)
            assert included(leaves[index], index, size, proof) == roots[size]
            assert included(leaf_hash("another"), index, size, proof) != roots[size]
        for smaller in range(1, size + 1):
            proof = consistency_proof(leaves[:size], smaller)
            assert extended(smaller, size, roots[smaller], proof) == (roots[smaller], roots[size])
    for wrong in (
        lambda: inclusion_proof(leaves, 20),
        lambda: inclusion_proof([], 0),
        lambda: consistency_proof(leaves, 0),
    ):
        with pytest.raises(IndexError):
            wrong()


def test_a_longer_log_begins_with_the_one_that_was_known() -> None:
    leaves = [line.leaf for line in every_kind().lines()]
    known = root(leaves[:7])
    proof = consistency_proof(leaves, 7)
    assert extended(7, len(leaves), known, proof) == (known, root(leaves))
    changed = [leaf_hash("another"), *leaves[1:]]  # as after a backup was restored and went on
    assert extended(7, len(leaves), known, consistency_proof(changed, 7))[0] != known


# -- an attacker --------------------------------------------------------------------------------


def test_two_lines_that_change_places_are_noticed_though_every_hash_is_right(tmp_path: Path) -> None:
    file = tmp_path / "people.ledger"
    ledger = Ledger.open(file)
    ledger.register("people", source="here", budget=Fraction(1))
    ledger.charge("people", "ada", charge("1/10"))
    ledger.charge("people", "ada", charge("1/5"))
    ledger.close()
    with unprotected(file) as raw:
        rows = raw.execute("SELECT number, serial, line FROM lines WHERE kind = 'charge' ORDER BY number").fetchall()
        notes = [note for (note,) in raw.execute("SELECT note FROM lines WHERE kind = 'charge' ORDER BY number")]
        for (number, serial, _), (_, _, text), note in zip(rows, rows[::-1], notes[::-1], strict=True):
            moved = canonical({**json.loads(text), "number": number, "serial": serial})
            values = (moved, note, leaf_hash(moved), number)
            raw.execute("UPDATE lines SET line = ?, note = ?, leaf = ? WHERE number = ?", values)
    with pytest.raises(LedgerError, match="is damaged"):
        Ledger.open(file)


def test_a_line_of_another_ledger_is_not_taken_for_one_of_this(tmp_path: Path) -> None:
    """The same lines up to here, and then one charge less: the tail of another ledger does not fit."""
    files = [tmp_path / "one.ledger", tmp_path / "two.ledger"]
    for file in files:
        ledger = Ledger.open(file)
        ledger.register("people", source="here", budget=Fraction(1))
        ledger.charge("people", "ada", charge())
        ledger.close()
    with unprotected(files[0]) as raw:
        raw.execute("ATTACH ? AS other", (str(files[1]),))
        raw.execute("DELETE FROM lines WHERE number = 3")
        raw.execute("INSERT INTO lines SELECT * FROM other.lines WHERE number = 3")
    with pytest.raises(LedgerError, match="is damaged"):
        Ledger.open(files[0])


def test_processes_that_change_caps_and_charge_at_once_never_pass_a_cap(path: Path | str) -> None:
    """Each charge says the cap that it was held against: no line has spent more than it."""
    owner = Ledger.open(path)
    owner.register("people", source="here", budget=Fraction(1, 2))
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            try:
                ledger = Ledger.open(path)
                for step in range(12):
                    if number == 0:
                        ledger.set_cap("people", None, Fraction(1, 4) if step % 2 else Fraction(1))
                    try:
                        ledger.charge("people", f"analyst {number}", charge("1/20"))
                    except BudgetExceeded:
                        continue
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    bodies = [line.body for line in Ledger.open(path).lines() if line.kind == "charge"]
    assert len(bodies) >= 5
    assert all(Fraction(body["dataset_spent"]) <= Fraction(body["dataset_cap"]) for body in bodies)


@pytest.mark.parametrize("kind", OWNER_KINDS)
def test_only_the_owner_of_a_ledger_on_a_server_writes_the_owners_lines(kind: str) -> None:
    """Not even with a function of the same name as the server's in the way."""
    server = shared_server()
    address = server.ledger()
    schema, role = address.split("schema=")[1], f"writer_{os.getpid()}_{threading.get_ident()}"
    every_kind(address).close()
    server.run(
        f"CREATE ROLE {role} LOGIN",
        f"GRANT USAGE, CREATE ON SCHEMA {schema} TO {role}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}",
        f"GRANT INSERT ON {schema}.lines TO {role}",
    )
    psycopg = pytest.importorskip("psycopg")
    try:
        with psycopg.connect(server.address(role), autocommit=True) as raw:
            raw.execute(
                f"CREATE FUNCTION {schema}.has_table_privilege(text, text) RETURNS boolean "
                "LANGUAGE sql AS 'SELECT true'"
            )
            raw.execute(f"SET search_path = {schema}, pg_catalog")
            insert = "INSERT INTO lines SELECT 99, kind, 99, dataset, 'x', key, 99, line, note, leaf FROM lines "
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="owner_lines"):
                raw.execute(f"{insert} WHERE kind = '{kind}' LIMIT 1")
            raw.execute(f"{insert} WHERE kind = 'answer' LIMIT 1")  # of the others' kinds
    finally:
        server.run(f"DROP OWNED BY {role} CASCADE", f"DROP ROLE {role}")
    with pytest.raises(LedgerError, match="is damaged"):
        Ledger.open(address)


# -- nothing depends on rows --------------------------------------------------------------------


def rows(number: int) -> pd.DataFrame:
    """Tables that have nothing in common: no rows, some, many with values outside the domain."""
    return [
        pd.DataFrame({"sex": pd.Series([], dtype=str), "age": pd.Series([], dtype=float)}),
        pd.DataFrame({"sex": ["f", "m"] * 20, "age": range(40)}),
        pd.DataFrame({"sex": ["f", "x", None] * 500, "age": [1e9, -1, float("nan")] * 500}),
    ][number]


def asked(table: privet.ProtectedTable) -> Iterator[Callable[[], object]]:
    """Everything that writes a line, whatever it raises."""
    yield lambda: table.count(TENTH, key="k")
    yield lambda: table.count(TENTH, key="k")
    yield lambda: table.histogram("sex", epsilon=TENTH)
    yield lambda: table.where(sex="f").sum("age", TENTH)
    yield lambda: table.mean("age", TENTH)
    yield lambda: table.median("age", TENTH)
    yield lambda: table.partition("sex").count([TENTH, 2 * TENTH])
    yield lambda: table.count(TENTH).refine(3 * TENTH)
    yield lambda: table.monitor("1/2", TENTH)
    yield lambda: table.count(100)

    def reserved() -> None:
        with table.reserve(TENTH) as part:
            part.count(TENTH / 2)

    yield reserved

    def failed() -> None:
        table._session.engine.exact_counts = lambda query: 1 / 0  # type: ignore[method-assign]
        table.count(TENTH)

    yield failed


def test_nothing_in_a_ledger_but_answers_depends_on_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything else is the same to the byte: lines, notes, columns and the tables beside the log."""
    monkeypatch.setattr(session.secrets, "token_hex", lambda size: "0" * 2 * size)
    seen, answers = [], []
    for number in range(3):
        ledger = Ledger.open(":memory:", clock=counted_time(), random_bytes=counted_bytes())
        table = privet.open(
            rows(number), DOMAIN.with_target("sex"), budget=3, ledger=ledger, name="people", analyst="ada"
        )
        outcomes = []
        for ask in asked(table):
            try:
                ask()
                outcomes.append("answered")
            except PrivetError as error:
                outcomes.append(f"{type(error).__name__}: {error}")
        assert sum(outcome == "answered" for outcome in outcomes) == 10
        written = tables(ledger)
        answers.append([line.note["answer"] for line in ledger.lines() if line.kind == "answer"])
        assert len(answers[-1]) >= 10
        for row in written["lines"]:
            if row[1] == "answer":
                line, note = json.loads(row[7]), json.loads(row[8])
                del line["body"]["sha256"], line["note"], note["answer"]
                row[7:] = [line, note]
        seen.append((outcomes, written))
    assert seen[0] == seen[1] == seen[2]
    assert answers[0] != answers[1]
