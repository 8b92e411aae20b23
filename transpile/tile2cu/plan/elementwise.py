"""T.Parallel loops: who runs which iterations, and in vectors of how many."""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from tile2cu.analysis.accesses import buffers_written, loads, variables
from tile2cu.analysis.prelude import around, behind
from tile2cu.analysis.uses import all_expressions, read_in
from tile2cu.core.decisions import (
    DOT_OF_FOUR,
    ELECTED_WRITERS,
    IN_REGISTERS,
    LAYOUT,
    PACKED_GROUP,
    PERMUTATION_INVARIANT,
    PIPELINE,
    STORE_LAST,
    TRANSPOSED,
    VECTOR,
    VOTED_RESCALE,
)
from tile2cu.core.expr import Load
from tile2cu.core.layout import Blocked
from tile2cu.core.program import Buffer, Loop, Parallel, Region, Scope, Store
from tile2cu.plan.claims import (
    ByLdmatrix,
    Claim,
    ElementsTogether,
    HalfBytes,
    IdleLanesCompute,
    ReadsGlobal,
    StoredLast,
    TotalsOnly,
)
from tile2cu.plan.copy_ops import Copy, CopyMechanism
from tile2cu.plan.operands import Tile
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.structure import ByOneHolder, DotsOfFour, Elementwise, Scaled, Statement, Writers

_WRITERS = {"once": Writers.ONCE, "stores": Writers.STORES}


def elementwise(op: Parallel, resolved: Resolved, lower: Callable[[bool], tuple[Statement, ...]]) -> Elementwise | Copy:
    """The loop; `lower` lowers its body, of whose stores one thread is elected to write memory, or not."""
    facts = resolved.facts
    if facts.get(op, TRANSPOSED):
        return _transposed(op, resolved)
    writers = _WRITERS.get(facts[op, ELECTED_WRITERS], Writers.ALL)
    dot, layout, vector = facts.get(op, DOT_OF_FOUR), facts[op, LAYOUT], facts[op, VECTOR]
    if dot is None:
        body = _joined(lower(writers is Writers.STORES))
    else:
        body = (Statement(source=dot.sum, op=DotsOfFour(source=dot.sum, dot=dot)),)
    return Elementwise(
        source=op,
        claims=tuple(_claims(op, resolved)),
        vars=op.vars,
        extents=op.extents,
        layout=layout,
        vector=vector,
        neighbours=vector > 1 and isinstance(layout, Blocked),
        writers=writers,
        in_registers=facts.get(op, IN_REGISTERS) is True,
        any_order=facts.get(op, PERMUTATION_INVARIANT) is True,
        stores_last=bool(facts.get(op, STORE_LAST)),
        scales=_scaled(op, resolved),
        used=frozenset(variables(*all_expressions(op.body))),
        body=body,
    )


def _scaled(op: Parallel, resolved: Resolved) -> Scaled | None:
    """What a rescale multiplies, where warps vote to skip it."""
    voted = resolved.facts.get(op, VOTED_RESCALE)
    if voted is None:
        return None
    (store,) = op.body
    assert isinstance(store, Store) and isinstance(store.value, Load) and isinstance(store.value.buffer, Buffer)
    rule, factor = resolved.facts.rule(op, VOTED_RESCALE), store.value.buffer
    return Scaled(tile=store.buffer, factor=factor, before=voted.before, after=voted.after, rule=rule)


def _joined(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Neighbours that are left to the same thread, as one."""
    found: list[Statement] = []
    for each in body:
        before = found[-1].op if found else None
        if isinstance(before, ByOneHolder) and isinstance(each.op, ByOneHolder):
            op = replace(before, body=(*before.body, *each.op.body))
            found[-1] = Statement(source=before.source, op=op)
        else:
            found.append(each)
    return tuple(found)


def _transposed(op: Parallel, resolved: Resolved) -> Copy:
    """A loop that copies a shared tile's rows to a fragment's columns."""
    (store,) = op.body
    assert isinstance(store, Store) and isinstance(store.value, Load) and isinstance(store.value.buffer, Buffer)
    return Copy(
        source=store,
        claims=(ByLdmatrix(rule=resolved.facts.rule(op, TRANSPOSED)),),
        src=Tile(region=Region.all_of(store.value.buffer, store.span), transposed=True),
        dst=Tile(region=Region.all_of(store.buffer, store.span)),
        mechanism=CopyMechanism.THREADS,
        threads=None,
    )


def _claims(op: Parallel, resolved: Resolved) -> Iterator[Claim]:
    facts = resolved.facts
    vector = facts[op, VECTOR]
    if vector > 1:
        scattered = not isinstance(facts[op, LAYOUT], Blocked)
        yield ElementsTogether(elements=vector, columns=4 * vector if scattered else 0, rule=facts.rule(op, VECTOR))
    if facts.get(op, IN_REGISTERS) is True:
        yield IdleLanesCompute(rule=facts.rule(op, IN_REGISTERS))
    if facts.get(op, PERMUTATION_INVARIANT) is True:
        yield TotalsOnly(rule=facts.rule(op, PERMUTATION_INVARIANT))
    if facts.get(op, PACKED_GROUP) == 1:
        yield HalfBytes(rule=facts.rule(op, PACKED_GROUP))
    if facts.get(op, STORE_LAST):
        store = op.body[-1]
        assert isinstance(store, Store)
        yield StoredLast(tile=store.buffer, rule=facts.rule(op, STORE_LAST))
    if read := _read_in_pipeline(op, resolved):
        yield ReadsGlobal(tensors=read)


def _read_in_pipeline(op: Parallel, resolved: Resolved) -> tuple[Buffer, ...]:
    """The tensors whose elements a loop over elements reads in each iteration of a pipelined loop, and uses there."""
    outer = [each for each in around(resolved.launch.body, op) if isinstance(each, Loop)]
    if all(resolved.facts.get(loop, PIPELINE) is None for loop in outer):
        return ()
    body = outer[-1].body
    if any(stmt is op for stmt in body) and not buffers_written(op) & read_in(behind(body, op)):
        return ()  # the next iteration uses them
    found = (load.buffer for expr in all_expressions(op.body) for load in loads(expr, op.span))
    return tuple(dict.fromkeys(each.memory for each in found if each.memory.scope is Scope.GLOBAL))
