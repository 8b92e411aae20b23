"""Proofs that tiles begin within a tensor: strong enough for the grids and loops of usual kernels, and never wrong."""

import operator

import pytest

from tests.unit.analysis.test_bounds import BATCH, BLOCK, BX, SIZE, K, bounds, ceildiv
from tile2cu.analysis.tile_starts import begins_inside, begins_near
from tile2cu.core.expr import Binary, Call, Const, Expr, Named, Var, binary, int_const

HALF = binary("//", SIZE, int_const(2))
TILES = ceildiv(SIZE, BLOCK)
WHOLE = binary("//", SIZE, BLOCK)
OF_BLOCK, OF_LOOP = binary("*", BX, BLOCK), binary("*", K, BLOCK)
BY_BATCH = binary("*", TILES, BATCH)
HALVES = binary("*", K, int_const(32))
FAR = binary("+", OF_BLOCK, BLOCK)
# (extent of the grid, iterations of the loop, where a tile begins, extent of the tensor, inside, near)
CASES = [
    (TILES, TILES, OF_BLOCK, SIZE, True, True),
    (TILES, TILES, OF_LOOP, SIZE, True, True),
    (WHOLE, WHOLE, OF_LOOP, SIZE, True, True),
    (BY_BATCH, TILES, binary("*", binary("//", BX, BATCH), BLOCK), SIZE, True, True),
    (BY_BATCH, TILES, binary("*", binary("%", BX, TILES), BLOCK), SIZE, True, True),
    (TILES, ceildiv(SIZE, BLOCK), HALVES, HALF, False, True),  # a tile of packed halves
    (TILES, TILES, FAR, SIZE, False, False),
    (TILES, TILES, binary("-", OF_BLOCK, BLOCK), SIZE, False, False),
    (TILES, TILES, OF_LOOP, HALF, False, False),
    (TILES, binary("+", TILES, int_const(1)), OF_LOOP, SIZE, False, False),
    (TILES, TILES, BATCH, SIZE, False, False),
]


@pytest.mark.parametrize(("grid", "stop", "start", "extent", "inside", "near"), CASES)
def test_what_is_proven_holds(grid: Expr, stop: Expr, start: Expr, extent: Expr, inside: bool, near: bool) -> None:
    found = bounds(grid, stop)
    assert begins_inside(start, extent, found) is inside
    assert begins_near(start, extent, found) is near
    starts = [
        (_value(start, values), _value(extent, values))
        for size in (*range(4), 63, 64, 65, 127, 128, 129, 1000)
        for batch in (0, 1, 3)
        for values in _places(grid, stop, {SIZE: size, BATCH: batch})
    ]
    assert len(starts) > 50
    assert all(0 <= at < end for at, end in starts) or not inside
    assert all(0 <= at <= end for at, end in starts) == near


def _places(grid: Expr, stop: Expr, sizes: dict[Expr, int]) -> list[dict[Expr, int]]:
    blocks, turns = range(_value(grid, sizes)), range(_value(stop, sizes))
    return [{**sizes, BX: block, K: turn} for block in blocks for turn in turns]


def _value(expr: Expr, values: dict[Expr, int]) -> int:
    match expr:
        case Var():
            return values[expr]
        case Const(value=value) | Named(value=value):
            return int(value)
        case Binary(op=op, lhs=lhs, rhs=rhs):
            of = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod}
            return of[op](_value(lhs, values), _value(rhs, values))
        case Call(function="ceildiv", args=(lhs, rhs)):
            return -(-_value(lhs, values) // _value(rhs, values))
        case _:
            raise AssertionError(expr)
