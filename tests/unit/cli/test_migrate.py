"""`tile2cu migrate FILE`: the lines of a program for TileLang to change, and what of it has no counterpart."""

from pathlib import Path

import pytest

from tile2cu.cli import main
from tile2cu.tilelang.migrate import Finding, findings

PROGRAM = """import tilelang
import tilelang.language as T
import tilelang.testing
from tilelang.profiler import do_bench
from tilelang.carver.arch import driver
from tvm import DataType
import numpy as np


@tilelang.jit(
    out_idx=[-1],
    execution_backend="cython",
    pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True},
)
def copy(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32) as bx:
            for i in T.Parallel(n):
                B[i] = A[i]

    return main


if __name__ == "__main__":
    tilelang.disable_cache()
    copy(64)
"""


def test_each_line_to_change_is_named() -> None:
    found = findings(PROGRAM)
    assert [(each.line, each.text.partition(":")[0]) for each in found] == [
        (1, "write `import tile2cu.tilelang as tilelang`"),
        (2, "write `import tile2cu.tilelang.language as T`"),
        (3, "write `import tile2cu.tilelang.testing`, and `import tile2cu.tilelang as tilelang`"),
        (4, "write `from tile2cu.tilelang.profiler import do_bench`"),
        (5, "write `from tile2cu.tilelang.carver.arch import driver`"),
        (6, "write `from tile2cu.tilelang import DataType`"),
        (12, "`execution_backend` has no effect"),
        (13, "TL_ENABLE_FAST_MATH has no effect"),
        (26, "tilelang.disable_cache has no effect"),
    ]
    assert not any(each.blocking for each in found)


def test_what_is_missing_blocks() -> None:
    text = "from tilelang.carver.template import MatmulTemplate as M\nimport tilelang.language as T\nM(1)\nT.gemm(2)\n"
    blocking = [each for each in findings(text) if each.blocking]
    assert [each.line for each in blocking] == [1, 3]
    assert all("MatmulTemplate is missing" in each.text for each in blocking)


def test_other_programs_need_no_change() -> None:
    assert findings("import numpy as tilelang\nfrom . import tvm\ntilelang.jit(verbose=True)\n") == []
    assert Finding(1, "a") < Finding(2, "a")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    assert main(["migrate", str(path)]) == 0
    printed = capsys.readouterr().out
    assert f"{path}:1: write `import tile2cu.tilelang as tilelang`" in printed
    assert "1 of 1 kernels can be transpiled for cuda:sm_80" in printed
    assert "runs it with its imports unchanged" in printed


def test_kernels_that_cannot_be_transpiled_are_diagnosed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.replace("T.Parallel(n)", "T.Parallell(n)"), encoding="utf-8")
    assert main(["migrate", str(path)]) == 1
    printed = capsys.readouterr().out
    assert "error[T2C-F010]" in printed and "0 of 1 kernels" in printed and "unchanged" not in printed


def test_a_file_that_is_no_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.py"
    path.write_text("def f(:\n", encoding="utf-8")
    assert main(["migrate", str(path)]) == 1
    assert "T2C-F001" in capsys.readouterr().err
