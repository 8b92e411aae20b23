"""Forms that real kernels are written in, run against NumPy: what they mean, not only that they are taken."""

import sys
from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.conformance.comparison import tolerance
from tests.host.kernels import load_body
from tile2cu.core.errors import Tile2CuError
from tile2cu.frontend import programs
from tile2cu_runtime import Kernel

RNG = np.random.default_rng(7)


def load(folder: Path, text: str, **bindings: object) -> Kernel:
    """A file's kernel on the engine, with every check on."""
    path = folder / "forms.py"
    path.write_text("import os\nimport tilelang\nimport tilelang.language as T\n" + text, encoding="utf-8")
    return tile2cu.load(path, device="cpu", check=True, **bindings)


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def test_an_element_is_copied_to_a_variable_and_back(tmp_path: Path) -> None:
    statements = """
        d = T.alloc_var(T.float32)
        T.copy(D[h], d)
        T.copy(d, E[h])
        e = T.alloc_var(T.float16)
        T.copy(d, e)
        for i in T.Parallel(64):
            O[h, i] = d + e
    """
    params = 'D: T.Tensor((8,), "float32"), E: T.Tensor((8,), "float16"), O: T.Tensor((8, 64), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="8", blocks="h", threads=64)
    d, e = normal(8), np.zeros(8, np.float16)
    expected = np.repeat((d + d.astype(np.float16).astype(np.float32))[:, None], 64, axis=1)
    np.testing.assert_array_equal(kernel(d, e), expected)
    np.testing.assert_array_equal(e, d.astype(np.float16))


def test_other_spellings_of_loops_types_and_parameters(tmp_path: Path) -> None:
    statements = """
        t = T.get_thread_binding()
        for r in T.Unroll(4):
            for v in T.Vectorized(T.DataType("uint16").bits // 8):
                O[t, r, v] = X[t, r, v] * n
    """
    params = 'X: T.Tensor((64, 4, 2), "int32"), n: T.int32(), O: T.Tensor((64, 4, 2), "int32")'
    kernel = load_body(tmp_path, statements, params, threads=64)
    x = RNG.integers(-99, 99, (64, 4, 2)).astype(np.int32)
    np.testing.assert_array_equal(kernel(x, 3), 3 * x)


def test_scalars_are_computed_before_the_kernel(tmp_path: Path) -> None:
    text = """
def f(M, N, block=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M * N,), "float32")):
        count: T.int32 = M * N
        scale: T.float32 = 2
        half: T.int32 = 2.5
        with T.Kernel(T.ceildiv(count, block), threads=64) as bx:
            for i in T.Parallel(block):
                if bx * block + i < count:
                    B[bx * block + i] = A[(bx * block + i) // N, (bx * block + i) % N] * scale + half // 2
    return main
"""
    kernel, a, b = load(tmp_path, text), normal(9, 25), np.zeros(225, np.float32)
    kernel(a, b)
    np.testing.assert_array_equal(b, 2 * a.ravel() + 1)


def test_a_kernel_without_parameters_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = """
@tilelang.jit
def hello():
    @T.prim_func
    def main():
        with T.Kernel(1, threads=32) as bx:
            if T.get_thread_binding() == 3:
                T.print(T.get_thread_binding(), msg="hello")
    return main
"""
    load(tmp_path, text)()
    sys.stdout.flush()
    assert "hello = 3" in capfd.readouterr().out


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("vector", [1, 2], ids=["elements", "vectors"])
def test_a_choice_between_a_value_and_infinity(dtype: str, vector: int, tmp_path: Path) -> None:
    statements = f"""
        t = T.get_thread_binding()
        v = T.if_then_else(t > 3, X[t], -T.infinity("{dtype}"))
        for i in T.Parallel({64 * vector}):
            O[i] = T.if_then_else(i > 5, X[i], T.infinity("{dtype}"))
        if t < 6:
            O[t] = v
    """
    shape = f'T.Tensor(({64 * vector},), "{dtype}")'
    kernel = load_body(tmp_path, statements, f"X: {shape}, O: {shape}", threads=64)
    x = converted(normal(64 * vector), dtype)
    found = np.asarray(kernel(x)).astype(np.float32)
    expected = x.astype(np.float32)
    expected[:4] = -np.inf
    np.testing.assert_array_equal(found, expected)


def converted(x: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "bfloat16":
        import ml_dtypes

        return x.astype(ml_dtypes.bfloat16)
    return x.astype(dtype)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("n", [128, 131])
def test_an_index_of_a_quotient_times_a_size_and_a_remainder(n: int, tmp_path: Path) -> None:
    text = """
def f(N, BN=16):
    @T.prim_func
    def main(A: T.Tensor((BN * BN,), "float16"), B: T.Tensor((N, N), "float16"), C: T.Tensor((N * N,), "float16")):
        with T.Kernel(1, threads=32) as b:
            L = T.alloc_fragment([BN * BN], "float16")
            T.copy(A, L)
            for i in T.Parallel(BN * BN):
                C[i // BN * N + i % BN] = L[i]
    return main
"""
    kernel, a = load(tmp_path, text), normal(256, dtype="float16")
    c, expected = np.zeros(n * n, np.float16), np.zeros((n, n), np.float16)
    kernel(a, np.zeros((n, n), np.float16), c)
    expected[:16, :16] = a.reshape(16, 16)
    np.testing.assert_array_equal(c.reshape(n, n), expected)


def test_environment_variables_are_not_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM", "rocm")
    text = """
def f(scale=2):
    number = 1 if os.getenv("PLATFORM") == "rocm" else scale
    @T.prim_func
    def main(X: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as b:
            for i in T.Parallel(64):
                X[i] = X[i] * number
    return main
"""
    kernel, x = load(tmp_path, text), np.ones(64, np.float32)
    kernel(x)
    np.testing.assert_array_equal(x, np.full(64, 2, np.float32))


def test_parameters_are_annotated_in_the_body(tmp_path: Path) -> None:
    text = """
@T.prim_func
def f(A, B, n):
    A: T.Tensor[(32,), T.float32]
    B: T.Tensor[(32,), T.float32]
    n: T.float32
    with T.Kernel(1, threads=32):
        for i in T.Parallel(32):
            B[i] = A[i] * n
"""
    kernel, a, b = load(tmp_path, text), normal(32), np.zeros(32, np.float32)
    kernel(a, b, 2.0)
    np.testing.assert_array_equal(b, 2 * a)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("result", ["main, blocks", "(blocks, 'rows', main)", "apply_simplify(main)"])
def test_a_factory_returns_more_than_the_kernel(result: str, tmp_path: Path) -> None:
    text = f"""
from tilelang.transform.simplify import apply_simplify

def f(N, block=64):
    blocks = (N + block - 1) // block
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), O: T.Tensor((N,), "float32")):
        with T.Kernel(blocks, threads=64) as b:
            for i in T.Parallel(block):
                O[b * block + i] = X[b * block + i] + 1
    return {result}
"""
    kernel, x, o = load(tmp_path, text), normal(100), np.zeros(100, np.float32)
    kernel(x, o)
    np.testing.assert_array_equal(o, x + 1)


@pytest.mark.parametrize("compile", ["tilelang.compile", "tl.compile"])
def test_a_function_launches_the_kernel_that_it_defines(compile: str, tmp_path: Path) -> None:
    text = f"""
import torch
import tilelang as tl

def test_add():
    rows = 64
    @T.prim_func
    def main(X: T.Tensor((rows,), "float32"), O: T.Tensor((rows,), "float32")):
        with T.Kernel(1, threads=64) as b:
            for i in T.Parallel(rows):
                O[i] = X[i] + 1
    kernel = {compile}(main, out_idx=-1, target="cuda")
    assert "float" in kernel.get_kernel_source()
    with torch.device("cuda"):
        torch.testing.assert_close(kernel(torch.ones(rows)), 2 * torch.ones(rows))
"""
    kernel, x = load(tmp_path, text), normal(64)
    np.testing.assert_array_equal(kernel(x), x + 1)


def test_a_function_launches_several_kernels_that_it_makes(tmp_path: Path) -> None:
    text = """
def run(block=32):
    @T.prim_func
    def double(X: T.Tensor((block,), "float32")):
        with T.Kernel(1, threads=32) as b:
            for i in T.Parallel(block):
                X[i] = X[i] * 2
    @T.prim_func
    def triple(X: T.Tensor((block,), "float32")):
        with T.Kernel(1, threads=32) as b:
            for i in T.Parallel(block):
                X[i] = X[i] * 3
    for kernel in (double, triple):
        tilelang.compile(kernel)(x)
"""
    (tmp_path / "two.py").write_text("import tilelang\nimport tilelang.language as T\n" + text, encoding="utf-8")
    texts = tile2cu.emit(tmp_path / "two.py")
    assert list(texts) == ["run_double", "run_triple"]


def test_a_function_launches_a_kernel_of_a_jit_function(tmp_path: Path) -> None:
    text = """
def test_scale():
    @tilelang.jit(out_idx=-1)
    def make(n=96):
        @T.prim_func
        def main(X: T.Tensor((n,), "float32"), O: T.Tensor((n,), "float32")):
            with T.Kernel(1, threads=32) as b:
                for i in T.Parallel(n):
                    O[i] = X[i] * 3
        return main
    kernel = make()
    kernel(torch.zeros(96))
"""
    kernel, x = load(tmp_path, text), normal(96)
    np.testing.assert_array_equal(kernel(x), 3 * x)


@pytest.mark.parametrize(
    "marks",
    [
        '@pytest.mark.parametrize("rows", [24, 48])\n@pytest.mark.parametrize("factor", [5])',
        '@pytest.mark.parametrize("rows,factor", [(24, 5), (48, torch.e)])',
        '@pytest.mark.parametrize(["rows", "factor"], [pytest.param(24, 5, id="small")])',
        '@pytest.mark.parametrize("rows, factor", CASES)',
    ],
)
def test_the_first_values_of_a_parametrised_test_are_taken(marks: str, tmp_path: Path) -> None:
    text = f"""
import pytest
import torch
CASES = [(24, 5), (7, 7)]

def make(rows, factor):
    assert rows > 0
    @T.prim_func
    def main(X: T.Tensor((rows,), "int32")):
        with T.Kernel(1, threads=32) as b:
            for i in T.Parallel(rows):
                X[i] = X[i] * factor
    return main

{marks}
def test_scale(rows, factor):
    kernel = tilelang.compile(make(rows, factor))
"""
    kernel, x = load(tmp_path, text), np.arange(24, dtype=np.int32)
    kernel(x)
    np.testing.assert_array_equal(x, 5 * np.arange(24))


def test_a_prim_func_returns_tensors_of_its_own(tmp_path: Path) -> None:
    text = """
def f(n=64):
    @T.prim_func
    def main(A):
        A: T.Tensor[[n], T.float32]
        B = T.empty([n], T.float32)
        C = T.empty([n], T.float16)
        with T.Kernel(1, threads=64):
            for i in T.Parallel(n):
                B[i] = A[i] + 1
                C[i] = A[i] * 2
        return C, B
    return main
"""
    kernel, a = load(tmp_path, text), normal(64)
    c, b = kernel(a)
    np.testing.assert_array_equal(b, a + 1)
    np.testing.assert_array_equal(c, (2 * a).astype(np.float16))


def test_outputs_are_named_once(tmp_path: Path) -> None:
    text = """
@tilelang.jit(out_idx=[0])
def f(n=64):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32")):
        B = T.empty([n], T.float32)
        with T.Kernel(1, threads=64):
            T.copy(A, B)
        return B
    return main
"""
    with pytest.raises(tile2cu.Tile2CuError, match="T2C-F028.*`out_idx` names outputs"):
        load(tmp_path, text)


def test_an_axis_of_the_block_is_named_by_launch_thread(tmp_path: Path) -> None:
    statements = """
        t = T.launch_thread("threadIdx.x", 64)
        b = T.launch_thread("blockIdx.x", 2)
        O[b * 64 + t] = b * 64 + t
    """
    kernel = load_body(tmp_path, statements, 'O: T.Tensor((128,), "int32")', grid="2", blocks="block", threads=64)
    np.testing.assert_array_equal(kernel(), np.arange(128))
    with pytest.raises(tile2cu.Tile2CuError, match="another extent than T.Kernel, whose threadIdx.x has 64"):
        load_body(tmp_path, statements.replace("64)", "32)"), 'O: T.Tensor((128,), "int32")', threads=64)


def test_hints_of_scans_are_dropped(tmp_path: Path) -> None:
    statements = """
        f = T.alloc_fragment((64,), "float32")
        T.copy(X, f)
        T.cumsum(f, annotations={"a": "b"})
        T.copy(f, O)
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")', threads=64)
    np.testing.assert_array_equal(kernel(np.ones(64, np.float32)), np.arange(1, 65))


@pytest.mark.parametrize(
    "use",
    [
        "getattr(T, word)(X[0], 1)",
        "T.atomic_add(X[0], 1, memory_order=word)",
        "T.alloc_reducer((1,), 'int32', op=word)",
    ],
)
def test_a_word_that_is_left_unbound_is_asked_for(use: str, tmp_path: Path) -> None:
    text = f"""
def f(word):
    @T.prim_func
    def main(X: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            {use}
    return main
"""
    with pytest.raises(tile2cu.Tile2CuError, match="T2C-F006.*needs the value of `word`"):
        load(tmp_path, text)


def test_tiles_of_open_extents_ask_for_them(tmp_path: Path) -> None:
    text = """
def f(block):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32")):
        with T.Kernel(2, threads=64) as b:
            T.atomic_add(A[b * block : (b + 1) * block], 1.0)
    return main

def test_f():
    make = f(64)
"""
    kernel, a = load(tmp_path, text), normal(128)
    expected = a + 1
    kernel(a)
    np.testing.assert_array_equal(a, expected)


def test_a_total_of_partial_sums_needs_no_shared_memory_for_them(tmp_path: Path) -> None:
    """The partial sums' index is that of the thread, by the layout that the author knows; only their total is used."""
    statements = """
        F = T.alloc_fragment((64, 32), "float32")
        partials = T.alloc_fragment((64, 2), "float32")
        total = T.alloc_fragment((1,), "float32")
        T.copy(X, F)
        T.clear(partials)
        for i, j in T.Parallel(64, 32):
            partials[i // 2 + j % 4, (i + j) % 2] += F[i, j]
        T.reduce_sum(T.reshape(partials, (128,)), total, dim=0, clear=True)
        T.copy(total, O)
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((64, 32), "float32"), O: T.Tensor((1,), "float32")')
    assert kernel.manifest.launches[0].shared_bytes < 128
    x = RNG.integers(-9, 9, (64, 32)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x), [x.sum()])


def test_partial_sums_that_are_read_elsewhere_are_kept(tmp_path: Path) -> None:
    statements = """
        F = T.alloc_fragment((64, 32), "float32")
        partials = T.alloc_fragment((64, 2), "float32")
        total = T.alloc_fragment((1,), "float32")
        T.copy(X, F)
        T.clear(partials)
        for i, j in T.Parallel(64, 32):
            partials[i, j % 2] += F[i, j]
        T.reduce_sum(T.reshape(partials, (128,)), total, dim=0, clear=True)
        for i, j in T.Parallel(64, 2):
            O[i, j] = partials[i, j] - total[0]
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((64, 32), "float32"), O: T.Tensor((64, 2), "float32")')
    x = RNG.integers(-9, 9, (64, 32)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x), x.reshape(64, 16, 2).sum(axis=1) - x.sum())


def test_a_vector_connects_tiles_of_one_row(tmp_path: Path) -> None:
    """Both tiles have the vector's layout, which one of them alone would not have by itself."""
    statements = """
        v = T.alloc_fragment((256,), "float32")
        copied = T.alloc_fragment((1, 256), "float32")
        product = T.alloc_fragment((1, 256), "float32")
        total = T.alloc_fragment((1,), "float32")
        for j in T.Parallel(256):
            v[j] = X[bx, j]
            copied[0, j] = v[j] + 1
        for j in T.Parallel(256):
            product[0, j] = v[j] * W[j]
        T.reduce_sum(product, total, dim=1)
        for j in T.Parallel(256):
            O[bx, j] = copied[0, j] + total[0]
    """
    params = 'X: T.Tensor((4, 256), "float16"), W: T.Tensor((256,), "float16"), O: T.Tensor((4, 256), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="4")
    x, w = (RNG.integers(-4, 5, shape).astype(np.float16) for shape in ((4, 256), (256,)))
    expected = x.astype(np.float32) + 1 + (x.astype(np.float32) * w).sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(kernel(x, w), expected)


def test_a_scalar_decides_the_shape_of_an_output(tmp_path: Path) -> None:
    text = """
@T.prim_func
def steps(n: T.int32):
    output = T.empty((3, n * 2), T.float32)
    with T.Kernel(3, threads=32) as bx:
        for i in T.Parallel(n * 2):
            output[bx, i] = bx * 100 + i
    return output
"""
    kernel = load(tmp_path, text)
    for n in (1, 11):
        np.testing.assert_array_equal(kernel(n), 100 * np.arange(3)[:, None] + np.arange(2 * n))


def test_a_long_chain_of_roundings_has_its_tolerance() -> None:
    text = """
import tilelang.language as T
@T.prim_func
def chain(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            x = T.alloc_var(T.float32, init=A[i])
            for _ in T.serial(1000):
                x = x * 1.5 + 0.5
            B[i] = x
"""
    (program,) = programs(None, text, kernel=None, bindings={})
    assert tolerance(program, {"A": np.zeros(64)}).length == 2000


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_a_table_that_a_parallel_loop_reads_decides_about_iterations(target: str, tmp_path: Path) -> None:
    """Each thread has the whole table, so that all of the block take the same branches."""
    statements = """
        x = T.alloc_shared((64, 64), "float16")
        sums = T.alloc_fragment((64, 64), "float32")
        table = T.alloc_fragment((6,), "int8")
        T.clear(sums)
        for i in T.Parallel(6):
            table[i] = Table[bx, i] * 2
        for k in T.Pipelined(6, num_stages=2):
            if table[k] != 0:
                T.copy(X[k, 0, 0], x)
                T.gemm(x, x, sums)
        T.copy(sums, O[bx, 0, 0])
    """
    params = 'X: T.Tensor((6, 64, 64), "float16"), Table: T.Tensor((2, 6), "int8"), O: T.Tensor((2, 64, 64), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="2", target=target)
    x, table = RNG.integers(-2, 3, (6, 64, 64)).astype(np.float16), np.array([[1, 0, 0, 1, 1, 0], [0] * 6], np.int8)
    squares = x.astype(np.float32) @ x.astype(np.float32)
    np.testing.assert_array_equal(kernel(x, table), np.einsum("bk,kij->bij", table, squares))


@pytest.mark.parametrize("value", ["T.get_thread_binding()", "X[bx, i] + T.get_thread_binding() % 2"])
def test_a_table_of_threads_decides_nothing_for_the_block(value: str, tmp_path: Path) -> None:
    statements = f"""
        x = T.alloc_shared((64, 64), "float32")
        table = T.alloc_fragment((6,), "int32")
        for i in T.Parallel(6):
            table[i] = {value}
        if table[2] > 4:
            T.copy(X[0:64, 0:64], x)
            T.copy(x, O)
    """
    params = 'X: T.Tensor((64, 64), "int32"), O: T.Tensor((64, 64), "float32")'
    with pytest.raises(Tile2CuError, match="P00[24]"):
        load_body(tmp_path, statements, params)


def test_an_output_that_is_only_read_is_returned(tmp_path: Path) -> None:
    text = """
@T.prim_func
def reads():
    A = T.empty((128, 32), dtype=T.float32)
    with T.Kernel(1, threads=128):
        S = T.alloc_shared((128, 32), dtype=T.float32)
        for i, j in T.Parallel(128, 32):
            S[i, j] = A[i, j]
    return A
"""
    (tmp_path / "reads.py").write_text("import tilelang.language as T\n" + text, encoding="utf-8")
    assert tile2cu.load(tmp_path / "reads.py", device="cpu")().shape == (128, 32)
