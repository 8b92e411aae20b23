"""The same input gives the same bytes in every process: any hash seed, locale, folder and file order."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.cases import ROOT

SURROUNDINGS = (
    {"PYTHONHASHSEED": "0", "LC_ALL": "C"},
    {"PYTHONHASHSEED": "1", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"},
    {"PYTHONHASHSEED": "4294967295", "LANG": "tr_TR.UTF-8", "TZ": "Asia/Kolkata", "COLUMNS": "20"},
)


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("example", ["attention.py", "gemm_relu.py"])
def test_bytes_do_not_depend_on_the_process(example: str, tmp_path: Path) -> None:
    results = []
    for number, variables in enumerate(SURROUNDINGS):
        folder = tmp_path / f"copy{number}"
        folder.mkdir()
        (folder / example).write_bytes((ROOT / "examples" / example).read_bytes())
        results.append(_emit(folder, example, variables))
    assert results[0] == results[1] == results[2]


def _emit(folder: Path, example: str, variables: dict[str, str]) -> dict[str, bytes]:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}/transpile:{ROOT}/runtime", **variables}
    subprocess.run(
        [sys.executable, "-m", "tile2cu", example, "-o", "out"], cwd=folder, env=environment, check=True, timeout=60
    )
    return {path.name: path.read_bytes() for path in sorted((folder / "out").iterdir())}
