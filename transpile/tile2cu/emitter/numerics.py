"""Where products and sums accumulate, where values are rounded, what is approximated, and in which order sums go."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tile2cu.core.accesses import expressions
from tile2cu.core.dtype import DType
from tile2cu.core.expr import Call, walk
from tile2cu.core.program import Atomic, AtomicTile, Copy, Gemm, Reduce, Reduction, Scan, Scope, Stmt, walk_stmts
from tile2cu.emitter.settled import Settled

# headers/tl/common/math.h: written over the special-function unit in float32, besides all that start with fast_.
_APPROXIMATED = frozenset({"exp2", "rsqrt"})
_SUMS = (Reduction.SUM, Reduction.ABSSUM)


@dataclass(frozen=True, kw_only=True)
class Numerics:
    """The numerics of a kernel; element types by name.

    `rounded` are copies into a narrower type: (tensor or tile, type, Python line). `extrema` are the functions of
    floating-point numbers that prefer a number to NaN. `order` says in which order what is summed, a sentence for each
    kind of sum.
    """

    products: tuple[str, ...]
    reductions: tuple[str, ...]
    rounded: tuple[tuple[str, str, int], ...]
    extrema: tuple[str, ...]
    approximated: tuple[str, ...]
    order: tuple[str, ...]


def numerics(launches: tuple[Settled, ...]) -> Numerics:
    """The numerics of a kernel's settled launches."""
    stmts = [stmt for settled in launches for stmt in walk_stmts(settled.launch.body)]
    rounded = (
        (op.dst.buffer.name, str(op.dst.buffer.dtype), op.span.line)
        for op in stmts
        if isinstance(op, Copy) and _narrows(op.src.buffer.dtype, op.dst.buffer.dtype)
    )
    calls = list(_float_calls(stmts))
    return Numerics(
        products=tuple(sorted({op.c.buffer.dtype.name for op in stmts if isinstance(op, Gemm)})),
        reductions=tuple(sorted({op.dst.dtype.name for op in stmts if isinstance(op, Reduce)})),
        rounded=tuple(dict.fromkeys(rounded)),
        extrema=tuple(sorted({name for name in calls if name in ("max", "min")})),
        approximated=tuple(sorted({name for name in calls if name in _APPROXIMATED or name.startswith("fast_")})),
        order=tuple(dict.fromkeys(text for settled in launches for text in _order(settled))),
    )


def _order(settled: Settled) -> Iterator[str]:
    """What headers/tl does, a sentence for each kind of sum; whatever the sizes, each run does the same."""
    for op in walk_stmts(settled.launch.body):
        if isinstance(op, Gemm) and op.c.buffer.dtype.is_float:
            instruction = str(settled.facts[op, "instruction"])
            if instruction == "fma":
                yield "products: along k upwards, one at a time"
            else:
                yield f"products: along k upwards, one {instruction} after the other, which adds its own k as it does"
        elif isinstance(op, Scan) and op.kind in _SUMS and op.dst.dtype.is_float:
            yield "running sums: a thread's own elements upwards; a warp's line in steps of 1, 2, 4, ... elements"
        elif isinstance(op, Reduce) and op.kind in _SUMS and op.dst.dtype.is_float:
            of_tile = " of shared tiles" if op.src.scope is Scope.SHARED else ""
            parts = ", then the block's groups of lanes upwards" if settled.facts[op, "workspace"] > 1 else ""
            lanes = "after the loop" if settled.facts.get(op, "own") else "then"
            yield f"reductions{of_tile}: a thread's own elements upwards, {lanes} lanes pair by pair{parts}"
        elif _adds_atomically(op):
            yield "atomic additions: in any order, which may change the last bits from run to run"


def _float_calls(stmts: Iterable[Stmt]) -> Iterator[str]:
    for stmt in stmts:
        for expr in expressions(stmt):
            yield from (part.function for part in walk(expr) if isinstance(part, Call) and part.dtype.is_float)


def _adds_atomically(op: object) -> bool:
    if isinstance(op, Atomic):
        return op.kind is Reduction.SUM and op.buffer.dtype.is_float
    return isinstance(op, AtomicTile) and op.kind is Reduction.SUM and op.dst.buffer.dtype.is_float


def _narrows(src: DType, dst: DType) -> bool:
    return src.is_float and dst.is_float and dst.bits < src.bits
