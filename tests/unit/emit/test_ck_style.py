"""The style ck, as text: what it names, what it does not support, what its launcher rejects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tile2cu
from tile2cu.core.errors import Tile2CuError

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"

KERNEL = """
import tilelang
import tilelang.language as T


@tilelang.jit
def scaled(M, N, {constant}=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, {constant}), M, threads=64) as (bx, by):
            for i in T.Parallel({constant}):
                C[by, bx * {constant} + i] = A[by, bx * {constant} + i] * 2.0

    return main
"""


def test_targets_without_ck_tile() -> None:
    with pytest.raises(Tile2CuError, match="the style `ck` does not support hip:gfx950") as raised:
        tile2cu.emit(EXAMPLES / "vector_add.py", style="ck", target="hip:gfx950")
    assert raised.value.code == "T2C-E034" and "--style tl" in raised.value.render()


def test_an_operation_that_it_lacks_has_its_line() -> None:
    with pytest.raises(Tile2CuError, match="a reduction other than of two dimensions") as raised:
        tile2cu.emit(EXAMPLES / "gemv.py", style="ck", target="hip:gfx942")
    assert raised.value.code == "T2C-E034" and "gemv.py:" in raised.value.render()


def test_the_manifest_names_the_style_and_what_it_needs() -> None:
    (found,) = tile2cu.emit(EXAMPLES / "vector_add.py", style="ck", target="hip:gfx942").values()
    manifest = json.loads(found.manifest)
    assert manifest["look"]["style"] == "ck" and manifest["needs"] == ["composable_kernel"]


@pytest.mark.parametrize("constant", ["number", "pad", "Kargs", "half_t"])
def test_constants_have_no_names_of_ck_tile(tmp_path: Path, constant: str) -> None:
    (tmp_path / "scaled.py").write_text(KERNEL.replace("{constant}", constant), encoding="utf-8")
    (found,) = tile2cu.emit(tmp_path / "scaled.py", style="ck", target="hip:gfx942").values()
    assert f"constexpr int {constant}_1 = 64;" in found.source


def test_tensors_of_2_gib_are_rejected() -> None:
    (found,) = tile2cu.emit(EXAMPLES / "gemm_relu.py", style="ck", target="hip:gfx942", threads=256).values()
    assert "if (!tl::fits_in_2gib<half_t>(int64_t{M} + 128, int64_t{K} + 128)" in found.source
    assert "offsets of elements 32" in found.source


def test_a_vector_at_the_end_of_one_dimension_is_whole() -> None:
    """ck_tile asks whether a vector's first element is in bounds; the launcher selects single elements else."""
    (found,) = tile2cu.emit(EXAMPLES / "vector_add.py", style="ck", target="hip:gfx942").values()
    assert "N % 4 == 0 ? vector_add_kernel<tl::Aligned<16>> : vector_add_kernel<tl::AnyAlignment>" in found.source
    assert "number<tl::vector_length<Alignment, float>>{}" in found.source
