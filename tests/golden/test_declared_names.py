"""Sizes that an emitted source declares are those that its code has: compilers warn of others, and readers wonder."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.golden.cases import EMITTED

_SOURCES = sorted((*EMITTED.rglob("*.cu"), *EMITTED.rglob("*.hip")))
_COMMENT = re.compile(r'//[^\n]*|"(?:\\.|[^"\\\n])*"')
_DECLARED = re.compile(r"\bconstexpr \w+ ([^;\[(]+);|\bconst int (\w+ = [^;]+);")


def unused(source: str) -> set[str]:
    """The constants, and names of values, that a source's code has once only."""
    code = _COMMENT.sub("", source)
    counts = Counter(re.findall(r"[A-Za-z_]\w*", code))
    declared = (name for pair in _DECLARED.findall(code) for name in re.findall(r"(?:^|,)\s*(\w+) = ", "".join(pair)))
    return {name for name in declared if counts[name] == 1}


def test_an_unused_size_is_found() -> None:
    source = "constexpr int block_M = 4, // block_N\n block_N = 8;\nconst int rows = n / block_M;  // rows of block_N\n"
    assert unused(source) == {"block_N", "rows"}


@pytest.mark.parametrize("path", _SOURCES, ids=lambda path: str(path.relative_to(EMITTED)))
def test_all_that_is_declared_is_used(path: Path) -> None:
    assert not unused(path.read_text(encoding="utf-8"))
