"""Receipts over the wire: checked by clients who trust nobody, and written at times that depend on no row."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import httpx2
import pytest
from command import run
from kernel.people import DOMAIN, FRAME
from receipts.signed_ledger import signed_ledger

import privet
from privet import ledger_lines
from privet.errors import QuestionError, ReceiptError
from privet.kernel import Charge, Ledger
from privet.receipts import Checkpoint, KeptCheckpoints, Receipts, SigningKey, check, key_file, rotate, rotations, vkeys
from privet.service import pacing
from privet.service.client import Connection
from privet.service.pacing import PacedLedger, slot_after
from privet.service.seeded_server import UNLIMITED, Served, serve_seeded, serve_sessions

CLASSIFIER = privet.DiffPID3Classifier(epsilon="0.3", max_depth=1)


@contextmanager
def served_at(ledger: Path, tick: float = 0) -> Iterator[Served]:
    table = privet.open(FRAME, DOMAIN, budget=10, ledger=ledger, name="people")
    with serve_sessions({"people": table._session}, limits=UNLIMITED, tick=tick) as served:
        yield served


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def sentence(work: object) -> str:
    with pytest.raises(ReceiptError) as refused:
        work()  # type: ignore[operator]
    text = str(refused.value)
    assert "\n" not in text and text.endswith(".") and len(text) < 500
    return text


def test_every_answer_and_model_has_a_receipt_and_nobody_elses(tmp_path: Path) -> None:
    with served_at(tmp_path / "people.ledger") as served, served.connect() as ada, served.connect("grace") as grace:
        table = ada.table("people")
        answer, model = table.count("0.1"), ada.fit("people", CLASSIFIER)
        (vkey,) = vkeys(served.service.ledger)
        shown = check(table.receipt(answer), pins=[vkey])
        assert json.loads(shown.released or "")["answer"] == [answer.value]
        model.save(tmp_path / "model.json")
        text = table.receipt(model)
        assert check(text, (tmp_path / "model.json").read_bytes(), pins=[vkey]).kind == "model"
        (tmp_path / "model.json.receipt").write_text(text, encoding="utf-8")
        assert run("receipt", "check", "model.json", "--key", vkey, cwd=tmp_path).returncode == 0
        entry = answer.about.entry
        for path in (f"entries/{entry}/receipt", "models/1/receipt", "entries/999/receipt", "entries/x/receipt"):
            with pytest.raises(QuestionError):
                grace.get(f"/v1/tables/people/{path}")
        assert "not yours" in sentence(lambda: grace.table("people").receipt(answer))
        mine = privet.DiffPID3Classifier(epsilon="0.3", max_depth=1).fit(table).model_
        assert "has not fitted this model" in sentence(lambda: table.receipt(mine))
        reply = ada.get("/v1/checkpoint", since=3)
        assert reply["since"] == 3 and len(reply["proof"]) > 0 and reply["keys"] == [vkey]


def test_a_server_without_a_durable_ledger_signs_nothing() -> None:
    with serve_seeded(FRAME, DOMAIN, 10, seed=1) as served, served.connect() as connection:
        assert connection.check_ledger() is None
        table = connection.table("people")
        answer = table.count(1)
        assert "signs none" in sentence(lambda: table.receipt(answer))


def test_an_answer_that_has_not_left_has_no_receipt(tmp_path: Path) -> None:
    with served_at(tmp_path / "people.ledger") as served, served.connect() as connection:
        table = connection.table("people")
        answer = table.count("0.1", key="monday")
        table.receipt(answer)
        served.service.keys.add(("ada", "people", "monday"))
        sentence(lambda: table.receipt(answer))


# -- what clients remember ----------------------------------------------------------------------


def test_a_client_notices_a_ledger_that_went_back(tmp_path: Path) -> None:
    file, backup = tmp_path / "people.ledger", tmp_path / "backup"
    with served_at(file) as served, served.connect() as connection:
        connection.table("people").count("0.1")
    shutil.copy(file, backup)
    with served_at(file) as served, connected(served) as connection:
        for _ in range(10):
            connection.table("people").count("0.1")
        kept = connection.check_ledger()
        assert kept is not None and kept > 20
    with served_at(file) as served:  # it has only grown
        connected(served).close()
    shutil.copy(backup, file)
    with served_at(file) as served:
        assert "the ledger went back" in sentence(lambda: connected(served))
        for _ in range(40):  # and it stays noticed when it has grown past that
            ledger_lines.record(served.service.ledger, "test")
        assert "was changed" in sentence(lambda: connected(served))


def connected(served: Served) -> Connection:
    """Connect to a server as if it were always at the same address."""
    headers = {"Authorization": f"Bearer {served.token()}"}
    connection = Connection(httpx2.Client(base_url=served.url, headers=headers, trust_env=False), 3, lambda pause: None)
    connection._kept = KeptCheckpoints("http://127.0.0.1:8000", several=True)
    connection.check_ledger()
    return connection


def test_another_ledger_or_key_at_an_address_is_refused(tmp_path: Path) -> None:
    """Off this machine; here each ledger of a port is remembered apart."""
    one, key = signed_ledger(tmp_path)
    other, _ = signed_ledger(tmp_path, "other.ledger")
    kept = KeptCheckpoints("https://privet.example", several=False)
    kept.take(one.checkpoint(), one.signers, [], None)
    assert kept.path.is_file() and kept.newest == KeptCheckpoints("https://privet.example", False).newest
    assert "another ledger" in sentence(lambda: kept.take(other.checkpoint(), other.signers, [], None))
    impostor = SigningKey.new(key.name)
    forged = Receipts(one._ledger, impostor)
    forged._current = lambda: impostor  # type: ignore[method-assign]
    old = kept.newest
    assert old is not None
    signed = forged.checkpoint(old.checkpoint.size)
    assert "another key" in sentence(lambda: kept.take(signed, [impostor.vkey], [], old))
    text, marks = old.checkpoint.note.split("\n\n")  # what was signed before, with a signature of their own before it
    both = Checkpoint(f"{text}\n\n{impostor.signature(text + chr(10))}{marks}")
    assert "another key" in sentence(lambda: kept.take(both, [impostor.vkey, key.vkey], [], old))
    assert kept.newest == old
    new = rotate(one._ledger)
    rotated = one.checkpoint(old.checkpoint.size)
    kept.take(rotated, one.signers, rotations(one._ledger), old)
    assert kept.newest is not None and kept.newest.vkey == new.vkey
    here = KeptCheckpoints("http://127.0.0.1:8000", several=True)
    here.take(one.checkpoint(), one.signers, [], None)
    here.take(other.checkpoint(), other.signers, [], None)
    assert here.of(one.checkpoint().body[0]) is not None
    assert "now" in run("receipt", "forget", "https://privet.example/", cwd=tmp_path).stderr
    assert KeptCheckpoints("https://privet.example", several=False).newest is None


NOT_SAID: tuple[object, ...] = (
    *(None, 7.5, "", "x", "\n\n", "a\n1\n\n\n\u2014 a b\n", {}),
    *([7], [None], [[]], ["x\ny"], ["\ud800"]),
)


def test_what_no_server_says_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """Whoever has an address may answer there: whatever they say, the client remembers what it knew."""
    one, _ = signed_ledger(tmp_path)
    good = one.checkpoint()
    reply = {"checkpoint": good.note, "since": 0, "proof": [], "keys": one.signers, "rotations": []}
    replies = [{**reply, name: value} for name in reply for value in NOT_SAID]
    replies += [{key: value for key, value in reply.items() if key != name} for name in reply]
    said: list[dict[str, object]] = [reply]

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=json.dumps(said[-1]), headers={"Content-Type": "application/json"})

    with httpx2.Client(base_url="https://privet.example", transport=httpx2.MockTransport(answer)) as client:
        connection = Connection(client, 1, lambda pause: None)
        assert connection.check_ledger() == good.size
        kept = KeptCheckpoints("https://privet.example", several=False).newest
        for other in replies:
            said.append(other)
            sentence(connection.check_ledger)
            sentence(lambda: connection.receipt("/v1/tables/people/entries/1/receipt", None))
        assert KeptCheckpoints("https://privet.example", several=False).newest == kept


def test_two_programs_that_are_shown_two_books_notice(tmp_path: Path) -> None:
    """Each proves that it continues what both have kept; what one has taken is not lost by the other's."""
    one, key = signed_ledger(tmp_path)
    url = "https://privet.example"
    KeptCheckpoints(url, several=False).take(one.checkpoint(), one.signers, [], None)
    shutil.copy(tmp_path / "people.ledger", tmp_path / "second book")
    books = [one, Receipts(Ledger.open(tmp_path / "second book"), key)]
    for book, name in zip(books, ("told to one", "told to the other"), strict=True):
        ledger_lines.record(book._ledger, name)
    first, second = KeptCheckpoints(url, several=False), KeptCheckpoints(url, several=False)
    old = first.newest
    assert old is not None and second.newest == old
    first.take(books[0].checkpoint(old.checkpoint.size), one.signers, [], old)
    kept = first.newest
    assert "two ledgers" in sentence(
        lambda: second.take(books[1].checkpoint(old.checkpoint.size), one.signers, [], old)
    )
    ledger_lines.record(books[1]._ledger, "longer")
    second.take(books[1].checkpoint(old.checkpoint.size), one.signers, [], old)  # nothing leads here from the other
    assert second.newest == kept == KeptCheckpoints(url, several=False).newest
    assert kept is not None
    longer = books[1].checkpoint(kept.checkpoint.size)  # the next question of either is about what was kept
    assert "do not begin with" in sentence(lambda: second.take(longer, one.signers, [], kept))


def test_a_key_is_rotated_while_a_server_runs(tmp_path: Path) -> None:
    with served_at(tmp_path / "people.ledger") as served, served.connect() as connection:
        table = connection.table("people")
        answer = table.count("0.1")
        first = check(table.receipt(answer)).signers
        rotate(Ledger.open(tmp_path / "people.ledger"))
        text = table.receipt(answer)
        assert check(text, pins=first).signers != first
        key_file(served.service.ledger).unlink()  # the server goes on with what it has
        assert table.receipt(answer)
        SigningKey.new(check(text).checkpoint.body[0]).save(key_file(served.service.ledger))
        rotated_elsewhere = SigningKey.new("privet/elsewhere").vkey
        ledger = served.service.ledger
        ledger_lines.write_key(ledger, {"vkey": rotated_elsewhere, "role": "log"}, ledger_lines.key_lines(ledger))
        headers = {"Authorization": f"Bearer {served.token()}"}
        for path in ("checkpoint", f"tables/people/entries/{answer.about.entry}/receipt"):
            reply = httpx2.get(f"{served.url}/v1/{path}", headers=headers)
            assert reply.status_code == 404 and str(tmp_path) not in reply.text  # where a key lies is nobody's business


# -- when answers are written -------------------------------------------------------------------


def test_answers_are_written_at_slots_whatever_the_engine_took(tmp_path: Path) -> None:
    """The time of a line is a function of its charge, and of nothing else, up to half a tick; then of long ticks."""
    ledger = Ledger.open(tmp_path / "people.ledger")
    ledger.register("people", source="here", budget=Fraction(100))
    now, slept = [0.0], list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    paced = PacedLedger.around(ledger, 0.1, lambda: now[0], sleep)
    assert PacedLedger.around(ledger, 0, lambda: 0.0, sleep) is ledger
    times = []
    for number, took in enumerate((0.0, 0.001, 0.049, 0.051, 3.0, 9.9, 9.96, 15.0)):
        now[0] = 100.0 * number
        charge = Charge("count", "{}", "f", "all rows", "1", Fraction(1), f"k{number}")
        entry, _ = paced.charge("people", "ada", charge)
        assert not pacing.paced()
        now[0] += took
        paced.store(entry.id, "[1]")
        assert pacing.paced()
        times.append(round(now[0] - 100 * number, 6))
    assert times == [0.05, 0.05, 0.05, 9.95, 9.95, 9.95, 19.95, 19.95]
    # a key whose charge stands begins anew when it is asked again
    entry, _ = ledger.charge("people", "ada", replace(charge, key="again"))
    now[0] = 1000.0
    assert paced.standing("people", "ada", "again", "f") is not None
    now[0] = 1000.01
    paced.store(entry.id, "[1]")
    assert now[0] == pytest.approx(1000.05) and paced.spent("people") == ledger.spent("people")
    assert slot_after(5.0, 5.0, 0.1, 0) == 5.1


def test_a_reply_whose_answer_kept_its_time_waits_for_no_long_tick(tmp_path: Path) -> None:
    with served_at(tmp_path / "people.ledger", tick=0.05) as served, served.connect() as connection:
        ledger = served.service.sessions["people"].ledger
        assert isinstance(ledger, PacedLedger)
        table = connection.table("people")
        assert [table.count("0.1") for _ in range(3)] and not ledger._begun
