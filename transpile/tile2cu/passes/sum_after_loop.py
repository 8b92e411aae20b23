"""Sums that a loop adds to in each iteration: per-thread partial sums, reduced after the loop."""

from math import prod

from msgspec.structs import replace

from tile2cu.analysis.accesses import viewed
from tile2cu.analysis.uses import has_mma, is_only_use, statements
from tile2cu.core.expr import Const, Load, Role, static_value
from tile2cu.core.program import (
    Buffer,
    Fill,
    Launch,
    Loop,
    Parallel,
    Reduce,
    Reduction,
    Scope,
    Stmt,
    Store,
)
from tile2cu.core.rebuild import Body, in_body
from tile2cu.passes.loop_names import LoopNames
from tile2cu.passes.tiles import fresh, whole

AFTER_LOOP = "rewrite.reduce.after-loop"
_MOST_ELEMENTS = 32  # per thread, one register each


def sums_after_loops(launch: Launch) -> Launch:
    """The launch with per-thread partial sums in loops whose iterations reduce into the same sums.

        for t in T.serial(n):                       T.clear(total_parts)
            T.copy(X[t * 8, 0], x)                  for t in T.serial(n):
            T.reduce_sum(x, total,          is          T.copy(X[t * 8, 0], x)
                         dim=0, clear=False)            for i, j in T.Parallel(8, 256):
                                                            total_parts[i, j] += x[i, j]
                                                    T.reduce_sum(total_parts, total, dim=0, clear=False)

    An iteration then has no shuffles for them, and no barriers where several warps share a sum. The partial sums take
    registers: loops with more than 32 elements per thread, or with GEMMs, are unchanged, as are sums in narrow floats.
    """
    if launch.groups > 1 or has_mma(launch):
        return launch
    parts: list[Buffer] = []
    names = LoopNames(launch)

    def change(body: Body, position: int) -> Body | None:
        loop = body[position]
        sums = _sums(loop, launch) if isinstance(loop, Loop) else []
        if not sums:
            return None
        assert isinstance(loop, Loop)
        disjoint: dict[int, Parallel] = {}
        before: list[Stmt] = []
        after: list[Stmt] = []
        for op in sums:
            wish = fresh(replace(launch, tiles=(*launch.tiles, *parts)), f"{op.dst.name}_parts")
            tile = replace(op.src, name=wish, dtype=op.dst.dtype, comment="")
            parts.append(tile)
            about = f"each thread adds its own elements; one reduction over threads after the loop  [{AFTER_LOOP}]"
            zero = Const(tile.dtype, 0)
            before.append(Fill(dst=whole(tile, op), value=zero, is_clear=True, span=op.span, comments=(about,)))
            disjoint[id(op)] = _added(op, tile, names)
            after.append(replace(op, src=tile, comments=()))
        inside = in_body(loop.body, lambda body, position: _instead(body[position], disjoint))
        return (*before, replace(loop, body=in_body(inside, change)), *after)

    body = in_body(launch.body, change)
    return replace(launch, body=body, tiles=(*launch.tiles, *parts)) if parts else launch


def _instead(op: Stmt, disjoint: dict[int, Parallel]) -> Body | None:
    return (disjoint[id(op)],) if id(op) in disjoint else None


def _sums(loop: Loop, launch: Launch) -> list[Reduce]:
    """The reductions of a loop that add to sums which its iterations do not access otherwise."""
    iterations = (static_value(loop.start), static_value(loop.stop))
    if None not in iterations and iterations[1] - iterations[0] < 2:  # type: ignore[operator]
        return []
    found = [op for op in statements(loop.body, Reduce) if _adds(op, launch)]
    return [op for op in found if is_only_use(op, op.dst, loop.body)]


def _adds(op: Reduce, launch: Launch) -> bool:
    """Whether an operation adds a fragment of few elements to sums in registers."""
    if op.kind is not Reduction.SUM or op.clear or viewed(launch, op.dst) or op.src.of is not None:
        return False
    if not op.dst.dtype.has_partial_sums:
        return False
    in_registers = op.src.scope is op.dst.scope is Scope.FRAGMENT
    return in_registers and prod(op.src.static_shape) <= _MOST_ELEMENTS * launch.threads


def _added(op: Reduce, tile: Buffer, names: LoopNames) -> Parallel:
    """The loop that adds the reduced elements to per-thread partial sums."""
    vars_ = names.variables(tile.rank, Role.PARALLEL, op)
    value = Load(op.src.dtype, op.src, vars_)
    store = Store(buffer=tile, indices=vars_, value=value, op="+", span=op.span)
    return Parallel(vars=vars_, extents=tile.shape, body=(store,), span=op.span, comments=op.comments)
