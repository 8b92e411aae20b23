"""The tables of test_layouts.py against CuTe's traits: a second reading of the manuals.

Needs CUTLASS's headers (`pip install nvidia-cutlass`) and CUDA's, which come with nvcc.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_layouts import (
    Table,
    a_m16k8_tf32,
    a_m16k16,
    a_m16k32_int8,
    a_m16k64_int4,
    b_k8n8_tf32,
    b_k16n8,
    b_k32n8_int8,
    b_k64n8_int4,
    c_m16n8,
    d_wgmma,
    swizzle_128,
)

from tests.built import built
from tile2cu_runtime.paths import engine_dir
from tile2cu_runtime.ptx.wgmma import chunks_of

pytestmark = pytest.mark.needs("cutlass", "nvcc")


def cutlass_headers() -> Path:
    spec = importlib.util.find_spec("cutlass_library")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "source" / "include"


def cuda_headers(nvcc: str) -> Path:
    """Where nvcc says it looks for them."""
    dry = subprocess.run([nvcc, "--dryrun", "-E", "-x", "cu", "/dev/null"], capture_output=True, text=True, check=True)
    (top,) = [line.split("TOP=", 1)[1].strip() for line in dry.stderr.splitlines() if "TOP=" in line]
    candidates = [Path(top) / "include", *sorted(Path(top).glob("targets/*/include"))]
    return next(path for path in candidates if (path / "cuda_runtime.h").exists())


@functools.cache
def tables_of_cute(gxx: str, cuda: Path) -> dict[str, Any]:
    source = Path(__file__).with_name("cute_tables.cpp")
    folders = [cutlass_headers(), cuda, cuda / "cccl", engine_dir()]
    include = [flag for path in folders for flag in ("-I", str(path))]
    command = [gxx, "-std=c++17", "-w", *include, str(source), "-o", "tables"]
    read = (source, cutlass_headers() / "cutlass" / "version.h", *engine_dir().glob("*.h"))
    program = built("tables", [command], *read)
    printed = subprocess.run([program], capture_output=True, check=True, text=True).stdout
    # On the host CuTe has no addresses of shared memory: it says so, and takes 0.
    tables: dict[str, Any] = json.loads(printed.replace("ERROR: cast_smem_ptr_to_uint not supported but used.", ""))
    return tables


@pytest.fixture
def cute(gxx: str, nvcc: str) -> dict[str, Any]:
    cutlass_headers()
    return tables_of_cute(gxx, cuda_headers(nvcc))


def linear(table: Table, threads: int, values: int, rows: int, *, swap: bool = False) -> list[list[int]]:
    """The table in CuTe's terms. `swap`: CuTe describes B as N x K."""
    places = [[table(thread, value) for value in range(values)] for thread in range(threads)]
    return [[(c + r * rows) if swap else (r + c * rows) for r, c in row] for row in places]


@pytest.mark.parametrize(
    ("name", "a", "b"),
    [
        ("half", (a_m16k16, 8), (b_k16n8, 4)),
        ("tf32", (a_m16k8_tf32, 4), (b_k8n8_tf32, 2)),
        ("int8", (a_m16k32_int8, 16), (b_k32n8_int8, 8)),
        ("int4", (a_m16k64_int4, 32), (b_k64n8_int4, 16)),
    ],
)
def test_mma_tables(cute: dict[str, Any], name: str, a: tuple[Table, int], b: tuple[Table, int]) -> None:
    assert cute[name]["a"] == linear(a[0], 32, a[1], 16)
    assert cute[name]["b"] == linear(b[0], 32, b[1], 8, swap=True)
    assert cute[name]["c"] == linear(c_m16n8, 32, 4, 16)


def test_wgmma_table(cute: dict[str, Any]) -> None:
    assert cute["wgmma d"] == linear(d_wgmma, 128, 64, 64)


OPERANDS = [f"K, {span}, 16" for span in (128, 64, 32, 16)] + ["K, 128, 8", "K, 16, 8", "K, 64, 32"]
OPERANDS += [f"MN, {span}, 16" for span in (128, 64, 32, 16)]


@pytest.mark.parametrize("by", ["engine", "ptx"])
@pytest.mark.parametrize("name", OPERANDS)
def test_wgmma_operands_are_read_as_cute_lays_them_out(cute: dict[str, Any], name: str, by: str) -> None:
    """By the descriptor that CuTe itself makes; by the CPU engine, and by the PTX machine."""
    operand = cute["operands"][name]
    offsets = np.array(operand["offsets"])
    major, span, bits = name.split(", ")
    assert operand["descriptor"] >> 62 == {"16": 0, "128": 1, "64": 2, "32": 3}[span]
    if by == "engine":
        chunks = np.array(operand["engine"])
    else:
        chunks = chunks_of(operand["descriptor"], len(offsets), mn_major=major == "MN")
    each, size = 128 // int(bits), int(bits) // 8  # elements of a chunk, bytes of an element
    along = offsets.T if major == "MN" else offsets
    read = (chunks[:, :, None] + size * np.arange(each)).reshape(along.shape)
    np.testing.assert_array_equal(read, along)


def test_swizzle(cute: dict[str, Any]) -> None:
    elements = np.arange(64 * 64).reshape(64, 64)
    where = np.empty(64 * 64, int)
    where[swizzle_128(elements).reshape(-1)] = np.arange(64 * 64)
    assert cute["swizzle"] == where.reshape(64, 64).tolist()
