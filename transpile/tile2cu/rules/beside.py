"""Hopper: products of one turn that run beside one another, and beside what does not need them yet."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import buffers_written
from tile2cu.analysis.dependence import depends
from tile2cu.analysis.effects import effects
from tile2cu.analysis.lifetimes import Lifetimes
from tile2cu.core.decisions import (
    AWAITED_AT,
    EXPLICIT_WGMMA,
    LAYOUT,
    MMA_IN_FLIGHT,
    MMA_OVERLAP,
    NO_MMA_IN_FLIGHT,
    PING_PONG,
    PIPELINE,
    RETIRED,
    RETIRED_BEFORE,
    WARP_SPECIALISED,
)
from tile2cu.core.facts import Key, rejected
from tile2cu.core.program import AtomicTile, Buffer, Copy, Fill, Gemm, Let, Loop, Parallel, Reduce, Scope, Stmt
from tile2cu.core.schedule import Landing
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.hopper import multiplies_on_wgmma, on_wgmma, turns_follow
from tile2cu.rules.overlap import fit

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
_Place = tuple[Stmt, Key[Landing], Landing]  # products end behind a statement (RETIRED), or in front of it
_FEWEST = 3  # two MMAs side by side gain nothing: 1.000 to 1.002 of three kernels on an H200, 2026-11-23


@rule(
    "pipeline.loop.concurrent-mmas",
    phase=Phase.PIPELINE,
    on=Loop,
    reads=(EXPLICIT_WGMMA, LAYOUT, MMA_IN_FLIGHT, MMA_OVERLAP, PING_PONG, PIPELINE, WARP_SPECIALISED),
    writes=(AWAITED_AT, NO_MMA_IN_FLIGHT, RETIRED, RETIRED_BEFORE),
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
    of products in flight. Turns that overlap, or are dealt to warpgroups, have an order of their own. What is alive at
    once, operands of products in flight among it, has to fit a thread's registers: else products with an operand there
    are awaited where they stand, the first ones first.

    Gives: which products stay in flight, and before which statements the others are awaited.
    """
    pipeline = turns_follow(op, context)
    if pipeline is None or not on_wgmma(context):
        return
    products = [stmt for stmt in pipeline.body if isinstance(stmt, Gemm)]
    known = all(isinstance(stmt, _KNOWN) for stmt in pipeline.body)
    if len(products) < _FEWEST or not known or not all(multiplies_on_wgmma(each, context) for each in products):
        return
    # A product's operand in registers is copied from what other statements still need: awaited at once, it lives least.
    copied = [op for op in products if _operands(op, Scope.FRAGMENT)]
    for count in range(len(copied) + 1):
        landings = tuple(_landings(pipeline.body, products[-1], copied[:count]))
        alive = _most_alive(pipeline.body, landings, context)
        if fit(alive, context.launch):
            yield from _decisions(landings)
            return
    because = f"tiles would have up to {alive} registers of a thread at once, too many beside all else"
    yield rejected(op, NO_MMA_IN_FLIGHT, because, "choose smaller tiles")


def _decisions(landings: tuple[_Place, ...]) -> Iterator[Decision]:
    for stmt, key, landing in landings:
        yield stmt, key, landing
        for each in landing.products:
            yield each, AWAITED_AT, f"until line {stmt.span.line}"


def _landings(body: tuple[Stmt, ...], last: Gemm, awaited: list[Gemm]) -> Iterator[_Place]:
    """Follows a turn's statements with the products that are in flight, the oldest first; those `awaited` never are."""
    flying: list[Gemm] = []
    written = frozenset().union(*(buffers_written(stmt) for stmt in body))
    for stmt, following in zip(body, (*body[1:], last), strict=True):
        needed = max((number for number, each in enumerate(flying, 1) if _needs(stmt, each)), default=0)
        alone = isinstance(stmt, Gemm) and (
            stmt is last
            or any(stmt is each for each in awaited)
            or _needs(following, stmt)
            or bool(_operands(stmt, Scope.SHARED) & written)
        )
        landed, flying = (flying, []) if alone else (flying[:needed], flying[needed:])
        if landed:
            left = tuple(each.c.buffer for each in flying)
            yield stmt, RETIRED if alone else RETIRED_BEFORE, Landing(tuple(landed), left)
        if isinstance(stmt, Gemm) and not alone:
            flying.append(stmt)


def _most_alive(body: tuple[Stmt, ...], landings: tuple[_Place, ...], context: Context) -> int:
    """The most registers of a thread that fragments have in front of a statement that is no product.

    Such a statement needs others beside them. It may write where it has read; products' operands live until they end.
    """
    lifetimes = Lifetimes(context.launch, {})
    ends = {
        tile: lifetimes.end(stmt) - (key is RETIRED_BEFORE)
        for stmt, key, landing in landings
        for product in landing.products
        for tile in _operands(product, Scope.FRAGMENT)
    }
    spans: list[tuple[int, int, int]] = []
    for tile in context.launch.tiles:
        found, layout = lifetimes.of(tile), context.facts.get(tile, LAYOUT)
        if tile.scope is Scope.FRAGMENT and found is not None and layout is not None:
            spans.append((found.first, max(found.last, ends.get(tile, 0)), layout.words(tile.dtype.bytes)))
    places = [lifetimes.end(stmt) for stmt in body if not isinstance(stmt, Gemm)]
    return max((sum(words for start, end, words in spans if start < at <= end) for at in places), default=0)


def _needs(stmt: Stmt, product: Gemm) -> bool:
    """Whether a statement conflicts with a product in flight: it touches its result, or writes one of its operands.

    What reaches tensors has branches at their ends, and addresses: beside products in flight ptxas ran out of registers
    for them, and then waits for every product at once (C7512).
    """
    reaches_tensors = any(access.root.scope is Scope.GLOBAL for access in effects(stmt).accesses)
    return reaches_tensors or depends(product, stmt)


def _operands(product: Gemm, scope: Scope) -> frozenset[Buffer]:
    return frozenset(region.buffer for region in (product.a, product.b) if region.buffer.scope is scope)
