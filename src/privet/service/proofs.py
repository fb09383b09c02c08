"""Receipts over the wire: what an analyst can check of a server without trusting it."""

from __future__ import annotations

import base64

from privet import ledger_lines
from privet.receipts import Checkpoint, Receipts, rotations
from privet.service import api
from privet.service.boundary import Call, Refusal
from privet.service.handlers import number_of, own_model
from privet.service.permits import ANSWERS
from privet.service.server import Service


def checkpoint(service: Service, call: Call) -> api.CheckpointReply:
    """Return how many lines the log has, signed, with a proof that it continues an older one."""
    signed = _receipts(service).checkpoint(_since(call))
    return api.CheckpointReply(
        checkpoint=signed.note,
        since=signed.since,
        proof=_texts(signed),
        keys=_receipts(service).signers,
        rotations=rotations(service.ledger),
    )


def entry_receipt(service: Service, call: Call) -> api.ReceiptReply:
    """Return the receipt of an answer of the caller's own."""
    receipts, session, number = _receipts(service), call.session, number_of(call.path["entry"])
    assert session is not None
    line = ledger_lines.charge_line(service.ledger, number) if number else None
    names = service.ledger.analyst_names()
    own = line is not None and (line.dataset, names.get(str(line.analyst))) == (session.dataset, call.caller.name)
    # an answer that has not left yet is none: see `Gate._run`
    left = line is not None and (call.caller.name, call.table, line.body.get("key")) not in service.keys
    if line is None or not own or not left or ledger_lines.answer_line(service.ledger, line.serial) is None:
        raise Refusal("not-found", "there is no such answer, or it is not yours.")
    permit = line.body.get("permit")
    service.access.check_release(call.caller.name, call.table, permit, ANSWERS)  # a receipt shows the answer
    signed = receipts.checkpoint(_since(call))
    return _reply(receipts.of_entry(line.serial, signed), signed)


def model_receipt(service: Service, call: Call) -> api.ReceiptReply:
    """Return the receipt of a model of the caller's own."""
    receipts, model = _receipts(service), own_model(service, call)
    signed = receipts.checkpoint(_since(call))
    return _reply(receipts.of_model(model.text, signed, model.id), signed)


def _receipts(service: Service) -> Receipts:
    receipts = service.receipts
    if receipts is None:
        raise Refusal("not-found", "this server signs no receipts: it has no key of its ledger.")
    return receipts


def _since(call: Call) -> int:
    return int(call.query.get("since", "0"))


def _texts(signed: Checkpoint) -> list[str]:
    return [base64.b64encode(step).decode() for step in signed.path]


def _reply(receipt: str, signed: Checkpoint) -> api.ReceiptReply:
    return api.ReceiptReply(receipt=receipt, since=signed.since, proof=_texts(signed))
