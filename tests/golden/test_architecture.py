"""docs/architecture.md is true of the tree: its paths exist, and a loop takes the files that it lists."""

import re
import sys
from pathlib import Path
from types import FrameType

import pytest

from tests.golden.cases import GOLDEN, ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SOURCES = ROOT / "transpile" / "tile2cu"
_PATH = re.compile(r"`((?:[\w.]+/)+[\w.]*|\w+\.(?:py|jinja))`")
_ROW = re.compile(r"^\| \d+ \|(?P<what>[^|]*)\| `(?P<file>[\w/.]+)` \|", re.MULTILINE)
_FOLDERS = ("", "transpile/tile2cu", "transpile/tile2cu/rules", "transpile/tile2cu/plan", "headers/tl")
_MORE_FOLDERS = ("transpile/tile2cu/frontend/lower", "runtime/tile2cu_runtime")  # of files that a row lists by name
MOST_FILES = 15  # that a reader opens to follow a pipelined loop from the user's node to emitted lines


@pytest.mark.parametrize("path", sorted(set(_PATH.findall(PAGE)) - {"tl/tl.h"}))
def test_paths_exist(path: str) -> None:
    module = path.rpartition(".")[0] + ".py"  # of `folder/module.function`
    assert any((ROOT / folder / each).exists() for folder in (*_FOLDERS, *_MORE_FOLDERS) for each in (path, module))


def test_a_pipelined_loop_takes_the_files_of_its_table() -> None:
    """Each file's functions run when the example is emitted, or it defines what the loop is there."""
    rows = [(row["what"].strip(), row["file"]) for row in _ROW.finditer(PAGE)]
    assert 10 < len(rows) <= MOST_FILES and len({file for _, file in rows}) == len(rows)
    run = _files_that_run()
    for what, file in rows:
        text = (SOURCES / file).read_text(encoding="utf-8")
        name = what.strip("`")
        defines = re.search(rf"^class {name}\b", text, re.MULTILINE) if name else None
        assert not name or name in text, f"{file} has no {name}"
        assert defines or file.endswith(".jinja") or SOURCES / file in run, f"nothing of {file} runs"


def _files_that_run() -> set[Path]:
    golden = next(each for each in GOLDEN if each.folder == "cuda/sm_80" and each.example == "gemm_relu.py")
    found: set[str] = set()

    def called(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            found.add(frame.f_code.co_filename)

    sys.setprofile(called)
    try:
        golden.emitted()
    finally:
        sys.setprofile(None)
    return {Path(name) for name in found}
