"""Kernels as operators of torch: opcheck, torch.compile without a graph break, gradients."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import tile2cu
from tile2cu_runtime.errors import OptionError
from tile2cu_runtime.torch_op import schema

KERNELS = """
import tilelang
import tilelang.language as T

@tilelang.jit
def scaled(A, alpha: T.float32):
    M = T.dynamic("M")
    A: T.Tensor[[M, 8], T.float32]
    B = T.empty((M, 8), T.float32)
    with T.Kernel(T.ceildiv(M, 4), threads=32) as bx:
        for i, j in T.Parallel(4, 8):
            B[bx * 4 + i, j] = A[bx * 4 + i, j] * alpha
    return B

@tilelang.jit
def add_to(A, B):
    M = T.dynamic("M")
    A: T.Tensor[[M], T.float32]
    B: T.Tensor[[M], T.float32]
    with T.Kernel(T.ceildiv(M, 32), threads=32) as bx:
        for i in T.Parallel(32):
            B[bx * 32 + i] += A[bx * 32 + i]

@tilelang.jit(out_idx=[1])
def one_size(n):
    @T.prim_func
    def main(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(n, threads=32) as bx:
            for i in T.Parallel(32):
                B[i] = A[i]
    return main
"""
pytestmark = pytest.mark.needs("g++", "torch")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("torch_op") / "kernels.py"
    path.write_text(KERNELS, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def scaled(file: Path) -> Any:
    def backward(ctx: Any, gradient: Any) -> Any:
        (alpha,) = ctx.scalars
        return gradient * alpha, None

    return tile2cu.load(file, "scaled", device="cpu").as_torch_op("tile2cu_tests::scaled", backward=backward)


@pytest.fixture(scope="module")
def add_to(file: Path) -> Any:
    return tile2cu.load(file, "add_to", device="cpu").as_torch_op("tile2cu_tests::add_to")


@pytest.mark.nightly  # the compiled, the exported model and schemas are below
def test_opcheck(scaled: Any, add_to: Any) -> None:
    import torch

    torch.library.opcheck(scaled, (torch.randn(12, 8, requires_grad=True), 2.0))
    torch.library.opcheck(scaled, (torch.randn(5, 8), 2.0))
    torch.library.opcheck(add_to, (torch.randn(40), torch.randn(40)))


def test_schemas_mark_what_is_written(file: Path) -> None:
    assert schema(tile2cu.load(file, "scaled", device="cpu").manifest) == "(Tensor A, float alpha) -> Tensor"
    assert schema(tile2cu.load(file, "add_to", device="cpu").manifest) == "(Tensor A, Tensor(b!) B) -> ()"


def test_compiled_without_a_graph_break_for_open_sizes(scaled: Any, add_to: Any) -> None:
    import torch

    def model(a: Any, b: Any) -> Any:
        c = scaled(a + 1, 3.0) * 2
        add_to(c.reshape(-1), b)
        return c, b

    compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=True)
    for rows in (4, 9):
        a, b = torch.randn(rows, 8), torch.ones(rows * 8)
        c, after = compiled(a, b)
        torch.testing.assert_close(c, (a + 1) * 6)
        torch.testing.assert_close(after, 1 + ((a + 1) * 6).reshape(-1))
        assert after is b


def test_gradients_of_eager_and_compiled_calls(scaled: Any) -> None:
    import torch

    compiled = torch.compile(lambda a: scaled(a, 3.0).sum(), fullgraph=True, backend="aot_eager")
    for call in (lambda a: scaled(a, 3.0).sum(), compiled):
        a = torch.randn(4, 8, requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # the outputs have gradients
            call(a).backward()
        torch.testing.assert_close(a.grad, torch.full((4, 8), 3.0))


def test_exported(scaled: Any) -> None:
    import torch

    class Model(torch.nn.Module):
        def forward(self, a: Any) -> Any:
            return scaled(a, 2.0) + 1

    rows = torch.export.Dim("rows", min=2)
    program = torch.export.export(Model(), (torch.randn(4, 8),), dynamic_shapes=({0: rows},))
    assert "tile2cu_tests.scaled" in str(program.graph_module.code)
    a = torch.randn(7, 8)
    torch.testing.assert_close(program.module()(a), a * 2 + 1)


@pytest.mark.parametrize("name", ["scaled", "a::b::c", "::x", "a b::c"])
def test_wrong_names(file: Path, name: str) -> None:
    with pytest.raises(OptionError, match="T2C-R030"):
        tile2cu.load(file, "scaled", device="cpu").as_torch_op(name)


def test_a_size_that_no_tensor_has(file: Path) -> None:
    with pytest.raises(OptionError, match="the size `n`"):
        tile2cu.load(file, "one_size", device="cpu").as_torch_op("tile2cu_tests::one_size")
