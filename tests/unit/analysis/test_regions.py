"""Boxes are upper bounds: one that is widened holds every element, and two that are apart share none."""

from collections.abc import Mapping
from itertools import product

from hypothesis import example, given
from hypothesis import strategies as st

from tile2cu.analysis.regions import disjoint, disjoint_in_other_iterations, over
from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Binary, Expr, Role, Var, binary, int_const, static_value

K, J = Var(INT32, "k", Role.LOOP), Var(INT32, "j", Role.LOOP)
_OPERATORS = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__, "//": int.__floordiv__, "%": int.__mod__}

_atoms = st.one_of(st.sampled_from([K, J]), st.integers(-3, 9).map(int_const))
_constants = st.integers(1, 4).map(int_const)


def _larger(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.one_of(
        st.builds(binary, st.sampled_from("+-"), inner, inner),
        st.builds(binary, st.sampled_from(["*", "//", "%"]), inner, _constants),
    )


indices = st.recursive(_atoms, _larger, max_leaves=5)
lengths = st.integers(1, 6)


def value(expr: Expr, values: Mapping[Expr, int]) -> int:
    if expr in values:
        return values[expr]
    if isinstance(expr, Binary):
        return _OPERATORS[expr.op](value(expr.lhs, values), value(expr.rhs, values))
    known = static_value(expr)
    assert known is not None
    return int(known)


def elements(first: Expr, length: Expr, values: Mapping[Expr, int]) -> set[int]:
    start = value(first, values)
    return set(range(start, start + value(length, values)))


@example(binary("*", K, int_const(-1)), 1, 0, 4)  # it runs downwards
@example(binary("+", K, binary("%", K, int_const(2))), 1, 0, 4)  # not linear in one of its terms
@given(indices, lengths, st.integers(-2, 3), st.integers(1, 4))
def test_a_widened_extent_holds_every_iteration(first: Expr, length: int, start: int, count: int) -> None:
    widened = over((first, int_const(length)), K, int_const(start), int_const(count))
    if widened is None:
        return
    for j in range(-1, 3):
        held = elements(*widened, {J: j})
        for k in range(start, start + count):
            assert elements(first, int_const(length), {K: k, J: j}) <= held


def test_an_affine_extent_is_widened_exactly() -> None:
    first = binary("+", binary("*", K, int_const(8)), J)
    widened = over((first, int_const(8)), K, int_const(1), int_const(3))
    assert widened is not None and elements(*widened, {J: 5}) == set(range(13, 37))


@given(indices, lengths, indices, lengths)
def test_extents_that_are_apart_share_nothing(first: Expr, length: int, other: Expr, others: int) -> None:
    a, b = (first, int_const(length)), (other, int_const(others))
    if disjoint(a, b):
        for k, j in product(range(-2, 4), repeat=2):
            assert not elements(*a, {K: k, J: j}) & elements(*b, {K: k, J: j})


@given(indices, lengths, indices, lengths, st.sampled_from([-2, -1, 1, 2]))
def test_iterations_that_are_apart_share_nothing(first: Expr, length: int, other: Expr, others: int, step: int) -> None:
    a, b = (first, int_const(length)), (other, int_const(others))
    for changing in (frozenset[Var](), frozenset((J,))):
        if disjoint_in_other_iterations(a, b, K, step, changing):
            for j, i, one, two in product(range(-1, 2), range(-1, 2), range(5), range(5)):
                if one != two and (changing or i == j):
                    assert not elements(*a, {K: one * step, J: j}) & elements(*b, {K: two * step, J: i})


def test_rows_of_an_iteration_are_apart_from_those_of_others() -> None:
    rows = (binary("*", K, int_const(8)), int_const(8))
    more = (binary("*", K, int_const(8)), int_const(9))
    named = (binary("+", rows[0], J), rows[1])
    none = frozenset[Var]()
    assert disjoint_in_other_iterations(rows, rows, K, 1, none)
    assert not disjoint_in_other_iterations(rows, more, K, 1, none)
    assert disjoint_in_other_iterations(named, named, K, 1, none)
    assert not disjoint_in_other_iterations(named, named, K, 1, frozenset((J,)))
    left, right = (J, int_const(4)), (binary("+", J, int_const(4)), int_const(4))
    for var in (K, None):  # what no iteration changes is the same in all
        assert disjoint_in_other_iterations(left, right, var, 1, none)
        assert not disjoint_in_other_iterations(left, left, var, 1, none)
        assert not disjoint_in_other_iterations(left, right, var, 1, frozenset((J,)))
    assert disjoint((K, int_const(2)), (binary("+", K, int_const(2)), int_const(1)))
    assert not disjoint((K, int_const(2)), (binary("+", K, int_const(1)), int_const(1)))
