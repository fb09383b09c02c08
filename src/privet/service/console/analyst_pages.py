"""What an analyst sees: tables and their domains, a question with its price first, fits, models, and more budget."""

from __future__ import annotations

import json
import math
import re
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import numpy as np
from markupsafe import Markup
from starlette.responses import Response

from privet.errors import PrivetError, QuestionError
from privet.kernel import PerPart, as_epsilon, fraction_of
from privet.models.epsilon import sentence as meaning_of
from privet.models.model import Model
from privet.release import Histogram, Release
from privet.service import api
from privet.service.boundary import Refusal
from privet.service.console import buying
from privet.service.console.asking import (
    KINDS,
    USUAL_EPSILON,
    Draft,
    Form,
    asked_before,
    columns_of,
    draft,
    how_often,
    in_counts,
)
from privet.service.console.visits import Page, PageVisit, TableFacts, as_json, delta_text, download, sentence
from privet.service.jobs import TICKS, classifier_choices
from privet.service.tokens import ANALYST
from privet.text import clean, protected, short_text

LINES = 200  # of an answer that a page shows
MINUS = "\N{MINUS SIGN}"
BAR = 200.0  # pixels of the longest bar
# Refusals that are told beside the form; others have a page of their own.
_TOLD = ("bad-question", "refused", "budget-exceeded", "key-reused", "not-permitted")
_CHOICES = 40  # characters of a choice


# -- tables -----------------------------------------------------------------------------------------


async def tables(visit: PageVisit) -> Response:
    reply = await visit.call("tables")
    facts = [
        TableFacts(await visit.call("describe", table=name), await visit.call("budget", table=name))
        for name in reply.tables
    ]
    return visit.show("analyst_home.html", tables=facts)


async def table(visit: PageVisit) -> Response:
    facts, models = await visit.about_table(), await visit.call("models")
    permits = await _permits(visit)
    people = f"Epsilon is {protected(facts.domain.person, facts.domain.rows_per_person)}."
    return visit.show(
        "table.html",
        facts=facts,
        people=people,
        columns=columns_of(facts.domain),
        models=models.models,
        permits=permits,
    )


async def _permits(visit: PageVisit) -> list[api.PermitReply]:
    """Return the caller's data permits for the table of the path."""
    permits = (await visit.call("permits")).permits
    return [permit for permit in permits if any(own.table == visit.table for own in permit.tables)]


class UnderChoice(NamedTuple):
    """A grant, or a permit with a purpose, that a form offers."""

    value: str  # of the form's field
    words: str
    purpose: str
    spends: bool = True


async def _under(visit: PageVisit, facts: TableFacts) -> list[UnderChoice]:
    """Return what a form offers to be done under: each purpose of each permit that the caller may spend.

    Who has the table under permits alone is offered no grant of their own, and may look under any of the permits.
    """
    granted = facts.budget.granted
    choices = [UnderChoice("", "none: my own grant", "")] if granted else []
    for permit in await _permits(visit):
        if not permit.ended and (permit.spends or not granted):
            for purpose in permit.purposes or [""]:
                words = f"{permit.permit}: {purpose}" if purpose else permit.permit
                words += "" if permit.spends else " (to look only)"
                value = json.dumps([permit.permit, purpose or None])
                choices.append(UnderChoice(value, words, purpose, bool(permit.spends)))
    return choices if len(choices) > granted else []


def _chosen_permit(form: Form) -> tuple[str | None, str | None]:
    """Return the permit and the purpose that a form names."""
    text = form.text("under")
    if not text:
        return None, None
    try:
        permit, purpose = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise QuestionError("choose a data permit from the list.") from None
    return str(permit), None if purpose is None else str(purpose)


def _under_body(form: Form) -> dict[str, Any]:
    permit, purpose = _chosen_permit(form)
    return {} if permit is None else {"under": {"permit": permit, "purpose": purpose}}


async def domain_file(visit: PageVisit) -> Response:
    described = await visit.call("describe")
    return download(described.domain, f"{visit.table}.toml", "application/toml")


async def answers(visit: PageVisit) -> Response:
    after = visit.form.text("after")
    facts = await visit.about_table()
    reply = await visit.call("entries", query={"after": after} if after else {})
    return visit.show(
        "answers.html", facts=facts, entries=reply.entries, next=reply.next, after=after, receipts=visit.signs
    )


async def entry_receipt(visit: PageVisit) -> Response:
    reply = await visit.call("entry_receipt")
    return download(reply.receipt, f"{visit.table}-answer-{visit.path['entry']}.receipt", "application/json")


async def shown_again(visit: PageVisit) -> Response:
    """Show an answer of before, as its receipt has it: with its bounds, if a form can ask such a question."""
    facts, receipt = await visit.about_table(), json.loads((await visit.call("entry_receipt")).receipt)
    charge, released = receipt["lines"][0][0]["body"], json.loads(receipt["released"])
    answer, private = released["answer"], released["private"]
    asked = asked_before(charge, len(answer), facts.domain, facts.unit)
    told: dict[str, Any] = {}
    if asked is not None:
        amount = Fraction(charge["loss"])  # a form's parts are charged alike, and nothing else
        amounts = PerPart.same(amount, len(answer))
        told = _told(asked, asked.releases(amounts, answer, private, int(visit.path["entry"])), amount)
    elif len(answer) == 1 and isinstance(answer[0], list):
        answer = answer[0]  # the cells of one histogram
    plain = {"values": [_plain_value(value) for value in answer[:LINES]], "hidden": max(0, len(answer) - LINES)}
    facts_shown = {"facts": facts, "entry": visit.path["entry"], "charge": charge, "private": private}
    return visit.show("answer_again.html", **facts_shown, **(told or {"words": "", **plain}))


def _plain_value(value: Any) -> str:
    """Return a value of a released answer as people read it."""
    if isinstance(value, list):
        return ", ".join(map(_plain_value, value))
    return f"{value:,}".replace("-", MINUS) if isinstance(value, int) and not isinstance(value, bool) else str(value)


# -- a question -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Preview:
    """What a question would buy, in words; made before anything is paid."""

    accuracy: str = ""
    remark: str = ""
    cost: str = ""
    more: str = ""
    problem: str = ""
    epsilon: str = ""


def _epsilon(form: Form, asked: Draft) -> Fraction:
    """Return the epsilon of a form: as it says, or as the accuracy needs that it asks for."""
    if form.text("aim") == "accuracy":
        return asked.epsilon_for(form.number("within", "the accuracy"))
    return as_epsilon(form.number("epsilon", "epsilon"))


async def _preview(visit: PageVisit, facts: TableFacts) -> Preview:
    """Return what the question of a form would buy: quoted by the API, which reads no row and charges nothing."""
    try:
        under = await _under(visit, facts)
        shown = {"epsilon": [str(USUAL_EPSILON)], "under": [choice.value for choice in under[:1]]}
        form = Form({**shown, **visit.form.fields})  # as the page shows it, whatever its address leaves out
        asked = draft(form, facts.domain, facts.unit)
        epsilon = _epsilon(form, asked)
        accuracy = asked.accuracy(epsilon)
        async with _sitting(visit) as sitting:
            quoted = await visit.call("quote", {**_question(asked, epsilon), **_under_body(form), "sitting": sitting})
    except PrivetError as error:
        return Preview(problem=sentence(str(error)))
    except Refusal as refusal:
        if refusal.kind not in ("bad-question", "refused", "not-permitted"):
            raise
        return Preview(problem=sentence(refusal.detail))
    loss, left = Fraction(quoted.loss), Fraction(quoted.remaining)
    times = how_often(left, loss) if loss else 0
    delta = f" with delta {delta_text(quoted.delta)}" if quoted.delta else ""
    cost = f"costs epsilon {short_text(epsilon)}{delta}" + (f", {short_text(loss)} in {quoted.unit}" if delta else "")
    if not all(choice.spends for choice in under if choice.value == form.text("under")):
        look = "Under this permit you may look at prices, and not spend: ask an analyst who may."
        return Preview(accuracy.words, accuracy.remark, cost, "", look, str(epsilon))
    if not quoted.fits:
        buys = short_text(facts.unit.buys(left)) if left else "0"
        short = f"You have {buys} left: ask for less accuracy, or ask the owner for more budget."
        return Preview(accuracy.words, accuracy.remark, cost, "", f"This is more than is left. {short}", str(epsilon))
    more = f"Enough is left for about {times:,} such question{'s' * (times != 1)}."
    return Preview(accuracy.words, accuracy.remark, cost, more, "", str(epsilon))


@asynccontextmanager
async def _sitting(visit: PageVisit) -> AsyncIterator[str]:
    """Open a sitting for one question, and close it whatever has come of it."""
    sitting = uuid.uuid4().hex
    try:
        yield sitting
    finally:
        with suppress(Refusal):  # what was asked, and paid, counts
            await visit.call("close_sitting", {"sitting": sitting})


def _question(asked: Draft, epsilon: Fraction) -> dict[str, Any]:
    return {
        "rows": asked.rows,
        "question": asked.question.to_json(),
        "epsilon": asked.amounts(epsilon).to_json(str),
    }


async def preview(visit: PageVisit) -> Response:
    """Return the same for a script of the page."""
    made = await _preview(visit, await visit.about_table())
    return as_json({name: clean(value) for name, value in vars(made).items()})


async def ask_page(visit: PageVisit) -> Response:
    facts = await visit.about_table()
    return await _asking(visit, facts, await _preview(visit, facts), uuid.uuid4().hex)


async def _asking(visit: PageVisit, facts: TableFacts, made: Preview, key: str, status: int = 200) -> Response:
    return visit.show(
        "ask.html",
        status,
        facts=facts,
        columns=columns_of(facts.domain),
        kinds=KINDS,
        form=visit.form,
        preview=made,
        under=await _under(visit, facts),
        key=key,
        usual=f"{facts.domain.rows or 1000:,}",
    )


async def ask(visit: PageVisit) -> Response:
    """Ask and pay. The key of the form makes the same form cost once, however often a browser sends it."""
    facts, key = await visit.about_table(), visit.form.text("key")
    try:
        asked = draft(visit.form, facts.domain, facts.unit)
        epsilon = _epsilon(visit.form, asked)
        body = {**_question(asked, epsilon), **_under_body(visit.form), "key": f"console {key}"}
        if not key or len(key) > 64:
            raise QuestionError("the form has no key; open the page again.")
        async with _sitting(visit) as sitting:
            reply = await visit.call("ask", {**body, "sitting": sitting})
    except PrivetError as error:
        return await _asking(visit, facts, Preview(problem=f"{sentence(str(error))} Nothing was charged."), key, 422)
    except Refusal as refusal:
        if refusal.kind not in (
            "bad-question",
            "refused",
            "budget-exceeded",
            "key-reused",
            "key-in-flight",
            "too-many",
            "not-permitted",
        ):
            raise
        later = "It may be charged: send it again in a moment, it is paid once."
        charges = {True: "It was charged, and stands.", False: "Nothing was charged."}
        made = Preview(problem=f"{sentence(refusal.detail)} {charges.get(refusal.fields['charged'], later)}")
        fresh = uuid.uuid4().hex if refusal.kind == "key-reused" else key
        return await _asking(visit, facts, made, fresh, 403 if refusal.kind == "budget-exceeded" else 422)
    amounts = asked.amounts(epsilon)
    told = _told(asked, asked.releases(amounts, reply.answer, reply.private, reply.entry), amounts[0])
    left = ""
    with suppress(Refusal):  # else what was left before: the answer is paid, and is shown
        facts = await visit.about_table()
        left = await _left(visit, facts)
    again = {name: value for name, value in visit.form.fields.items() if name != "key"}
    receipt = f"/console/tables/{quote(visit.table, safe='')}/entries/{reply.entry}/receipt"
    return visit.show(
        "answer.html",
        facts=facts,
        private=reply.private,
        **told,
        # of a mean it was a guess about the number of rows; now each line has its own
        accuracy="" if told["single"] or asked.question.kind == "mean" else asked.accuracy(epsilon).words,
        epsilon=epsilon,
        entry=reply.entry,
        left=left,
        receipt=receipt if visit.signs else None,
        again=f"/console/tables/{quote(visit.table, safe='')}/ask?{urlencode(again, doseq=True)}",
    )


async def _left(visit: PageVisit, facts: TableFacts) -> str:
    """Return what is left after a question, in words: of the cap of the permit that it named, or of the grant."""
    named, _ = _chosen_permit(visit.form)
    for permit in await _permits(visit) if named else ():
        for own in permit.tables:
            if permit.permit == named and own.table == visit.table and own.cap is not None:
                left = max(Fraction(own.cap) - Fraction(own.spent), Fraction(0))
                worth = in_counts(left, facts.unit, facts.domain.rows_per_person)
                return f"The permit {named}, which its analysts share, has {worth} ({short_text(left)})."
    return f"You have {facts.worth} ({short_text(facts.left)})." if facts.left else "Nothing is left."


def _told(asked: Draft, releases: Sequence[Release], amount: Fraction) -> dict[str, Any]:
    """Return an answer as a page tells it: one number, or a line for each part and cell.

    Parameters
    ----------
    asked : Draft
    releases : sequence of Release
        One for each part.
    amount : Fraction
        What each part was charged, in the unit of the table.
    """
    error = None if asked.question.kind == "mean" else f"{asked.off(amount)} at 95%"
    lines, first = _lines(asked, releases, error), releases[0]
    alone = len(releases) == 1 and not isinstance(first, Histogram)
    return {
        "words": asked.title,
        "scope": asked.scope,
        "by": asked.by,
        "heads": [*([asked.by] if asked.by else []), *getattr(asked.question, "columns", ())] or ["rows"],
        "single": _single(first, error) if alone else None,
        "chart": lines[:LINES],
        "hidden": max(0, len(lines) - LINES),
        "negative": asked.question.kind in ("count", "histogram") and any(MINUS in line["value"] for line in lines),
    }


def _single(release: Any, error: str | None) -> dict[str, str]:
    """Return one answer in words: its value, and how far off it may be; of a mean its own bounds say that."""
    value, note = repr(release).rsplit(" (", 1)
    return {"value": _number(release), "error": error or note.split(", epsilon")[0]} if value else {}


def _number(release: Any) -> str:
    if isinstance(release, int):
        return f"{int(release):,}".replace("-", MINUS)
    return f"{float(release):,.6g}".replace("-", MINUS) if isinstance(release, float) else str(release)


def _lines(asked: Draft, releases: Sequence[Release], error: str | None) -> list[dict[str, Any]]:
    """Return a line for each part, or cell of a histogram, with its bounds, drawn to one scale."""
    rows: list[tuple[str, str, float | None, float, float, str]] = []
    for label, release in zip(asked.labels, releases, strict=True):
        if isinstance(release, Histogram):
            low, high = release.interval(0.95)
            for cell in np.ndindex(release.values.shape):
                names = [texts[at] for texts, at in zip(release.labels, cell, strict=True)]
                words = ", ".join([label] * bool(label) + names)
                rows.append((words, *_bounded(float(release.values[cell]), float(low[cell]), float(high[cell]))))
        elif not label:
            return []
        else:
            try:
                low, high = release.interval(0.95)
                rows.append((label, *_bounded(float(release), float(low), float(high))))  # type: ignore[arg-type]
            except PrivetError:
                rows.append((label, _number(release), None, 0.0, 0.0, _single(release, error)["error"]))
    top = max((high for *_, high, _ in rows), default=0.0) or 1.0

    def at(value: float) -> float:
        return round(max(0.0, min(BAR, BAR * value / top)), 1)

    return [
        {
            "label": label,
            "value": shown,
            "between": between,
            "bar": None if value is None or top <= 0 else at(value),
            "low": at(low),
            "high": at(high),
        }
        for label, shown, value, low, high, between in rows
    ]


def _bounded(value: float, low: float, high: float) -> tuple[str, float, float, float, str]:
    digits = 2 - math.floor(math.log10(high - low)) if high > low else 6  # no more than noise leaves

    def words(number: float) -> str:
        return f"{number:,.{0 if number == int(number) else max(0, digits)}f}".replace("-", MINUS)

    return words(value), value, low, high, f"{words(low)} to {words(high)}"


# -- fits and models --------------------------------------------------------------------------------

STATES = {
    "queued": "It waits for its turn.",
    "running": "It grows.",
    "done": "The model is ready.",
    "failed": "It failed.",
    "cancelled": "It was cancelled.",
}


async def fit_page(visit: PageVisit) -> Response:
    return await _fitting(visit, await visit.about_table())


async def _fitting(visit: PageVisit, facts: TableFacts, problem: str = "", status: int = 200) -> Response:
    algorithms = classifier_choices()
    usual = "boosted" if facts.described.delta else "auto"
    algorithm = visit.form.text("algorithm", usual)
    algorithm = algorithm if algorithm in algorithms else usual
    choices = algorithms[algorithm].choices
    return visit.show(
        "fit.html",
        status,
        facts=facts,
        algorithms={name: own.words for name, own in algorithms.items()},
        algorithm=algorithm,
        choices=[{"name": name, "usual": "none" if value is None else value} for name, value in choices.items()],
        under=await _under(visit, facts),
        chosen=any(visit.form.text(f"choice-{name}") for name in choices),
        form=visit.form,
        problem=problem,
        key=visit.form.text("key") or uuid.uuid4().hex,
    )


async def fit(visit: PageVisit) -> Response:
    facts, form = await visit.about_table(), visit.form
    algorithm = form.text("algorithm")
    try:
        known = classifier_choices().get(algorithm)
        choices = {} if known is None else _chosen(form, known.choices)
        epsilon = str(as_epsilon(form.number("epsilon", "epsilon")))
        body = {"algorithm": algorithm, "epsilon": epsilon, "key": f"console {form.text('key')}", "choices": choices}
        job = await visit.call("fit", {**body, **_under_body(form)})
    except PrivetError as error:
        return await _fitting(visit, facts, f"{sentence(str(error))} Nothing was charged.", 422)
    except Refusal as refusal:
        if refusal.kind not in _TOLD:
            raise
        return await _fitting(visit, facts, sentence(refusal.detail), 422)
    return visit.go(f"/console/jobs/{job.id}")


def _chosen(form: Form, choices: dict[str, Any]) -> dict[str, Any]:
    """Return the choices that somebody wrote, each of the type of the usual one."""
    chosen: dict[str, Any] = {}
    for name, usual in choices.items():
        text = form.text(f"choice-{name}")
        if not text:
            continue
        if len(text) > _CHOICES:
            raise QuestionError(f"{name} is a short text or a whole number.")
        if text.lower() in ("yes", "true", "no", "false") and (isinstance(usual, bool) or usual is None):
            chosen[name] = text.lower() in ("yes", "true")
        elif text.lower() == "none":
            chosen[name] = None
        else:
            number = fraction_of(text)
            whole = number is not None and number.denominator == 1 and abs(number) < 2**53
            chosen[name] = int(number) if whole and number is not None else text
    return chosen


async def job(visit: PageVisit) -> Response:
    found = await visit.call("job")
    if found.model is not None:
        return visit.go(f"/console/tables/{quote(found.table, safe='')}/models/{found.model}")
    ended, problem = found.state in ("done", "failed", "cancelled"), sentence(found.problem or "")
    pause = 0.0
    with suppress(Refusal):  # the table was taken back meanwhile
        pause = TICKS * (await visit.call("describe", table=found.table)).tick
    return visit.show("job.html", job=found, states=STATES, ended=ended, problem=problem, pause=pause)


async def job_state(visit: PageVisit) -> Response:
    """Return how far a fit is, for a browser that gets no events."""
    found = await visit.call("job")
    names = ("state", "step", "done", "total", "problem", "model")
    return as_json({name: getattr(found, name) for name in names})


async def job_events(visit: PageVisit) -> Response:
    return await visit.events("job_events")


async def cancel(visit: PageVisit) -> Response:
    found = await visit.call("cancel")
    return visit.go(f"/console/jobs/{found.id}")


async def _model(visit: PageVisit) -> tuple[Any, Model]:
    reply = await visit.call("model")
    return reply, Model.from_json(json.dumps(reply.model))


async def model(visit: PageVisit) -> Response:
    facts, (reply, found) = await visit.about_table(), await _model(visit)
    privacy = found.privacy
    base = f"/console/tables/{quote(visit.table, safe='')}/models/{reply.id}"
    return visit.show(
        "model.html",
        facts=facts,
        number=reply.id,
        algorithm=privacy.algorithm,
        private=privacy.private,
        reasons=privacy.reasons,
        epsilon=privacy.epsilon,
        delta=None if privacy.delta is None else str(privacy.delta),
        meaning=meaning_of(float(privacy.epsilon)) if privacy.private and privacy.delta is None else "",
        spent=privacy.spent,
        entries=reply.facts.get("entries", []),
        base=base,
        receipt=f"{base}/receipt" if visit.signs else None,
        classes=found.domain.target_column.texts if hasattr(found, "trees") else (),
        drawing=_drawing(found),
        text=found.text(),
    )


def _drawing(found: Model) -> Markup:
    """Return the picture of a model without its style, which the pages have in their style sheet."""
    return Markup(re.sub("<style>.*?</style>", "", found._repr_html_(), count=1, flags=re.DOTALL))


async def model_file(visit: PageVisit) -> Response:
    _, found = await _model(visit)
    return download(found.to_json(), f"{visit.table}-model-{visit.path['model']}.json", "application/json")


async def model_receipt(visit: PageVisit) -> Response:
    reply = await visit.call("model_receipt")
    return download(reply.receipt, f"{visit.table}-model-{visit.path['model']}.json.receipt", "application/json")


async def model_drawing(visit: PageVisit) -> Response:
    _, found = await _model(visit)
    return download(found._repr_html_(), f"{visit.table}-model-{visit.path['model']}.svg", "image/svg+xml")


async def model_page(visit: PageVisit) -> Response:
    _, found = await _model(visit)
    return download(found.page(), f"{visit.table}-model-{visit.path['model']}.html", "text/html; charset=utf-8")


# -- what an epsilon would buy ----------------------------------------------------------------------


async def buys(visit: PageVisit) -> Response:
    """Show what a count costs, and what an algorithm does on rows that are invented from the domain."""
    facts, algorithms = await visit.about_table(), classifier_choices()
    count, affordable = draft(Form({}), facts.domain, facts.unit), []
    counts = []
    for epsilon in buying.EPSILONS:
        loss = facts.unit.amount(epsilon)
        words = count.accuracy(epsilon).words
        counts.append({"epsilon": epsilon, "accuracy": words, "more": how_often(facts.left, loss)})
        affordable += [epsilon] if loss <= facts.left else []
    algorithm = visit.form.text("algorithm")
    algorithm = algorithm if algorithm in algorithms and facts.domain.target else ""
    made = None
    if algorithm:
        domain, delta = facts.described.domain, facts.described.delta
        made = await visit.console.tried(visit.caller.name, lambda: buying.purchase(domain, delta, algorithm))
    return visit.show(
        "buys.html",
        facts=facts,
        counts=counts,
        algorithms=algorithms,
        algorithm=algorithm,
        made=made,
        plot=buying.plot(made) if made is not None and made.bought else None,
        affordable=affordable,
    )


# -- more budget ------------------------------------------------------------------------------------


async def request_page(visit: PageVisit) -> Response:
    return await _requesting(visit, done="sent" in visit.form.fields)


async def _requesting(visit: PageVisit, problem: str = "", done: bool = False, status: int = 200) -> Response:
    facts, reply = await visit.about_table(), await visit.call("own_requests")
    key = visit.form.text("key") or uuid.uuid4().hex
    return visit.show(
        "request.html",
        status,
        facts=facts,
        requests=reply.requests,
        one_count=in_counts(facts.unit.amount(USUAL_EPSILON), facts.unit, facts.domain.rows_per_person, ""),
        under=await _under(visit, facts),
        form=visit.form,
        problem=problem,
        done=done,
        key=key,
    )


async def request(visit: PageVisit) -> Response:
    form = visit.form
    try:
        epsilon = as_epsilon(form.number("epsilon", "epsilon"))
        permit, named = _chosen_permit(form)
        purpose = named or form.text("purpose")
        body = {"epsilon": str(epsilon), "purpose": purpose, "key": f"console {form.text('key')}"}
        if not purpose:
            raise QuestionError("say what it is for.")
        if permit is not None:
            body["permit"] = permit
        await visit.call("request_budget", body)
    except PrivetError as error:
        return await _requesting(visit, sentence(str(error)), status=422)
    except Refusal as refusal:
        if refusal.kind not in ("bad-question", "refused", "key-reused", "not-permitted"):
            raise
        return await _requesting(visit, sentence(refusal.detail), status=422)
    return visit.go(f"/console/tables/{quote(visit.table, safe='')}/request?sent=1")


_T, _M = "/console/tables/{table}", "/console/tables/{table}/models/{model}"
PAGES = (
    Page("GET", _T, table, ANALYST),
    Page("GET", f"{_T}/domain.toml", domain_file, ANALYST),
    Page("GET", f"{_T}/answers", answers, ANALYST),
    Page("GET", f"{_T}/ask", ask_page, ANALYST),
    Page("POST", f"{_T}/ask", ask, ANALYST),
    Page("GET", f"{_T}/preview", preview, ANALYST),
    Page("GET", f"{_T}/fit", fit_page, ANALYST),
    Page("POST", f"{_T}/fit", fit, ANALYST),
    Page("GET", f"{_T}/buys", buys, ANALYST),
    Page("GET", f"{_T}/request", request_page, ANALYST),
    Page("POST", f"{_T}/request", request, ANALYST),
    Page("GET", "/console/jobs/{job}", job, ANALYST),
    Page("GET", "/console/jobs/{job}/state", job_state, ANALYST),
    Page("GET", "/console/jobs/{job}/events", job_events, ANALYST),
    Page("POST", "/console/jobs/{job}/cancel", cancel, ANALYST),
    Page("GET", _M, model, ANALYST),
    Page("GET", f"{_M}/model.json", model_file, ANALYST),
    Page("GET", f"{_M}/receipt", model_receipt, ANALYST),
    Page("GET", f"{_T}/entries/{{entry}}/receipt", entry_receipt, ANALYST),
    Page("GET", f"{_T}/entries/{{entry}}", shown_again, ANALYST),
    Page("GET", f"{_M}/drawing.svg", model_drawing, ANALYST),
    Page("GET", f"{_M}/page.html", model_page, ANALYST),
)
