"""A program for TileLang: layouts made and plotted by the host, and a shared tile with a layout of the user's."""

import tempfile
from pathlib import Path

import tilelang
import tilelang.language as T
import torch
from tilelang.layout import make_swizzled_layout
from tilelang.tools import plot_layout

transposed = T.Layout([8, 8], lambda i, j: (j, i))


@tilelang.jit(out_idx=[1])
def transpose(M, N, block=32):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((N, M), "float16")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block, block), "float16")
            T.annotate_layout({A_shared: make_swizzled_layout(A_shared)})
            T.copy(A[by * block, bx * block], A_shared)
            for i, j in T.Parallel(block, block):
                B[bx * block + i, by * block + j] = A_shared[j, i]

    return main


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        fragment = T.Fragment([8, 8], lambda i, j: (i * 4 + j // 2, j % 2))
        for name, layout in (("transposed", transposed), ("fragment", fragment.repeat([2, 1], True))):
            plot_layout(layout, save_directory=folder, name=name)
        assert len(list(Path(folder).iterdir())) == 2
    a = torch.randn(70, 90, device="cuda").half()
    torch.testing.assert_close(transpose(70, 90)(a), a.T.contiguous())
    print("all checks passed")
