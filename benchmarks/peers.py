"""What emitted kernels are compared with beyond torch's own entries.

torch.compile, Triton where it is there, and what modules from outside of this checkout give (`outside`).
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import torch

try:
    import triton
    import triton.language as tl
    from triton.tools.tensor_descriptor import TensorDescriptor
except ImportError:  # torch without Triton
    triton = None

Peers = dict[str, Callable[[], torch.Tensor]]
# What a module from outside gives for a workload: with its own exact result where it computes another one.
OutsidePeers = Mapping[str, Callable[[], torch.Tensor] | tuple[Callable[[], torch.Tensor], torch.Tensor]]


def outside(file: Path) -> ModuleType:
    """A module that knows another project's kernels; its folder can be imported from."""
    sys.path.insert(0, str(file.resolve().parent))
    spec = importlib.util.spec_from_file_location(f"peers_of_{file.stem}", file)
    assert spec and spec.loader, f"{file} is no Python module"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if triton:

    @triton.jit
    def _rms_norm(X, W, Y, channels, eps, rows: tl.constexpr, width: tl.constexpr):
        """Each program takes `rows` whole rows."""
        row = tl.program_id(0) * rows + tl.arange(0, rows)[:, None]
        column = tl.arange(0, width)[None, :]
        inside = column < channels
        at = row.to(tl.int64) * channels + column
        x = tl.load(X + at, mask=inside, other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(x * x, axis=1) / channels + eps)[:, None]
        w = tl.load(W + column, mask=inside, other=0.0).to(tl.float32)
        tl.store(Y + at, x * scale * w, mask=inside)

    @triton.jit
    def _matmul(
        A, B, C, M, N, K, bm: tl.constexpr, bn: tl.constexpr, bk: tl.constexpr, panel, transposed: tl.constexpr
    ):
        """Programs that stay, and take tile after tile of C in panels of tile rows; A, B and C through TMA."""
        columns, rows = tl.cdiv(N, bn), tl.cdiv(M, bm)
        for tile in tl.range(tl.program_id(0), rows * columns, tl.num_programs(0), flatten=True):
            first = tile // (panel * columns) * panel
            width = min(rows - first, panel)
            place = tile % (panel * columns)
            row, column = (first + place % width) * bm, place // width * bn
            sums = tl.zeros((bm, bn), dtype=tl.float32)
            for k in range(tl.cdiv(K, bk)):
                a = A.load([row, k * bk])
                b = B.load([column, k * bk]).T if transposed else B.load([k * bk, column])
                sums = tl.dot(a, b, sums)
            C.store([row, column], sums.to(C.dtype))

    @triton.jit
    def _scaled_matmul(A, B, SA, SB, C, M, N, K, bm: tl.constexpr, bn: tl.constexpr, panel: tl.constexpr):
        """A @ B^T with a scale for 1 x 128 elements of A and 128 x 128 of B; A, B and C through TMA."""
        columns, rows = tl.cdiv(N, bn), tl.cdiv(M, bm)
        first = tl.program_id(0) // (panel * columns) * panel
        width = min(rows - first, panel)
        place = tl.program_id(0) % (panel * columns)
        row, column = (first + place % width) * bm, place // width * bn
        at = row + tl.arange(0, bm)
        groups = tl.cdiv(K, 128)
        sums = tl.zeros((bm, bn), dtype=tl.float32)
        for k in range(groups):
            scale = tl.load(SA + at * groups + k, mask=at < M, other=0.0) * tl.load(SB + column // 128 * groups + k)
            a, b = A.load([row, k * 128]), B.load([column, k * 128])
            sums += tl.dot(a, b.T) * scale[:, None]
        C.store([row, column], sums.to(C.dtype))


def matmuls(a: torch.Tensor, b: torch.Tensor, bt: torch.Tensor) -> Peers:
    """a @ b with b stored as K x N, and as N x K in `bt`, by Triton with blocks that stay and TMA."""
    if not triton:
        return {}
    c = torch.empty(a.shape[0], b.shape[1], device="cuda", dtype=a.dtype)
    bm, bn, bk = (128, 256, 64) if c.numel() >= 1 << 22 else (64, 128, 64)
    tiles = -(-c.shape[0] // bm) * -(-c.shape[1] // bn)
    grid = (min(torch.cuda.get_device_properties(0).multi_processor_count, tiles),)
    described_a, described_c = TensorDescriptor.from_tensor(a, [bm, bk]), TensorDescriptor.from_tensor(c, [bm, bn])

    def launcher(described_b: TensorDescriptor, transposed: bool) -> Callable[[], torch.Tensor]:
        def launch() -> torch.Tensor:
            sizes = (c.shape[0], c.shape[1], a.shape[1], bm, bn, bk, 8)
            _matmul[grid](described_a, described_b, described_c, *sizes, transposed, num_warps=8, num_stages=3)
            return c

        return launch

    return {
        "triton/NN": launcher(TensorDescriptor.from_tensor(b, [bk, bn]), False),
        "triton/NT": launcher(TensorDescriptor.from_tensor(bt, [bn, bk]), True),
    }


def scaled_matmuls(a: torch.Tensor, b: torch.Tensor, scales_a: torch.Tensor, scales_b: torch.Tensor) -> Peers:
    """a @ b.T in bfloat16, with a scale for 1 x 128 elements of a and for 128 x 128 of b (Triton)."""
    if not triton:
        return {}
    (m, k), n = a.shape, b.shape[0]
    c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)

    def launcher(bm: int, warps: int) -> Callable[[], torch.Tensor]:
        described = [TensorDescriptor.from_tensor(x, [rows, 128]) for x, rows in ((a, bm), (b, 128), (c, bm))]
        grid = (-(-m // bm) * -(-n // 128),)

        def launch() -> torch.Tensor:
            tensors = (*described[:2], scales_a, scales_b, described[2])
            _scaled_matmul[grid](*tensors, m, n, k, bm, 128, 8, num_warps=warps, num_stages=4)
            return c

        return launch

    return {"triton/64": launcher(64, 4), "triton/128": launcher(128, 8)}


def rms_norms(x: torch.Tensor, w: torch.Tensor, eps: float) -> Peers:
    """torch.compile's, and the best of a few configurations of the Triton kernel; their first calls build both."""
    found: Peers = {"torch.compile": _compiled(lambda x, w: torch.nn.functional.rms_norm(x, w.shape, w, eps), x, w)}
    if triton:
        found["triton"] = _tuned_rms_norm(x, w, eps)
    return found


def _compiled(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> Callable[[], torch.Tensor]:
    torch._dynamo.reset()  # a function is compiled for 8 shapes, and not at all for a ninth
    compiled = torch.compile(function, dynamic=False)
    return lambda: compiled(*inputs)


def _tuned_rms_norm(x: torch.Tensor, w: torch.Tensor, eps: float) -> Callable[[], torch.Tensor]:
    y = torch.empty_like(x)
    width = triton.next_power_of_2(x.shape[1])

    def launch(rows: int, warps: int) -> torch.Tensor:
        _rms_norm[(x.shape[0] // rows,)](x, w, y, x.shape[1], eps, rows, width, num_warps=warps)
        return y

    @functools.cache
    def best() -> tuple[int, int]:
        fitting = [
            (rows, warps) for rows in (1, 2, 4, 8, 16) for warps in (1, 2, 4, 8) if 256 <= rows * width // warps <= 2048
        ]
        return min(fitting, key=lambda each: triton.testing.do_bench(lambda: launch(*each), warmup=2, rep=8))

    return lambda: launch(*best())
