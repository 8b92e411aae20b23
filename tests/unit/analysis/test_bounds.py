"""Ranges and proofs: never wrong, and strong enough for tiles of static and run-time tensors."""

import operator
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tile2cu.analysis.bounds import Bounds
from tile2cu.analysis.effects import effects_of
from tile2cu.analysis.signs import never_negative
from tile2cu.core.dtype import BOOL, INT32, INT64, UINT8, UINT32
from tile2cu.core.expr import (
    Binary,
    Call,
    Const,
    Expr,
    Load,
    Named,
    Role,
    Unary,
    Var,
    binary,
    int_const,
    variables_in,
    walk,
    without_past,
)
from tile2cu.core.program import Assign, Buffer, Declare, Launch, Let, Loop, LoopKind, Scope, Stmt, Store
from tile2cu.core.span import Span

SPAN = Span("k.py", 1, 1, 2)
BX = Var(INT32, "bx", Role.BLOCK)
K = Var(INT32, "k", Role.LOOP)
SIZE = Var(INT32, "N", Role.SIZE)
BATCH = Var(INT32, "batch", Role.SIZE)
BLOCK = Named(INT32, "block", 64)
TURNS = int_const(8)


def ceildiv(a: Expr, b: Expr) -> Expr:
    return Call(INT32, "ceildiv", (a, b))


def bounds(grid: Expr, stop: Expr = TURNS, step: int = 1) -> Bounds:
    loop = Loop(
        kind=LoopKind.SERIAL,
        var=K,
        start=int_const(0),
        stop=stop,
        step=int_const(step),
        span=SPAN,
        num_stages=0,
        body=(),
    )
    return Bounds(Launch(grid=(grid,), blocks=(BX,), threads=128, tiles=(), body=(loop,), span=SPAN))


def launch_of(*body: Stmt) -> Launch:
    return Launch(grid=(BLOCK,), blocks=(BX,), threads=128, tiles=(), body=body, span=SPAN)


def test_a_tile_of_a_multiple_is_inside() -> None:
    extent = Named(INT32, "M", 1024)
    assert bounds(ceildiv(extent, BLOCK)).inside(binary("*", BX, BLOCK), BLOCK, extent)


def test_the_last_tile_of_a_non_multiple_is_not() -> None:
    extent = Named(INT32, "M", 1000)
    assert not bounds(ceildiv(extent, BLOCK)).inside(binary("*", BX, BLOCK), BLOCK, extent)


def test_tiles_of_one_are_inside() -> None:
    assert bounds(ceildiv(SIZE, int_const(1))).inside(BX, int_const(1), SIZE)


def test_a_run_time_size_is_not_proven() -> None:
    assert not bounds(ceildiv(SIZE, BLOCK)).inside(binary("*", BX, BLOCK), BLOCK, SIZE)


def test_a_grid_index_is_inside_its_own_run_time_extent() -> None:
    assert bounds(BATCH).inside(BX, int_const(1), BATCH)
    assert not bounds(BATCH).inside(binary("+", BX, int_const(1)), int_const(1), BATCH)


def test_the_parts_of_an_index_over_a_product_are_inside_its_factors() -> None:
    chunks = ceildiv(SIZE, BLOCK)
    over = bounds(binary("*", BATCH, chunks))
    one = int_const(1)
    remainder, quotient = binary("%", BX, BATCH), binary("//", BX, BATCH)
    assert over.inside(remainder, one, BATCH) and over.inside(quotient, one, chunks)
    assert not over.inside(remainder, one, chunks) and not over.inside(quotient, one, BATCH)
    assert not over.inside(quotient, int_const(2), chunks)
    assert not over.inside(binary("//", BX, SIZE), one, chunks)  # it is no factor
    assert over.inside(binary("//", binary("%", BX, binary("*", BATCH, chunks)), chunks), one, BATCH)
    assert not over.inside(binary("//", binary("%", BX, binary("*", BATCH, SIZE)), SIZE), one, BATCH)  # may overflow
    assert not over.inside(binary("%", binary("-", BX, one), BATCH), one, BATCH)  # C++ gives -1


def test_an_index_that_may_be_negative_is_not_inside() -> None:
    assert not bounds(int_const(4)).inside(binary("-", BX, int_const(1)), int_const(1), int_const(100))


def test_a_start_that_is_never_negative() -> None:
    known, start = bounds(ceildiv(SIZE, BLOCK)), Var(INT32, "start", Role.SCALAR)
    tile = binary("*", BX, BLOCK)
    grouped = binary("*", binary("%", K, Call(INT32, "min", (BLOCK, SIZE))), BLOCK)
    assert all(never_negative(each, known) for each in (tile, grouped, binary("+", tile, grouped), int_const(0)))
    assert never_negative(Call(INT32, "max", (start, int_const(0))), known)
    before = binary("//", binary("-", BX, int_const(1)), int_const(2))  # -1 in the first block
    one_arm = Call(INT32, "if_then_else", (binary("<", BX, BLOCK), tile, before))
    for open_ in (start, binary("-", tile, BLOCK), binary("*", binary("//", start, BLOCK), BLOCK), before, one_arm):
        assert not never_negative(open_, known)
    assert not never_negative(int_const(-1), known)
    assert never_negative(start, known, (binary(">=", start, int_const(0)),))
    assert never_negative(binary("+", start, int_const(1)), known, (binary(">=", start, int_const(0)),))
    assert not never_negative(start, known, (binary(">=", start, int_const(-1)),))


def test_the_rows_of_a_group_are_not_negative_below_the_number_of_tiles() -> None:
    """The first row of a group, n // (p * c) * p, is below r where n < r * c; the group then has a row."""
    rows, columns, panel = SIZE, BATCH, BLOCK
    tile, known = Var(INT32, "tile", Role.LET), bounds(int_const(1))
    start = binary("*", binary("//", tile, binary("*", panel, columns)), panel)
    left = binary("-", rows, start)
    below = binary("<", tile, binary("*", rows, columns))
    assert never_negative(left, known, (below,)) and not never_negative(left, known)
    assert not never_negative(left, known, (binary("<", tile, binary("*", rows, rows)),))
    assert not never_negative(binary("-", columns, start), known, (below,))
    inside = binary("%", binary("%", tile, binary("*", panel, columns)), Call(INT32, "min", (panel, left)))
    assert never_negative(inside, known, (below,)) and not never_negative(binary("+", start, inside), known, (below,))
    assert never_negative(binary("+", start, inside), known, (below, binary(">=", tile, int_const(0))))


def test_a_name_has_the_value_that_it_was_given() -> None:
    """It stands for its value where nothing in that changes; the element of a tensor that is written is another."""
    table = Buffer(name="table", shape=(int_const(8),), dtype=INT32, scope=Scope.GLOBAL, span=SPAN)
    element = Load(INT32, table, (int_const(0),))
    one, other = (Var(INT32, name, Role.LET) for name in ("one", "other"))
    lets = [Let(var=one, value=element, span=SPAN), Let(var=other, value=element, span=SPAN)]
    write = Store(buffer=table, indices=(int_const(0),), value=binary("+", one, int_const(1)), span=SPAN)
    kept = Bounds(launch_of(*lets))
    assert kept.linear(one).terms == kept.linear(other).terms and kept.expanded(one) == element
    written = Bounds(launch_of(lets[0], write, lets[1]))
    assert written.linear(one).terms != written.linear(other).terms
    assert without_past(written.expanded(binary("+", one, BLOCK))) == binary("+", one, BLOCK)
    assert table in [part.buffer for part in walk(written.expanded(one)) if isinstance(part, Load)]
    for tensor in (replace(table, name="view", of=table), replace(table, name="anywhere", address=K)):
        through = Bounds(launch_of(lets[0], replace(write, buffer=tensor), lets[1]))
        assert through.linear(one).terms != through.linear(other).terms
    variable = Var(INT32, "v", Role.MUTABLE)
    counted = bounds(int_const(1), variable)  # the variable may have changed in the loop that counted to it
    assert not never_negative(binary("-", variable, K), counted)
    assigned = Bounds(launch_of(Let(var=one, value=variable, span=SPAN)))
    assert assigned.expanded(one) != variable and assigned.linear(one).terms != assigned.linear(variable).terms


def test_what_names_share_is_examined_once() -> None:
    """Each name has the one before it twice: the value of the last has 2**64 parts, of which 64 differ."""
    names = [Var(INT32, f"n{place}", Role.LET) for place in range(65)]
    values = [binary("%", BX, int_const(8)), *(binary("+", name, name) for name in names)]
    table = Buffer(name="table", shape=(int_const(8),), dtype=INT32, scope=Scope.GLOBAL, span=SPAN)
    write = Store(buffer=table, indices=(names[-1],), value=int_const(1), span=SPAN)
    lets = [Let(var=name, value=value, span=SPAN) for name, value in zip(names, values, strict=False)]
    ((start, _),) = effects_of((*lets, write)).writes[0].box
    known = Bounds(launch_of(*lets, write))
    assert start is not None and variables_in(start) == variables_in(known.expanded(names[-1])) == {BX}
    assert never_negative(names[-1], known) and not known.of_values.never_wraps(names[-1])


def test_min_bounds_a_loop_from_above() -> None:
    stop = Call(INT32, "min", (SIZE, int_const(5)))
    assert bounds(int_const(1), stop).interval(K).high == 4


def test_conditions_bound_an_index() -> None:
    row = binary("+", binary("*", BX, BLOCK), K)
    known, one = bounds(ceildiv(SIZE, BLOCK)), int_const(1)
    inside = binary("<", row, SIZE)
    assert known.inside(row, one, SIZE, (inside,))
    assert known.inside(row, one, SIZE, (binary("and", binary("<", K, TURNS), inside),))
    assert known.inside(row, one, SIZE, (Unary(BOOL, "not", binary(">=", row, SIZE)),))
    assert not known.inside(row, one, SIZE, (binary("<=", row, SIZE),))
    assert not known.inside(row, int_const(2), SIZE, (inside,))
    assert not known.inside(row, one, BATCH, (inside,))
    above = binary("-", row, one)
    assert known.inside(above, one, SIZE, (inside, binary(">", row, int_const(0))))
    assert not known.inside(above, one, SIZE, (inside, binary(">=", row, int_const(0))))


def test_conditions_on_numbers_that_wrap_bound_nothing() -> None:
    wraps = Var(UINT32, "u", Role.LET)
    assert not bounds(BATCH).inside(binary("-", wraps, BX), int_const(1), SIZE, (binary("<", wraps, SIZE),))
    assert not bounds(BATCH).inside(wraps, int_const(1), SIZE, (binary("<", wraps, SIZE),))


def test_a_sum_that_wraps_is_no_term_of_a_wider_one() -> None:
    """int32's n + m wraps before it is an int64: that of the whole is not n."""
    n, m, one = Var(INT32, "n", Role.SCALAR), Var(INT32, "m", Role.SCALAR), Const(INT64, 1, weak=False)
    wide = binary("-", binary("-", binary("+", binary("+", n, m), one), m), one)
    assert wide.dtype == INT64
    assert not bounds(BATCH).inside(n, int_const(1), SIZE, (binary("<", n, SIZE), binary(">=", wide, int_const(0))))
    assert bounds(BATCH).inside(n, int_const(1), SIZE, (binary("<", n, SIZE), binary(">=", n, int_const(0))))


def test_sums_of_narrow_numbers_are_no_narrow_numbers() -> None:
    byte, kept = Var(UINT8, "b", Role.MUTABLE), Var(UINT8, "k", Role.LET)
    double = binary("+", byte, byte)
    body = (Let(var=kept, value=double, span=SPAN),)
    known = Bounds(Launch(grid=(TURNS,), blocks=(BX,), threads=128, tiles=(), body=body, span=SPAN))
    assert (known.interval(byte).high, known.interval(double).high, known.interval(kept).high) == (255, 510, 255)


def test_multiples() -> None:
    known = bounds(int_const(4))
    assert known.multiple_of(binary("*", BX, BLOCK)) == 64
    assert known.multiple_of(binary("+", binary("*", BX, BLOCK), int_const(8))) == 8
    assert known.multiple_of(SIZE) == 1
    assert bounds(int_const(4), step=64).multiple_of(K) == 64


def test_a_division_without_remainder_is_linear_and_keeps_the_multiple() -> None:
    known, tile = bounds(int_const(4)), binary("*", BX, BLOCK)
    half = binary("//", tile, int_const(2))  # of a tensor with two elements in a byte
    assert known.multiple_of(half) == 32 and known.linear(half) == known.linear(binary("*", BX, int_const(32)))
    assert known.multiple_of(ceildiv(tile, int_const(16))) == 4
    assert known.multiple_of(binary("//", tile, int_const(3))) == 1
    unsigned = Binary(UINT32, "//", Binary(UINT32, "*", Var(UINT32, "n", Role.LET), int_const(64)), int_const(64))
    assert unsigned in known.linear(unsigned).terms  # 64 n may wrap


@st.composite
def index_expressions(draw: st.DrawFn, depth: int = 3) -> Expr:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([BX, K, int_const(draw(st.integers(0, 9)))]))
    op = draw(st.sampled_from(["+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "ceildiv"]))
    lhs = draw(index_expressions(depth - 1))
    if op in ("//", "%", "<<", ">>", "ceildiv"):
        rhs: Expr = int_const(draw(st.integers(1, 8)))
    else:
        rhs = draw(index_expressions(depth - 1))
    return ceildiv(lhs, rhs) if op == "ceildiv" else Binary(INT32, op, lhs, rhs)


_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
}  # fmt: skip


def evaluate(expr: Expr, bx: int, k: int) -> int:
    match expr:
        case Var():
            return bx if expr == BX else k
        case Binary():
            a, b = evaluate(expr.lhs, bx, k), evaluate(expr.rhs, bx, k)
            return _OPERATORS[expr.op](a, b)
        case Call():
            dividend, divisor = (evaluate(part, bx, k) for part in expr.args)
            return -(-dividend // divisor)
        case _:
            return int(expr.value)  # type: ignore[attr-defined]


@given(index_expressions(), st.integers(1, 5), st.integers(1, 5), st.integers(1, 8))
def test_intervals_and_multiples_hold_for_every_value(expr: Expr, blocks: int, turns: int, step: int) -> None:
    known = bounds(int_const(blocks), int_const(turns), step)
    interval, factor, sum_ = known.interval(expr), known.multiple_of(expr), known.linear(expr)
    for bx in range(blocks):
        for k in range(0, turns, step):
            value = evaluate(expr, bx, k)
            terms = (evaluate(atom, bx, k) * coefficient for atom, coefficient in sum_.terms.items())
            assert value == sum_.constant + sum(terms)
            assert interval.low is None or interval.low <= value
            assert interval.high is None or value <= interval.high
            assert value % factor == 0


@given(index_expressions(), st.integers(1, 5), st.integers(1, 5), st.integers(1, 9), st.integers(1, 40))
def test_what_is_proven_inside_is_inside(expr: Expr, blocks: int, turns: int, length: int, extent: int) -> None:
    known = bounds(int_const(blocks), int_const(turns))
    if known.inside(expr, int_const(length), int_const(extent)):
        values = [evaluate(expr, bx, k) for bx in range(blocks) for k in range(turns)]
        assert min(values) >= 0 and max(values) + length <= extent


def test_what_never_falls_when_an_index_grows() -> None:
    known = bounds(int_const(16))
    turns = Call(
        INT32, "min", (ceildiv(SIZE, BLOCK), ceildiv(binary("*", binary("+", BX, int_const(1)), BLOCK), BLOCK))
    )
    assert known.never_falls(turns, BX)
    assert known.never_falls(ceildiv(SIZE, BLOCK), BX)
    assert not known.never_falls(binary("-", SIZE, BX), BX)
    assert not known.never_falls(binary("*", BX, int_const(-1)), BX)
    assert not known.never_falls(binary("%", BX, BLOCK), BX)
    assert not known.never_falls(binary("*", BX, Var(INT32, "any", Role.MUTABLE)), BX)


def test_a_counter_that_only_grows_is_not_negative() -> None:
    n = Var(INT32, "n", Role.MUTABLE)

    def low(*assigned: Assign) -> int | None:
        body = (Declare(var=n, init=BX, span=SPAN), *assigned)
        launch = Launch(grid=(int_const(4),), blocks=(BX,), threads=128, tiles=(), body=body, span=SPAN)
        return Bounds(launch).interval(n).low

    def given(value: Expr, op: str = "") -> Assign:
        return Assign(var=n, value=value, op=op, span=SPAN)

    assert low() == low(given(int_const(3), "+")) == low(given(binary("+", n, BX))) == low(given(SIZE)) == 0
    for other in (given(int_const(1), "-"), given(int_const(-1), "+"), given(binary("*", n, int_const(3)))):
        assert low(other) == -(2**31)
