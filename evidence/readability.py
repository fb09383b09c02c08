"""`python -m evidence.readability [FOLDER]`: how easily README and docs/ of a checkout read.

Prints, for each kind of page, how many there are, the median and the 90th percentile of words in a sentence, lines of
prose above 120 characters, and words of this house that the glossary does not define. Tables, code and what commands
print are not prose; pages that a command writes from results (studies, command line, the first hour) are left out.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections import defaultdict
from pathlib import Path

MADE = {"cli.md", "studies.md", "first-hour.md", "papers.md", "glossary.md"}
CODE = re.compile(r"^```[\s\S]*?^```$|^<!--[\s\S]*?-->$|^    .*$|^\|.*$|^#.*$|^!\[.*$", re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
# Words that mean something else, or nothing, to a reader from outside; where a page needs one, the glossary defines it.
HOUSE = (
    "arm bootstrap canary chain checkpoint coin cosign crew domain entry grid hold known-bad ledger monitor neighbours "
    "opening part partition permit plan policy preset race receipt refinement release reservation residual scatter "
    "scope session shortcut sitting specimen tick verdict"
).split()


def prose(text: str) -> str:
    """Return the sentences of a page, without code, tables and headings."""
    return re.sub(r"`[^`\n]*`", "x", LINK.sub(r"\1", CODE.sub("", text)))


def sentences(text: str) -> list[int]:
    """Return how many words each sentence has."""
    found = []
    for block in re.split(r"\n\s*\n|^\s*(?:[*-]|\d+\.) ", prose(text), flags=re.MULTILINE):
        for sentence in re.split(r"(?<=[.!?:])\s+", block.strip()):
            words = len(re.findall(r"\w[\w'-]*", sentence))
            if words > 2:
                found.append(words)
    return found


def undefined(root: Path) -> list[str]:
    """Return the house words that pages use and the glossary does not define."""
    (glossary,) = root.glob("docs/**/glossary.md")
    defined = {word.strip() for word in re.findall(r"^\| ([\w -]+) \|", glossary.read_text(encoding="utf-8"), re.M)}
    used = " ".join(prose(path.read_text(encoding="utf-8")) for path in root.glob("docs/**/*.md")).lower()
    return [word for word in HOUSE if not {word, f"{word}s"} & defined and re.search(rf"\b{word}s?\b", used)]


def main(root: Path) -> None:
    kinds = defaultdict(list)
    for path in [root / "README.md", *sorted(root.glob("docs/**/*.md"))]:
        if path.name not in MADE:
            kind = path.parent.name if path.parent.parent.name == "docs" else path.parent.name or "."
            kinds["README" if path.name == "README.md" else kind].append(path.read_text(encoding="utf-8"))
    kinds["all"] = [text for texts in kinds.values() for text in texts]
    print(f"{'pages':<13}{'number':>7}{'median':>8}{'9 in 10':>9}{'long lines':>12}")
    for kind, texts in kinds.items():
        words = [number for text in texts for number in sentences(text)]
        long = sum(len(line) > 120 for text in texts for line in CODE.sub("", text).splitlines())
        tenth = statistics.quantiles(words, n=10)[-1]
        print(f"{kind:<13}{len(texts):>7}{statistics.median(words):>8.0f}{tenth:>9.0f}{long:>12}")
    print("house words without a definition:", ", ".join(undefined(root)) or "none")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1])
