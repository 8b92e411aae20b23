"""What README.md shows is what is there: its Python is in examples/, its CUDA in emitted/, to the letter."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
EXCERPT = re.compile(r"^```(python|cuda)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What the first excerpt of each language is taken from.
SOURCES = {"python": ROOT / "examples/gemm_relu.py", "cuda": ROOT / "emitted/cuda/sm_80/gemm_relu.cu"}


def first_screens() -> str:
    return README.read_text(encoding="utf-8").partition("## Use")[0]


def current(language: str, shown: str) -> str:
    """What the source has now from the excerpt's first line to its last, moved to the left margin."""
    lines = SOURCES[language].read_text(encoding="utf-8").splitlines()
    first, last = (shown.splitlines()[end].strip() for end in (0, -1))
    stripped = [line.strip() for line in lines]
    assert {first, last} <= set(stripped), f"the ends of the excerpt are no longer in {SOURCES[language].name}"
    return textwrap.dedent("\n".join(lines[stripped.index(first) : stripped.index(last) + 1])) + "\n"


def test_first_screens_show_a_kernel_and_its_text() -> None:
    assert [language for language, _ in EXCERPT.findall(first_screens())] == ["python", "cuda"]


def test_excerpts_are_what_the_files_have(update_emitted: bool) -> None:
    for language, shown in EXCERPT.findall(first_screens()):
        now = current(language, shown)
        if update_emitted:
            README.write_text(README.read_text(encoding="utf-8").replace(shown, now), encoding="utf-8")
        else:
            assert shown == now, "run: pytest tests/golden --update-emitted"


def test_how_long_the_text_is_said_to_be(update_emitted: bool) -> None:
    said = re.search(r"within the (\d+) lines of", first_screens())
    lines = len(SOURCES["cuda"].read_text(encoding="utf-8").splitlines())
    assert said is not None
    if update_emitted:
        README.write_text(
            README.read_text(encoding="utf-8").replace(said[0], f"within the {lines} lines of"), encoding="utf-8"
        )
    else:
        assert int(said[1]) == lines, "run: pytest tests/golden --update-emitted"


def test_commands_name_files_that_exist() -> None:
    for name in ("examples/quickstart.py", "examples/gemm_relu.py", "test", "docs/errors.md", "docs/architecture.md"):
        assert name in README.read_text(encoding="utf-8")
        assert (ROOT / name).is_file()
