"""Every example's own text on the CPU engine against float64, ragged sizes included, and with every check on."""

import ml_dtypes
import numpy as np
import pytest

import tile2cu
from tests.host import example_calls as calls
from tests.host.example_calls import EXAMPLES, MAMBA
from tile2cu_runtime import Kernel, LaunchError


def load(name: str, *, check: bool = False, **bindings: object) -> Kernel:
    options = {"statistics": True, "schedules": ("round-robin", "shuffle")} if check else {}
    return tile2cu.load(EXAMPLES / name, device="cpu", check=check, options=options, **bindings)


def check_calls(kernel: Kernel, *checked: calls.Call) -> None:
    """The results, and where checks are on: nothing found, no bank conflict where a product reads its operands."""
    for call in checked:
        call.check(kernel)
        if kernel.is_checked:
            assert kernel.report is not None
            assert not kernel.report.findings
            products = [
                access for access in kernel.report.shared if "tl::gemm" in access.place.text and access.access == "read"
            ]
            assert all(access.worst_ways == 1 for access in products), products


@pytest.mark.parametrize("n", [0, 1, 3, 1023, 1024, 1025, 5000])
@pytest.mark.parametrize("check", [False, True], ids=["fast", "checked"])
def test_vector_add(n: int, check: bool) -> None:
    check_calls(load("vector_add.py", check=check), calls.vector_add(n))


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize("columns", [32, 100, 1000, 1024, 4096])
@pytest.mark.parametrize("check", [False, True], ids=["fast", "checked"])
def test_row_softmax(columns: int, check: bool) -> None:
    kernel = load("row_softmax.py", check=check, N=columns)
    check_calls(kernel, *(calls.row_softmax(rows, columns) for rows in (1, 7, 16)))


GEMM_SIZES = [
    (128, 128, 64),
    (256, 128, 96),
    (100, 72, 64),
    (130, 257, 100),
    (33, 1, 7),
    (1, 1, 1),
    (0, 5, 5),
    (64, 64, 0),
]


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("example", ["gemm_relu.py", "gemm_relu_eager.py"])
@pytest.mark.parametrize("check", [False, True], ids=["fast", "checked"])
def test_gemm_relu(example: str, check: bool) -> None:
    kernel = load(example, check=check)
    for sizes in GEMM_SIZES:
        check_calls(kernel, *(calls.gemm_relu(*sizes, exact=exact) for exact in (True, False)))


@pytest.mark.nightly
@pytest.mark.parametrize("sizes", [(256, 256, 128), (200, 136, 100)])
def test_gemm_relu_with_static_sizes(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    check_calls(load("gemm_relu.py", check=True, M=m, N=n, K=k), calls.gemm_relu(m, n, k))


@pytest.mark.nightly
def test_gemm_relu_in_bfloat16() -> None:
    check_calls(load("gemm_relu.py", check=True, dtype="bfloat16"), calls.gemm_relu(70, 50, 90, ml_dtypes.bfloat16))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("check", [False, True], ids=["fast", "checked"])
def test_attention(causal: bool, check: bool) -> None:
    kernel = load("attention.py", check=check, dim=64, is_causal=causal)
    sizes = ((1, 2, 128), (2, 1, 100), (1, 1, 1), (1, 1, 65), (2, 3, 200))
    check_calls(kernel, *(calls.attention(*size, 64, causal=causal) for size in sizes))


@pytest.mark.nightly
def test_attention_with_static_sizes_and_wide_heads() -> None:
    kernel = load("attention.py", check=True, batch=1, heads=1, seq_len=192, dim=128, is_causal=True)
    check_calls(kernel, calls.attention(1, 1, 192, 128, causal=True))


@pytest.mark.nightly
def test_attention_survives_large_scores() -> None:
    kernel = load("attention.py", dim=64, is_causal=True)
    check_calls(kernel, calls.attention(1, 1, 96, 64, causal=True, scale=30, tolerance=1e-2))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("dim", "more"), [(100, {}), (144, {}), (256, {}), (4096, {}), (640, {"read_twice": True})])
def test_rmsnorm_of_rows_of_any_length(dim: int, more: dict[str, object]) -> None:
    """block_M and threads as the example chooses them: rows of 144 go on wherever warps end, in blocks of 48; long rows
    are read twice, with words for the caches."""
    counts = (1, 7) if dim > 256 else (1, 53)
    check_calls(load("rmsnorm.py", check=True, dim=dim, **more), *(calls.rmsnorm(rows, dim) for rows in counts))


@pytest.mark.nightly
@pytest.mark.parametrize("residual", [False, True], ids=["plain", "residual"])
def test_linear(residual: bool) -> None:
    name = "linear_residual" if residual else "linear"
    kernel = tile2cu.load(EXAMPLES / "linear.py", name, device="cpu", check=True)
    check_calls(kernel, *(calls.linear(*size, residual=residual) for size in ((64, 128, 64), (70, 80, 72), (1, 9, 7))))


@pytest.mark.nightly
@pytest.mark.parametrize("activation", [False, True], ids=["plain", "gelu"])
def test_linear_of_int4_weights(activation: bool) -> None:
    kernel = load("linear_int4.py", check=True, gelu=activation)
    sizes = ((64, 64, 64), (33, 72, 96), (1, 5, 32))
    check_calls(kernel, *(calls.linear_int4(*size, activation=activation) for size in sizes))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize(("weights", "block_K"), [("int4", 32), ("int4", 64), ("fp4", 64)])
def test_linear_int4_prefill(target: str, weights: str, block_K: int) -> None:  # noqa: N803
    """A turn of one group, and of two; the last one of K = 96 has one. TMA writes rows of Y that it reaches."""
    bindings = {"weights": weights, "block_M": 64, "block_K": block_K, "num_stages": 2}
    kernel = load("linear_int4_prefill.py", check=True, target=target, **bindings)
    sizes = ((70, 72, 96), (70, 75, 96), (1, 5, 32))
    check_calls(kernel, *(calls.linear_int4(*size, activation=False, weights=weights) for size in sizes))
    assert ("Y_local_staging" in kernel.source) == (target == "cuda:sm_90a" and block_K == 64)


def test_rope() -> None:
    kernel = load("rope.py", check=True, dim=64)
    check_calls(kernel, *(calls.rope(*size, 64) for size in ((1, 64, 2), (2, 70, 3), (1, 1, 1))))


HOPPER = {"target": "cuda:sm_90a", "threads": 256}


@pytest.mark.nightly
@pytest.mark.parametrize("block", [(128, 128, 64), (128, 256, 64), (256, 64, 32)])
def test_gemm_relu_on_hopper(block: tuple[int, int, int]) -> None:
    m, n, k = block
    kernel = load("gemm_relu.py", check=True, block_M=m, block_N=n, block_K=k, **HOPPER)
    assert "pipeline.producer_acquire(ko)" in kernel.source
    sizes = ((256, 256, 128), (200, 136, 104), (1, 8, 8), (130, 264, 1000), (64, 64, 0), (0, 8, 8))
    check_calls(kernel, *(calls.gemm_relu(*size) for size in sizes))


def test_hopper_refuses_rows_that_tma_cannot_reach() -> None:
    kernel = load("gemm_relu.py", **HOPPER)
    kernel.otherwise = None  # as load_kernel loads it: tile2cu.load has another kernel for such rows
    with pytest.raises(LaunchError, match="TL_NOT_SUPPORTED"):
        kernel(np.zeros((8, 4), np.float16), np.zeros((4, 8), np.float16))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
def test_attention_on_hopper(causal: bool) -> None:
    kernel = load("attention.py", check=True, dim=64, block_M=128, is_causal=causal, **HOPPER)
    sizes = ((1, 2, 128), (2, 1, 100), (1, 1, 1), (1, 1, 200))
    check_calls(kernel, *(calls.attention(*size, 64, causal=causal) for size in sizes))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("check", [False, True], ids=["fast", "checked"])
def test_gemv(check: bool) -> None:
    kernel = load("gemv.py", check=check, block_K=256)
    check_calls(kernel, *(calls.gemv(*size) for size in ((16, 512), (13, 1000), (1, 1), (9, 257))))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize(("batch", "seqlen", "heads"), [(1, 256, 2), (2, 512, 1), (1, 384, 1)])
def test_chunk_state(batch: int, seqlen: int, heads: int, target: str) -> None:
    check_calls(load("chunk_state.py", check=True, target=target, **MAMBA), calls.chunk_state(batch, seqlen, heads))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize(("batch", "seqlen", "heads"), [(1, 256, 2), (2, 128, 1), (1, 200, 1)])
def test_chunk_scan(batch: int, seqlen: int, heads: int, target: str) -> None:
    check_calls(load("chunk_scan.py", check=True, target=target, **MAMBA), calls.chunk_scan(batch, seqlen, heads))


@pytest.mark.nightly
@pytest.mark.parametrize("tile", [(64, 32), (64, 128), (128, 32)], ids=str)
def test_chunk_scan_in_other_tiles(tile: tuple[int, int]) -> None:
    block_m, block_k = tile
    bindings = MAMBA | {"block_M": block_m, "block_K": block_k, "threads": 2 * block_m}
    check_calls(load("chunk_scan.py", check=True, target="cuda:sm_90a", **bindings), calls.chunk_scan(1, 200, 2))
