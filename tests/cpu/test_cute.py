"""The tables of test_layouts.py against CuTe's traits: a second reading of the manuals.

What CuTe prints is in cute_tables.json, as digests: g++ takes 15 s for its templates. Each night CuTe prints it anew,
which needs CUTLASS's headers (`pip install nvidia-cutlass`) and CUDA's, which come with nvcc.
"""

from __future__ import annotations

import ctypes
import hashlib
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

STORED = json.loads(Path(__file__).with_name("cute_tables.json").read_text(encoding="utf-8"))


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


def tables_of_cute(gxx: str, cuda: Path) -> dict[str, Any]:
    source = Path(__file__).with_name("cute_tables.cpp")
    include = [flag for path in (cutlass_headers(), cuda, cuda / "cccl") for flag in ("-I", str(path))]
    command = [gxx, "-std=c++17", "-w", *include, str(source), "-o", "tables"]
    program = built("tables", [command], source, cutlass_headers() / "cutlass" / "version.h")
    printed = subprocess.run([program], capture_output=True, check=True, text=True).stdout
    # On the host CuTe has no addresses of shared memory: it says so, and takes 0.
    tables: dict[str, Any] = json.loads(printed.replace("ERROR: cast_smem_ptr_to_uint not supported but used.", ""))
    return tables


def digest(table: object) -> str:
    return hashlib.sha256(json.dumps(table).encode()).hexdigest()[:32]


def digests(tables: Any) -> Any:
    """The same with a digest for each list."""
    if isinstance(tables, dict):
        return {name: digests(table) for name, table in tables.items()}
    return digest(tables) if isinstance(tables, list) else tables


@pytest.mark.nightly
@pytest.mark.needs("cutlass", "nvcc")
def test_the_tables_are_what_cute_prints(gxx: str, nvcc: str) -> None:
    assert digests(tables_of_cute(gxx, cuda_headers(nvcc))) == STORED


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
def test_mma_tables(name: str, a: tuple[Table, int], b: tuple[Table, int]) -> None:
    assert digest(linear(a[0], 32, a[1], 16)) == STORED[name]["a"]
    assert digest(linear(b[0], 32, b[1], 8, swap=True)) == STORED[name]["b"]
    assert digest(linear(c_m16n8, 32, 4, 16)) == STORED[name]["c"]


def test_wgmma_table() -> None:
    assert digest(linear(d_wgmma, 128, 64, 64)) == STORED["wgmma d"]


OPERANDS = [f"K, {span}, 16" for span in (128, 64, 32, 16)] + ["K, 128, 8", "K, 16, 8", "K, 64, 32"]
OPERANDS += [f"MN, {span}, 16" for span in (128, 64, 32, 16)]


MN = 128  # the operands' other extent than 32 bytes of K
CHUNKS = """
#include "wgmma_descriptor.h"
extern "C" void chunks(unsigned long long bits, bool mn_major, int rows, int columns, long long* found) {
  const tile2cu::engine::Descriptor descriptor(bits);
  for (int row = 0; row < rows; ++row)
    for (int chunk = 0; chunk < columns; ++chunk)
      *found++ = mn_major ? tile2cu::engine::mn_major_address(descriptor, row, chunk)
                          : tile2cu::engine::k_major_address(descriptor, row, chunk);
}
"""


def chunks_of_engine(descriptor: int, rows: int, columns: int, *, mn_major: bool) -> np.ndarray:
    """Where the CPU engine reads its chunks of 16 bytes, by this descriptor."""
    command = ["g++", "-std=c++17", "-shared", "-fPIC", "-I", str(engine_dir()), "chunks.cpp", "-o", "chunks.so"]
    library = built("chunks.so", [command], *sorted(engine_dir().glob("*.h")), texts={"chunks.cpp": CHUNKS})
    found = np.empty((rows, columns), np.int64)
    place = ctypes.c_void_p(found.ctypes.data)
    ctypes.CDLL(str(library)).chunks(ctypes.c_uint64(descriptor), mn_major, rows, columns, place)
    return found


@pytest.mark.parametrize("by", ["engine", "ptx"])
@pytest.mark.parametrize("name", OPERANDS)
def test_wgmma_operands_are_read_as_cute_lays_them_out(name: str, by: str) -> None:
    """By the descriptor that CuTe itself makes; by the CPU engine, and by the PTX machine."""
    operand = STORED["operands"][name]
    major, span, bits = name.split(", ")
    assert operand["descriptor"] >> 62 == {"16": 0, "128": 1, "64": 2, "32": 3}[span]
    k = 256 // int(bits)
    rows = k if major == "MN" else MN
    if by == "engine":
        chunks = chunks_of_engine(operand["descriptor"], rows, MN * 2 // rows, mn_major=major == "MN")
    else:
        chunks = chunks_of(operand["descriptor"], MN, mn_major=major == "MN")
    each, size = 128 // int(bits), int(bits) // 8  # elements of a chunk, bytes of an element
    read = (chunks[:, :, None] + size * np.arange(each)).reshape(rows, -1)
    assert digest((read.T if major == "MN" else read).tolist()) == operand["offsets"]


def test_swizzle() -> None:
    elements = np.arange(64 * 64).reshape(64, 64)
    where = np.empty(64 * 64, int)
    where[swizzle_128(elements).reshape(-1)] = np.arange(64 * 64)
    assert digest(where.reshape(64, 64).tolist()) == STORED["swizzle"]
