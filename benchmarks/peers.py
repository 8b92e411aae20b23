"""What emitted kernels are compared with beyond torch's own entries.

torch.compile, Triton where it is there, and what modules from outside of this checkout give (`outside`).
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # torch without Triton
    triton = None

Peers = dict[str, Callable[[], torch.Tensor]]
# What a module from outside gives for a workload: with its own exact result where it computes another one.
OutsidePeers = Mapping[str, Callable[[], torch.Tensor] | tuple[Callable[[], torch.Tensor], torch.Tensor]]


def outside(file: Path) -> Callable[..., OutsidePeers]:
    """The function `peers(work)` of a module that knows another project's kernels; its folder can be imported from."""
    sys.path.insert(0, str(file.resolve().parent))
    spec = importlib.util.spec_from_file_location(f"peers_of_{file.stem}", file)
    assert spec and spec.loader, f"{file} is no Python module"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[..., OutsidePeers] = module.peers
    return found


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
