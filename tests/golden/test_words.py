"""Emitted sources and examples use the field's words; docs/glossary.md defines the few that are ours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.golden.test_private_words import RATE

ROOT = Path(__file__).resolve().parents[2]
SUFFIXES = (".cu", ".hip", ".h")
SOURCES = sorted(path for path in (ROOT / "emitted").rglob("*") if path.suffix in SUFFIXES)
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
UNITS = "row|column|iteration|thread|block|byte|warp|token|page"
# A private word, and the field's.
PRIVATE = {
    r"turns?|each_turn": "iteration",
    r"slots?": "stage",
    r"products? (of|is|adds|in flight)": "GEMM, MMA",
    r"blocks? that stays?|staying": "persistent kernel",
    r"multiprocessors?": "SM; CU on AMD",
    r"chips?": "GPU, target",
    r"dies": "XCDs",
    r"panels of": "groups, slabs",
    r"packets?": "vector",
    r"ragged": "predicated",
    r"dealt|deals|drawn|draws": "schedule, fetch",
    r"lies|lay": "is stored, resides",
    r"meets?": "synchronise, share",
    r"tells|told|says": "publishes, states",
    r"by hand": "explicit",
    r"comes to|come to": "reaches",
    r"alike": "uniform",
    r"whatever|lest": "for any",
    rf"(?<!of )(?<!in )(?<!as )(a|an) ({UNITS})(?=[,;.]|$)": "per row, per iteration ...",
    RATE: "per row, per iteration ...",
    r"stays? in (?:flight|registers)": "remains",
    r"on (its|their) way": "between, in flight",
    r"settled?": "resolved",
    r"refus(es?|ed|al)": "unsupported, rejected",
    r"emit again": "regenerate",
}
WORD = re.compile("|".join(rf"\b(?:{word})(?!\w)" for word in PRIVATE))
RULE = re.compile(r"\[[a-z0-9.-]+\]")


def found_in(lines: list[str]) -> list[str]:
    return [line for line in lines if WORD.search(RULE.sub("", line).strip())]


def comments(path: Path) -> list[str]:
    """The comments of a C++ or Python file, without the user's code that follows a place in the Python file."""
    mark = "#" if path.suffix == ".py" else "//"
    lines = (line.partition(mark)[2] for line in path.read_text(encoding="utf-8").splitlines())
    return [re.sub(r"^ \w+\.py:[\d-]+  .*", "", line).strip() for line in lines if line.strip()]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_comments_of_emitted_sources(path: Path) -> None:
    assert found_in(comments(path)) == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_of_emitted_sources(path: Path) -> None:
    code = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
    assert re.findall(r"\b(?:\w+_)?(?:turns?|lines?|slots?|rings?|packets?)(?:_\w+)?\b", code) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_comments_of_examples(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    docstrings = [line for found in re.findall(r'"""(.*?)"""', text, re.DOTALL) for line in found.splitlines()]
    assert found_in([*comments(path), *docstrings]) == []


@pytest.mark.parametrize(
    "line",
    ["keys a block", "of turn 0", "sums meet in L2", "up to 2 tiles a thread  [a.b.c]", "16 bytes a lane and 2 loads"],
)
def test_private_words_are_found(line: str) -> None:
    assert found_in([line]) == [line]


def test_rule_ids_and_longer_words_are_not() -> None:
    lines = ["a thread holds", "predicated  [guard.tensor.ragged]", "the return value", "a byte of its row"]
    assert found_in(lines) == []
