"""Instruction counts of emitted AMD kernels beside ck_tile's, and beside what these tiles need at least.

    python benchmarks/amd.py [--target hip:gfx942] [--styles tl ck] [--ck COMPOSABLE_KERNEL] [--markdown]

No GPU and no clock: each code object runs on the AMD simulator, which counts what its waves execute and the cycles that
its addresses cost the LDS banks; every result is compared with NumPy's. COMPOSABLE_KERNEL is a checkout of
github.com/ROCm/composable_kernel; benchmarks/ck puts its parts together, and the same clang compiles them, with HIP's
headers and device library of ROCM_PATH or of the system (Debian's libamdhip64-dev and rocm-device-libs).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import tile2cu
from tile2cu_runtime import Kernel
from tile2cu_runtime.amdgcn import CostReport, simulate
from tile2cu_runtime.hip import find_clang, find_device_library

HERE = Path(__file__).resolve().parent
WAVES = 4
TILE_BYTES = 2  # of an element
# Cycles of v_mfma_f32_32x32x8_f16 [MI300 ISA], and bytes that the LDS serves in a cycle and one wide access moves.
MFMA_WORK, MFMA_CYCLES, LDS_BYTES_A_CYCLE, WIDE_ACCESS = 32 * 32 * 8, 32, 128, 64 * 16

# C (M, N) = A (M, K) B (N, K)^T in tiles of 128x128x32.
M, N, K = 256, 256, 512
TILE, TILE_K = 128, 32
# Attention of (1, LENGTH, HEADS, 128), by 128 queries and 128 keys.
LENGTH, HEADS, DIM = 256, 2, 128


@dataclass(frozen=True, kw_only=True)
class Row:
    """One kernel: figures for each wave and turn of the main loop, but global bytes for the launch."""

    name: str
    mfma_cycles: float
    lds_reads: float
    lds_writes: float
    lds_cycles: float
    global_bytes: int
    vector: float | None = None
    vector_in_loop: float | None = None
    waits: float | None = None

    HEADER = (
        "kernel", "MFMA cycles", "LDS reads", "LDS writes", "LDS cycles", "LDS busy per MFMA cycle", "VALU",
        "of these in the loop", "waits", "global bytes",
    )  # fmt: skip

    def cells(self) -> tuple[str, ...]:
        # The waves of a block are on the SIMDs of a CU, each with a matrix core, and share the CU's LDS.
        busy = f"{self.lds_cycles * WAVES / self.mfma_cycles:.2f}"
        lds = (f"{each:,.1f}" for each in (self.lds_reads, self.lds_writes, self.lds_cycles))
        counts = ("" if each is None else f"{each:,.1f}" for each in (self.vector, self.vector_in_loop, self.waits))
        return (self.name, f"{self.mfma_cycles:,.1f}", *lds, busy, *counts, f"{self.global_bytes:,}")


@dataclass(frozen=True, kw_only=True)
class Product:
    """What is computed, for the floor: the multiply-adds, loaded and read bytes of one of the `turns` of each block.

    Twice as long it has twice the turns a block; what both launches differ in is the loop's.
    """

    title: str
    blocks: int
    turns: int
    work: int
    loaded: int
    read_by_a_wave: int
    global_bytes: int

    def floor(self) -> Row:
        """Every tile comes to LDS once and in wide pieces, and every wave reads what its part of the product needs."""
        return Row(
            name="floor",
            mfma_cycles=self.work / MFMA_WORK * MFMA_CYCLES / WAVES,
            lds_reads=self.read_by_a_wave / WIDE_ACCESS,
            lds_writes=self.loaded / WIDE_ACCESS / WAVES,
            lds_cycles=(self.read_by_a_wave + self.loaded / WAVES) / LDS_BYTES_A_CYCLE,
            global_bytes=self.global_bytes,
        )

    def row(self, name: str, cost: CostReport, twice: CostReport) -> Row:
        """`twice` is the cost of a launch that is twice as long."""
        assert cost.measured is not None
        each = 1 / (self.blocks * self.turns * WAVES)
        in_loop = twice.count("vector") / twice.waves - cost.count("vector") / cost.waves
        return Row(
            name=name,
            mfma_cycles=cost.mfma_cycles * each,
            lds_reads=cost.executed("ds_read") * each,
            lds_writes=(cost.executed("ds_write") + cost.direct_to_lds) * each,
            lds_cycles=cost.measured.lds.cycles * each,
            vector=cost.count("vector") * each,
            vector_in_loop=in_loop / self.turns,
            waits=cost.count("wait") * each,
            global_bytes=cost.global_bytes,
        )


# Four waves in a square: each has 64 rows of A and 64 of B.
GEMM = Product(
    title=f"C ({M}, {N}) = A ({M}, {K}) B^T, float16, in tiles of {TILE}x{TILE}x{TILE_K} by {WAVES} waves",
    blocks=(M // TILE) * (N // TILE),
    turns=K // TILE_K,
    work=TILE * TILE * TILE_K,
    loaded=TILE_BYTES * 2 * TILE * TILE_K,
    read_by_a_wave=TILE_BYTES * TILE * TILE_K,
    global_bytes=TILE_BYTES * (M * K * (N // TILE) + N * K * (M // TILE) + M * N),
)
# Four waves below one another: each has 32 queries, held in registers, and reads all of K's and V's tile.
ATTENTION = Product(
    title=f"attention (1, {LENGTH}, {HEADS}, {DIM}), float16, by {TILE} queries and {TILE} keys, {WAVES} waves",
    blocks=LENGTH // TILE * HEADS,
    turns=LENGTH // TILE,
    work=2 * TILE * TILE * DIM,
    loaded=TILE_BYTES * 2 * TILE * DIM,
    read_by_a_wave=TILE_BYTES * 2 * TILE * DIM,
    global_bytes=TILE_BYTES * HEADS * LENGTH * DIM * (2 + 2 * (LENGTH // TILE)),
)


# ---- products -----------------------------------------------------------------------------------------------


def gemm_data(k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B and what C must be: small integers, so that every order of summing is exact."""
    random = np.random.default_rng(0)
    a, b = (random.integers(-2, 3, (rows, k)).astype(np.float16) for rows in (M, N))
    return a, b, (a.astype(np.float32) @ b.astype(np.float32).T).astype(np.float16)


def attention_data(length: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Q, K, V, and the result in float64."""
    random = np.random.default_rng(0)
    inputs = [random.standard_normal((1, length, HEADS, DIM)).astype(np.float16) for _ in range(3)]
    q, k, v = (each.astype(np.float64) for each in inputs)
    weights = np.exp(np.einsum("bshd,bthd->bhst", q, k) / np.sqrt(DIM))
    return inputs, np.einsum("bhst,bthd->bshd", weights / weights.sum(axis=-1, keepdims=True), v)


def our_gemm(target: str, style: str) -> Row:
    tiles = {"block_M": TILE, "block_N": TILE, "block_K": TILE_K}
    kernel = loaded(HERE / "kernels" / "gemm_nt.py", target, style, **tiles)

    def cost(k: int) -> CostReport:
        a, b, expected = gemm_data(k)
        np.testing.assert_array_equal(kernel(a, b), expected)
        return kernel.costs[0]

    return GEMM.row(f"tile2cu, {style}, {target}", cost(K), cost(2 * K))


def our_attention(target: str, style: str) -> Row:
    example = HERE.parent / "examples" / "attention.py"
    # 64 keys per iteration leave registers for two waves per SIMD. Figures are still for 128.
    kernel = loaded(example, target, style, dim=DIM, block_M=TILE, block_N=TILE // 2, threads=64 * WAVES)

    def cost(length: int) -> CostReport:
        inputs, expected = attention_data(length)
        np.testing.assert_allclose(kernel(*inputs), expected, atol=1e-3)
        return kernel.costs[0]

    return ATTENTION.row(f"tile2cu, {style}, {target}", cost(LENGTH), cost(2 * LENGTH))


def loaded(path: Path, target: str, style: str, **bindings: int) -> Kernel:
    options = {"statistics": True}
    return tile2cu.load(path, target=target, device="sim", style=style, check=True, options=options, **bindings)


def ck_gemms(architecture: str, checkout: Path) -> Iterator[Row]:
    policies = {
        "ck_tile, default policy": "GemmPipelineAGmemBGmemCRegV1DefaultPolicy",
        "ck_tile, universal policy": "UniversalGemmPipelineAgBgCrPolicy<Row, Col, Row>",
    }
    for name, policy in policies.items():
        with compiled("gemm", architecture, checkout, f"-DPOLICY={policy}") as folder:
            costs = [ck_gemm_cost(Path(folder, "ck.hsaco"), k) for k in (K, 2 * K)]
        yield GEMM.row(name, *costs)


def ck_gemm_cost(code: Path, k: int) -> CostReport:
    a, b, expected = gemm_data(k)
    c = np.zeros_like(expected)
    result = simulate(code, "gemm", (N // TILE, M // TILE), 64 * WAVES, [a, b, c, M, N, k], measure=True)
    np.testing.assert_array_equal(c, expected)
    return result.cost


def ck_attention(architecture: str, checkout: Path) -> Row:
    flags = ("-DCK_TILE_FMHA_FWD_FAST_EXP2=1", "-fgpu-flush-denormals-to-zero")  # as its CMakeLists.txt has them
    with compiled("attention", architecture, checkout, *flags) as folder:
        costs = [ck_attention_cost(Path(folder, "ck.hsaco"), length) for length in (LENGTH, 2 * LENGTH)]
    return ATTENTION.row("ck_tile, qr_async", *costs)


def ck_attention_cost(code: Path, length: int) -> CostReport:
    inputs, expected = attention_data(length)
    output = np.zeros_like(inputs[0])
    arguments = [*inputs, output, length, HEADS, float(np.log2(np.e) / np.sqrt(DIM))]
    grid = (length // TILE, HEADS, 1)
    result = simulate(code, "attention", grid, 64 * WAVES, arguments, measure=True)
    np.testing.assert_allclose(output, expected, atol=1e-3)
    return result.cost


def compiled(name: str, architecture: str, checkout: Path, *flags: str) -> tempfile.TemporaryDirectory[str]:
    """A folder with ck.hsaco."""
    folder = tempfile.TemporaryDirectory()
    root, library = find_device_library(architecture)
    command = [
        *find_clang(architecture).command, "-x", "hip", f"--offload-arch={architecture}", "--cuda-device-only",
        "--no-gpu-bundle-output", f"--rocm-path={root}", f"--rocm-device-lib-path={library}", "-O3", "-std=c++17", "-w",
        f"-I{checkout / 'include'}", *flags, str(HERE / "ck" / f"{name}.hip"), "-o", str(Path(folder.name, "ck.hsaco")),
    ]  # fmt: skip
    subprocess.run(command, check=True)
    return folder


# ---- report -------------------------------------------------------------------------------------------------


def table(rows: list[Row], *, markdown: bool) -> str:
    cells = [Row.HEADER, *(row.cells() for row in rows)]
    if markdown:
        lines = [f"| {' | '.join(line)} |" for line in cells]
        return "\n".join([lines[0], "|---" + "|---:" * (len(Row.HEADER) - 1) + "|", *lines[1:]])
    widths = [max(len(line[column]) for line in cells) for column in range(len(Row.HEADER))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="hip:gfx942")
    parser.add_argument("--styles", nargs="+", default=["tl"], choices=("tl", "ck"), help="of our kernels")
    parser.add_argument("--ck", type=Path, metavar="FOLDER", help="a checkout of composable_kernel")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    chip = options.target.partition(":")[2]
    for product, ours, theirs in ((GEMM, our_gemm, ck_gemms), (ATTENTION, our_attention, ck_attention)):
        rows = [product.floor()]
        for style in options.styles:
            try:
                rows.append(ours(options.target, style))
            except tile2cu.Tile2CuError as error:
                print(error.render(), file=sys.stderr)
        if options.ck:
            found = theirs(chip, options.ck)
            rows += [found] if isinstance(found, Row) else found
        print(f"{product.title}\n\n{table(rows, markdown=options.markdown)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
