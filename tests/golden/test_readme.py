"""What README.md shows is what is there: its Python is in examples/, its CUDA in emitted/, to the letter."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
FIRST_SCREENS = README.partition("## Use")[0]
SHOWN = re.findall(r"^```(python|cuda)\n(.*?)^```$", FIRST_SCREENS, re.MULTILINE | re.DOTALL)
# Where lines are left out, the excerpt has a line that says so.
LEFT_OUT = re.compile(r"^\s*(?:#|//) \.\.\.\n", re.MULTILINE)
SOURCES = {"python": "examples/*.py", "cuda": "emitted/**/*.cu"}


def test_the_first_screens_show_a_kernel_and_its_text() -> None:
    assert [language for language, _ in SHOWN] == ["python", "cuda"]


@pytest.mark.parametrize(("language", "excerpt"), SHOWN, ids=[language for language, _ in SHOWN])
def test_excerpt_stands_in_a_file(language: str, excerpt: str) -> None:
    texts = [path.read_text() for path in sorted(ROOT.glob(SOURCES[language]))]
    pieces = LEFT_OUT.split(excerpt)
    # An excerpt starts at the left margin, wherever it stood in its file.
    indented = [[textwrap.indent(piece, " " * margin) for piece in pieces] for margin in (0, 2, 4, 8)]
    found = any(all(piece in text for piece in each) for text in texts for each in indented)
    assert found, f"no file has all of:\n{excerpt}"


def test_commands_name_files_that_exist() -> None:
    for name in ("examples/quickstart.py", "examples/gemm_relu.py", "test", "docs/errors.md", "docs/architecture.md"):
        assert name in README
        assert (ROOT / name).is_file()
