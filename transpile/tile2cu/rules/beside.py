"""Hopper: products of one turn that run beside one another, and beside what does not need them yet."""

from collections.abc import Iterator

from tile2cu.core.accesses import buffers_read, buffers_written
from tile2cu.core.program import AtomicTile, Buffer, Copy, Fill, Gemm, Let, Loop, Parallel, Reduce, Scope, Stmt
from tile2cu.core.schedule import Landing
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.hopper import multiplies_on_wgmma, on_wgmma, turns_follow

_THREE = """
A_shared = T.alloc_shared((64, 64), "float16")
B_shared = T.alloc_shared((64, 64), "float16")
S = T.alloc_fragment((64, 64), "float32")
P = T.alloc_fragment((64, 64), "float16")
C = T.alloc_fragment((64, 64), "float32")
D = T.alloc_fragment((64, 64), "float32")
T.clear(D)
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[k * 64, 0], A_shared)
    T.copy(Z[0, k * 64], B_shared)
    T.gemm(A_shared, B_shared, S, clear_accum=True)
    T.gemm(B_shared, A_shared, C, clear_accum=True)
    T.copy(S, P)
    T.gemm(P, A_shared, D)
    for i, j in T.Parallel(64, 64):
        D[i, j] += C[i, j]
"""
_KNOWN = Copy | Fill | Gemm | Let | Parallel | Reduce | AtomicTile
_FEWEST = 3  # of two products in a turn, one overlaps the next turn or none does


@rule(
    "pipeline.loop.products-beside",
    phase=Phase.PIPELINE,
    on=Loop,
    source="measured on an H200: benchmarks/RESULTS.md, attention backward",
    examples=(
        Example(_THREE, 13, "lands", "S", target="cuda:sm_90a"),
        Example(_THREE, 14, "landing", "C", target="cuda:sm_90a"),
    ),
)
def products_beside(op: Loop, context: Context) -> Iterator[Decision]:
    """In a turn of three products or more, each stays in flight until a statement needs its result or its operands.

    The last one waits for itself and for all before it, so that nothing is in flight when the turn's slots are freed.
    Operands in shared memory are tiles that the producer loads: others are written behind barriers, which know nothing
    of products in flight. Turns that overlap, or are dealt to warpgroups, have an order of their own.

    Gives: which products stay in flight, and before which statements the others are awaited.
    """
    pipeline = turns_follow(op, context)
    if pipeline is None or not on_wgmma(context):
        return
    products = [stmt for stmt in pipeline.body if isinstance(stmt, Gemm)]
    known = all(isinstance(stmt, _KNOWN) for stmt in pipeline.body)
    if len(products) < _FEWEST or not known or not all(multiplies_on_wgmma(each, context) for each in products):
        return
    yield from _flights(pipeline.body, products[-1], context)


def _flights(body: tuple[Stmt, ...], last: Gemm, context: Context) -> Iterator[Decision]:
    """Follows a turn's statements with the products that are in flight, the oldest first."""
    flying: list[Gemm] = []
    written = frozenset().union(*(buffers_written(stmt) for stmt in body))
    for stmt, following in zip(body, (*body[1:], last), strict=True):
        needed = max((number for number, each in enumerate(flying, 1) if _needs(stmt, each)), default=0)
        alone = isinstance(stmt, Gemm) and (
            stmt is last or _needs(following, stmt) or bool(_operands(stmt, Scope.SHARED) & written)
        )
        landed, flying = (flying, []) if alone else (flying[:needed], flying[needed:])
        if landed:
            left = tuple(each.c.buffer for each in flying)
            yield stmt, "landing" if alone else "lands", Landing(tuple(landed), left)
        for each in landed:
            yield each, "in_flight", f"until line {stmt.span.line}"
        if isinstance(stmt, Gemm) and not alone:
            flying.append(stmt)


def _needs(stmt: Stmt, product: Gemm) -> bool:
    """Whether a statement uses the product's result, or writes one of its operands in registers.

    What reaches tensors has branches at their ends, and addresses: beside products in flight ptxas ran out of registers
    for them, and then waits for every product at once (C7512).
    """
    read, written = buffers_read(stmt), buffers_written(stmt)
    if any(buffer.scope is Scope.GLOBAL for buffer in read | written):
        return True
    return product.c.buffer in read | written or bool(_operands(product, Scope.FRAGMENT) & written)


def _operands(product: Gemm, scope: Scope) -> frozenset[Buffer]:
    return frozenset(region.buffer for region in (product.a, product.b) if region.buffer.scope is scope)
