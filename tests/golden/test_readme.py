"""What README.md shows is what is there: its Python is in examples/, its CUDA in emitted/, to the letter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
SHOWN = re.findall(r"^```(\w+)\n(.*?)^```$", README.partition("**Try it**")[0], re.MULTILINE | re.DOTALL)
# Where lines are left out, the excerpt has a line that says so.
LEFT_OUT = re.compile(r"^\s*(?:#|//) \.\.\.\n", re.MULTILINE)
SOURCES = {"python": "examples/*.py", "cuda": "emitted/**/*.cu"}


def test_the_first_screen_shows_a_kernel_and_its_text() -> None:
    assert [language for language, _ in SHOWN] == ["python", "cuda"]


@pytest.mark.parametrize(("language", "excerpt"), SHOWN, ids=[language for language, _ in SHOWN])
def test_excerpt_stands_in_a_file(language: str, excerpt: str) -> None:
    texts = [path.read_text() for path in sorted(ROOT.glob(SOURCES[language]))]
    pieces = LEFT_OUT.split(excerpt)
    assert any(all(piece in text for piece in pieces) for text in texts), f"no file has all of:\n{excerpt}"


def test_commands_name_files_that_exist() -> None:
    for name in ("examples/quickstart.py", "examples/gemm_relu.py", "test", "docs/errors.md", "docs/architecture.md"):
        assert name in README
        assert (ROOT / name).is_file()
