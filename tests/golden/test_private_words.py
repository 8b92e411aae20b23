"""Prose of sources and documentation uses the field's words: counts of private words per folder may only shrink.

Prose is comments, docstrings and other strings with spaces, and the text of Markdown files outside of code. A new
private word is one to replace; docs/glossary.md defines the few that are ours. After words have been replaced,
`pytest tests/golden/test_private_words.py --update-words` lowers the counts.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = Path(__file__).with_name("private_words.json")
PACKAGE = "transpile/tile2cu"
FOLDERS = (
    *(f"{PACKAGE}/{name}" for name in ("analysis", "cli", "core", "emitter", "frontend", "passes", "plan", "project")),
    *(f"{PACKAGE}/{name}" for name in ("review", "rules", "styles", "targets")),
    "headers/tl",
    "docs",
    "README.md",
)
SUFFIXES = (".py", ".h", ".cuh", ".cu", ".md")
# A rate: "16 bytes a thread", "a scale a row", "once a tile"; not "elements a thread holds".
COUNTED = (
    r"\d(?:[\d,]*\d)?|one|two|three|four|eight|once|twice|[KMG]i?B|bytes|bits|elements|halves|registers|times|values|"
    "instructions|iterations|blocks|heads|an? (?:byte|value|scale|row|block)"
)
UNITS = (
    "row|column|iteration|thread|block|byte|warp|warpgroup|wave|lane|token|page|tile|stage|element|SM|CU|cycle|step|"
    "launch|call|slab|second|load|instruction|family|head|sequence|core"
)
CLAUSE = "may|can|has|have|takes?|holds?|reads?|loads?|writes?|stores?|needs?|computes?|starts?|gets?"
RATE = rf"(?:{COUNTED}) an? (?:{UNITS})(?!['\w]| (?:{CLAUSE})\b)"
# tokenize takes as long as all else here.
STRING_OR_COMMENT = re.compile(
    r'''"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|#[^\n]*''', re.DOTALL
)
# A private word as the counts name it, its forms, and the field's word.
PRIVATE = {
    "turn": ("turns?", "iteration"),
    "slot": ("slots?", "stage"),
    "product": ("(?<!dot )(?<!vector )products?", "GEMM, MMA"),
    "multiprocessor": ("multiprocessors?", "SM; CU on AMD"),
    "chip": ("chips?", "GPU, target"),
    "dies": ("dies", "XCDs"),
    "packet": ("packets?", "vector"),
    "ragged": ("ragged", "predicated"),
    "deal, draw": ("dealt|deals|drawn|draws", "schedule, fetch"),
    "lie": ("lies|lay", "is stored, resides"),
    "meet": ("meets?", "synchronise, share, conflict"),
    "tell": ("tells|told", "publishes, states"),
    "say": ("says|said", "states, reports"),
    "by hand": ("by hand", "explicit"),
    "by itself": ("by itself|by themselves", "alone, independently"),
    "come to": ("comes? to", "reaches"),
    "stand": ("stands?", "is"),
    "beside": ("beside", "concurrent with, next to"),
    "ahead": ("ahead", "prefetched, earlier"),
    "alike": ("alike", "uniform"),
    "at once": ("at once", "immediately, together"),
    "whatever": ("whatever|lest", "for any"),
    "a row, a thread ...": (RATE, "per row, per thread ..."),
    "stay in flight": ("stay(?:s|ed)? in (?:flight|registers)", "remain"),
    "on its way": ("on (?:its|their) way", "between, in flight"),
    "settle": ("settled?", "resolved"),
    "refuse": ("refus(?:es?|ed|als?)", "unsupported, rejected"),
}


def prose(path: Path) -> str:
    """The text of a file that people read, without code between back quotes."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    elif path.suffix == ".py":
        strings = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
        comments = (token for token in STRING_OR_COMMENT.findall(text) if token.startswith("#"))
        # Kernels are Python code in strings.
        text = "\n".join((*(each for each in strings if isinstance(each, str) and _is_prose(each)), *comments))
    else:
        text = "\n".join(re.findall(r"//.*", text))
    return re.sub(r"`[^`\n]*`", "", text)


def _is_prose(text: str) -> bool:
    return " " in text and not re.search(r"= T\.|\bT\.\w+\(.*\n", text)


def counted(text: str) -> Counter[str]:
    """How often the text has each private word."""
    flags = re.IGNORECASE | re.MULTILINE
    found = {word: len(re.findall(rf"\b(?:{forms})(?!\w)", text, flags)) for word, (forms, _) in PRIVATE.items()}
    return Counter({word: count for word, count in found.items() if count})


def words_in(folder: str) -> dict[str, int]:
    root = ROOT / folder
    paths = [root] if root.is_file() else [path for path in root.rglob("*") if path.suffix in SUFFIXES]
    return dict(sum((counted(prose(path)) for path in paths), Counter[str]()))


def allowed() -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = json.loads(ALLOWED.read_text(encoding="utf-8"))
    return found


def fewer(known: dict[str, int], found: dict[str, int]) -> dict[str, int]:
    """The counts that remain allowed: of the words that are still there, the smaller one."""
    return {word: min(count, found[word]) for word, count in known.items() if word in found}


@pytest.mark.parametrize("folder", FOLDERS)
def test_private_words_only_shrink(folder: str, request: pytest.FixtureRequest) -> None:
    found, known = words_in(folder), allowed().get(folder, {})
    if request.config.getoption("--update-words", default=False):
        counts = {**allowed(), folder: fewer(known, found)}
        content = {name: dict(sorted(counts.get(name, {}).items())) for name in FOLDERS}
        ALLOWED.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    more = {word: (count, PRIVATE[word][1]) for word, count in found.items() if count > known.get(word, 0)}
    assert more == {}, f"{folder} has new private words, here with the field's"


# CUDA's and OpenCL's words for what docs/amd.md calls thread, wave, workgroup and CU.
NOT_HIP = re.compile(r"\b(?:work-?items?|work-groups?|wavefronts?|warps?|CTAs?|SMs?|multiprocessors?|thread blocks?)\b")
AMD_SOURCES = sorted(path for folder in ("hip", "ck") for path in (ROOT / "emitted" / folder).rglob("*.hip"))


@pytest.mark.parametrize("path", AMD_SOURCES, ids=lambda path: str(path.relative_to(ROOT / "emitted")))
def test_amd_sources_have_the_words_of_hip(path: Path) -> None:
    """ "block" is a word of the user's comments, which are those of the CUDA source."""
    file = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["source"]["file"]
    users = " ".join((ROOT / "examples" / file).read_text(encoding="utf-8").split())
    comments = re.findall(r"//(.*)", path.read_text(encoding="utf-8"))
    text = re.sub(r"\[[\w.-]+\]", "", " ".join(comments))  # without ids of rules
    assert NOT_HIP.findall(text) == []
    assert [found for found in re.findall(r"\S+\s+blocks?\b", text) if " ".join(found.split()) not in users] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("two bytes a row, and a slot", 2),
        ("16 bytes a thread in each of 2 stages", 1),
        ("a scale a row", 1),
        ("the elements a thread holds", 0),
        ("16 bytes of a row", 0),
        ("the GEMM of an iteration writes a stage", 0),
        ("`turns` of a loop", 0),
        ("a dot product", 0),
        ("the product of A and B", 1),
    ],
)
def test_words_are_counted(text: str, words: int) -> None:
    assert sum(counted(re.sub(r"`[^`\n]*`", "", text)).values()) == words


def test_counts_never_grow() -> None:
    assert fewer({"slot": 2, "turn": 3, "dies": 1}, {"slot": 5, "turn": 1}) == {"slot": 2, "turn": 1}
