"""Models as JSON: how they are written, and how a file that anybody may have sent is checked.

Nodes are listed in breadth-first order. The domain determines how many children a split has, so a file
cannot describe anything but a tree. Tables have the cells of their columns, in the order of the domain.
docs/reference/model.md describes the format; `VERSION` changes with it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privet.errors import DataError, DomainError, ModelError, UndeclaredDomain
from privet.kernel import DEEPEST_TREE, LONGEST_MODEL, Domain, Numeric, whole_of
from privet.models.model import Floats, Model
from privet.models.privacy_record import Privacy, check_losses, finite_of, loss_of, text_of
from privet.models.tables import LARGEST, Table, Tables
from privet.models.tree import VOTES, Ensemble, Tree, plain_number

FORMAT, VERSION = "privet-model", 1
MAX_TABLES = 100_000


def dump(model: Model) -> str:
    """Return a model as JSON.

    Parameters
    ----------
    model : Model

    Returns
    -------
    str

    Raises
    ------
    ModelError
        The model is neither an Ensemble nor Tables.
    """
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "privacy": model.privacy.to_dict(),
        "domain": model.domain.to_toml(),
    }
    if isinstance(model, Ensemble):
        content["vote"] = model.vote
        content["prior"] = None if model.prior is None else [plain_number(count) for count in model.prior]
        content["trees"] = [_nodes(tree) for tree in model.trees]
    elif isinstance(model, Tables):
        content["note"] = model.note
        content["intercept"] = list(model.intercept)
        content["tables"] = [
            {
                "columns": list(table.columns),
                "epsilon": str(table.epsilon),
                "values": table.values.tolist(),
                "deviation": table.deviation.tolist(),
            }
            for table in model.tables
        ]
    else:
        raise ModelError(f"a {type(model).__name__} cannot be written as a model file.")
    return json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n"


def parse(text: str) -> Model:
    """Return the model that a JSON text describes.

    Parameters
    ----------
    text : str

    Returns
    -------
    Model

    Raises
    ------
    ModelError
        The text is not a model, or longer than `LONGEST_MODEL`. The message is one sentence.
    """
    if len(text) > LONGEST_MODEL:
        raise ModelError(f"the model has more than {LONGEST_MODEL} characters; it was not written by privet.")
    try:
        content = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ModelError("the model is not valid JSON; it was cut short, or is no model that privet wrote.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ModelError("this JSON is not a privet model.")
    if content.get("version") != VERSION or content["version"] is True:
        raise ModelError(f"the model has a version other than {VERSION}; read it with the privet that wrote it.")
    try:
        declared = content.get("domain")
        domain = Domain.parse(declared if isinstance(declared, str) else "")
        domain.to_toml().encode()  # half a surrogate pair cannot be written
        classes = len(domain.target_column.values)
    except (DomainError, DataError) as error:
        raise ModelError(f"the model's domain cannot be used: {error}") from None
    except UndeclaredDomain:
        raise ModelError("the model's domain has no target.") from None
    except Exception:
        raise ModelError("the model's domain cannot be used; it was not written by privet.") from None
    if "tables" in content:
        return _tables(content, domain)
    if content.get("vote") not in VOTES:
        raise ModelError(f"the model's vote is not one of {', '.join(VOTES)}.")
    prior = content.get("prior")
    trees = content.get("trees")
    if not isinstance(trees, list) or not 0 < len(trees) <= 100_000:
        raise ModelError("the model has no trees.")
    position = {name: i for i, name in enumerate(domain.attributes)}
    return Ensemble(
        domain,
        tuple(_tree(nodes, domain, position) for nodes in trees),
        Privacy.from_dict(content.get("privacy")),
        content["vote"],
        None if prior is None else tuple(_numbers(prior, classes, "the prior")),
    )


def _tables(content: dict[str, Any], domain: Domain) -> Tables:
    """Read a sum of tables."""
    tables, note = content["tables"], content.get("note", "")
    if not isinstance(tables, list) or len(tables) > MAX_TABLES:
        raise ModelError("the model has no list of tables; it was not written by privet.")
    try:
        text_of(note)
    except TypeError:
        raise ModelError("the model's note is not a text.") from None
    checked = tuple(_table(table, domain, number) for number, table in enumerate(tables, start=1))
    check_losses([table.epsilon for table in checked])
    return Tables(
        domain,
        tuple(_numbers(content.get("intercept"), len(domain.classes), "the intercept")),
        checked,
        Privacy.from_dict(content.get("privacy")),
        note,
    )


def _table(content: Any, domain: Domain, number: int) -> Table:
    """Read one table."""
    where = f"table {number}"
    if not isinstance(content, dict) or set(content) != {"columns", "epsilon", "values", "deviation"}:
        raise ModelError(f"{where} of the model is not a table; it was not written by privet.")
    columns = content["columns"]
    if not isinstance(columns, list) or not 1 <= len(columns) <= 2 or len(set(map(str, columns))) < len(columns):
        raise ModelError(f"{where} of the model has columns other than one, or two different ones.")
    for name in columns:
        if not isinstance(name, str) or name not in domain or name == domain.target:
            raise ModelError(f"{where} of the model has a column that its domain does not declare.")
    try:
        epsilon = loss_of(content["epsilon"])
    except TypeError:
        raise ModelError(f"{where} of the model has no cost.") from None
    shape = (*(domain[name].size for name in columns), len(domain.classes))
    values, deviation = (_array(content[key], shape, where) for key in ("values", "deviation"))
    if (deviation < 0).any():
        raise ModelError(f"{where} of the model has a negative deviation.")
    if (np.abs(values) > LARGEST).any():
        raise ModelError(f"{where} of the model has log odds beyond {LARGEST:g}.")
    return Table(tuple(columns), values, deviation, epsilon)


def _array(values: Any, shape: tuple[int, ...], where: str) -> Floats:
    """Return nested lists as an array of exactly this shape."""
    flat = [values]
    for length in shape:
        if not all(isinstance(part, list) and len(part) == length for part in flat):
            raise ModelError(f"{where} of the model does not have the cells of its columns.")
        flat = [item for part in flat for item in part]
    return np.array(_numbers(flat, len(flat), where), dtype=np.float64).reshape(shape)


def _nodes(tree: Tree) -> list[dict[str, Any]]:
    """Return the nodes of a tree in breadth-first order."""
    nodes = []
    for number in range(len(tree)):
        node: dict[str, Any] = {}
        if tree.column[number] >= 0:
            node["split"] = tree.domain.attributes[int(tree.column[number])]
            if tree.at[number] >= 0:
                node["at"] = int(tree.at[number])
        if not math.isnan(tree.size[number]):
            node["size"] = plain_number(float(tree.size[number]))
        node["counts"] = [plain_number(count) for count in tree.counts[number].tolist()]
        node["deviation"] = float(tree.deviation[number])
        nodes.append(node)
    return nodes


def _tree(nodes: Any, domain: Domain, position: Mapping[str, int]) -> Tree:
    """Read one tree."""
    if not isinstance(nodes, list) or not nodes:
        raise ModelError("a tree of the model has no list of nodes; it was not written by privet.")
    classes = len(domain.classes)
    column = np.full(len(nodes), -1, dtype=np.int64)
    at = np.full(len(nodes), -1, dtype=np.int64)
    counts = np.empty((len(nodes), classes))
    deviation, size = np.empty(len(nodes)), np.full(len(nodes), np.nan)
    for number, node in enumerate(nodes):
        if not isinstance(node, dict) or not set(node) <= {"split", "at", "size", "counts", "deviation"}:
            raise ModelError(f"node {number} of the model is not a node; it was not written by privet.")
        if "split" in node:
            name = node["split"]
            if not isinstance(name, str) or name not in position:
                raise ModelError(f"node {number} of the model splits by a column its domain does not declare.")
            column[number] = position[name]
            if "at" in node:
                at[number] = _grid_index(node["at"], domain, name, number)
        elif "at" in node:
            raise ModelError(f"node {number} of the model has a threshold and no column.")
        counts[number] = _numbers(node.get("counts"), classes, f"node {number}")
        (deviation[number],) = _numbers([node.get("deviation")], 1, f"node {number}")
        if deviation[number] < 0:
            raise ModelError(f"node {number} of the model has a negative deviation.")
        if "size" in node:
            (size[number],) = _numbers([node["size"]], 1, f"node {number}")
    tree = Tree(domain, column, at, counts, deviation, size)
    if tree.depth > DEEPEST_TREE:
        raise ModelError(f"a tree of the model has more than {DEEPEST_TREE} levels; it was not written by privet.")
    return tree


def _numbers(values: Any, length: int, where: str) -> Sequence[float]:
    """Return a list of so many finite numbers."""
    if not isinstance(values, list) or len(values) != length:
        raise ModelError(f"{where} of the model needs {length} numbers, one for each class.")
    numbers = [number for value in values if (number := finite_of(value)) is not None and abs(number) < 2**63]
    if len(numbers) < length:
        raise ModelError(f"{where} of the model has a number that is none, or too large.")
    return numbers


def _grid_index(value: Any, domain: Domain, name: str, number: int) -> int:
    """Return the grid index of a threshold."""
    column = domain[name]
    if not isinstance(column, Numeric):
        raise ModelError(f"node {number} of the model has a threshold that '{name}' does not have.")
    index = whole_of(value, 1, column.grid_size - 1)
    if index is None:
        raise ModelError(f"node {number} of the model has a threshold outside the bounds of '{name}'.")
    return index


def _no_constant(name: str) -> float:
    """Refuse NaN and Infinity, which Python's JSON reads."""
    raise ValueError(name)
