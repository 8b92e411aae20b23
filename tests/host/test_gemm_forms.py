"""T.gemm with every type, order and place of its operands, against a product in float64."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.host.kernels import load_body

RNG = np.random.default_rng(2)
E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2


def integers(*shape: int, dtype: object) -> np.ndarray:
    """Small integers: every sum is exact in every type here."""
    return RNG.integers(0 if dtype is np.uint8 else -4, 5, shape).astype(dtype)


def product(
    folder: Path,
    *,
    m: int = 50,
    n: int = 70,
    k: int = 60,
    tile: tuple[int, int, int] = (32, 48, 32),
    types: tuple[str, str, str] = ("float16", "float16", "float32"),
    numpy: tuple[object, object] = (np.float16, np.float16),
    ta: bool = False,
    tb: bool = False,
    in_registers: str = "",
    policy: str = "Square",
    target: str = "cuda:sm_80",
) -> tuple[str, np.ndarray, np.ndarray]:
    """(text, result, expected) of C = op(A) op(B) of ragged sizes, with some operands in registers."""
    rows, cols, step = tile
    shapes = {"A": (step, rows) if ta else (rows, step), "B": (cols, step) if tb else (step, cols)}
    tiles = {name: f"{name}_local" if name in in_registers else f"{name}_shared" for name in "AB"}
    kinds = {name: "alloc_fragment" if name in in_registers else "alloc_shared" for name in "AB"}
    places = {
        "A": f"ko * {step}, by * {rows}" if ta else f"by * {rows}, ko * {step}",
        "B": f"bx * {cols}, ko * {step}" if tb else f"ko * {step}, bx * {cols}",
    }
    statements = f"""
        {tiles["A"]} = T.{kinds["A"]}({shapes["A"]}, {types[0]!r})
        {tiles["B"]} = T.{kinds["B"]}({shapes["B"]}, {types[1]!r})
        C_local = T.alloc_fragment(({rows}, {cols}), {types[2]!r})
        T.clear(C_local)
        for ko in T.serial(T.ceildiv(K, {step})):
            T.copy(A[{places["A"]}], {tiles["A"]})
            T.copy(B[{places["B"]}], {tiles["B"]})
            T.gemm({tiles["A"]}, {tiles["B"]}, C_local, transpose_A={ta}, transpose_B={tb},
                   policy=T.GemmWarpPolicy.{policy})
        T.copy(C_local, C[by * {rows}, bx * {cols}])
    """
    a_shape, b_shape = ("(K, M)" if ta else "(M, K)"), ("(N, K)" if tb else "(K, N)")
    stored = tuple("float32" if name == "tfloat32" else name for name in types)
    shapes_of = zip("ABC", (a_shape, b_shape, "(M, N)"), stored, strict=True)
    params = ", ".join(f"{name}: T.Tensor({shape}, {dtype!r})" for name, shape, dtype in shapes_of)
    kernel = load_body(
        folder,
        statements,
        params,
        grid=f"T.ceildiv(N, {cols}), T.ceildiv(M, {rows})",
        blocks="(bx, by)",
        arguments="M, N, K",
        target=target,
        M=m,
        N=n,
        K=k,
    )
    a, b = integers(m, k, dtype=numpy[0]), integers(k, n, dtype=numpy[1])
    result = kernel(np.ascontiguousarray(a.T) if ta else a, np.ascontiguousarray(b.T) if tb else b)
    return kernel.source, result.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64)


ORDERS = [(False, False), (True, False), (True, True)]
WIDE = [
    ("float32", "float32", np.float32),
    ("tfloat32", "float32", np.float32),
    ("int8", "int32", np.int8),
    ("float8_e4m3", "float32", E4M3),
    ("float64", "float64", np.float64),
]


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize(
    ("operand", "accumulator", "numpy", "ta", "tb"),
    [(*kinds, *order) for number, kinds in enumerate(WIDE) for order in ORDERS[number % 2 :]],
)
def test_k_may_lie_across_the_rows_of_any_type(
    operand: str, accumulator: str, numpy: object, ta: bool, tb: bool, tmp_path: Path
) -> None:
    kinds = (operand, operand, accumulator)
    text, result, expected = product(tmp_path, types=kinds, numpy=(numpy, numpy), ta=ta, tb=tb)
    assert "tl::gemm(" in text
    np.testing.assert_array_equal(result, expected)


def test_sm_80_multiplies_8_bit_floats_as_halves_and_says_so(tmp_path: Path) -> None:
    kinds = ("float8_e5m2", "float8_e5m2", "float32")
    text, result, expected = product(tmp_path, types=kinds, numpy=(E5M2, E5M2), tb=True)
    assert "sm_80 multiplies float8_e5m2 as float16, which holds its values exactly  [select.gemm.mma-sync]" in text
    np.testing.assert_array_equal(result, expected)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("types", "numpy"),
    [
        (("int8", "float16", "float32"), (np.int8, np.float16)),
        (("int16", "int16", "int32"), (np.int16, np.int16)),
        (("float16", "float16", "float64"), (np.float16, np.float16)),
        (("uint8", "int8", "int32"), (np.uint8, np.int8)),
    ],
)
def test_types_that_no_tensor_core_takes_are_multiplied_by_each_thread(
    types: tuple[str, str, str], numpy: tuple[object, object], tmp_path: Path
) -> None:
    text, result, expected = product(tmp_path, types=types, numpy=numpy, tile=(20, 36, 18), tb=True)
    assert "[select.gemm.fma]" in text and "tl::gemm_fma(" in text
    np.testing.assert_array_equal(result, expected)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("tile", "in_registers", "ta", "target"),
    [
        ((64, 1, 32), "", False, "cuda:sm_80"),
        ((1, 48, 32), "", True, "cuda:sm_90a"),
        ((32, 48, 1), "A", False, "cuda:sm_80"),
        ((64, 12, 32), "", False, "hip:gfx942"),
    ],
)
def test_a_product_that_is_less_than_an_instruction_is_multiplied_by_each_thread(
    tile: tuple[int, int, int], in_registers: str, ta: bool, target: str, tmp_path: Path
) -> None:
    """A matrix and a vector, two vectors: no tensor core takes so few rows, columns or steps."""
    text, result, expected = product(
        tmp_path, tile=tile, k=37, n=5, in_registers=in_registers, ta=ta, tb=tile[1] == 1, target=target
    )
    assert "[select.gemm.fma]" in text and "tl::gemm_fma(" in text
    np.testing.assert_array_equal(result, expected)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("policy", ["Square", "FullRow"])
@pytest.mark.parametrize(("in_registers", "tb"), [("B", False), ("B", True), ("AB", True), ("A", False)])
def test_operands_in_registers(in_registers: str, tb: bool, policy: str, tmp_path: Path) -> None:
    text, result, expected = product(
        tmp_path, in_registers=in_registers, tb=tb, policy=policy, tile=(64, 48, 32), m=100
    )
    assert ("OperandB<" in text) == ("B" in in_registers)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("operand", "accumulator", "numpy"), WIDE)
def test_a_left_operand_of_any_type_may_lie_in_registers(
    operand: str, accumulator: str, numpy: object, tmp_path: Path
) -> None:
    kinds = (operand, operand, accumulator)
    _, result, expected = product(tmp_path, types=kinds, numpy=(numpy, numpy), in_registers="A", tb=operand == "int8")
    np.testing.assert_array_equal(result, expected)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("types", "numpy", "in_registers", "ta"),
    [
        (("float32", "float32", "float32"), (np.float32, np.float32), "B", False),
        (("float16", "float16", "float32"), (np.float16, np.float16), "A", True),
        (("int16", "int16", "int32"), (np.int16, np.int16), "AB", False),
    ],
)
def test_operands_that_registers_cannot_hand_over_go_through_shared_memory(
    types: tuple[str, str, str], numpy: tuple[object, object], in_registers: str, ta: bool, tmp_path: Path
) -> None:
    text, result, expected = product(tmp_path, types=types, numpy=numpy, in_registers=in_registers, ta=ta)
    assert "[select.copy.through-shared]" in text
    np.testing.assert_array_equal(result, expected)


def test_a_product_of_a_products_result_in_float32(tmp_path: Path) -> None:
    statements = """
        A_shared = T.alloc_shared((64, 32), "float32")
        B_shared = T.alloc_shared((32, 64), "float32")
        P = T.alloc_fragment((64, 64), "float32")
        V_shared = T.alloc_shared((64, 32), "float32")
        O = T.alloc_fragment((64, 32), "float32")
        T.copy(A, A_shared)
        T.copy(B, B_shared)
        T.copy(V, V_shared)
        T.gemm(A_shared, B_shared, P, clear_accum=True, policy=T.GemmWarpPolicy.FullRow)
        T.gemm(P, V_shared, O, clear_accum=True, policy=T.GemmWarpPolicy.FullRow)
        T.copy(O, C)
    """
    params = (
        'A: T.Tensor((64, 32), "float32"), B: T.Tensor((32, 64), "float32"), V: T.Tensor((64, 32), "float32"), '
        'C: T.Tensor((64, 32), "float32")'
    )
    kernel = load_body(tmp_path, statements, params)
    a, b, v = (integers(*shape, dtype=np.float32) for shape in ((64, 32), (32, 64), (64, 32)))
    np.testing.assert_array_equal(kernel(a, b, v), a.astype(np.float64) @ b @ v)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("clear", [False, True])
def test_a_product_into_a_part_of_a_fragment(clear: bool, tmp_path: Path) -> None:
    statements = f"""
        A_shared = T.alloc_shared((64, 32), "float16")
        B_shared = T.alloc_shared((32, 32), "float16")
        C_local = T.alloc_fragment((128, 64), "float32")
        T.fill(C_local, 3.0)
        for part in T.serial(2):
            T.copy(A[part * 64, 0], A_shared)
            T.copy(B, B_shared)
            T.gemm(A_shared, B_shared, C_local[part * 64 : part * 64 + 64, 32:64], clear_accum={clear})
        T.copy(C_local, C)
    """
    params = 'A: T.Tensor((100, 32), "float16"), B: T.Tensor((32, 32), "float16"), C: T.Tensor((128, 64), "float32")'
    a, b = (np.random.default_rng(3).integers(-4, 5, shape).astype(np.float16) for shape in ((100, 32), (32, 32)))
    expected = np.full((128, 64), 3.0)
    product = np.concatenate([a.astype(float), np.zeros((28, 32))]) @ b.astype(float)
    expected[:, 32:] = product if clear else expected[:, 32:] + product
    np.testing.assert_array_equal(load_body(tmp_path, statements, params)(a, b), expected)
