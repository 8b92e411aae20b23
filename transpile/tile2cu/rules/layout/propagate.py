"""Layouts that follow from others: through copies, elementwise loops and reductions."""

from collections.abc import Collection, Iterable, Iterator

from tile2cu.analysis.accesses import Access, element_accesses
from tile2cu.analysis.control import places
from tile2cu.analysis.loop_dependent import dependent, mentions
from tile2cu.analysis.uses import statements
from tile2cu.core.decisions import LAYOUT
from tile2cu.core.errors import Note, Tile2CuError
from tile2cu.core.expr import Expr, Var, static_value
from tile2cu.core.layout import FragmentLayout, Replicated, Slice, slice_of
from tile2cu.core.memo import kept
from tile2cu.core.program import Copy, Launch, Parallel, Reduce, Scan, Scope, Store
from tile2cu.rules.engine import Context, Decision, Elsewhere, Example, Phase, rule

_SOFTMAX = """
A_shared = T.alloc_shared((64, 32), "float16")
B_shared = T.alloc_shared((32, 64), "float16")
S = T.alloc_fragment((64, 64), "float32")
P = T.alloc_fragment((64, 64), "float16")
row_max = T.alloc_fragment((64,), "float32")
scale = T.alloc_fragment((64,), "float32")
T.gemm(A_shared, B_shared, S, policy=T.GemmWarpPolicy.FullRow)
T.reduce_max(S, row_max, dim=1)
for i in T.Parallel(64):
    scale[i] = row_max[i] * 2.0
T.copy(S, P)
"""
_ROWS = "rows of MmaAccumulator(rows=64, cols=8, warps=Warps(m=4, n=1))"
_OWN = "docs/architecture.md, 'How a layout is found'"


@rule(
    "layout.copy.same",
    phase=Phase.COMMON,
    on=Copy,
    reads=(LAYOUT,),
    writes=(LAYOUT,),
    source=_OWN,
    examples=(Example(_SOFTMAX, "P", "layout", "MmaAccumulator(rows=64, cols=64, warps=Warps(m=4, n=1))"),),
)
def copy_same(op: Copy, context: Context) -> Iterator[Decision]:
    """A copy between two fragments keeps each element in its thread, so both have one layout.

    Gives: the known side's layout to the other side.
    Errors: T2C-L001 when both are fixed and differ.
    """
    src, dst = op.src.buffer, op.dst.buffer
    if src.scope is Scope.FRAGMENT and dst.scope is Scope.FRAGMENT:
        for known, other in ((src, dst), (dst, src)):
            layout = context.facts.get(known, LAYOUT)
            if layout is not None and known.static_shape == other.static_shape:
                yield other, LAYOUT, layout


@rule(
    "layout.reduce.kept-dimension",
    phase=Phase.COMMON,
    on=Reduce,
    reads=(LAYOUT,),
    writes=(LAYOUT,),
    source=_OWN,
    examples=(Example(_SOFTMAX, "row_max", "layout", _ROWS),),
)
def reduce_kept_dimension(op: Reduce, context: Context) -> Iterator[Decision]:
    """The result of a reduction has a slice layout: all threads that held a part of it hold it.

    Gives: the result's layout, the source's with the reduced dimension replicated.
    Errors: T2C-L013 when the source's layout has no such slice.
    """
    layout = context.facts.get(op.src, LAYOUT)
    if layout is None or op.src.scope is not Scope.FRAGMENT or op.dst.scope is not Scope.FRAGMENT:
        return
    if op.src.rank == 1 and op.dst.static_shape == (1,):
        yield op.dst, LAYOUT, Replicated((1,), context.threads)
        return
    kept = slice_of(layout, tuple(dim for dim in range(op.src.rank) if dim != op.dim))
    if kept is None:
        error = Tile2CuError(
            "T2C-L013",
            f"`{op.src.name}` cannot be reduced along dimension {op.dim} in its layout",
            op.span,
            notes=(Note(f"its layout is {layout}, by `{context.facts.rule(op.src, LAYOUT)}`"),),
            help="give the fragment at most three dimensions",
        )
        raise Elsewhere.of(error, op, op.src) if op.src.rank == 2 else error
    yield op.dst, LAYOUT, kept


@rule(
    "layout.scan.same",
    phase=Phase.COMMON,
    on=Scan,
    reads=(LAYOUT,),
    writes=(LAYOUT,),
    source=_OWN,
    examples=(
        Example(
            'L = T.alloc_fragment((16, 256), "float32")\n'
            'R = T.alloc_fragment((16, 256), "float32")\n'
            "T.cumsum(L, R, dim=1)",
            "R",
            "layout",
            "Blocked(extents=(16, 256), threads=(2, 64), vector=4, block_threads=128, rows=1)",
        ),
    ),
)
def scan_same(op: Scan, context: Context) -> Iterator[Decision]:
    """A running sum has the layout of its source.

    Gives: the known side's layout to the other side.
    """
    for known, other in ((op.src, op.dst), (op.dst, op.src)):
        layout = context.facts.get(known, LAYOUT)
        if layout is not None and known.scope is other.scope is Scope.FRAGMENT:
            yield other, LAYOUT, layout


@rule(
    "layout.parallel.from-fragment",
    phase=Phase.COMMON,
    on=Parallel,
    reads=(LAYOUT,),
    writes=(LAYOUT,),
    source=_OWN,
    examples=(Example(_SOFTMAX, 9, "layout", _ROWS),),
)
def parallel_from_fragment(op: Parallel, context: Context) -> Iterator[Decision]:
    """An elementwise loop has the layout of its fragment: of the one it writes, else of the one it reads.

    Gives: the loop's layout, from a fragment that is indexed by all of the loop's variables in order; of a loop over
    one row or column, from one that is indexed by the other variables.
    """
    accesses = fragment_accesses(op)
    covering = [access for access in accesses if access.indices == op.vars]
    for access in sorted(covering, key=lambda access: not access.is_store):
        layout = context.facts.get(access.buffer, LAYOUT)
        if layout is not None and _covers(layout, op):
            yield op, LAYOUT, layout
            return
    for access in accesses:
        layout = context.facts.get(access.buffer, LAYOUT)
        if isinstance(layout, Slice) and _is_one_line(layout, op) and slice_for(access, op, layout.of) == layout:
            yield op, LAYOUT, layout.of
            return


@rule(
    "layout.parallel.to-fragment",
    phase=Phase.COMMON,
    on=Parallel,
    reads=(LAYOUT,),
    writes=(LAYOUT,),
    source=_OWN,
    examples=(Example(_SOFTMAX, "scale", "layout", _ROWS),),
)
def parallel_to_fragment(op: Parallel, context: Context) -> Iterator[Decision]:
    """A fragment in an elementwise loop has the loop's layout.

    Indexed by one of two variables, it is replicated along the other.

    Gives: the layout of each fragment in the loop.
    Errors: T2C-L014 when a fragment is indexed by anything but the loop's variables, or the loop runs over a part of
    it, or when threads that hold the same element of it would write different values to it.
    """
    layout = context.facts.get(op, LAYOUT)
    if layout is None:
        return
    for access in uneven_stores(op):
        raise uneven(access, op)
    for access in fragment_accesses(op):
        wanted = slice_for(access, op, layout)
        if wanted is None or wanted.shape != access.buffer.static_shape:  # a loop over a slice has a layout of its own
            raise bad_index(access, op)
        yield access.buffer, LAYOUT, wanted


@rule(
    "layout.index.constant",
    phase=Phase.STRICT,
    on=Launch,
    writes=(LAYOUT,),
    source=_OWN,
    examples=(
        Example(
            'total = T.alloc_fragment((1,), "float32")\nfor i in T.Parallel(128):\n    total[0] = 1.0',
            "total",
            "layout",
            "Replicated(extents=(1,), block_threads=128)",
        ),
    ),
)
def index_constant(launch: Launch, context: Context) -> Iterator[Decision]:
    """A fragment that is indexed by a constant, or outside of T.Parallel, is replicated in every thread.

    Gives: the replicated layout.
    """
    loops = [*statements(launch.body, Parallel)]
    spread = {var for op in loops for var in dependent(op, op.vars)}
    for access in element_accesses(launch.body):
        if access.buffer.scope is Scope.FRAGMENT and not any(mentions(index, spread) for index in access.indices):
            yield access.buffer, LAYOUT, Replicated(access.buffer.static_shape, context.of(access.buffer).threads)


@kept
def fragment_accesses(op: Parallel) -> list[Access]:
    """The loop's accesses to fragments that depend on its variables."""
    spread = dependent(op, op.vars)
    return [
        access
        for access in element_accesses(op.body)
        if access.buffer.scope is Scope.FRAGMENT and any(mentions(index, spread) for index in access.indices)
    ]


@kept
def uneven_stores(op: Parallel) -> tuple[Access, ...]:
    """Stores to fragments by some of the loop's variables, of values (or under conditions) that depend on others."""
    pairs = zip(op.vars, op.extents, strict=True)
    iterations = [dependent(op, (var,)) for var, extent in pairs if static_value(extent) != 1]
    found = []
    for place in places(op.body):
        stmt = place.stmt
        if isinstance(stmt, Store) and stmt.buffer.scope is Scope.FRAGMENT:
            others = {var for each in iterations for var in each if not _any_mentions(stmt.indices, each)}
            if _any_mentions((stmt.value, *(condition for condition, _ in place.conditions)), others):
                found.append(Access(stmt.buffer, stmt.indices, True, stmt.span))
    return tuple(found)


def _any_mentions(exprs: Iterable[Expr], variables: Collection[Var]) -> bool:
    return any(mentions(expr, variables) for expr in exprs)


def _covers(layout: FragmentLayout, op: Parallel) -> bool:
    return layout.shape == tuple(static_value(extent) for extent in op.extents)


def _is_one_line(layout: Slice, op: Parallel) -> bool:
    """Whether a loop runs over the tile of a slice layout, and the slice has all of its elements."""
    removed = (extent for dim, extent in enumerate(layout.of.shape) if dim not in layout.kept)
    return _covers(layout.of, op) and all(extent == 1 for extent in removed)


def slice_for(access: Access, op: Parallel, layout: FragmentLayout) -> FragmentLayout | None:
    """The layout that the fragment must have so that each iteration accesses it in its own thread."""
    if access.indices == op.vars:
        return layout
    if isinstance(layout, Replicated):
        return Replicated(access.buffer.static_shape, layout.block_threads)
    if all(index in op.vars for index in access.indices):
        return slice_of(layout, tuple(op.vars.index(index) for index in access.indices if isinstance(index, Var)))
    return None


def uneven(access: Access, op: Parallel) -> Tile2CuError:
    error = Tile2CuError(
        "T2C-L014",
        f"threads that hold one element of `{access.buffer.name}` would write different values to it",
        access.span,
        notes=(Note("this loop runs over " + ", ".join(var.name for var in op.vars), op.span),),
        help="combine values of several elements with T.reduce_*, T.atomic_* on memory, or T.alloc_reducer",
    )
    return Elsewhere.of(error, op, access.buffer)


def bad_index(access: Access, op: Parallel) -> Tile2CuError:
    names = ", ".join(var.name for var in op.vars)
    error = Tile2CuError(
        "T2C-L014",
        f"`{access.buffer.name}` is distributed over threads and can only be indexed by the loop's own variables here",
        access.span,
        notes=(Note(f"this loop runs over {names}", op.span),),
        help=f"index it by {names} or one of them, or keep the tile in shared memory",
    )
    return Elsewhere.of(error, op, access.buffer)
