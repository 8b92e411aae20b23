"""What run_kernel says of kernels that are right, wrong and racy, and the arguments and tolerances that it chooses."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from tests.conformance import arguments
from tests.conformance.arguments import Choice, choices, make, sizes_of, with_smaller_numbers
from tests.conformance.comparison import Tolerance, tolerance
from tests.conformance.kernels import small_program
from tests.conformance.run_kernel import Outcome, hangs_on_rounding, run_program
from tile2cu.api import emit_program
from tile2cu.core.dtype import FLOAT16, FLOAT32, INT32
from tile2cu.targets import find

PARAMS = 'X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")'
DOUBLE = """
    for i in T.Parallel(64):
        Y[i] = X[i] * 2
"""
TARGET = find("cuda:sm_80")


def outcome(statements: str, emitted_from: str, params: str = PARAMS) -> Outcome:
    """The text of one body, judged by what another one means."""
    text = emit_program(small_program(emitted_from, params), TARGET)
    return run_program(small_program(statements, params), text)


@pytest.mark.needs("g++")
def test_a_right_kernel_is_correct() -> None:
    assert outcome(DOUBLE, DOUBLE).status == "correct"


@pytest.mark.needs("g++")
def test_a_wrong_kernel_ran() -> None:
    found = outcome(DOUBLE, DOUBLE.replace("X[i] * 2", "X[i] * T.if_then_else(i == 63, 3, 2)"))
    assert found.status == "ran" and found.message.startswith("Y: 1 of 64 elements")


@pytest.mark.needs("g++")
def test_arguments_with_which_nothing_unwritten_is_read_come_first() -> None:
    """Rows are only loaded where an index is small: with zeros for indices all are."""
    body = """
        S = T.alloc_shared((16, 16), "float32")
        for i, j in T.Parallel(16, 16):
            if at[i] < limit[0] + 1:
                S[i, j] = X[i, j]
        for i, j in T.Parallel(16, 16):
            Y[i, j] = S[15 - i, j] * 2
    """
    params = 'at: T.Tensor((16,), "int32"), limit: T.Tensor((1,), "int32"), X: T.Tensor((16, 16), "float32"), '
    params += 'Y: T.Tensor((16, 16), "float32")'
    found = outcome(body, body, params)
    assert found.status == "correct" and "zeros integers" in found.choice
    never = body.replace("at[i] < limit[0] + 1", "i < 3")
    found = outcome(never, never, params)
    assert found.status == "compiled" and "never written" in found.message


def test_a_race_is_reported() -> None:
    racy = """
        S = T.alloc_shared((2,), "float32")
        for i in T.Parallel(64):
            S[i % 2] = X[i]
        T.copy(S, Y[0])
    """
    found = outcome(racy, racy)
    assert found.status == "compiled" and "race" in found.message


@pytest.mark.needs("g++")
def test_integers_that_index_stay_within_what_they_index() -> None:
    gather = """
        S = T.alloc_shared((8, 16), "float32")
        for i, j in T.Parallel(8, 16):
            S[i, j] = X[table[i] * 4 + i % 4, j]
        for i, j in T.Parallel(8, 16):
            Y[i, j] = S[i, j] + S[table[i] // 2, j]
    """
    params = 'X: T.Tensor((32, 16), "float32"), table: T.Tensor((8,), "int32"), Y: T.Tensor((8, 16), "float32")'
    found = outcome(gather, gather, params)
    assert found.status == "correct" and "random" in found.choice
    table = make(small_program(gather, params), Choice((2, 136), "random"))["table"]
    assert np.min(table) >= 0 and np.max(table) < 8 and len(np.unique(table)) > 1


def test_arguments_by_hand_are_the_only_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    params = 'at: T.Tensor((N,), "int32"), X: T.Tensor((N, 8), "float32"), Y: T.Tensor((N, 8), "float32")'
    program = small_program("T.copy(X[at[bx], :], Y[bx, :])", params, grid="N", head='N = T.dynamic("N")')
    monkeypatch.setattr(arguments, "CHOSEN", {})
    assert len(list(choices(program))) > 1
    by_hand = {
        (program.source.name, program.alias_of or program.name): lambda rng: ({"N": 5}, {"at": rng.permutation(5)})
    }
    monkeypatch.setattr(arguments, "CHOSEN", by_hand)
    (choice,) = choices(program)
    made = make(program, choice)
    assert "by hand" in str(choice) and made["N"] == 5 and np.shape(made["X"]) == (5, 8)
    assert np.asarray(made["at"]).dtype == np.int32 and set(np.asarray(made["at"])) == set(range(5))


def test_sizes_that_the_grid_counts_are_small() -> None:
    statements = """
        row = T.alloc_fragment((128,), "float32")
        T.copy(X[bx, 0], row)
    """
    program = small_program(statements, 'X: T.Tensor((M, N), "float32")', grid="M", head='M, N = T.dynamic("M, N")')
    assert sizes_of(program, Choice((2, 136), "random")) == {"M": 2, "N": 136}


def test_large_tensors_get_small_outer_dimensions_and_groups_divide() -> None:
    statements = """
        tile = T.alloc_fragment((64,), "float32")
        T.copy(X[bx, 0, 0, 0], tile)
    """
    params = 'X: T.Tensor((B, H, G, N), "float32")'
    head = 'B, H, G, N = T.dynamic("B, H, G, N")'
    program = small_program(statements, params, grid="T.ceildiv(B * N, 64), H // G", blocks="(bx, by)", head=head)
    assert sizes_of(program, Choice((2, 136), "random")) == {"B": 2, "H": 136, "G": 1, "N": 136}
    assert sizes_of(program, Choice((2, 136), "random", first=3)) == {"B": 136, "H": 136, "G": 1, "N": 2}
    tried = [(choice.sizes, choice.integers, *sizes_of(program, choice).values()) for choice in choices(program)]
    assert len(tried) == len(set(tried)) > 80


def test_scalars_that_count_blocks_are_sizes() -> None:
    params = 'X: T.Tensor((M,), "float32"), last: T.int32, times: T.int32'
    statements = """
        for i in T.Parallel(64):
            X[bx * 64 + i] = times
    """
    program = small_program(statements, params, grid="T.ceildiv(last, 64)", head='M = T.dynamic("M")')
    made = make(program, Choice((2, 136), "random"))
    assert (made["M"], made["last"], made["times"]) == (136, 136, 1)


def test_offsets_reach_far_although_parts_of_them_are_multiplied() -> None:
    statements = """
        first = offsets[bx]
        tiles = (offsets[bx + 1] - first) // 2 // 64
        for i in T.Parallel(64):
            X[first + tiles * 64 + i] = 1
    """
    params = 'X: T.Tensor((M,), "float32"), offsets: T.Tensor((3,), "int32")'
    program = small_program(statements, params, grid="2", head='M = T.dynamic("M")')
    np.testing.assert_array_equal(make(program, Choice((2, 1023), "ascending"))["offsets"], [0, 341, 682])


def test_a_file_may_have_smaller_numbers() -> None:
    text = "import tilelang\nM, N = 4096, 64\n"
    statements = """
        tile = T.alloc_fragment((N,), "float32")
        T.copy(X[bx, 0], tile)
    """
    program = small_program(statements, 'X: T.Tensor((M, N), "float32")', grid="M", head="M, N = 4096, 64")
    constants = tuple(replace(each, span=replace(each.span, line=2)) for each in program.constants)
    assert with_smaller_numbers(replace(program, constants=constants), text, 8) == text.replace("4096", "8")


@pytest.mark.parametrize(("step", "hangs"), [("4 * x * (1 - x)", True), ("x * 0.5 + 0.25", False)])
def test_results_may_hang_on_rounding(step: str, hangs: bool) -> None:
    iteration = f"""
        for i in T.Parallel(64):
            x = T.alloc_var("float32", init=X[i])
            for k in T.serial(60):
                x = {step}
            Y[i] = x
    """
    arguments = {"X": np.linspace(0.1, 0.9, 64, dtype=np.float32), "Y": np.zeros(64, np.float32)}
    assert hangs_on_rounding(small_program(iteration, PARAMS), arguments, Choice((2, 136), "random")) == hangs


def test_tolerances_follow_the_types_that_values_are_rounded_to() -> None:
    narrow = """
        P = T.alloc_fragment((64,), "float16")
        T.copy(X, P)
        T.copy(P, Y)
    """
    arguments = {"X": np.zeros(64), "Y": np.zeros(64)}
    assert tolerance(small_program(DOUBLE, PARAMS), arguments) == Tolerance(2.0**-24, 64)
    assert tolerance(small_program(narrow, PARAMS), arguments) == Tolerance(2.0**-11, 64)


@pytest.mark.parametrize(
    ("dtype", "inner"), [("float8_e4m3fn", 2.0**-13), ("float8_e5m2", 2.0**-13), ("int8", 2.0**-24)]
)
def test_sums_of_float8_products_have_13_bits_on_hopper(dtype: str, inner: float) -> None:
    product = f"""
        A = T.alloc_shared((64, 64), "{dtype}")
        B = T.alloc_shared((64, 64), "{dtype}")
        C = T.alloc_fragment((64, 64), "{"int32" if dtype == "int8" else "float32"}")
        T.copy(X, A)
        T.copy(Y, B)
        T.gemm(A, B, C, clear_accum=True)
        T.copy(C, Z)
    """
    params = f'X: T.Tensor((64, 64), "{dtype}"), Y: T.Tensor((64, 64), "{dtype}"), Z: T.Tensor((64, 64), "float32")'
    program, arguments = small_program(product, params), {"X": np.zeros((64, 64))}
    assert tolerance(program, arguments, wgmma=True) == Tolerance(inner, 64)
    assert tolerance(program, arguments) == Tolerance(2.0**-24, 64)


def test_what_no_rounding_explains_is_a_fault() -> None:
    exact = np.random.default_rng(0).standard_normal(1000)
    limits = Tolerance(2.0**-11, 100)
    half = exact.astype(np.float16)
    assert not limits.faults(half, exact, FLOAT16)
    wrong = half.copy()
    wrong[7] += 0.1
    assert "1 of 1000 elements are off" in limits.faults(wrong, exact, FLOAT16)
    # Everywhere within the tolerance of an element, and everywhere off.
    assert "mean error" in limits.faults(half + np.float16(0.009), exact, FLOAT32)
    assert "NaN" in limits.faults(np.where(exact > 2, np.nan, exact), exact, FLOAT32)
    assert "2 of 3 integers" in limits.faults(np.array([1, 2, 3]), np.array([1, 3, 2]), INT32)


@pytest.mark.needs("g++")
def test_rows_of_strided_tensors_lie_apart() -> None:
    """Where they lie is the caller's to say; what the kernel means hangs on it not at all."""
    body = """
        for i in T.Parallel(64):
            Y[bx, i] = X[bx, i] * 2
    """
    params = 'X: T.StridedTensor((4, 64), (step, 1), "float32"), Y: T.StridedTensor((4, 64), (other, 1), "float32")'
    program = small_program(body, params, head='step, other = T.dynamic("step"), T.dynamic("other")', grid="4")
    found = run_program(program, emit_program(program, TARGET))
    assert found.status == "correct"
    assert make(program, Choice((2, 136), "random"))["step"] == 80


def test_columns_of_a_tensor_stored_by_columns_do_not_overlap() -> None:
    params = 'X: T.StridedTensor((64, 8), (1, S), "float32"), Y: T.Tensor((64,), "float32")'
    program = small_program(DOUBLE.replace("X[i]", "X[i, 3]"), params, head='S = T.dynamic("S")')
    given = make(program, next(iter(choices(program))))
    placed = arguments.with_strides(program, given, "X", np.arange(512, dtype=np.float32).reshape(64, 8))
    assert placed.strides[0] == 4 and placed.strides[1] >= 4 * 64
    np.testing.assert_array_equal(placed, np.arange(512).reshape(64, 8))
