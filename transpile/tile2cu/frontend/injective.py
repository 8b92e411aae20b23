"""Whether a layout that a file gives a shared tile keeps its elements apart.

Where tiles are is the rules' choice, and such a layout is a hint. One that puts two elements in one place is none.
"""

import itertools
import math
from collections.abc import Mapping, Sequence

from tile2cu.core.dtype import INT32
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import Binary, Expr, Number, Role, Var, fold, static_value
from tile2cu.core.program import Buffer
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Exhausted, Fault
from tile2cu.frontend.placement import coordinates_of
from tile2cu.frontend.values import Layout

_MOST = 1 << 19  # elements: 4 bits each, more than any GPU's shared memory
_ELEMENTS_A_STEP = 16  # of the budget

# Whose results are no larger than an expression is long.
_OPERATORS = frozenset(("+", "-", "*", "//", "%", "&", "|", "^", ">>"))


def require_injective(cx: Context, tile: Buffer, layout: Layout) -> None:
    """Raises T2C-L016 for a layout that puts two elements of a shared tile in one place."""
    extents = [static_value(extent) for extent in tile.shape]
    shape = [int(extent) for extent in extents if extent is not None]
    if len(shape) < len(extents) or math.prod(shape) > _MOST:
        return
    cx.budget.step(math.prod(shape) // _ELEMENTS_A_STEP)
    indices = list(itertools.product(*map(range, shape)))
    places = _places(cx, layout, indices)
    first: dict[tuple[Number, ...], tuple[int, ...]] = {}
    for index, place in zip(indices, places, strict=False):
        other = first.setdefault(place, index)
        if other != index:
            raise Fault(
                "T2C-L016",
                f"the layout of `{tile.name}` puts its elements {_text(other)} and {_text(index)} in one place, "
                f"{_text(place)}",
                help="give each element a place of its own, or leave the layout out: tile2cu chooses one",
            )


def _places(cx: Context, layout: Layout, indices: Sequence[tuple[int, ...]]) -> list[tuple[Number, ...]]:
    """The coordinates of each index; none where they depend on values of run time, or of another package."""
    variables = tuple(Var(INT32, f"dimension {dim}", Role.LOOP) for dim in range(len(indices[0]) if indices else 0))
    try:
        with cx.recorder.block():
            found = coordinates_of(cx, layout, variables)
    except Exhausted:
        raise
    except (Fault, Tile2CuError):
        return []
    values = dict(zip(variables, map(list, zip(*indices, strict=True)), strict=True))
    columns = [_values(each, values, len(indices)) for each in found]
    known = [column for column in columns if column is not None]
    return list(zip(*known, strict=True)) if len(known) == len(columns) else []


def _values(expr: Expr, given: Mapping[Var, list[int]], count: int) -> list[Number] | None:
    """An expression's value at each index."""
    number = static_value(expr)
    if number is not None:
        return [number] * count
    if isinstance(expr, Var):
        return list(given[expr]) if expr in given else None
    if not isinstance(expr, Binary) or expr.op not in _OPERATORS:
        return None
    sides = [_values(side, given, count) for side in (expr.lhs, expr.rhs)]
    left, right = sides
    if left is None or right is None:
        return None
    found = [fold(expr.op, a, b) for a, b in zip(left, right, strict=True)]
    numbers = [each for each in found if each is not None]
    return numbers if len(numbers) == count else None


def _text(place: tuple[Number, ...]) -> str:
    return f"({', '.join(map(str, place))}{',' if len(place) == 1 else ''})"
