"""Text of the styles cute and ck for kernels against what they assume, which tests/style_forms.py runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tile2cu
from tests.style_forms import SOURCE
from tile2cu.core.errors import Tile2CuError


def emitted(folder: Path, style: str, target: str, text: str = SOURCE) -> str:
    (folder / "forms.py").write_text(text, encoding="utf-8")
    (found,) = tile2cu.emit(folder / "forms.py", style=style, target=target).values()
    return found.source


def test_cute(tmp_path: Path) -> None:
    text = emitted(tmp_path, "cute", "cuda:sm_80")
    assert "array_aligned<float, cosize_v<staged_layout> + 4, 16> staged;" in text
    assert "if (get<0>(tall_at_rowcol(e, 0)) < 20 && " in text and "if (i >= 20) continue;" in text


def test_ck(tmp_path: Path) -> None:
    text = emitted(tmp_path, "ck", "hip:gfx942")
    of_scalars = re.findall(r"const auto (\w+) = kargs\.\1;", text)
    assert of_scalars[:4] == ["scale", "shift", "offset", "negate"]
    guards = re.findall(r"if \((.*)\)\s+tl::block_tile_reduce_dimension<0>\(parts_of", text)
    assert guards == ["get_lane_id() / 32 % 2 == 0"] * 2  # in each wave
    assert (
        "even_source =" not in text
        and text.count("move_tile_window(") == 1
        and "even_next_1 = load_tile(even_source_1);" in text
    )
    assert "sizeof(Shared) == 8," in text  # of workspaces alone


@pytest.mark.parametrize("start", [16, 40])
def test_a_part_of_a_swizzled_tile_whose_offsets_have_carries(start: int, tmp_path: Path) -> None:
    """CuTe would take column 16 + 16 as if its bits were those of 16 | 16."""
    text = SOURCE.replace("32:64", f"{start}:{start + 32}").replace('(64, 64), "float16")', '(128, 128), "float16")')
    with pytest.raises(Tile2CuError, match="a part of a_tile, swizzled, that starts at no multiple") as raised:
        emitted(tmp_path, "cute", "cuda:sm_80", text)
    assert raised.value.code == "T2C-E034"


def test_a_copy_of_bool(tmp_path: Path) -> None:
    """CuTe's copies take a bool for one bit: they do not compile."""
    text = SOURCE.replace('Vector: T.Tensor((N,), "float32")', 'Vector: T.Tensor((N,), "bool")')
    with pytest.raises(Tile2CuError, match="the style `cute` does not support a copy of bool") as raised:
        emitted(tmp_path, "cute", "cuda:sm_80", text)
    assert raised.value.code == "T2C-E034"


UNALIGNED = """
import tilelang
import tilelang.language as T

@tilelang.jit
def unaligned(N):
    @T.prim_func
    def main(A: T.Tensor((16, N), "float32"), B: T.Tensor((16, 77), "float32"), C: T.Tensor((16, 32), "float32")):
        with T.Kernel(1, threads=64) as bx:
            first = T.alloc_shared((16, 32), "float32")
            second = T.alloc_shared((16, 32), "float32")
            sums = T.alloc_fragment((16, 32), "float32")
            T.clear(sums)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[0, k * 16 + START], first)
                T.copy(B[0, k * 32], second)
                for i, j in T.Parallel(16, 32):
                    sums[i, j] += first[i, j] + second[i, 31 - j]
            T.copy(sums, C)

    return main
"""


@pytest.mark.parametrize("style", ["tl", "cute"])
def test_no_copy_claims_wider_asynchronous_copies_than_it_has(style: str, tmp_path: Path) -> None:
    """Tiles that start within 16 bytes, and those of rows of an odd length: in CuTe's style in single floats."""
    at_vectors, within = (
        re.findall(r"cp\.async\.\w+ of (\d+) bytes", emitted(tmp_path, style, "cuda:sm_80", UNALIGNED.replace(*start)))
        for start in (("START", "4"), ("START", "1"))
    )
    words = ["4"] if style == "tl" else []
    assert at_vectors == ["16", *words] and within == 2 * words


def test_names_of_a_pipelines_own_function(tmp_path: Path) -> None:
    """In ck: the lambda that loads the next tile, and its parameter."""
    text = (
        UNALIGNED.replace("k * 16 + START", "k * 32")
        .replace("B[0", "A[0")
        .replace("T.Pipelined(2,", "T.Pipelined(T.ceildiv(N, 32),")
    )
    text = text.replace("T.Kernel(1, threads=64) as bx", "T.Kernel(2, 2, threads=64) as (load_next, another)")
    text = text.replace("T.copy(sums, C)", "T.copy(sums, C[load_next * 16, another * 32])")
    found = emitted(tmp_path, "ck", "hip:gfx942", text)
    assert "const int load_next_1 = blockIdx.x, another_1 = blockIdx.y;" in found
    assert "const auto load_next = [&](bool another) {" in found
