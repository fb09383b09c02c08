"""One word, one meaning: docs/reference/glossary.md is held against the names of modules and classes.

* Every word has one sentence, and the class or module that it names is there.
* A class of the kernel whose name ends with a word of the glossary is what the word means.
* Two modules, or two public classes, share a name only where the glossary says why.
* Words that say nothing are no names.

`risk/` and `studies/` are still to be renamed. What they do otherwise is listed below by name, and the lists
can only become shorter: a name that is gone must leave its list.
"""

from __future__ import annotations

import ast
import functools
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "privet"
TEXT = (PACKAGE.parents[1] / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
LATER = ("risk/", "studies/")

WORDS = re.findall(r"^\| ([\w -]+) \| ([^|]+) \| *(?:`([\w.]+)`)? *\|$", TEXT, re.MULTILINE)[1:]
SHARED = {
    name: set(re.findall(r"`(.*?)`", places)) for name, places in re.findall(r"^\| `(\w+)` \| (.*?) \|", TEXT, re.M)
}

# Modules whose names say where they are: commands about something, subjects of a verification, parts of an engine.
NAMED_AFTER = re.compile(r"cli/|verification/|kernel/engines/\w+/engine\.py")

# -- what is to be renamed with the folders above --------------------------------------------

CLASSES_LATER = {
    *("Choice", "Condition", "Extent", "Leaf", "Learner", "Line", "Outcome"),
    *("Part", "Runs", "Split", "Tree", "Trial"),
}
MODULES_LATER = {
    *("catalog", "choice", "findings", "learners", "memory", "people"),
    *("read", "rows", "runs", "tree", "trees", "words"),
}
BANNED = {
    *("crew", "each", "eps", "found", "known", "lines", "newest", "part", "place", "said", "specimen"),
    *("steady", "told", "values", "way", "words"),
}
BANNED_LATER = {
    *("risk/words.py", "studies/pages/words.py"),
    *("risk/tree.py Values", "risk/exposed_tree.py Part", "risk/world_pieces.py Part"),
}
# Classes that end with a word of the glossary and are something else.
OTHERWISE = {
    "LastEntry": "the number of the entry that was charged last",
}


@functools.cache
def modules() -> dict[str, set[str]]:
    """The places of every module and folder, by its name."""
    found = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE)
        if path.name != "__init__.py":
            found[path.stem].add(str(place))
        elif path.parent != PACKAGE:
            found[path.parent.name].add(f"{place.parent}/")
    return dict(found)


@functools.cache
def classes() -> dict[str, set[str]]:
    """The modules of every public class, by its name."""
    found = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].add(str(path.relative_to(PACKAGE)))
    return dict(found)


def named(reference: str) -> Any:
    """The module, or the class in a module, that the glossary names."""
    try:
        return importlib.import_module(f"privet.{reference}")
    except ModuleNotFoundError:
        module, _, name = reference.rpartition(".")
        return getattr(importlib.import_module(f"privet.{module}"), name)


# -- the page ---------------------------------------------------------------------------------


def test_words_are_in_order_and_each_has_one_sentence() -> None:
    words = [word for word, _, _ in WORDS]
    assert words == sorted(words) and len(set(words)) == len(words) > 60
    for word, meaning, _ in WORDS:
        assert meaning.endswith(".") and ". " not in meaning and len(meaning) < 130, word


@pytest.mark.parametrize(("word", "reference"), [(word, place) for word, _, place in WORDS if place])
def test_what_the_glossary_names_is_there(word: str, reference: str) -> None:
    assert named(reference) is not None, word


def test_the_words_of_the_style_are_there() -> None:
    words = {word for word, _, _ in WORDS}
    assert words >= set(
        "epsilon budget loss ledger accounting mechanism release sensitivity partition part domain neighbours person "
        "question scope entry cell grid session opening engine refinement chain level monitor race reservation hold "
        "plan preset learner model arm policy study verdict shortcuts".split()
    )


# -- the code ---------------------------------------------------------------------------------


def kernel_classes() -> Iterator[tuple[str, Any, Any]]:
    """Classes of the kernel whose names end with a word, with the class that the word means."""
    meant = {word.capitalize(): place for word, _, place in WORDS if place.startswith("kernel.") and " " not in word}
    for name, places in classes().items():
        for place in places:
            if not place.startswith("kernel/"):
                continue
            for word, reference in meant.items():
                if name.endswith(word) and isinstance(named(reference), type):
                    path = place.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
                    yield name, getattr(importlib.import_module(f"privet.{path}"), name), named(reference)


def test_a_class_that_ends_with_a_word_is_what_the_word_means() -> None:
    ending = list(kernel_classes())
    assert len(ending) > 40
    wrong = set()
    for name, kind, meant in ending:
        if getattr(meant, "_is_protocol", False):
            means = all(hasattr(kind, member) or member in kind.__annotations__ for member in methods(meant))
        else:
            means = issubclass(kind, meant)
        if not means:
            wrong.add(name)
    assert wrong == set(OTHERWISE)


def methods(protocol: type) -> list[str]:
    return [name for name, member in vars(protocol).items() if callable(member) and not name.startswith("_")]


def shared(places: dict[str, set[str]], mirrored: bool) -> dict[str, set[str]]:
    """Names of two places or more, without those that are called after another one."""
    found = {
        name: {place for place in at if not (mirrored and NAMED_AFTER.match(place))} for name, at in places.items()
    }
    return {name: at for name, at in found.items() if len(at) > 1}


@pytest.mark.parametrize(("kind", "later"), [("modules", MODULES_LATER), ("classes", CLASSES_LATER)])
def test_a_name_is_shared_only_where_the_glossary_says_why(kind: str, later: set[str]) -> None:
    places = modules() if kind == "modules" else classes()
    found = shared(places, mirrored=kind == "modules")
    now = {name: {place for place in at if not place.startswith(LATER)} for name, at in found.items()}
    listed = {name: at for name, at in SHARED.items() if name[0].isupper() == (kind == "classes")}
    assert {name: at for name, at in now.items() if len(at) > 1} == listed
    assert {name for name, at in found.items() if any(place.startswith(LATER) for place in at)} == later


def test_words_that_say_nothing_are_no_names() -> None:
    names = {place for stem, places in modules().items() if stem in BANNED for place in places}
    names |= {f"{place} {name}" for name, places in classes().items() if name.lower() in BANNED for place in places}
    assert names == BANNED_LATER
    assert all(name.startswith(LATER) for name in BANNED_LATER)


def test_no_variable_or_argument_is_called_eps() -> None:
    for path in PACKAGE.rglob("*.py"):
        assert not re.search(r"\beps\b", path.read_text(encoding="utf-8")), path
