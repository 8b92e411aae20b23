"""Files that compute the same: the model chooses the file, too; the C function stays the first one's."""

import shutil
from pathlib import Path

import pytest

from tests.unit.chooser.kernels import EXAMPLES
from tile2cu.api import emit_text
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.origin import EmitOptions
from tile2cu.emitter import Emitted
from tile2cu.project.config import read_project
from tile2cu.targets import SM80, SM90A, Target

WEIGHTS = {"N": 4096, "K": 4096}


def emitted(m: int, family: tuple[str, ...] = ("gemm_few_rows.py",), target: Target = SM90A) -> Emitted:
    options, sizes = EmitOptions(family=family), {"M": m, **WEIGHTS}
    (found,) = emit_text(EXAMPLES / "gemm_relu.py", kernel=None, target=target, bindings=sizes, options=options)
    return found


def head(found: Emitted) -> str:
    return " ".join(line.strip("/ ") for line in found.source.splitlines()[:24])


@pytest.mark.parametrize(
    ("m", "taken", "other"), [(1, "gemm_few_rows.py", "gemm_relu.py"), (1024, "gemm_relu.py", "gemm_few_rows.py")]
)
def test_few_rows_and_many(m: int, taken: str, other: str) -> None:
    found = emitted(m)
    assert found.kernel == "gemm_relu"
    assert f"from {taken} " in head(found)
    assert f"--auto --family {other}" in head(found)
    assert f"; {other}: " in head(found)


def test_the_command_in_the_head_gives_the_same_choice() -> None:
    options, sizes = EmitOptions(name="gemm_relu", tiles="auto", family=("gemm_relu.py",)), {"M": 1, **WEIGHTS}
    (found,) = emit_text(
        EXAMPLES / "gemm_few_rows.py", kernel="gemm_few_rows", target=SM90A, bindings=sizes, options=options
    )
    assert found.files == emitted(1).files


def test_the_first_file_stays_where_there_is_no_model() -> None:
    found = emitted(1, target=SM80)
    assert "from gemm_relu.py " in head(found)
    assert "Tiles: the file's own, since there are no measured constants for cuda:sm_80" in head(found)


def test_other_arguments_are_an_error(tmp_path: Path) -> None:
    text = (EXAMPLES / "gemm_relu.py").read_text(encoding="utf-8")
    (tmp_path / "a.py").write_text(text, encoding="utf-8")
    (tmp_path / "b.py").write_text(
        text.replace("C: T.Tensor((M, N), dtype)", 'C: T.Tensor((M, N), "float32")'), "utf-8"
    )
    with pytest.raises(Tile2CuError) as caught:
        sizes = {"M": 1, **WEIGHTS}
        emit_text(tmp_path / "a.py", kernel=None, target=SM90A, bindings=sizes, options=EmitOptions(family=("b.py",)))
    assert caught.value.code == "T2C-C023"
    assert "C (float16, 2 dimensions)" in str(caught.value) and "C (float32, 2 dimensions)" in str(caught.value)


def test_a_project_lists_a_family(tmp_path: Path) -> None:
    for name in ("gemm_relu.py", "gemm_few_rows.py"):
        shutil.copy(EXAMPLES / name, tmp_path / name)
    table = (
        "[[tool.tile2cu.kernels]]\nfile = 'gemm_relu.py'\ntargets = ['cuda:sm_90a']\nfamily = ['gemm_few_rows.py']\n"
    )
    bindings = "tiles = 'auto'\nbindings = {M = 1, N = 4096, K = 4096}\n"
    (tmp_path / "pyproject.toml").write_text(f"[tool.tile2cu]\n\n{table}{bindings}", encoding="utf-8")
    (job,) = read_project(tmp_path).jobs
    (found,) = job.emit()
    assert found.files == emitted(1).files
