"""Fits that run on the server: found by their key, watched, cancelled, and never more than what a local fit tells."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import httpx2
import pytest
from learners.classifiers import DOMAIN, X, Y

import privet
from privet import ledger_lines
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.service.decisions import OwnersWord
from privet.service.jobs import Job, Snapshot
from privet.service.seeded_server import Served, serve_seeded, serve_sessions
from privet.service.tokens import Tokens

FRAME = X.assign(ill=Y)


@pytest.fixture
def served() -> Iterator[Served]:
    with serve_seeded(FRAME, DOMAIN, 10, seed=3) as found:
        yield found


def local_model(classifier: Any) -> str:
    table = privet.testing.open(FRAME, DOMAIN, 10, seed=3, name="people", analyst="ada")
    text: str = classifier.fit(table).model_.to_json()
    return text


def test_a_server_fits_the_model_of_a_local_fit_and_tells_its_steps(served: Served) -> None:
    steps: list[str] = []
    with served.connect() as connection:
        tree = privet.DiffPID3Classifier(epsilon=1, max_depth=2)
        model = connection.fit("people", tree, key="tree 1", report=steps.append)
        assert model.to_json() == local_model(tree)
        assert steps[-1] == "done" or steps[-1].startswith("done")
        again = connection.fit("people", tree, key="tree 1")
        assert again.to_json() == model.to_json()
        assert connection.table("people").budget.spent == 1
        with pytest.raises(privet.errors.KeyReused):
            connection.fit("people", privet.DiffPID3Classifier(epsilon=2, max_depth=2), key="tree 1")
        listed = connection.get("/v1/tables/people/models")["models"]
        assert [(own["key"], own["facts"]["spent"]) for own in listed] == [("tree 1", "1")]
        with served.connect("grace") as other:
            assert other.get("/v1/tables/people/models")["models"] == []
            with pytest.raises(privet.errors.QuestionError, match="not yours"):
                other.get(f"/v1/tables/people/models/{listed[0]['id']}")


def test_a_model_is_found_by_its_key_after_the_server_was_started_anew(served: Served) -> None:
    tree = privet.PriorClassifier(epsilon=1)
    with served.connect() as connection:
        first = connection.fit("people", tree, key="prior")
    with serve_sessions(dict(served.service.sessions)) as restarted, restarted.connect() as connection:
        assert connection.fit("people", tree, key="prior").to_json() == first.to_json()
        assert connection.table("people").budget.spent == 1
        # and a fit that ended with its server is not begun again under its key
        facts = {"key": "lost", "algorithm": "prior", "content": ""}
        ledger_lines.record(restarted.service.ledger, "fit", dataset="people", analyst="ada", facts=facts)
        with pytest.raises(privet.errors.KeyReused):
            connection.fit("people", tree, key="lost")


def test_a_job_is_its_analysts_alone(served: Served) -> None:
    with served.connect() as connection:
        connection.fit("people", privet.PriorClassifier(epsilon=1), key="mine")
        (job,) = served.service.jobs._jobs
        assert connection.get(f"/v1/jobs/{job}")["state"] == "done"
    with served.connect("grace") as other:
        for path in (f"/v1/jobs/{job}", f"/v1/jobs/{job}/events", "/v1/jobs/none"):
            with pytest.raises(privet.errors.QuestionError, match="not yours"):
                other.get(path)


def test_all_that_is_asked_about_a_fit_names_it_so_that_a_proxy_sends_it_to_one_server(served: Served) -> None:
    """Under its key it is found again there by another connection, and another fit may be elsewhere."""
    named: dict[str, list[tuple[str, str | None]]] = {"monday": [], "tuesday": []}
    for key in ("monday", "monday", "tuesday"):
        with served.connect() as connection:
            asked = named[key]
            connection._client.event_hooks["request"].append(
                lambda sent, asked=asked: asked.append((sent.url.path, sent.headers.get("privet-sitting")))
            )
            forest = privet.SNRForestClassifier(epsilon="0.5", n_jobs=2)  # how many threads is the server's to say
            connection.fit("people", forest, key=key)
    sittings = {key: {name for path, name in asked if "/models/" not in path} for key, asked in named.items()}
    assert [len(found) for found in sittings.values()] == [1, 1]
    assert sittings["monday"] != sittings["tuesday"] and None not in sittings["monday"]
    assert any(path.endswith("/events") for path, _ in named["monday"])


REFUSED = [
    ({"algorithm": "bosted"}, "no algorithm"),
    ({"choices": {"policy": "/etc/passwd"}}, "no choice 'policy'"),
    ({"choices": {"verbose": True}}, "no choice 'verbose'"),
    ({"choices": {"unsafe": True}}, "no choice 'unsafe'"),
    ({"algorithm": "snr-forest", "choices": {"n_jobs": 3000}}, "no choice 'n_jobs'"),
    ({"choices": {"max_depth": -1}}, "max_depth"),
    ({"choices": {"criterion": "x" * 2000}}, "length <= 1000"),
    ({"epsilon": "2/4"}, "a fraction"),
    ({"epsilon": "1\n"}, "a fraction"),
    ({"choices": {"variant": "improved"}}, "variant"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_what_cannot_be_fitted_is_refused_before_a_charge(served: Served, changes: Any, message: str) -> None:
    body = {"algorithm": "diffpid3", "epsilon": "1", "key": "k", "choices": {}, **changes}
    with served.connect() as connection, pytest.raises(privet.errors.PrivetError, match=message) as refused:
        connection.post("/v1/tables/people/fits", body)
    assert refused.value.charged is False and served.service.ledger.spent("people") == 0


def test_a_fit_beyond_the_budget_is_refused_uncharged_and_writes_no_line(served: Served) -> None:
    """Else whoever has spent all could fill the ledger with fits."""
    with served.connect() as connection, pytest.raises(privet.BudgetExceeded, match="has 10 left") as failed:
        connection.fit("people", privet.PriorClassifier(epsilon=11))
    assert failed.value.charged is False
    assert "fit" not in [event.what for event in ledger_lines.events(served.service.ledger)]


def test_a_cancelled_fit_stops_at_its_next_question_and_its_charges_stand(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, go_on = threading.Event(), threading.Event()
    counts = MemoryEngine.exact_counts

    def paused(self: Any, query: Any) -> Any:
        asked.set()
        assert go_on.wait(60)
        return counts(self, query)

    monkeypatch.setattr(MemoryEngine, "exact_counts", paused)
    with served.connect() as connection:
        body = {"algorithm": "diffpid3", "epsilon": "1", "key": "k", "choices": {}}
        job = connection.post("/v1/tables/people/fits", body)
        assert asked.wait(60)
        token = connection._client.headers["Authorization"]
        httpx2.delete(f"{served.url}/v1/jobs/{job['id']}", headers={"Authorization": token}).raise_for_status()
        go_on.set()
        ended = connection._watched(job, None)
        assert (ended["state"], ended["charged"]) == ("cancelled", True)
        assert 0 < connection.table("people").budget.spent < 1


def test_an_engine_that_fails_is_told_without_its_words(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Any, query: Any) -> Any:
        raise ValueError("row 17 is ill")

    monkeypatch.setattr(MemoryEngine, "exact_counts", fails)
    with served.connect() as connection, pytest.raises(privet.errors.ServerError) as failed:
        connection.fit("people", privet.PriorClassifier(epsilon=1))
    assert "17" not in str(failed.value) and failed.value.charged is True


def test_a_job_shows_its_steps_at_ticks_alone() -> None:
    """What a poll sees does not depend on when, between two ticks, a step ended."""
    seen = []
    for pause in (0.01, 0.9):
        now = [0.0]
        job = Job("id", "ada", "people", None, None, tick=0.1, clock=lambda now=now: now[0])  # type: ignore[arg-type, misc]
        now[0] = pause
        job.tell(state="running", step="level 1")
        told = []
        for moment in (0.95, 1.0, 1.5):
            now[0] = moment
            told.append(job.visible()[1])
        seen.append(told)
    assert seen[0] == seen[1] == [Snapshot(), *[Snapshot("running", "level 1")] * 2]


def test_events_of_a_job_go_on_where_they_were_left_and_end_with_it(served: Served) -> None:
    with served.connect() as connection:
        connection.fit("people", privet.PriorClassifier(epsilon=1), key="mine")
        (job,) = served.service.jobs._jobs
        token = {"Authorization": connection._client.headers["Authorization"]}
        path = f"{served.url}/v1/jobs/{job}/events"
        whole = httpx2.get(path, headers=token)
        assert whole.headers["content-type"].startswith("text/event-stream") and '"state":"done"' in whole.text
        last = whole.text.rpartition("id: ")[2].split("\n")[0]
        assert httpx2.get(path, headers={**token, "Last-Event-ID": last}).text == ""
        assert served.service.streams["ada"] == 0
        served.service.streams["ada"] = 8
        assert httpx2.get(path, headers=token).status_code == 429
        served.service.streams["ada"] = 0
        assert connection._watched({"id": job, "state": "running"}, None)["state"] == "done"


def test_an_analyst_has_so_many_fits_at_a_time(served: Served) -> None:
    jobs = served.service.jobs
    for number in range(4):
        job = Job(str(number), "ada", "people", None, None, 0, lambda: 0.0)  # type: ignore[arg-type]
        jobs._jobs[str(number)] = job
    with served.connect() as connection, pytest.raises(privet.errors.QuestionError, match="4 fits of yours"):
        connection.fit("people", privet.PriorClassifier(epsilon=Fraction(1, 2)))
    for job in list(jobs._jobs.values()):
        job.tell(state="failed")


def test_events_end_with_the_token_that_follows_them(served: Served) -> None:
    jobs = served.service.jobs
    jobs._workers.submit = lambda *work: None  # type: ignore[assignment, method-assign, return-value]
    secret = served.token()
    headers = {"Authorization": f"Bearer {secret}"}
    body = {"algorithm": "prior", "epsilon": "1", "key": "k"}
    job = httpx2.post(f"{served.url}/v1/tables/people/fits", headers=headers, json=body).json()["id"]
    with httpx2.stream("GET", f"{served.url}/v1/jobs/{job}/events", headers=headers, timeout=20) as reply:
        pieces = reply.iter_text()
        assert "queued" in next(pieces)
        found = served.service.access.tokens.find(secret)
        assert found is not None
        served.service.access.tokens.revoke(found.id)
        assert list(pieces) == []  # it ends, though the fit goes on


def test_a_fit_and_who_follows_it_end_with_a_decision_on_another_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table is withdrawn, and a token revoked, where nobody tells this server: it finds out between two questions."""
    counts = MemoryEngine.exact_counts
    for decide in (
        lambda tokens, found: tokens.revoke(found.id),
        lambda tokens, found: OwnersWord(tokens.ledger).withdraw("people", "ada", "grace"),
    ):
        asked, go_on = threading.Event(), threading.Event()

        def paused(self: Any, query: Any, asked: Any = asked, go_on: Any = go_on) -> Any:
            asked.set()
            assert go_on.wait(60)
            return counts(self, query)

        monkeypatch.setattr(MemoryEngine, "exact_counts", paused)
        with serve_seeded(FRAME, DOMAIN, 10, seed=3) as served:
            secret, elsewhere = served.token(), Tokens(served.service.ledger)
            headers, body = {"Authorization": f"Bearer {secret}"}, {"algorithm": "diffpid3", "epsilon": "1", "key": "k"}
            made = httpx2.post(f"{served.url}/v1/tables/people/fits", headers=headers, json=body).json()
            found, events = elsewhere.find(secret), f"{served.url}/v1/jobs/{made['id']}/events"
            with httpx2.stream("GET", events, headers=headers, timeout=20) as reply:
                pieces = reply.iter_text()
                assert made["id"] in next(pieces) and asked.wait(60)
                decide(elsewhere, found)
                assert all('"state":"running"' in piece for piece in pieces)  # it ends, though the fit goes on
            go_on.set()
            served.service.jobs._workers.shutdown(wait=True)
            ended = served.service.jobs._jobs[made["id"]].now
            assert (ended.state, ended.charged) == ("cancelled", True)
            assert 0 < served.service.ledger.spent("people") < 1


def test_the_fits_of_one_analyst_leave_room_for_others(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    most, go_on, counts = served.service.limits.jobs, threading.Event(), MemoryEngine.exact_counts
    first, all_wait = threading.Semaphore(most), threading.Barrier(most + 1)

    def paused(self: Any, query: Any) -> Any:
        if first.acquire(blocking=False):
            all_wait.wait(60)
            assert go_on.wait(60)
        return counts(self, query)

    monkeypatch.setattr(MemoryEngine, "exact_counts", paused)
    path, ada = f"{served.url}/v1/tables/people/fits", {"Authorization": f"Bearer {served.token()}"}
    for number in range(most):
        body = {"algorithm": "prior", "epsilon": "1", "key": str(number)}
        assert httpx2.post(path, headers=ada, json=body).status_code == 202
    all_wait.wait(60)
    with served.connect("eve") as connection:
        assert connection.fit("people", privet.PriorClassifier(epsilon=1)).privacy.spent == 1
    go_on.set()
