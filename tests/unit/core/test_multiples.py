"""Conditions on sizes: those that others imply are not asked, and the rest asks for the same sizes."""

from hypothesis import given
from hypothesis import strategies as st

from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Expr, Role, Var, binary, int_const
from tile2cu.core.schedule import Multiple, strictest

K, N = Var(INT32, "K", Role.SIZE), Var(INT32, "N", Role.SIZE)
POWERS = st.sampled_from((1, 2, 4, 8, 16, 32))
VALUES = st.one_of(
    st.sampled_from((K, N)),
    st.builds(lambda size, by: binary("//", size, int_const(by)), st.sampled_from((K, N)), POWERS),
)
CONDITIONS = st.lists(st.builds(Multiple, VALUES, POWERS), max_size=6)


def value(expr: Expr, sizes: dict[str, int]) -> int:
    if isinstance(expr, Var):
        return sizes[expr.name]
    return value(expr.lhs, sizes) // int(expr.rhs.value)  # type: ignore[attr-defined]


def hold(conditions: tuple[Multiple, ...] | list[Multiple], sizes: dict[str, int]) -> bool:
    return all(value(each.value, sizes) % each.of == 0 for each in conditions)


@given(CONDITIONS, st.integers(0, 4096), st.integers(0, 4096))
def test_the_same_sizes_are_asked_for(conditions: list[Multiple], k: int, n: int) -> None:
    for sizes in ({"K": k, "N": n}, {"K": k // 32 * 32, "N": n // 1024 * 1024}):
        assert hold(conditions, sizes) == hold(strictest(conditions), sizes)


def test_a_quotient_is_said_of_what_is_divided() -> None:
    half, part = binary("//", K, int_const(2)), binary("//", K, int_const(3))
    assert strictest((Multiple(K, 8), Multiple(half, 16), Multiple(N, 8), Multiple(N, 16))) == (
        Multiple(K, 32),
        Multiple(N, 16),
    )
    assert strictest((Multiple(K, 8), Multiple(part, 16))) == (Multiple(K, 8), Multiple(part, 16))
    assert strictest((Multiple(half, 16),)) == (Multiple(half, 16),)
