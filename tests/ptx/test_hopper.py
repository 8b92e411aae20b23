"""nvcc's PTX for sm_90a on the PTX machine: the emitted texts against NumPy, and faults planted in headers/tl/cuda.

TILE2CU_PTX_ALL=1 runs every text for sm_90a and sm_100a, else few that have all instructions among them.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tile2cu
from comparison import on_ptx, rows_of
from prebuilt import Text, texts
from tests.host.kernels import load_body
from tests.host.test_hopper_forms import GEMM
from tests.host.test_skipped_turns import kernel_of, problem
from tests.ptx.barrier_trace import disagreements, table, traced
from tile2cu_runtime import Kernel, LaunchError, SimulationError, load_kernel, paths
from tile2cu_runtime.compile import OBJECT, ptx_build
from tile2cu_runtime.simulator import PtxMachine, Simulator

ROOT = Path(__file__).resolve().parents[2]
RNG = np.random.default_rng(11)
EVERY = [text for chip in ("sm_90a", "sm_100a") for text in texts(ROOT / "emitted/cuda" / chip) if text.sizes]
# TMA of 2 to 5 dimensions, A in registers, both majors, named barriers, registers handed over, products in flight, a
# ring that goes on from tile to tile, tiles from a queue, a kernel that may start before the one before it ends.
FEW = {
    "causal-attention", "sm_90a-attention_varlen", "sm_90a-chunk_state", "sm_90a-gemm_hybrid", "sm_90a-mla_decode",
    "sm_90a-w2a8_gemm",
    "sm_100a-gemm_relu",
}  # fmt: skip
TEXTS = [text for text in EVERY if text.label in FEW or os.environ.get("TILE2CU_PTX_ALL")]
BOUND = "sm_90a-chunk_state"  # with the launcher that nvcc compiles, as users have it
# They take 45 s; the others have TMA, A in registers and a ring of stages. A queue of tiles, boxes of lengths that a
# tensor says and products of bytes are in these alone, and attention without a mask is a subject of faults below.
AT_NIGHT = {
    "causal-attention", "sm_90a-attention_varlen", "sm_90a-gemm_hybrid", "sm_90a-mla_decode", "sm_90a-w2a8_gemm",
}  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            text,
            id=text.label,
            marks=[pytest.mark.binding] * (text.label == BOUND) + [pytest.mark.nightly] * (text.label in AT_NIGHT),
        )
        for text in TEXTS
    ],
)
def test_an_emitted_text_matches_numpy(text: Text) -> None:
    with traced() as trace:
        rows = list(rows_of(text, on_ptx(text), once=True))
    assert [row for row in rows if not row.refused]
    assert not [row for row in rows if row.wrong]
    source = text.path.with_suffix(".cu").read_text(encoding="utf-8")
    assert not table(source) or not disagreements(source, trace)


@pytest.mark.sweep(every=6)
@pytest.mark.parametrize(
    ("dtype", "sums", "numpy", "rows"),
    [
        ("float8_e4m3", "float32", ml_dtypes.float8_e4m3fn, 64),
        ("float8_e4m3", "float32", ml_dtypes.float8_e4m3fn, 32),  # too few for wgmma: halves on mma.sync
        ("float8_e5m2", "float32", ml_dtypes.float8_e5m2, 32),
        ("uint8", "int32", np.uint8, 64),
        ("float16", "float16", np.float16, 64),
        ("float32", "float32", np.float32, 64),
    ],
)
def test_products_of_other_types(dtype: str, sums: str, numpy: type, rows: int, tmp_path: Path) -> None:
    m, n, k = 70, 72, 208
    kernel = load_body(
        tmp_path,
        GEMM.format(rows=rows, cols=64, step=64, dtype=dtype, sums=sums, policy="Square"),
        f"A: T.Tensor((M, K), {dtype!r}), B: T.Tensor((N, K), {dtype!r}), C: T.Tensor((M, N), {sums!r})",
        grid=f"T.ceildiv(N, 64), T.ceildiv(M, {rows})",
        blocks="(bx, by)",
        arguments="M, N, K",
        target="cuda:sm_90a",
        device="ptx",
        check=False,
    )
    assert ("as float16, which holds its values exactly" in kernel.source) == (rows < 64)
    a, b = (RNG.integers(0 if dtype == "uint8" else -4, 5, shape).astype(numpy) for shape in ((m, k), (n, k)))
    np.testing.assert_array_equal(kernel(a, b).astype(np.float64), a.astype(np.float64) @ b.astype(np.float64).T)


def test_turns_are_skipped_by_all(tmp_path: Path) -> None:
    """A producer whose ring goes on from branch to branch."""
    kernel = kernel_of("values of a turn", tmp_path, device="ptx", check=False)
    arrays, expected = problem("values of a turn")
    np.testing.assert_array_equal(kernel(*arrays), expected)


# ---- faults in headers/tl/cuda, which the CPU engine does not read ----------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A kernel, a call of it, and what it must give."""

    kernel: Kernel
    arrays: tuple[np.ndarray, ...]
    expected: np.ndarray
    tolerance: float

    def is_right(self) -> bool:
        found = self.kernel(*self.arrays).astype(np.float64)
        return bool(np.allclose(found, self.expected, rtol=0, atol=self.tolerance))


@pytest.fixture(scope="module")
def product() -> Subject:
    """A ring of two slots, A with K and B with N contiguous, ragged, the result staged and stored by TMA."""
    tiles = {"block_M": 64, "block_N": 128, "block_K": 64, "num_stages": 2}
    kernel = tile2cu.load(ROOT / "examples/gemm_relu.py", target="cuda:sm_90a", device="ptx", **tiles)
    a, b = (RNG.integers(-4, 5, shape).astype(np.float16) for shape in ((70, 200), (200, 136)))
    return Subject(kernel=kernel, arrays=(a, b), expected=np.maximum(a.astype(float) @ b.astype(float), 0), tolerance=0)


@pytest.fixture(scope="module")
def attention() -> Subject:
    """Turns overlap, and the second product of each has A in registers."""
    kernel = tile2cu.load(
        ROOT / "examples/attention.py", target="cuda:sm_90a", device="ptx", dim=64, block_M=64, block_N=64, threads=128
    )
    q, k, v = (RNG.standard_normal((1, 150, 1, 64)).astype(np.float16) for _ in range(3))
    wide = [each.astype(np.float64)[0, :, 0] for each in (q, k, v)]
    scores = np.exp(wide[0] @ wide[1].T / 8)
    expected = scores / scores.sum(axis=1, keepdims=True) @ wide[2]
    return Subject(kernel=kernel, arrays=(q, k, v), expected=expected[None, :, None], tolerance=2e-3)


WRONG = "the result is wrong"
UNFENCED = "no fence.proxy.async after thread"
HANGS = "all threads wait"
OTHERS = "a copy to byte .* is in flight"  # it reads another slot than its own
EARLY = "is read before wgmma.wait_group|was written before wgmma.wait_group"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A change of a header: in all places where `right` stands, and what the machine says, or that it is WRONG."""

    file: str
    right: str
    wrong: str
    found: str = WRONG


PRODUCT_FAULTS = {
    # operands and descriptors
    "leading and stride offset swapped": Fault(
        file="wgmma.h", right="leading_bytes / 16) << 16", wrong="stride_bytes / 16) << 16"
    ),
    "stride offset of half the rows": Fault(file="wgmma.h", right="stride_bytes / 16)", wrong="stride_bytes / 32)"),
    "another swizzle": Fault(
        file="wgmma.h", right="swizzle_bytes == 128 ? 1", wrong="swizzle_bytes == 128 ? 2", found=OTHERS
    ),
    "a descriptor without all of the address": Fault(file="wgmma.h", right="& 0x3ffff", wrong="& 0x3fff", found=OTHERS),
    "majors swapped": Fault(
        file="wgmma_instructions.h", right='"n"(a_mn), "n"(b_mn)', wrong='"n"(b_mn), "n"(a_mn)', found=OTHERS
    ),
    "A and B swapped": Fault(file="wgmma_instructions.h", right='"l"(a), "l"(b)', wrong='"l"(b), "l"(a)'),
    "sums kept where they are to be dropped": Fault(file="wgmma_instructions.h", right="setp.ne", wrong="setp.eq"),
    "rows of a stored matrix swapped": Fault(
        file="stmatrix.h", right='"r"(r[1]), "r"(r[2])', wrong='"r"(r[2]), "r"(r[1])'
    ),
    # what orders them
    "no wgmma.fence": Fault(
        file="wgmma.h", right='"wgmma.fence.sync.aligned;"', wrong='""', found="no wgmma.fence since"
    ),
    "no commit": Fault(
        file="wgmma.h", right='"wgmma.commit_group.sync.aligned;"', wrong='""', found="is read before wgmma.wait_group"
    ),
    "a wait for one product too few": Fault(
        file="wgmma.h", right='aligned %0;" ::"n"(n) : "memory"', wrong='aligned %0;" ::"n"(n + 1) : "memory"',
        found=EARLY,
    ),
    "no proxy fence": Fault(
        file="mbarrier.h", right='"fence.proxy.async.shared::cta;"', wrong='""', found=UNFENCED
    ),
    "no fence of barriers": Fault(
        file="mbarrier.h", right='"fence.mbarrier_init.release.cluster;"', wrong='""',
        found="no fence.mbarrier_init since",
    ),
    # barriers
    "half the bytes": Fault(file="mbarrier.h", right='"r"(bytes)', wrong='"r"(bytes / 2)', found=f"{HANGS}|in flight"),
    "16 bytes more": Fault(file="mbarrier.h", right='"r"(bytes)', wrong='"r"(bytes + 16)', found=f"{HANGS}.*16 bytes"),
    "the other phase": Fault(
        file="mbarrier.h", right='"r"(shared_address(&barrier)), "r"(parity)',
        wrong='"r"(shared_address(&barrier)), "r"(parity ^ 1)', found=f"{HANGS}|in flight",
    ),
    "one arrival too many": Fault(
        file="mbarrier.h", right='"r"(arrivals)', wrong='"r"(arrivals + 1)', found=HANGS
    ),
    # TMA
    "a load's coordinates swapped": Fault(
        file="tma.h", right='TL_TMA_LOAD("2d", "%3, %4", "r"(at[1]), "r"(at[0]))',
        wrong='TL_TMA_LOAD("2d", "%3, %4", "r"(at[0]), "r"(at[1]))',
    ),
    "a store's coordinates swapped": Fault(
        file="tma.h", right='TL_TMA_STORE("2d", "%2, %3", "r"(at[1]), "r"(at[0]))',
        wrong='TL_TMA_STORE("2d", "%2, %3", "r"(at[0]), "r"(at[1]))',
    ),
    "stores not waited for": Fault(
        file="tma.h", right='"cp.async.bulk.wait_group.read %0;"', wrong='"// %0"',
        found="exits before the store has read",
    ),
    "stores without a group": Fault(
        file="tma.h", right='"cp.async.bulk.commit_group;"', wrong='""', found="exits before the store has read"
    ),
}  # fmt: skip
ATTENTION_FAULTS = {
    "rows of A in registers swapped": Fault(
        file="wgmma_instructions.h", right='"r"(a[0]), "r"(a[1]), "r"(a[2])', wrong='"r"(a[1]), "r"(a[0]), "r"(a[2])'
    ),
    "columns of A in registers swapped": Fault(
        file="wgmma_instructions.h", right='"r"(a[1]), "r"(a[2])', wrong='"r"(a[2]), "r"(a[1])'
    ),
    "a wait for one product too few": PRODUCT_FAULTS["a wait for one product too few"],
}


def has_fault(subject: Subject, headers: Path | None, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the machine says of the kernel's PTX with these headers: a fault, WRONG, or nothing."""
    kernel, library = subject.kernel, subject.kernel._library
    own = kernel._simulator
    if headers:
        shutil.copytree(library.folder, folder, ignore=shutil.ignore_patterns("*.so", "*.ptx"))
        monkeypatch.setattr(paths, "headers_dir", lambda: headers)
        build = ptx_build(kernel.manifest.text_file, architecture="sm_90a")
        # Only the PTX: the launcher is the sound one's.
        other = {"-c": "-ptx", OBJECT: "kernel.ptx"}
        command = [other.get(word, word) for word in build.compile if word != "--keep"]
        subprocess.run(command, cwd=folder, check=True)
        monkeypatch.setattr(kernel, "_simulator", Simulator(library, PtxMachine(replace(library, folder=folder), 90)))
    try:
        return "" if subject.is_right() else WRONG
    except SimulationError as error:
        return str(error)
    finally:
        monkeypatch.setattr(kernel, "_simulator", own)


def edited(fault: Fault, folder: Path) -> Path:
    """A copy of the headers with the fault."""
    headers = Path(shutil.copytree(ROOT / "headers", folder))
    file = headers / "tl/cuda/sm90" / fault.file
    text = file.read_text(encoding="utf-8")
    assert fault.right in text
    file.write_text(text.replace(fault.right, fault.wrong), encoding="utf-8")
    return headers


Check = Callable[[Subject, Fault | None], str]


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nvcc: str) -> Check:
    def check(subject: Subject, fault: Fault | None) -> str:
        headers = edited(fault, tmp_path / "headers") if fault else None
        return has_fault(subject, headers, tmp_path / "text", monkeypatch)

    return check


@pytest.mark.sweep(every=11)
@pytest.mark.parametrize("name", [None, *PRODUCT_FAULTS])
def test_a_fault_in_a_product_is_found(name: str | None, product: Subject, said: Check) -> None:
    fault = PRODUCT_FAULTS[name] if name else None
    found = said(product, fault)
    assert re.search(fault.found, found) if fault else found == ""


@pytest.mark.sweep(every=4)
@pytest.mark.parametrize("name", [None, *ATTENTION_FAULTS])
def test_a_fault_in_attention_is_found(name: str | None, attention: Subject, said: Check) -> None:
    fault = ATTENTION_FAULTS[name] if name else None
    found = said(attention, fault)
    assert re.search(fault.found, found) if fault else found == ""


@pytest.mark.nightly  # the texts above are run with maps that launchers make
@pytest.mark.sweep(every=2)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("swizzle_bytes == 128  ? cuda::map_swizzle_128B", "swizzle_bytes == 128  ? cuda::map_swizzle_64B"),
        (
            "return encode(&map, type, uint32_t(rank), const_cast<void*>(base), extents,",
            "const uint64_t swapped[] = {extents[rank - 1], extents[0]};\n"
            "return encode(&map, type, uint32_t(rank), const_cast<void*>(base), swapped,",
        ),
    ],
)
def test_a_fault_in_a_tensor_map_is_found(
    right: str, wrong: str, product: Subject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launcher is compiled with the fault, and makes the maps."""
    headers = edited(Fault(file="encode.h", right=right, wrong=wrong), tmp_path / "headers")
    monkeypatch.setattr(paths, "headers_dir", lambda: headers)
    kernel = load_kernel(product.kernel.folder / f"{product.kernel.manifest.entry}.json", device="ptx")
    with contextlib.suppress(SimulationError, LaunchError):
        assert not replace(product, kernel=kernel).is_right()
