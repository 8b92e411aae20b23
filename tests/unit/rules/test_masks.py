"""Masks after their products: when, and which tiles pay for them."""

import itertools

import pytest

from tests.unit.rules.kernels import resolved
from tests.unit.rules.test_register_operands import BODY, LOAD
from tile2cu.analysis.accesses import variables
from tile2cu.analysis.bounds import Bounds
from tile2cu.core.decisions import SCHEDULE
from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Role, Var, binary, int_const, static_value, substitute
from tile2cu.core.program import Gemm, If, Let, Loop, Parallel, Store
from tile2cu.core.schedule import MmaOverlap
from tile2cu.passes.mask_after_gemm import negated, some_fails

MASKED = """
A_shared = T.alloc_shared((64, 32), "float16")
S = T.alloc_fragment((64, 64), "float32")
for k in T.serial(4):
    T.copy(Z[bx * 64, k * 32], A_shared)
    for i, j in T.Parallel(64, 64):
        {names} = {value}
    T.gemm(A_shared, A_shared, S, transpose_B=True{clear})
"""


def turn(value: str, clear: str = "", names: str = "S[i, j]") -> tuple[object, ...]:
    """The statements of the loop, as they are decided about."""
    context = resolved(MASKED.format(value=value, clear=clear, names=names))
    return next(op.body for op in context.launch.body if isinstance(op, Loop))


@pytest.mark.parametrize(
    "value",
    [
        "T.if_then_else(bx * 64 + i >= k * 64 + j, 0, -T.infinity('float32'))",
        "T.if_then_else(k * 64 + j >= m, -T.infinity('float32'), 0)",
        "T.if_then_else(k * 64 + j < m and i >= j, 0, -T.infinity('float32'))",
    ],
)
def test_a_mask_comes_after_its_product_for_tiles_that_need_it(value: str) -> None:
    _, product, mask = turn(value)
    assert isinstance(product, Gemm) and product.clear
    assert isinstance(mask, If) and isinstance(mask.then[0], Parallel)


def test_a_mask_comes_after_all_products_that_add_to_the_same_tile() -> None:
    body = MASKED.format(value="T.if_then_else(k * 64 + j < m, 0, -T.infinity('float32'))", clear="", names="S[i, j]")
    body += "    T.gemm(A_shared, A_shared, S, transpose_B=True)\n    T.copy(S, X[0, 0])\n"
    *_, first, second, mask, _ = next(op.body for op in resolved(body).launch.body if isinstance(op, Loop))
    assert isinstance(first, Gemm) and first.clear and isinstance(second, Gemm) and not second.clear
    assert isinstance(mask, If)


def test_a_mask_whose_tiles_are_not_known_comes_after_its_product_always() -> None:
    _, product, mask = turn("T.if_then_else((i * j) % 3 == 0, 0, -T.infinity('float32'))")
    assert isinstance(product, Gemm) and product.clear and isinstance(mask, Parallel)


def test_a_mask_may_name_what_it_compares() -> None:
    names = "row = bx * 64 + i\n        last = row + 8\n        S[i, j]"
    value = "T.if_then_else(last >= k * 64 + j, 0, -T.infinity('float32'))"
    _, product, mask = turn(value, names=names)
    assert isinstance(product, Gemm) and product.clear and isinstance(mask, If)
    assert not {"row", "last"} & {var.name for var in variables(mask.condition)}
    assert isinstance(mask.then[0], Parallel) and [*map(type, mask.then[0].body)] == [Let, Let, Store]


@pytest.mark.parametrize(
    ("value", "clear"),
    [
        ("T.if_then_else(S[i, j] > 0, 0, -T.infinity('float32'))", ""),
        ("T.if_then_else(i >= j, 0, -1)", ""),
        ("T.if_then_else(i >= j, 1, -T.infinity('float32'))", ""),
        ("T.if_then_else(i >= j, 0, -T.infinity('float32'))", ", clear_accum=True"),
    ],
)
def test_what_is_no_mask_stays_where_it_is(value: str, clear: str) -> None:
    _, first, second = turn(value, clear)
    assert isinstance(first, Parallel) and isinstance(second, Gemm)


def test_some_fails_is_true_exactly_where_an_element_fails() -> None:
    i, j = Var(INT32, "i", Role.PARALLEL), Var(INT32, "j", Role.PARALLEL)
    extents = {i: int_const(4), j: int_const(3)}
    context = resolved("S = T.alloc_shared((64, 32), 'float32')\nT.clear(S)")
    sums = [
        binary("+", binary("*", int_const(a), i), binary("*", int_const(b), j)) for a, b in ((1, -1), (2, 1), (0, -3))
    ]
    for op, left, limit in itertools.product(("<", "<=", ">", ">="), sums, range(-10, 11)):
        condition = binary(op, left, int_const(limit))
        needed = some_fails(condition, extents, Bounds(context.launch))
        assert needed is not None
        values = [
            static_value(substitute(condition, {i: int_const(a), j: int_const(b)})) for a in range(4) for b in range(3)
        ]
        assert static_value(needed) == (not all(values)), (op, left, limit)
        for a, b in itertools.product(range(4), range(3)):
            at = {i: int_const(a), j: int_const(b)}
            assert static_value(substitute(negated(condition), at)) == (not static_value(substitute(condition, at)))


@pytest.mark.parametrize(
    ("branch", "apart"),
    [
        ("if k * 128 + 127 >= m:\n        for i, j in T.Parallel(128, 128):\n            S[i, j] = {masked}", True),
        ("if limit[0] > k:\n        for i, j in T.Parallel(128, 128):\n            S[i, j] = {masked}", False),
        ("for i, j in T.Parallel(128, 128):\n        S[i, j] = {masked}", False),
    ],
    ids=["in some turns", "where a fragment says so", "in all turns"],
)
def test_overlapping_turns_that_mask_nothing_have_a_loop_of_their_own(branch: str, apart: bool) -> None:
    body = BODY.format(above=LOAD.format(rows=128), below="", rows=128, keys=128)
    mask = branch.format(masked="T.if_then_else(k * 128 + j < m, S[i, j], -T.infinity('float32'))")
    body = body.replace("    T.copy(S, P)", f"    {mask}\n    T.copy(S, P)")
    body = 'limit = T.alloc_fragment((1,), "int32")\nT.fill(limit, 2)\n' + body
    context = resolved(body, threads=256, target="cuda:sm_90a")
    loop = next(op for op in context.launch.body if isinstance(op, Loop))
    found = context.facts.get(loop, SCHEDULE)
    assert isinstance(found, MmaOverlap) and (found.mask is not None) == apart


@pytest.mark.parametrize(
    ("start", "add", "late"),
    [
        ("0", "total[i] = total[i] * scale[i] + part[i]", True),
        ("1", "total[i] = total[i] * scale[i] + part[i]", False),
        ("0", "total[i] = total[i] * part[i] + part[i]", False),
        ("0", "total[i] = T.max(total[i], part[i])", False),
    ],
    ids=["linear", "not from zero", "its own factor", "not a sum"],
)
def test_a_sum_that_runs_on_meets_other_lanes_after_the_turns(start: str, add: str, late: bool) -> None:
    """Each thread has its own part of it till then, so that only what is linear may be done to it."""
    tiles = "".join(f'{name} = T.alloc_fragment((128,), "float32")\n' for name in ("total", "part", "scale"))
    above = f"{LOAD.format(rows=128)}\nT.fill(scale, 2)\nT.fill(total, {start})"
    body = BODY.format(above=tiles + above, below="", rows=128, keys=128)
    masked = "S[i, j] = T.if_then_else(k * 128 + j < m, S[i, j], -T.infinity('float32'))"
    mask = f"    if k * 128 + 127 >= m:\n        for i, j in T.Parallel(128, 128):\n            {masked}\n"
    sums = f"    T.reduce_sum(S, part, dim=1)\n    for i in T.Parallel(128):\n        {add}\n"
    body = body.replace("    T.copy(S, P)", f"{mask}{sums}    T.copy(S, P)")
    context = resolved(body, threads=256, target="cuda:sm_90a")
    loop = next(op for op in context.launch.body if isinstance(op, Loop))
    found = context.facts.get(loop, SCHEDULE)
    assert isinstance(found, MmaOverlap) and found.mask is not None and (found.running is not None) == late


@pytest.mark.parametrize(
    ("kept", "above_scale", "below_scale", "first"),
    [
        ("before[i]", "", "", True),
        ("best[i]", "", "", False),
        ("before[i]", "", "for i, j in T.Parallel(128, 128):\n        S[i, j] *= scale[i]", True),
        ("before[i]", "", "T.fill(scale, 1)", False),
        ("before[i]", "for i, j in T.Parallel(128, 128):\n        O[i, j] += 1", "", False),
    ],
    ids=["alone", "not kept", "used by others, too", "another factor", "behind a change of the result"],
)
def test_results_are_scaled_before_the_other_arithmetic_of_overlapping_turns(
    kept: str, above_scale: str, below_scale: str, first: bool
) -> None:
    """Where the user keeps what the factor is made of, that is left out; what comes later takes 1 for it.

    Turns that mask nothing then need no loop of their own.
    """
    tiles = "".join(f'{name} = T.alloc_fragment((128,), "float32")\n' for name in ("best", "before", "scale"))
    body = BODY.format(above=f"{tiles}{LOAD.format(rows=128)}\nT.fill(best, 0)", below="", rows=128, keys=128)
    masked = "S[i, j] = T.if_then_else(k * 128 + j < m, S[i, j], -T.infinity('float32'))"
    parts = (
        f"if k * 128 + 127 >= m:\n        for i, j in T.Parallel(128, 128):\n            {masked}",
        "T.copy(best, before)",
        "T.reduce_max(S, best, dim=1, clear=False)",
        f"for i in T.Parallel(128):\n        best[i] = T.if_then_else(best[i] > before[i] + 8, best[i], {kept})",
        "for i in T.Parallel(128):\n        scale[i] = T.exp2(before[i] * 0.5 - best[i] * 0.5)",
        "for i, j in T.Parallel(128, 128):\n        S[i, j] = T.exp2(S[i, j] * 0.5 - best[i] * 0.5)",
        below_scale,
        "T.copy(S, P)",
        above_scale,
        "for i, j in T.Parallel(128, 128):\n        O[i, j] *= scale[i]",
    )
    body = body.replace("    T.copy(S, P)", "\n".join(f"    {part}" for part in parts if part))
    context = resolved(body, threads=256, target="cuda:sm_90a")
    loop = next(op for op in context.launch.body if isinstance(op, Loop))
    found = context.facts.get(loop, SCHEDULE)
    assert isinstance(found, MmaOverlap) and (found.factor is not None) == first
    assert (found.mask is None) == first
    if first:
        assert [type(op).__name__ for op in found.between] == ["If", "Copy", "Reduce", "Parallel", "Parallel"]
        assert found.between[-1] is found.factor.op
        assert found.late[:1] == found.factor.scaled
        assert (found.factor.before.name, found.factor.after.name) == ("before", "best")
