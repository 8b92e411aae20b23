"""No int of an emitted source overflows at run-time sizes near 2**31, or at products of sizes beyond it."""

import re
from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.host.example_calls import EXAMPLES, RAGGED, Example
from tests.host.more_calls import MORE, Case
from tests.host.overflow.audit import NO_MEMORY, audit, library_of, run, skipping, sources_of
from tile2cu_runtime.spec import Manifest, read_manifest

ROOT = Path(__file__).resolve().parents[3]
EMITTED = ROOT / "emitted"
SOURCES = sorted(
    path.relative_to(EMITTED).as_posix()
    for folder in ("cuda", "hip")
    for path in (EMITTED / folder).rglob("*.*")
    if path.suffix in (".cu", ".hip")
)
EACH_TIME = ("cuda/sm_80/vector_add.cu", "hip/gfx942/row_softmax.hip")


def assert_nothing_overflows(source: Path) -> None:
    outcomes = audit(source)
    assert not [(outcome.sizes, outcome.faults) for outcome in outcomes if outcome.faults]
    names = [size.name for size in read_manifest(source.with_suffix(".json")).sizes]
    ended = [outcome for outcome in outcomes if outcome.status == 0]
    assert len(ended) > 1 or not names, "the launcher accepts extreme sizes, and blocks run to their end"
    empty = {name for outcome in ended for name in names if outcome.sizes[name] == 0}
    assert empty == set(names), "the launcher accepts each size 0, and returns TL_OK"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in EACH_TIME else pytest.mark.nightly) for name in SOURCES]
)
def test_nothing_overflows(name: str) -> None:
    assert_nothing_overflows(EMITTED / name)


@pytest.mark.nightly
@pytest.mark.parametrize("example", [*RAGGED, *MORE], ids=str)
def test_nothing_overflows_on_amd(example: Example | Case, tmp_path: Path) -> None:
    path = EXAMPLES / example.file
    for kernel, emitted in tile2cu.emit(path, example.kernel, target="hip:gfx942", **example.bindings).items():
        for name, text in emitted.files.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        assert_nothing_overflows(tmp_path / f"{kernel}.hip")


def test_boxes_of_tma_behind_the_last_one() -> None:
    source = EMITTED / "cuda/sm_90a/gemm_splitk.cu"
    library, manifest = library_of(source), read_manifest(source.with_suffix(".json"))
    outcome = run(library, manifest, {"M": 8, "N": 2**31 - 8, "K": 8})
    assert (outcome.status, outcome.faults) == (0, ())


KERNEL = """
import tilelang
import tilelang.language as T

N = T.dynamic("N")


@tilelang.jit
def tiles():
    @T.prim_func
    def body(X: T.Tensor((N,), "int8"), Y: T.Tensor((N,), "int8"), first: T.int32):
        with T.Kernel({grid}, threads=32) as bx:
            tile = T.alloc_{scope}(({tile},), "int8")
            {load}
            T.copy(tile, Y[{start}])
    return body
"""
COPIED = "T.copy(X[{start}], tile)"
BY_ELEMENTS = "for i in T.Parallel({tile}):\n                tile[i] = X[{start} + i]"


def tiles(folder: Path, target: str, load: str, **parts: object) -> Path:
    path = folder / "tiles.py"
    path.write_text(KERNEL.format(load=load.format(**parts), **parts), encoding="utf-8")
    ((_, emitted),) = tile2cu.emit(path, target=target).items()
    for name, text in emitted.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return next(folder / name for name in emitted.files if name.endswith((".cu", ".hip")))


@pytest.mark.sweep
@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
@pytest.mark.parametrize("load", [COPIED, BY_ELEMENTS])
def test_the_last_tile_ends_at_an_int(load: str, target: str, tmp_path: Path) -> None:
    """3072 does not divide 2**31: the last tile of 2**31 - 1 elements would reach behind."""
    source = tiles(tmp_path, target, load, scope="fragment", grid="T.ceildiv(N, 3072)", tile=3072, start="bx * 3072")
    library, manifest = library_of(source), read_manifest(source.with_suffix(".json"))
    largest = (2**31 - 1) // 3072 * 3072
    accepted = {size: run(library, manifest, {"N": size}) for size in (largest, largest - 1, 5, 0)}
    assert [(each.status, each.faults) for each in accepted.values()] == [(0, ())] * 4
    assert {run(library, manifest, {"N": size}).status for size in (largest + 1, 2**31 - 1)} == {1}
    head = source.read_text(encoding="utf-8").replace("\n// ", " ")
    assert "ceildiv(N, 3072) * 3072 must be at most 2,147,483,647 (32-bit ints); else TL_INVALID_SIZE" in head


# Indices of sizes that are past the tensor, with the largest N of which an int has all.
DERIVED = {
    "end": ("T.ceildiv(N, 64)", "bx * 64, T.min((bx + 1) * 64, N)", 2**31 - 64),
    "parts": ("3", "bx * T.ceildiv(N, 192) * 64, (bx + 1) * T.ceildiv(N, 192) * 64", 3 * (2**31 // 192) * 64),
}


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("name", DERIVED)
def test_indices_of_sizes_that_no_int_holds_are_rejected(name: str, tmp_path: Path) -> None:
    grid, bounds, largest = DERIVED[name]
    load = f"for k in T.serial({bounds}, 64):\n                T.copy(X[k], tile)"
    source = tiles(tmp_path, "cuda:sm_80", load, scope="fragment", grid=grid, tile=64, start="bx")
    library, manifest = library_of(source), read_manifest(source.with_suffix(".json"))
    found = {size: run(library, manifest, {"N": size}) for size in (largest + 1, 2**31 - 1, largest, 5, 0)}
    assert [each.status for each in found.values()] == [1, 1, 0, 0, 0]
    assert not any(each.faults for each in found.values())


INDICES = """
import tilelang
import tilelang.language as T


@tilelang.jit
def indices(M, N, K):
    @T.prim_func
    def body(X: T.Tensor((4, N), "int8"), Z: T.Tensor((K,), "int8"), Y: T.Tensor((M, 32), "int8")):
        with T.Kernel({grid}, threads=32) as bx:
            for i in T.Parallel(32):
                Y[bx, i] = {value}
    return body
"""
GUARDED = "T.if_then_else(bx < 4, X[(bx * N + i) // N, (bx * N + i) % N], Z[i])"


def indices(folder: Path, value: str, grid: str = "M") -> tuple[Path, Manifest]:
    path = folder / "indices.py"
    path.write_text(INDICES.format(value=value, grid=grid), encoding="utf-8")
    ((_, emitted),) = tile2cu.emit(path, target="cuda:sm_80").items()
    for name, text in emitted.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return library_of(folder / "indices.cu"), read_manifest(folder / "indices.json")


def test_an_index_under_a_condition_limits_no_size(tmp_path: Path) -> None:
    outcome = run(*indices(tmp_path, GUARDED), {"M": 2**20, "N": 4096, "K": 32})
    assert (outcome.status, outcome.faults) == (0, ())


def test_sums_of_data_limit_no_size(tmp_path: Path) -> None:
    """Their values are unspecified: the engine's build says where they overflow."""
    hashed = "T.cast(((bx * 32 + i) * 1664525 + 1013904223) >> 16 & 1, 'int8')"
    assert run(*indices(tmp_path, hashed), {"M": 1000, "N": 8, "K": 8}).status == 0


def test_no_size_makes_a_limit_itself_overflow(tmp_path: Path) -> None:
    library, manifest = indices(tmp_path, "Z[bx * (N + K) + i]")
    sizes = ({"N": 2**30, "K": 2**30}, {"N": 2**31 - 8, "K": 2**31 - 8}, {"N": 2**29, "K": 2**30})
    outcomes = [run(library, manifest, {"M": 2, **each}) for each in sizes]
    assert [(each.status, each.faults) for each in outcomes] == [(1, ()), (1, ()), (0, ())]


WORKSPACE = """
import tilelang
import tilelang.language as T


@tilelang.jit
def workspace(M, N, K):
    @T.prim_func
    def body(X: T.Tensor((M,), "int32"), A: T.Tensor((N,), "int32"), B: T.Tensor((K,), "int32"),
             Y: T.Tensor((M,), "int32")):
        W = T.alloc_global((M, N, K), "int32")
        with T.Kernel(T.ceildiv(M, 32), threads=32) as bx:
            for i in T.Parallel(32):
                W[bx * 32 + i, N - 1, K - 1] = X[bx * 32 + i]
        with T.Kernel(T.ceildiv(M, 32), threads=32) as bx:
            for i in T.Parallel(32):
                Y[bx * 32 + i] = W[bx * 32 + i, N - 1, K - 1]
    return body
"""


def emitted_to(folder: Path, text: str, target: str = "cuda:sm_80", name: str = "kernel") -> tuple[Path, Manifest]:
    """The library of the one kernel of a file, and its manifest."""
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    (source,) = sources_of(path, target, folder)
    return library_of(source), read_manifest(source.with_suffix(".json"))


def test_a_workspace_of_more_than_two_to_the_64_bytes_is_too_large(tmp_path: Path) -> None:
    """4 * 2**62 bytes would wrap to 0, and any workspace would do."""
    library, manifest = emitted_to(tmp_path, WORKSPACE)
    sizes = [(2**20, 2**21, 2**21), (2**30, 2**31 - 1, 2**31 - 1), (0, 2**31 - 1, 2**31 - 1), (40, 3, 5)]
    outcomes = [run(library, manifest, dict(zip("MNK", each, strict=True))) for each in sizes]
    assert [each.status for each in outcomes] == [NO_MEMORY, NO_MEMORY, 0, 0]
    assert not any(each.faults for each in outcomes)


DIVIDING = """
import tilelang
import tilelang.language as T


@tilelang.jit
def dividing(M, N, K):
    @T.prim_func
    def body({params}, Y: T.Tensor(({out}), "int32")):
        with T.Kernel({grid}, threads=32) as bx:
            for {k} in T.serial({trips}):
                for i in T.Parallel(32):
                    {statement}
    return body
"""
VECTORS = ", ".join(f'{name}: T.Tensor(({size},), "int32")' for name, size in zip("ABC", "MNK", strict=True))
EXTENT = 'A: T.Tensor((M,), "int32"), B: T.Tensor((M // N,), "int32"), C: T.Tensor((K,), "int32")'
# Forms of DIVIDING, and the statuses (0 TL_OK, 1 TL_INVALID_SIZE) for sizes M, N, K.
DIVISORS = {
    # N = 0 leaves no output: nothing is launched.
    "idle": (
        dict(params=VECTORS, out="M, N", grid="13", trips="1", statement="Y[bx // N, i] = bx % T.ceildiv(N, 8)"),
        {(0, 5, 1): 0, (9, 0, 1): 0, (9, 5, 0): 0, (0, 0, 0): 0},
    ),
    # The output has elements: there is no quotient to store.
    "data": (
        dict(params=VECTORS, out="M,", grid="T.ceildiv(M, 32)", trips="1", statement="Y[bx * 32 + i] = bx // N"),
        {(9, 0, 1): 1, (0, 0, 1): 0, (9, 5, 0): 0},
    ),
    # A loop without iterations divides by nothing.
    "loop": (
        dict(params=VECTORS, out="M,", grid="3", trips="K", statement="Y[k % N] = C[k] % (M - 5)"),
        {(5, 9, 2): 1, (5, 9, 0): 0, (9, 0, 2): 1, (9, 0, 0): 0, (9, 3, 2): 0},
    ),
    "loop that counts down": (
        dict(params=VECTORS, out="K,", grid="1", trips="M - 1, -1, -1", statement="Y[i] = k % N"),
        {(5, 0, 9): 1, (1, 0, 9): 1, (0, 0, 9): 0, (5, 3, 9): 0},
    ),
    # Iterations over N divide by at least 1.
    "own": (
        dict(params=VECTORS, out="M,", grid="T.ceildiv(M, 32)", trips="N", statement="Y[bx * 32 + i] = (bx + k) // N"),
        {(9, 0, 1): 0, (9, 3, 1): 0},
    ),
    # A choice does not evaluate its other arm.
    "choice": (
        dict(
            params=VECTORS, out="M,", grid="1", trips="1", statement="Y[i] = T.if_then_else(N > 0, i // T.max(N, 1), i)"
        ),
        {(9, 0, 1): 0, (9, 3, 1): 0},
    ),
    # A tensor has no extent M // 0, with or without blocks.
    "extent": (
        dict(params=EXTENT, out="M,", grid="T.ceildiv(M, 32)", trips="1", statement="Y[bx * 32 + i] = B[i]"),
        {(8, 0, 1): 1, (0, 0, 1): 1, (8, 4, 0): 0},
    ),
    # Only an executed access limits sizes.
    "index": (
        dict(
            params=VECTORS,
            out="M, N",
            grid="M",
            trips="K",
            statement="Y[(bx * N + i) // N, (bx * N + i) % N] = 1",
        ),
        {(2**16, 2**16, 0): 0, (2**16, 2**16, 1): 1, (2**16, 0, 1): 0, (0, 2**31 - 1, 2**31 - 1): 0, (4, 40, 2): 0},
    ),
}


@pytest.mark.sweep(cases=3)
@pytest.mark.parametrize("name", DIVISORS)
def test_what_blocks_divide_by_is_not_zero(name: str, tmp_path: Path) -> None:
    form, statuses = DIVISORS[name]
    library, manifest = emitted_to(tmp_path, DIVIDING.format(k="k", **form))
    found = {sizes: run(library, manifest, dict(zip("MNK", sizes, strict=True))) for sizes in statuses}
    assert {sizes: outcome.status for sizes, outcome in found.items()} == statuses
    assert not any(outcome.faults for outcome in found.values())


BATCHED = """
import tilelang
import tilelang.language as T


@tilelang.jit
def batched(B, M, K):
    @T.prim_func
    def body(X: T.Tensor((B, M, K), "float16"), W: T.Tensor((64, K), "float16"), Y: T.Tensor((B, M, 64), "float16")):
        with T.Kernel(T.ceildiv(M, 64), B, threads=128) as (bx, by):
            x = T.alloc_shared((64, 64), "float16")
            w = T.alloc_shared((64, 64), "float16")
            y = T.alloc_fragment((64, 64), "float32")
            T.clear(y)
            for k in T.Pipelined(T.ceildiv(K, 64), num_stages=2):
                T.copy(X[by, bx * 64, k * 64], x)
                T.copy(W[0, k * 64], w)
                T.gemm(x, w, y, transpose_B=True)
            T.copy(y, Y[by, bx * 64, 0])
    return body
"""


def test_strides_that_no_tensor_map_has_are_rejected(tmp_path: Path) -> None:
    library, manifest = emitted_to(tmp_path, BATCHED, "cuda:sm_90a")
    sizes = [(2, 2**24, 2**15), (2, 2**24 - 64, 2**15), (0, 2**31 - 64, 2**31 - 64), (2, 0, 64)]
    outcomes = [run(library, manifest, dict(zip("BMK", each, strict=True))) for each in sizes]
    assert [each.status for each in outcomes] == [1, 0, 0, 0]
    assert not any(each.faults for each in outcomes)


PERSISTENT = """
import tilelang
import tilelang.language as T


@tilelang.jit
def persistent(M, N):
    @T.prim_func
    def body(Z: T.Tensor((N, 128), "float16"), X: T.Tensor((M, 128), "float16")):
        with T.Kernel(M - 4, N - 3, threads=256) as (bx, by):
            Q = T.alloc_shared((128, 128), "float16")
            K = T.alloc_shared((128, 128), "float16")
            V = T.alloc_shared((128, 128), "float16")
            S = T.alloc_fragment((128, 128), "float32")
            P = T.alloc_fragment((128, 128), "float16")
            O = T.alloc_fragment((128, 128), "float32")
            T.copy(Z[bx * 128, 0], Q)
            T.clear(O)
            for k in T.Pipelined(2, num_stages=1):
                T.copy(Z[k * 128, 0], K)
                T.copy(Z[k * 128 + 64, 0], V)
                T.gemm(Q, K, S, transpose_B=True, clear_accum=True)
                T.copy(S, P)
                T.gemm(P, V, O)
            T.copy(O, X[bx * 128, 0])
    return body
"""


@pytest.mark.nightly
def test_a_persistent_kernel_without_tiles_starts_no_block(tmp_path: Path) -> None:
    """-2 times -1 tiles would be 2 of them."""
    path = tmp_path / "persistent.py"
    path.write_text(PERSISTENT, encoding="utf-8")
    kernel = tile2cu.load(path, target="cuda:sm_90a", device="cpu")
    assert "persistent_grid" in kernel.source
    X = np.full((2, 128), 7, np.float16)
    kernel(np.ones((2, 128), np.float16), X)
    assert (X == 7).all()
    rows = np.empty((6, 128), np.float16)
    kernel(np.ones((70, 128), np.float16), rows)  # 2 x 67 tiles, more than blocks; six keys have values, 64 behind them
    assert (rows == 128 * 6).all()


QUOTIENT = WORKSPACE.replace("alloc_global((M, N, K)", "alloc_global((T.ceildiv(M, N), K)").replace(
    "i, N - 1, K - 1]", "i, K - 1]"
)


def test_a_workspace_whose_size_is_a_quotient_by_zero_has_none(tmp_path: Path) -> None:
    library, manifest = emitted_to(tmp_path, QUOTIENT)
    outcomes = [run(library, manifest, {"M": 40, "N": n, "K": 2}) for n in (0, 1, 7)]
    assert [(each.status, each.faults) for each in outcomes] == [(1, ()), (0, ()), (0, ())]


PLACED = """
import tilelang
import tilelang.language as T


@tilelang.jit
def placed(rows, heads):
    @T.prim_func
    def body(X: T.Tensor((rows, heads, 64), "int8"), Y: T.Tensor((rows, heads, 64), "int8")):
        with T.Kernel(T.ceildiv(rows, 32), heads, threads=32) as (bx, by):
            T.annotate_layout({X: T.Layout(X.shape, lambda n, h, d: {layout})})
            T.copy(X[bx * 32 : (bx + 1) * 32, by, :], Y[bx * 32 : (bx + 1) * 32, by, :])
    return body
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("layout", ["[h, n, d]", "[h, n // 8, d // 8, n % 8, d % 8]"])
def test_places_in_a_layout_that_no_int_has(layout: str, tmp_path: Path) -> None:
    library, manifest = emitted_to(tmp_path, PLACED.replace("{layout}", layout))
    for sizes in ({"rows": 2**26, "heads": 1024}, {"rows": 2**31 - 64, "heads": 2}, {"rows": 100, "heads": 3}):
        outcome = run(library, manifest, sizes)
        assert (outcome.status, outcome.faults) == (0, ())


@pytest.mark.sweep
@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
@pytest.mark.parametrize("scope", ["fragment", "shared"])
def test_a_tile_that_starts_anywhere_reaches_behind_the_largest_int(scope: str, target: str, tmp_path: Path) -> None:
    turned = f"{COPIED}\n            for i in T.Parallel(512):\n                tile[i] = tile[i] + T.cast(i, 'int8')"
    source = tiles(tmp_path, target, turned, scope=scope, grid="1", tile=512, start="first")
    library, manifest = library_of(source), read_manifest(source.with_suffix(".json"))
    outcomes = [run(library, manifest, {"N": 2**31 - 1}, scalars={"first": 2**31 - 1 - by}) for by in (0, 99, 512)]
    assert [(each.status, each.faults) for each in outcomes] == [(0, ())] * 3


def test_the_last_of_more_than_two_to_the_32_blocks_runs(tmp_path: Path) -> None:
    source = tiles(tmp_path, "cuda:sm_80", COPIED, scope="fragment", grid="N", tile=32, start="bx")
    text = source.read_text(encoding="utf-8").replace("grid(N)", "grid(N, 3)")
    text = text.replace("const int bx = blockIdx.x;", "const int bx = int(blockIdx.y) * (1 << 30);")
    source.write_text(text, encoding="utf-8")
    outcome = run(library_of(source), read_manifest(source.with_suffix(".json")), {"N": 2**31 - 1})
    assert len(outcome.overflows) == 1 and "mul of 2 and 1073741824" in outcome.overflows[0]


def planted(folder: Path, old: str, new: str) -> Path:
    """vector_add with a fault."""
    for name in ("vector_add.cu", "vector_add.h", "vector_add.json"):
        text = (EMITTED / "cuda/sm_80" / name).read_text(encoding="utf-8")
        assert not name.endswith(".cu") or text.count(old) > 0
        (folder / name).write_text(text.replace(old, new) if name.endswith(".cu") else text, encoding="utf-8")
    return folder / "vector_add.cu"


def test_an_int_that_overflows_is_found_with_its_line(tmp_path: Path) -> None:
    old = "bx * block_N"
    source = planted(tmp_path, old, f"3 * {old}")
    library, manifest = library_of(source), read_manifest(source.with_suffix(".json"))
    assert not run(library, manifest, {"N": 2**29}).faults
    outcome = run(library, manifest, {"N": 2**31 - 1})
    line = next(n for n, text in enumerate(skipping(source.read_text("utf-8")).split("\n"), 1) if "3 * bx" in text)
    assert any(re.search(rf"mul of -?\d+ and -?\d+ at kernel.cu:{line}:", fault) for fault in outcome.faults)


def test_an_access_behind_a_tensor_ends_the_run(tmp_path: Path) -> None:
    source = planted(tmp_path, "tl::predicated(N)", "(N)")
    library, manifest = library_of(source), read_manifest(source.with_suffix(".json"))
    assert not run(library, manifest, {"N": 2**20}).faults
    assert run(library, manifest, {"N": 2**31 - 100}).faults


def test_a_loop_without_a_counter_runs_its_first_iterations() -> None:
    changed = skipping("#include <tl/tl.h>\n  while (k < last && f(k)) {\n    k += count;\n  }\n")
    assert "  for (int few = 0; few < 6 && (k < last && f(k)); ++few) {" in changed


def test_a_loop_runs_its_first_and_its_last_iterations() -> None:
    text = "constexpr int num_stages = 3;\n#include <tl/tl.h>\nfor (int k = 0; k < trips; ++k, ++stage) {\n}\n"
    changed = skipping(text)
    assert "for (int k = 0; k < trips; k = next_that_runs(k, 1, trips), ++stage) {" in changed
    assert "period = 6;" in changed, "both phases of the barriers of all stages"


SCALAR = """
import tilelang
import tilelang.language as T


@tilelang.jit
def scalar(N):
    @T.prim_func
    def body(X: T.Tensor((N,), "int32"), n: T.{dtype}, Y: T.Tensor((64,), "int32")):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
            for i in T.Parallel(64):
                if bx == 0:
                    Y[i] = X[(bx + i) // n] + X[(bx + i) % n]
    return body
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32"])
def test_a_grid_of_a_scalar_argument_is_an_int(dtype: str, tmp_path: Path) -> None:
    """2**38 + 64 threads would be 2**32 + 1 blocks, of which 32 bits have one."""
    library, manifest = emitted_to(tmp_path, SCALAR.format(dtype=dtype))
    statuses = {0: 0, 1: 0, 64: 0, 2**31 - 1: 0}
    statuses |= {"int32": {-100: 0}, "int64": {-100: 0, 2**37: 1, 2**38 + 64: 1}, "uint32": {2**31: 1}}[dtype]
    found = {n: run(library, manifest, {"N": 64}, scalars={"n": n}) for n in statuses}
    assert {n: outcome.status for n, outcome in found.items()} == statuses
    assert not any(outcome.faults for outcome in found.values())


OF_SIZES = """
import tilelang
import tilelang.language as T


@tilelang.jit
def of_sizes(M, N):
    @T.prim_func
    def body(X: T.Tensor((N,), "int8"), Z: T.Tensor((M,), "int8"), Y: T.Tensor((64,), "int8")):
        with T.Kernel(1, threads=64) as bx:
            for i in T.Parallel(64):
                Y[i] = 0
            for k in T.serial({trips}):
                for i in T.Parallel(64):
                    Y[i] = X[{index} + i]
    return body
"""
# Trip count, index, and sizes M, N with the status for them.
SUMS_OF_SIZES = {
    "index": ("1", "N * 4 // 8", {(1, 2**29 - 1): 0, (1, 2**29): 1}),
    "trips": ("M * N // 2**29", "0", {(2**16 - 1, 2**15): 0, (2**16, 2**15): 1, (2**31 - 1, 1): 0}),
    "remainder": ("1", "M * N % 64", {(2**30, 2**30): 0}),
    "never": ("M", "N * 4 // 8", {(0, 2**31 - 1): 0, (1, 2**31 - 1): 1}),
}


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize("name", SUMS_OF_SIZES)
def test_indices_and_trip_counts_of_sizes_alone(name: str, tmp_path: Path) -> None:
    trips, index, statuses = SUMS_OF_SIZES[name]
    library, manifest = emitted_to(tmp_path, OF_SIZES.format(trips=trips, index=index))
    found = {sizes: run(library, manifest, dict(zip("MN", sizes, strict=True))) for sizes in statuses}
    assert {sizes: outcome.status for sizes, outcome in found.items()} == statuses
    assert not any(outcome.faults for outcome in found.values())


SUMS = """
import tilelang
import tilelang.language as T


@tilelang.jit
def sums(M, N):
    @T.prim_func
    def body(X: T.Tensor((M,), "int8"), Z: T.Tensor((N,), "int8"), Y: T.Tensor({shape}, "int8")):
        with T.Kernel({grid}, threads=32) as {blocks}:
            for i in T.Parallel(32):
                Y[i] = 1
    return body
"""
# Of the grid and a tensor, with the least M and N of which an int lacks some number.
SUMS_OF_NUMBERS = {
    "dividend": ("T.ceildiv(M + 5, 64)", "bx", "(64,)", (2**31 - 5, 3)),
    "multiple": ("T.ceildiv(M * 2 + 5, 64)", "bx", "(64,)", (2**30 - 2, 3)),
    "factor": ("1", "bx", "((M + 1) * 2,)", (2**30 - 1, 3)),
    "rows": ("1, N + 1", "(bx, by)", "(64,)", (3, 65535)),
}


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize("name", SUMS_OF_NUMBERS)
def test_sums_with_numbers_fit_in_any_part_of_an_extent(name: str, tmp_path: Path) -> None:
    grid, blocks, shape, (m, n) = SUMS_OF_NUMBERS[name]
    library, manifest = emitted_to(tmp_path, SUMS.format(grid=grid, blocks=blocks, shape=shape))
    rejected = [(m, n), (2**31 - 1, 3) if m > n else (3, 2**31 - 1)]
    found = [run(library, manifest, {"M": m, "N": n}) for m, n in (*rejected, (5, 3))]
    assert [(each.status, each.faults) for each in found] == [(1, ()), (1, ()), (0, ())]


UNSIGNED = """
import tilelang
import tilelang.language as T


@tilelang.jit
def counted():
    @T.prim_func
    def body(Y: T.Tensor((32,), "int8"), n: T.uint64):
        with T.Kernel(n, threads=32) as bx:
            for i in T.Parallel(32):
                Y[i] = 1
    return body
"""


def test_an_unsigned_extent_of_64_bits_is_not_taken_for_a_negative_one(tmp_path: Path) -> None:
    (tmp_path / "counted.py").write_text(UNSIGNED, encoding="utf-8")
    (emitted,) = tile2cu.emit(tmp_path / "counted.py").values()
    assert "if (n > INT32_MAX) return TL_INVALID_SIZE;" in emitted.source
