"""Rows of any length are taken 16 bytes at a time, as rows of a power of two are."""

import re
from pathlib import Path

import pytest

from tile2cu.api import emit_text
from tile2cu.targets import find

_KERNEL = """\
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def small(M=100):
    @T.prim_func
    def body(X: T.Tensor((M, {columns}), "float16"), Y: T.Tensor((M, {columns}), "float16")):
        with T.Kernel(T.ceildiv(M, 16), threads={threads}) as bx:
            L = T.alloc_fragment((16, {columns}), "float16")
            S = T.alloc_shared((16, {columns}), "float16")
            T.copy(X[bx * 16, 0], L)
            T.copy(L, S)
            for i, j in T.Parallel(16, {columns}):
                S[i, j] = S[i, j] + 1.0
            T.copy(S, Y[bx * 16, 0])
    return body
"""


@pytest.mark.parametrize("columns", [160, 320, 640])
@pytest.mark.parametrize("threads", [96, 128, 256, 384])
def test_accesses_of_128_bits(columns: int, threads: int) -> None:
    text = _KERNEL.format(columns=columns, threads=threads)
    (emitted,) = emit_text(Path("small.py"), kernel=None, target=find("cuda:sm_80"), bindings={}, text=text)
    source = emitted.files["small.cu"]
    layouts = re.findall(r"tl::Blocked<tl::Shape<[^>]*>, tl::Shape<(\d+), (\d+)>, (\d+)>", source)
    assert layouts
    for rows, lanes, vector in layouts:
        assert int(vector) == 8
        assert int(lanes) >= 8, "neighbours read 128 bytes side by side"
        assert int(rows) * int(lanes) > 0.8 * threads, "few threads are idle"
    assert re.search(r"tl::parallel(_once)?<8>", source)
    assert "tl::tensor<tl::Aligned<16>>" in source
