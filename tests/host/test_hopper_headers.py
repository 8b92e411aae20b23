"""Texts for sm_90a on the CPU engine, every check on: TMA pipelines with a producer warp, wgmma, TMA stores."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tile2cu_runtime.compile import host_flags
from tile2cu_runtime.compilers import find_gxx
from tile2cu_runtime.engine import Engine, EngineOptions, load_engine

TEXTS = Path(__file__).parent / "hopper"
Array = np.ndarray
SCHEDULES = (
    {},
    {"schedule": "reverse", "landing": "early"},
    {"schedule": "shuffle", "landing": "random", "seed": 3},
    {"schedule": "shuffle", "landing": "random", "preempt": 0.005, "seed": 4},
)


@dataclass(frozen=True)
class Text:
    """A C launcher of a text, compiled with the engine's checks."""

    engine: Engine
    launcher: Callable[..., int]

    def __call__(self, inputs: Sequence[Array], output: Array, *sizes: int, **options: Any) -> list[dict[str, Any]]:
        """Fills `output`, which the kernel has to write whole, and gives the findings."""
        settings = EngineOptions(check=True, **options)
        with self.engine.memory(max(output.nbytes, 16), None) as target:
            memories = [self.engine.memory(max(array.nbytes, 16), array.ctypes.data) for array in inputs]
            pointers = [memory.__enter__() for memory in memories]
            try:
                with self.engine.turn(settings):
                    status = self.launcher(*map(ctypes.c_void_p, pointers), ctypes.c_void_p(target), *sizes, None)
                    report = dict(self.engine.report())
                assert status == 0, status
                ctypes.memmove(output.ctypes.data, target, output.nbytes)
            finally:
                for memory in memories:
                    memory.__exit__(None, None, None)
        return list(report["findings"])


@pytest.fixture(scope="module")
def text(headers: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Text]:
    """`text("attention")`: the launcher in hopper/attention.cu."""
    folder, engine = tmp_path_factory.mktemp("hopper"), load_engine()

    def build(name: str) -> Text:
        library = folder / f"{name}.so"
        if not library.exists():
            command = [find_gxx().path, "-x", "c++", *host_flags(check=True), "-I", str(headers)]
            subprocess.run([*command, "-c", str(TEXTS / f"{name}.cu"), "-o", f"{library}.o"], check=True)
            subprocess.run([find_gxx().path, "-shared", f"{library}.o", "-o", str(library)], check=True)
        return Text(engine, getattr(ctypes.CDLL(str(library)), name))

    return build


def integers(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Small integers: their products and sums are exact."""
    return rng.integers(-4, 5, shape).astype(np.float16)


# M, N, K: whole tiles; ragged in each; smaller than a tile; fewer and more turns than stages; nothing to sum
GEMM_SIZES = [(128, 256, 64), (256, 512, 256), (136, 264, 72), (1, 8, 8), (130, 8, 200), (5, 520, 448), (128, 256, 0)]


@pytest.mark.parametrize("size", GEMM_SIZES, ids=str)
@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_gemm_relu(text: Callable[[str], Text], size: tuple[int, int, int], schedule: dict[str, Any]) -> None:
    m, n, k = size
    rng = np.random.default_rng(0)
    a, b = integers(rng, (m, k)), integers(rng, (k, n))
    c = np.empty((m, n), np.float16)
    assert text("gemm_relu")([a, b], c, m, n, k, **schedule) == []
    np.testing.assert_array_equal(c.astype(np.float64), np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0))


def softmax_attention(q: Array, k: Array, v: Array) -> Array:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = np.einsum("bshd,bthd->bhst", q, k) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.einsum("bhst,bthd->bshd", weights / weights.sum(axis=-1, keepdims=True), v)


@pytest.mark.parametrize("size", [(1, 128, 1), (2, 200, 3), (1, 300, 2), (1, 1, 1)], ids=str)
@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_attention(text: Callable[[str], Text], size: tuple[int, int, int], schedule: dict[str, Any]) -> None:
    batch, seq_len, heads = size
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((batch, seq_len, heads, 128)).astype(np.float16) for _ in range(3))
    output = np.empty_like(q)
    assert text("attention")([q, k, v], output, batch, seq_len, heads, **schedule) == []
    expected = softmax_attention(q, k, v)
    assert np.abs(output.astype(np.float64) - expected).max() <= 2e-3 * np.abs(expected).max()
