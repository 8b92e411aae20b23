"""Layouts of reshaped fragments."""

from collections.abc import Iterator

from tile2cu.analysis.uses import users
from tile2cu.core.decisions import LAYOUT
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.layout import split_columns
from tile2cu.core.program import Launch, Scope
from tile2cu.rules.engine import Context, Decision, Elsewhere, Example, Phase, rule


@rule(
    "layout.view.split-columns",
    phase=Phase.COMMON,
    on=Launch,
    reads=(LAYOUT,),
    writes=(LAYOUT,),
    source="docs/architecture.md, 'How a layout is found'",
    examples=(
        Example(
            'A_shared = T.alloc_shared((64, 32), "float16")\n'
            'B_shared = T.alloc_shared((32, 64), "float16")\n'
            'C_local = T.alloc_fragment((64, 64), "float32")\n'
            "C_heads = T.reshape(C_local, (64, 4, 16))\n"
            'sums = T.alloc_fragment((64, 4), "float32")\n'
            "T.gemm(A_shared, B_shared, C_local, policy=T.GemmWarpPolicy.FullRow)\n"
            "T.reduce_sum(C_heads, sums, dim=2)",
            "C_heads",
            "layout",
            "SplitColumns(of=MmaAccumulator(rows=64, cols=64, warps=Warps(m=4, n=1)), width=16)",
        ),
    ),
)
def view_split_columns(launch: Launch, context: Context) -> Iterator[Decision]:
    """A reshape of an accumulator that groups its columns keeps the registers.

    Gives: the layout of the view; where it has none, the view's elements go through shared memory.
    """
    for tile in launch.tiles:
        if tile.scope is not Scope.FRAGMENT or tile.of is None:
            continue
        layout = context.facts.get(tile.of, LAYOUT)
        if layout is None:
            continue
        split = split_columns(layout, tile.static_shape[-1])
        if split is None:
            op = next(iter(users(context.launch.body, tile)))
            raise Elsewhere.of(Tile2CuError("T2C-L014", f"`{tile.name}` has another layout", op.span), op, tile)
        yield tile, LAYOUT, split
