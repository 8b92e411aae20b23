"""The test that is emitted beside a kernel: it passes on the CPU engine, and it fails when the kernel is wrong."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.built import built
from tile2cu import Tile2CuError
from tile2cu.api import emit_text
from tile2cu.core.origin import EmitOptions
from tile2cu.targets import find
from tile2cu_runtime.compile import Build, host_flags, precompiled_headers
from tile2cu_runtime.compilers import find_gxx
from tile2cu_runtime.engine import build_engine
from tile2cu_runtime.paths import headers_dir

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"

ZOO = """\
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-3, -2, -1])
def zoo(N, sum=32, i0=24, threads=128):
    @T.prim_func
    def body(X: T.Tensor((N, 24), "bfloat16"), I: T.Tensor((N, 24), "int32"), alpha: T.float32, shift: T.int32,
             Rows: T.Tensor((N, 4), "float32"), Y: T.Tensor((N, 24), "bfloat16"), J: T.Tensor((N, 24), "uint8")):
        with T.Kernel(T.ceildiv(N, sum), threads=threads) as bx:
            x = T.alloc_fragment((sum, i0), "float32")
            x_shared = T.alloc_shared((sum, i0), "float32")
            found = T.alloc_fragment((sum,), "float32")
            turns = T.alloc_var("int32")
            T.copy(X[bx * sum, 0], x)
            turns = 0
            for k in T.serial(5):
                if k == 3:
                    break
                for i, j in T.Parallel(sum, i0):
                    x[i, j] = x[i, j] + alpha / (k + 1)
                turns += 2
            T.reduce_max(x, found, dim=1)
            for i in T.Parallel(sum):
                Rows[bx * sum + i, 0] = found[i]
            T.reduce_absmax(x, found, dim=1)
            for i in T.Parallel(sum):
                Rows[bx * sum + i, 1] = found[i]
            T.reduce_sum(x, found, dim=1, clear=False)
            for i in T.Parallel(sum):
                Rows[bx * sum + i, 2] = T.if_then_else(found[i] > 1, T.sqrt(found[i]), T.exp(found[i]))
            T.copy(x, x_shared)
            T.cumsum(x_shared, dim=1, reverse=True)
            T.copy(x_shared, Y[bx * sum, 0])
            for i, j in T.Parallel(sum, i0):
                v = I[bx * sum + i, j] - 5
                J[bx * sum + i, j] = T.cast((v // 3 - v % 4) * 77 ^ (v << shift), "uint8")
            for k in T.serial(turns):
                turns += k
            for i in T.Parallel(sum):
                Rows[bx * sum + i, 3] = turns
    return body
"""


def build(
    gxx: str,
    folder: Path,
    path: Path,
    target: str,
    bindings: Mapping[str, object],
    change: str = "",
    kernel: str | None = None,
    *,
    precompiled: bool = True,
) -> Path:
    """The emitted test as a program; `change` is "old -> new" in the kernel's text. Without a `precompiled` header the
    test is compiled as its head states.
    """
    options = EmitOptions(with_test=True)
    (emitted,) = emit_text(path, kernel=kernel, target=find(target), bindings=bindings, options=options)
    for name, content in emitted.files.items():
        (folder / name).write_text(content, encoding="utf-8")
    text = f"{emitted.kernel}{find(target).suffix}"
    source = emitted.source
    if change:
        old, new = change.split(" -> ")
        assert old in source
        source = source.replace(old, new)
        (folder / text).write_text(source, encoding="utf-8")
    engine, headers, version = build_engine(), ("-I", str(headers_dir())), find_gxx().version
    warps = f"-DTL_WARP_SIZE={find(target).warp_size}"
    # The test of a changed kernel is the same, and is compiled once.
    test, files = f"{emitted.kernel}_test.cpp", (f"{emitted.kernel}_test.cpp", f"{emitted.kernel}.h")
    warned = (gxx, "-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-O1", *headers)
    library = precompiled_headers(Build(compile=warned, link=(), identity=version), "tl/test.h") if precompiled else ()
    compiled = built(
        "test.o",
        [[*warned, *library, "-c", test, "-o", "test.o"]],
        texts={name: (folder / name).read_text(encoding="utf-8") for name in files},
    )
    command = (gxx, "-x", "c++", *host_flags(check=False), warps, *headers)
    changed = "#define" in source  # the headers' contents may depend on it
    library = () if changed else precompiled_headers(Build(compile=command, link=(), identity=version))
    subprocess.run([*command, *library, "-c", text], cwd=folder, check=True)
    link = [gxx, str(compiled), f"{emitted.kernel}.o", str(engine), f"-Wl,-rpath,{engine.parent}", "-o", "test"]
    subprocess.run(link, cwd=folder, check=True)
    return folder / "test"


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("name", "target", "bindings"),
    [
        ("gemm_relu.py", "cuda:sm_90a", {"block_K": 64, "threads": 128}),
        ("attention.py", "cuda:sm_80", {"dim": 64, "is_causal": True}),
        ("linear_int4.py", "cuda:sm_80", {"gelu": True}),
        ("gemm_relu.py", "hip:gfx942", {"threads": 256}),
    ],
)
def test_an_emitted_test_passes(
    gxx: str, tmp_path: Path, name: str, target: str, bindings: Mapping[str, object]
) -> None:
    program = build(gxx, tmp_path, EXAMPLES / name, target, bindings)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count(": ok") >= 5 and "=0 " in done.stdout
    of_multiples = target == "cuda:sm_90a" or name == "linear_int4.py"  # for TMA, or of the group
    assert ("refused" in done.stdout) == of_multiples, "sizes are tried that the launcher rejects"


@pytest.mark.nightly  # larger ones are compiled in below
def test_a_test_whose_sizes_are_all_compiled_in(gxx: str, tmp_path: Path) -> None:
    program = build(gxx, tmp_path, EXAMPLES / "vector_add.py", "cuda:sm_80", {"N": 3000}, precompiled=False)
    for arguments in ([], ["time"]):
        done = subprocess.run([program, *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


# 16 by 16 blocks, of which the engine runs 0, 17, 34, ..., 255.
LARGE: Mapping[str, object] = {"M": 2048, "N": 2048, "K": 32}


@pytest.mark.sweep("status")
@pytest.mark.parametrize(
    ("change", "status"),
    [
        ("", 0),
        ("bx = blockIdx.x -> bx = blockIdx.x - (blockIdx.x == 15)", 1),  # block 255 writes another's tile
        ("bx = blockIdx.x -> bx = blockIdx.x - (blockIdx.x == 1 && blockIdx.y == 0)", 0),  # block 1 does not run
    ],
)
def test_large_sizes_that_are_compiled_in_run_a_few_blocks(gxx: str, tmp_path: Path, change: str, status: int) -> None:
    program = build(gxx, tmp_path, EXAMPLES / "gemm_relu.py", "cuda:sm_80", LARGE, change)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == status, done.stdout
    head = (tmp_path / "gemm_relu_test.cpp").read_text(encoding="utf-8").partition("#include")[0]
    assert "there 16 of the grid run" in head


CLUSTERS = """\
import tilelang.language as T


def doubled(M, N):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128, cluster_dims=(2, 1, 1)) as (bx, by):
            tile = T.alloc_shared((64, 64), "float32")
            T.copy(A[by * 64, bx * 64], tile)
            for i, j in T.Parallel(64, 64):
                tile[i, j] = tile[i, j] * 2
            T.copy(tile, B[by * 64, bx * 64])
    return main
"""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "target", "bindings", "change"),
    [
        # Grouped rasterisation: 16 by 8 blocks, of which the first and the last compute these tiles.
        ("gemm_relu.py", "cuda:sm_90a", LARGE, "block.x -> (block.x + (block.x == 0 && block.y == 0))"),
        ("gemm_relu.py", "hip:gfx942", LARGE, "block.x -> (block.x + (block.x == 0 && block.y == 0))"),
        # Longest tiles first.
        (
            "attention.py",
            "cuda:sm_90a",
            {"batch": 1, "heads": 40, "seq_len": 256, "dim": 64, "is_causal": True},
            "bx = block.x -> bx = block.x - (block.x == int(gridDim.x) - 1 && block.y == 0)",
        ),
        # A persistent kernel: block 0 computes tiles 0 and 132.
        (
            "attention.py",
            "cuda:sm_90a",
            {"batch": 1, "heads": 136, "seq_len": 128, "dim": 64, "block_M": 128, "block_N": 128, "threads": 256},
            "bx = block.x -> bx = block.x - (tile == 132)",
        ),
        (
            "clusters.py",
            "cuda:sm_90a",
            {"M": 1024, "N": 1024},
            "bx = blockIdx.x -> bx = blockIdx.x - (blockIdx.x == 1 && blockIdx.y == 0)",
        ),
    ],
)
def test_a_few_blocks_of_another_order_or_of_clusters_run(
    gxx: str, tmp_path: Path, name: str, target: str, bindings: Mapping[str, object], change: str
) -> None:
    (tmp_path / "clusters.py").write_text(CLUSTERS, encoding="utf-8")
    path = tmp_path / name if name == "clusters.py" else EXAMPLES / name
    for changed, status in (("", 0), (change, 1)):
        program = build(gxx, tmp_path, path, target, bindings, changed)
        done = subprocess.run([program], capture_output=True, text=True)
        assert done.returncode == status, done.stdout
    (test,) = tmp_path.glob("*_test.cpp")
    assert "run_few_blocks(" in test.read_text(encoding="utf-8")


SPLIT: Mapping[str, object] = {"M": 2048, "N": 2048, "K": 128}


@pytest.mark.nightly  # those of one launch run above
@pytest.mark.parametrize(
    ("change", "status"),
    [
        ("", 0),
        ("bz = blockIdx.z -> bz = blockIdx.z - (blockIdx.z == gridDim.z - 1)", 1),  # the last part is another's
        # the last block of the sums
        ("by = blockIdx.y; -> by = blockIdx.y - (blockIdx.x + 1 == gridDim.x && blockIdx.y + 1 == gridDim.y);", 1),
        ("bz = blockIdx.z -> bz = blockIdx.z - (blockIdx.x == 1 && blockIdx.y == 0)", 0),  # blocks that do not run
    ],
)
def test_a_few_blocks_of_each_of_two_launches_run(gxx: str, tmp_path: Path, change: str, status: int) -> None:
    """The second sums up what blocks of the first wrote; of blocks that did not run it reads what was there before."""
    program = build(gxx, tmp_path, EXAMPLES / "gemm_splitk.py", "cuda:sm_80", SPLIT, change, "gemm_splitk")
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == status, done.stdout
    text = (tmp_path / "gemm_splitk_test.cpp").read_text(encoding="utf-8")
    assert "run_few_blocks(16)" in text and "is_computed(1, bx, by, bz)" in text and "is_computed(0, bx, by)" in text


DECODED: Mapping[str, object] = {"batch": 16, "kv_heads": 8, "group": 4, "max_len": 512, "dim": 64, "num_split": 4}


@pytest.mark.nightly
def test_a_few_blocks_of_decoding_in_parts_run(gxx: str, tmp_path: Path) -> None:
    program = build(gxx, tmp_path, EXAMPLES / "flash_decoding.py", "cuda:sm_80", DECODED)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "run_few_blocks(16)" in (tmp_path / "flash_decoding_test.cpp").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("kernel", "target", "bindings"),
    [
        ("gemm_relu", "cuda:sm_80", {"M": 256, "N": 256, "K": 32}),  # all blocks take no time
        ("gemm_relu", "cuda:sm_80", {"N": 4096}),  # the test has small M and K
        ("gemm_splitk", "cuda:sm_80", {"N": 2048, "K": 2048}),  # without rows there is no launch
    ],
)
def test_other_tests_run_all_blocks(kernel: str, target: str, bindings: Mapping[str, object]) -> None:
    options = EmitOptions(with_test=True)
    path = EXAMPLES / f"{kernel}.py"
    (emitted,) = emit_text(path, kernel=kernel, target=find(target), bindings=bindings, options=options)
    assert "run_few_blocks" not in emitted.files[f"{kernel}_test.cpp"]


def test_every_kind_of_statement_has_a_reference(gxx: str, tmp_path: Path) -> None:
    (tmp_path / "zoo.py").write_text(ZOO, encoding="utf-8")
    program = build(gxx, tmp_path, tmp_path / "zoo.py", "cuda:sm_80", {})
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    timed = subprocess.run([program, "100"], capture_output=True, text=True)
    assert timed.returncode == 0 and timed.stdout.startswith("zoo: ")


PACKED = """\
import tilelang.language as T

M, N, K = T.dynamic("M, N, K")

@T.prim_func
def packed(A: T.Tensor((M, K), "{dtype}"), B: T.Tensor((N, K), "{dtype}"), C: T.Tensor((M, N), "int32"),
           X: T.Tensor((M, K), "float32"), Y: T.Tensor((M, K), "float4_e2m1fn"), Z: T.Tensor((M, K), "{dtype}")):
    with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=64) as (bx, by):
        A_shared = T.alloc_shared((32, 64), "{dtype}")
        B_shared = T.alloc_shared((32, 64), "{dtype}")
        C_local = T.alloc_fragment((32, 32), "int32")
        T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(K, 64), num_stages=2):
            T.copy(A[by * 32, ko * 64], A_shared)
            T.copy(B[bx * 32, ko * 64], B_shared)
            T.gemm(A_shared, B_shared, C_local, transpose_B=True)
        T.copy(C_local, C[by * 32, bx * 32])
    with T.Kernel(T.ceildiv(K, 64), T.ceildiv(M, 32), threads=64) as (bk, bm):
        Y_local = T.alloc_fragment((32, 64), "float4_e2m1fn")
        Z_local = T.alloc_fragment((32, 64), "{dtype}")
        for i, j in T.Parallel(32, 64):
            Y_local[i, j] = X[bm * 32 + i, bk * 64 + j] * 8.0
        for i, j in T.Parallel(32, 64):
            Z_local[i, j] = T.cast(A[bm * 32 + i, bk * 64 + j], "int32") * 3
        T.copy(Y_local, Y[bm * 32, bk * 64])
        T.copy(Z_local, Z[bm * 32, bk * 64])
"""
WITHOUT = "#include <tl/tl.h> -> #define TL_WITHOUT_INT4_PRODUCTS\n#include <tl/tl.h>"


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", ["int4", "uint4"])
@pytest.mark.parametrize(("target", "change"), [("cuda:sm_80", ""), ("cuda:sm_90a", WITHOUT)])
def test_elements_of_4_bits(gxx: str, tmp_path: Path, dtype: str, target: str, change: str) -> None:
    """With the instruction for their products, and by way of 8 bits, as on chips that have none."""
    (tmp_path / "packed.py").write_text(PACKED.format(dtype=dtype), encoding="utf-8")
    done = subprocess.run(
        [build(gxx, tmp_path, tmp_path / "packed.py", target, {}, change)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.count(": ok") >= 4


BITS = """\
import tilelang.language as T

N = T.dynamic("N")

@T.prim_func
def bits(X: T.Tensor((N, 32), "int32"), Y: T.Tensor((N, 6), "uint32"), Z: T.Tensor((N,), "int32")):
    with T.Kernel(N, threads=32) as bx:
        x = T.alloc_fragment((1, 32), "uint32")
        rows = T.alloc_fragment((1,), "uint32")
        every = T.alloc_reducer((1,), "uint32", op="bitxor")
        for i, j in T.Parallel(1, 32):
            x[i, j] = T.cast(X[bx, j], "uint32")
        T.reduce_bitand(x, rows, dim=1)
        Y[bx, 0] = rows[0]
        T.reduce_bitor(x, rows, dim=1)
        Y[bx, 1] = rows[0]
        T.reduce_bitxor(x, rows, dim=1)
        Y[bx, 2] = rows[0]
        T.reduce_bitor(x, rows, dim=1, clear=False)
        Y[bx, 3] = rows[0]
        T.reducer_init(every)
        for i, j in T.Parallel(1, 32):
            T.reducer_update(every[0], x[i, j])
        T.finalize_reducer(every)
        Y[bx, 4] = every[0]
        Y[bx, 5] = 0
        for i in T.Parallel(32):
            T.atomic_add(Z[bx], X[bx, i] << 1)
            T.atomic_add(Z[bx], X[bx, i] & 3)
"""


def test_reductions_bit_by_bit_have_a_reference(gxx: str, tmp_path: Path) -> None:
    (tmp_path / "bits.py").write_text(BITS, encoding="utf-8")
    done = subprocess.run(
        [build(gxx, tmp_path, tmp_path / "bits.py", "cuda:sm_80", {})], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


NUMBERS = """\
#include <tl/test.h>
using namespace tl::test;
int main() {
  double x;
  while (std::scanf("%lf", &x) == 1) {
    const uint64_t bits[] = {float16::pack(float16::from(x)), bfloat16::pack(bfloat16::from(x)),
                             float8_e4m3fn::pack(float8_e4m3fn::from(x)), float8_e5m2::pack(float8_e5m2::from(x)),
                             float8_e4m3fnuz::pack(float8_e4m3fnuz::from(x)),
                             float8_e5m2fnuz::pack(float8_e5m2fnuz::from(x)), float8_e8m0fnu::pack(x)};
    for (const uint64_t each : bits) std::printf("%u ", unsigned(each));
    std::printf("\\n");
    if (!(float8_e4m3fnuz::unpack(bits[4]) == float8_e4m3fnuz::from(x)) && x == x) return 1;
    if (!(float16::unpack(float16::pack(float16::from(x))) == float16::from(x)) && x == x) return 1;
    if (!(float8_e4m3fn::unpack(float8_e4m3fn::pack(float8_e4m3fn::from(x))) == float8_e4m3fn::from(x))) return 1;
  }
}
"""


ROWS = """\
import tilelang.language as T

N = T.dynamic("N")

@T.prim_func
def rows(X: T.Tensor((N, 32), "float32"), Q: T.Tensor((N, 32), "bool"), Y: T.Tensor((N, 3), "float32"),
         P: T.Tensor((N, 32), "bool")):
    with T.Kernel(N, threads=32) as bx:
        x = T.alloc_fragment((32,), "float32")
        total = T.alloc_fragment((1,), "float32")
        most = T.alloc_fragment((1,), "float32")
        for j in T.Parallel(32):
            x[j] = T.if_then_else(Q[bx, j], X[bx, j] * 8 // T.cast(3, "int32"), 1.0)
        T.reduce_sum(x, total, dim=0)
        T.reduce_max(x, most, dim=0)
        Y[bx, 0] = total[0]
        Y[bx, 1] = most[0]
        Y[bx, 2] = T.if_then_else(total[0] > 0, float("nan"), total[0])
        for j in T.Parallel(32):
            P[bx, j] = x[j] > 0
"""


@pytest.mark.nightly
def test_rows_and_their_numbers_have_a_reference(gxx: str, tmp_path: Path) -> None:
    """Two sums of single rows, tensors of flags, quotients of floats that round down, and NaN."""
    (tmp_path / "rows.py").write_text(ROWS, encoding="utf-8")
    done = subprocess.run(
        [build(gxx, tmp_path, tmp_path / "rows.py", "cuda:sm_80", {})], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.nightly
def test_small_floats_are_those_of_ml_dtypes(gxx: str, tmp_path: Path) -> None:
    (tmp_path / "numbers.cpp").write_text(NUMBERS, encoding="utf-8")
    link = [str(build_engine()), f"-Wl,-rpath,{build_engine().parent}"]
    flags = ["-std=c++17", f"-I{ROOT / 'headers'}"]
    subprocess.run([gxx, *flags, "numbers.cpp", *link, "-o", "numbers"], cwd=tmp_path, check=True)
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.standard_normal(2000) * 2.0 ** rng.integers(-30, 20, 2000), [0.0, -0.0, 2.0**-25, 65519.0]])
    ties = np.arange(4096) * 2.0**-12
    x = np.concatenate([x, ties, -ties]).astype(np.float32)  # as ml_dtypes rounds from float32
    text = "\n".join(repr(float(value)) for value in x)
    done = subprocess.run([tmp_path / "numbers"], input=text, capture_output=True, text=True, check=True)
    found = np.array([[int(word) for word in line.split()] for line in done.stdout.splitlines()])
    # Where there is no infinity, the largest number stands for what is larger.
    highest = {ml_dtypes.float8_e4m3fn: 448, ml_dtypes.float8_e4m3fnuz: 240, ml_dtypes.float8_e5m2fnuz: 57344}
    small = (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)
    for column, dtype in enumerate((*small, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz)):
        limit = highest.get(dtype, np.inf)
        with np.errstate(over="ignore"):
            expected = np.clip(x, -limit, limit).astype(dtype)
        np.testing.assert_array_equal(found[:, column], expected.view(f"u{expected.dtype.itemsize}"))
    with np.errstate(divide="ignore"):
        powers = np.exp2(np.maximum(np.ceil(np.log2(np.abs(x.astype(np.float64)))), -127))
    np.testing.assert_array_equal(found[:, 6], powers.astype(ml_dtypes.float8_e8m0fnu).view(np.uint8))


def test_an_emitted_test_fails_when_the_kernel_is_wrong(gxx: str, tmp_path: Path) -> None:
    program = build(
        gxx, tmp_path, EXAMPLES / "vector_add.py", "cuda:sm_80", {}, "tl::predicated(N) -> tl::predicated(N - 1)"
    )
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "vector_add N=1027: WRONG" in done.stdout and "vector_add N=0: ok" in done.stdout


def test_a_kernel_of_threads_has_none(tmp_path: Path) -> None:
    text = ZOO.replace("turns = 0\n", "turns = T.get_thread_binding()\n")
    (tmp_path / "zoo.py").write_text(text, encoding="utf-8")
    with pytest.raises(Tile2CuError, match="speaks of single threads") as caught:
        emit_text(
            tmp_path / "zoo.py",
            kernel=None,
            target=find("cuda:sm_80"),
            bindings={},
            options=EmitOptions(with_test=True),
        )
    assert caught.value.code == "T2C-E030"


def test_a_kernel_that_shows_a_tensor_in_another_shape_has_none(tmp_path: Path) -> None:
    (tmp_path / "flat.py").write_text(FLAT, encoding="utf-8")
    with pytest.raises(Tile2CuError, match="in another shape") as caught:
        emit_text(
            tmp_path / "flat.py",
            kernel=None,
            target=find("cuda:sm_80"),
            bindings={},
            options=EmitOptions(with_test=True),
        )
    assert caught.value.code == "T2C-E030"


FLAT = """
import tilelang.language as T

@T.prim_func
def flat(A: T.Tensor((8, 16), "float32")):
    with T.Kernel(1):
        B = T.Tensor((128,), "float32", A.data)
        for i in T.Parallel(128):
            B[i] = 1.0
"""
