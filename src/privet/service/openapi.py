"""The OpenAPI 3.1 document of the server, made of its routes, its types and the forms of questions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from privet.kernel import Question
from privet.question_json import MOST_AXES, QUESTIONS, forms_of
from privet.service import api
from privet.version import __version__

Schema = dict[str, Any]

_REF = "#/components/schemas/{name}"
_TEXT: Schema = {"type": "string", "maxLength": 1000}
_WHOLE: Schema = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}
_AMOUNT: Schema = {"type": "string", "pattern": "^[0-9]{1,70}(/[1-9][0-9]{0,69})?$"}


def _list(of: Schema, least: int = 0) -> Schema:
    return {"type": "array", "items": of, **({"minItems": least} if least else {})}


def _shape(least: int = 0) -> Schema:
    return {**_list(_WHOLE, least), "maxItems": MOST_AXES}


def _object(**fields: Schema) -> Schema:
    return {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}


def _per_part(of: Schema) -> Schema:
    same = _object(all=of, parts={"type": "integer", "minimum": 1, "maximum": 2**19})
    return {"anyOf": [same, _object(values=_list(of), index=_list({"type": "integer", "minimum": 0}))]}


_MODEL = _object(
    model={"const": "additive"},
    version={"const": 1},
    intercept=_list(_WHOLE, 1),
    terms=_list(_object(columns=_list(_TEXT), shape=_shape(1), table=_list(_WHOLE, 1))),
)
_CONDITION: Schema = {
    "anyOf": [
        _object(column=_TEXT, codes=_list({"type": "integer", "minimum": 0})),
        _object(column=_TEXT, low={"type": "integer", "minimum": 0}, high={"type": "integer", "minimum": 0}),
    ]
}
_CRITERION: Schema = {
    "type": "object",
    "properties": {"criterion": {"type": "string", "maxLength": 200}, "version": {"const": 1}},
    "required": ["criterion", "version"],
}


def _pair(first: Schema, second: Schema) -> Schema:
    return {"type": "array", "prefixItems": [first, second], "items": False, "minItems": 2, "maxItems": 2}


FORMS: dict[str, Schema] = {  # by the names of the forms of questions' fields
    "a text": _TEXT,
    "a list of texts": _list(_TEXT),
    "a list of lists of texts": _list(_list(_TEXT)),
    "true or false": {"type": "boolean"},
    "a whole number": _WHOLE,
    "a list of whole numbers": _list(_WHOLE),
    "a fraction in a text, such as 1/3": {"type": "string", "pattern": "^-?[0-9]{1,30}(/[1-9][0-9]{0,29})?$"},
    "a list of fractions in texts": _list({"type": "string", "pattern": "^[0-9]{1,80}(/[1-9][0-9]{0,79})?$"}, 1),
    "a list of tables of columns": _list(
        _list(
            {"anyOf": [_object(column=_TEXT), _object(column=_TEXT, codes=_list({"type": "integer", "minimum": 0}))]}
        ),
        1,
    ),
    "a model": {"$ref": _REF.format(name="AdditiveModel")},
    "a criterion": _CRITERION,
    "lists of columns for each part": _per_part(_list(_list(_TEXT))),
    "candidates for each part": _per_part(_list({"anyOf": [_TEXT, _pair(_TEXT, _WHOLE)]})),
    "columns for each part": _per_part(_list(_TEXT)),
    "a list of names with models or conditions": _list(
        _pair(
            {"type": "string", "minLength": 1, "maxLength": 200},
            {
                "anyOf": [
                    _object(model={"$ref": _REF.format(name="AdditiveModel")}),
                    _object(where=_list({"$ref": _REF.format(name="Condition")})),
                ]
            },
        )
    ),
    "a list of qualities": _list(
        _object(
            name={"type": "string", "minLength": 1, "maxLength": 200},
            columns=_list(_TEXT),
            shape=_shape(),
            table=_list(_WHOLE, 1),
        )
    ),
}


def _question(kind: str) -> Schema:
    fields = {name: FORMS[form.what] for name, form in forms_of(QUESTIONS[kind]).items()}
    return _object(question={"const": kind}, version={"const": Question.version}, **fields)


def _components() -> dict[str, Schema]:
    """Return the schemas that are no types of `api`: questions, steps and what they consist of."""
    split = {
        "anyOf": [
            {"type": "null"},
            _object(column=_TEXT, thresholds={"anyOf": [{"type": "null"}, _list(_WHOLE, 1)]}),
        ]
    }
    identity = {"type": "string", "pattern": "^[A-Za-z0-9_-]{8,64}$"}
    part = {"type": "integer", "minimum": 0, "maximum": 2**19 - 1}
    names = {kind: f"Question.{kind}" for kind in QUESTIONS}
    return {
        "AdditiveModel": _MODEL,
        "Condition": _CONDITION,
        "Amounts": _per_part(_AMOUNT),
        "Step": {
            "description": "a step to rows under an id that the client made; the first of a chain may be an id alone",
            "anyOf": [
                _object(id=identity),
                _object(id=identity, keep=_list(part), where=_list({"$ref": _REF.format(name="Condition")})),
                _object(id=identity, divide=_per_part(split)),
                _object(
                    id=identity,
                    scatter={"type": "integer", "minimum": 1, "maximum": 10_000},
                    seed={"type": "string", "pattern": "^(0|[1-9][0-9]{0,19})$"},
                ),
                _object(id=identity, allot=_AMOUNT),
                _object(
                    id=identity,
                    cells={"type": "string", "description": "the text of a domain file"},
                    copies={"type": "object", "additionalProperties": _TEXT},
                ),
            ],
        },
        **{names[kind]: _question(kind) for kind in QUESTIONS},
        "Question": {
            "oneOf": [{"$ref": _REF.format(name=name)} for name in names.values()],
            "discriminator": {
                "propertyName": "question",
                "mapping": {kind: _REF.format(name=name) for kind, name in names.items()},
            },
        },
    }


_FIELDS = {  # of bodies, whose types say less than what is read
    "question": {"$ref": _REF.format(name="Question")},
    "rows": {"type": "array", "items": {"$ref": _REF.format(name="Step")}, "maxItems": 400},
    "model": {"$ref": _REF.format(name="AdditiveModel")},
}


def document(operations: Iterable[Any]) -> Schema:
    """Return the document.

    Parameters
    ----------
    operations : iterable of Operation

    Returns
    -------
    dict
    """
    operations = list(operations)
    types = {kind for own in operations for kind in (own.body, own.reply) if kind is not None}
    listed = [*sorted(types, key=lambda kind: kind.__name__), api.Problem]
    _, schemas = msgspec.json.schema_components(listed, ref_template=_REF)
    for kind in types:
        if issubclass(kind, api.Body):
            properties = schemas[kind.__name__]["properties"]
            for name, schema in _FIELDS.items():
                if name in properties:
                    properties[name] = schema
            if properties.get("epsilon", {}).get("type") == "object":
                properties["epsilon"] = {"$ref": _REF.format(name="Amounts")}
    paths: dict[str, Schema] = {}
    for own in operations:
        paths.setdefault(own.path, {})[own.method.lower()] = _operation(own)
    return {
        "openapi": "3.1.0",
        "info": {"title": "privet", "version": __version__, "description": "Noisy answers within a budget."},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": {**schemas, **_components()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


_PROBLEMS = (400, 401, 403, 404, 405, 408, 409, 413, 415, 421, 422, 429, 500, 503)


def _operation(own: Any) -> Schema:
    problem = {"content": {api.PROBLEM_TYPE: {"schema": {"$ref": _REF.format(name="Problem")}}}}
    titles: dict[int, list[str]] = {}
    for kind, (status, title) in api.TITLES.items():
        titles.setdefault(status, []).append(f"{kind}: {title}")
    parameters: list[Schema] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1, "maxLength": 200}}
        for name in re.findall(r"\{(\w+)\}", own.path)
    ]
    parameters += [
        {"name": name, "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": 10**15 - 1}}
        for name in own.query
    ]
    parameters += [
        {"name": name, "in": "query", "schema": {"type": "string", "minLength": 1, "maxLength": 200}}
        for name in own.names
    ]
    described: Schema = {
        "operationId": own.name,
        "summary": own.summary,
        "responses": {
            str(own.status): {
                "description": own.summary,
                "content": {"text/event-stream": {"schema": {"type": "string"}}}
                if own.stream
                else {api.MEDIA_TYPE: {"schema": {"$ref": _REF.format(name=own.reply.__name__)}}},
            },
            **{str(status): {"description": "; ".join(titles[status]), **problem} for status in _PROBLEMS},
        },
    }
    if parameters:
        described["parameters"] = parameters
    if own.body is not None:
        schema = {"$ref": _REF.format(name=own.body.__name__)}
        described["requestBody"] = {"required": True, "content": {api.MEDIA_TYPE: {"schema": schema}}}
    return described
