"""Comparisons of constants that decide a program are static_asserts of its source."""

from pathlib import Path

from tile2cu.api import emit_text
from tile2cu.targets import SM80

KERNEL = """
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1])
def small(n, block=128, part=32, rounds=1, depth=2):
    assert block % part == 0 and part > 0, "a block is a whole number of \\"parts\\""
    assert block % 3 == 0 or block < 1024, "few or three"
    assert depth == 2

    @T.prim_func
    def body(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=128) as bx:
            for i in T.Parallel(block):
                if rounds > 1:
                    Y[bx * block + i] = X[bx * block + i] * part + rounds
                else:
                    Y[bx * block + i] = X[bx * block + i] * part + rounds + part // 2
    return body
"""


def emitted(tmp_path: Path, **bindings: object) -> str:
    path = tmp_path / "small.py"
    path.write_text(KERNEL, encoding="utf-8")
    return emit_text(path, kernel=None, target=SM80, bindings=bindings)[0].files["small.cu"]


def test_asserts_of_the_file_have_its_messages(tmp_path: Path) -> None:
    text = emitted(tmp_path)
    assert "static_assert(block % part == 0, \"a block is a whole number of 'parts'\");" in text
    assert "static_assert(part > 0, \"a block is a whole number of 'parts'\");" in text


def test_branches_are_decided_for_these_values_alone(tmp_path: Path) -> None:
    one, several = emitted(tmp_path), emitted(tmp_path, rounds=3)
    other = '"this decided a branch at small.py:15: regenerate this file for other values"'
    assert f"static_assert(rounds <= 1, {other});" in one
    assert f"static_assert(rounds > 1, {other});" in several


def test_operands_that_an_or_need_not_have_are_not_asserted(tmp_path: Path) -> None:
    text = emitted(tmp_path)
    assert "block % 3" not in text and 'static_assert(block < 1024, "this decided a branch' in text


def test_constants_that_the_source_does_not_name_have_none(tmp_path: Path) -> None:
    assert "depth" not in emitted(tmp_path)
