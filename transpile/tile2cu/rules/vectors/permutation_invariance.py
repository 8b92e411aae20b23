"""Loops that decode 4-bit numbers and are read as totals only: their elements stay in the order of decoding."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import element_accesses, moved_index
from tile2cu.analysis.bounds import Bounds
from tile2cu.analysis.uses import statements, writers
from tile2cu.core.decisions import LAYOUT, PERMUTATION_INVARIANT, VECTOR
from tile2cu.core.expr import Expr, Load, Var, children, nibbles_of, quotient_of, walk
from tile2cu.core.layout import Blocked
from tile2cu.core.program import Buffer, Fill, Let, Parallel, Scope, Store
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.vectors.packed_dot_products import only_total_is_read

_NUMBERS_OF_A_WORD = 8
_EXAMPLE = """
P = T.alloc_shared((8, 512), "uint8")
x = T.alloc_shared((1024,), "float16")
sums = T.alloc_fragment((8, 1024), "float16")
total = T.alloc_fragment((8,), "float32")
T.clear(sums)
for i, j in T.Parallel(8, 1024):
    nibble = T.cast(P[i, j // 2], "int32") >> (4 * (j % 2)) & 15
    sums[i, j] += T.cast(nibble, "float16") * x[j]
T.reduce_sum(sums, total, dim=1)
"""


@rule(
    "vector.loop.permutation-invariant",
    phase=Phase.LOOP,
    on=Parallel,
    reads=(LAYOUT, VECTOR),
    writes=(PERMUTATION_INVARIANT,),
    source="measured on an H200: benchmarks/RESULTS.md, GEMV",
    examples=(Example(_EXAMPLE, 6, "permutation_invariant", "True"),),
)
def permutation_invariant(op: Parallel, context: Context) -> Iterator[Decision]:
    """A vector's elements may be permuted where only their total is read, or that of accumulators they add to.

    Decoding a 32-bit word yields numbers i and i + 4 together; the factors are permuted to match, once for all rows.
    Each accumulator adds the terms that it added before, in another register.

    Gives: True where the numbers keep the order of decoding.
    """
    layout, vector = context.facts.get(op, LAYOUT), context.facts.get(op, VECTOR) or 1
    *lets, store = op.body
    if not isinstance(layout, Blocked) or vector % _NUMBERS_OF_A_WORD or not all(isinstance(let, Let) for let in lets):
        return
    if not (isinstance(store, Store) and store.op in ("", "+") and store.indices == op.vars):
        return
    last = op.vars[-1]
    values = [stmt.value for stmt in statements(op.body, Let, Store) if not moved_index(stmt, last)]
    decodes = any(nibbles_of(part, last) is not None for expr in values for part in walk(expr))
    if not decodes or any(_is_value(last, expr) for expr in values):
        return
    uniform = all(_is_permutable(load, store.buffer, last, vector, context.bounds) for load in _loads(op))
    uniform = uniform and (not store.op or _only_adds(op, store.buffer, context))
    if uniform and only_total_is_read(store.buffer, op, context):
        yield op, PERMUTATION_INVARIANT, True


def _loads(op: Parallel) -> Iterator[tuple[Buffer, tuple[Expr, ...]]]:
    return ((access.buffer, access.indices) for access in element_accesses(op.body) if not access.is_store)


def _is_value(last: Var, expr: Expr) -> bool:
    """Whether an expression computes with the variable, apart from indices and the shift of a nibble."""
    if expr == last:
        return True
    if isinstance(expr, Load) or nibbles_of(expr, last) is not None:
        return False
    return any(_is_value(last, child) for child in children(expr))


def _is_permutable(load: tuple[Buffer, tuple[Expr, ...]], sums: Buffer, last: Var, vector: int, bounds: Bounds) -> bool:
    """Whether a vector's load is uniform, the accumulator, packed bytes, or 16-bit elements that can be permuted."""
    buffer, indices = load
    index = bounds.expanded(indices[-1])
    quotient = quotient_of(index, last)
    if buffer.scope is Scope.FRAGMENT:
        return buffer == sums
    if last not in walk(index):
        return True
    if quotient is not None:
        return quotient[1] % vector == 0 or (quotient[1] == 2 and buffer.dtype.name == "uint8")
    return buffer.dtype.bits == 16


def _only_adds(op: Parallel, sums: Buffer, context: Context) -> bool:
    """Whether only this loop updates the accumulators, which start with one common value."""
    return all(stmt is op or isinstance(stmt, Fill) for stmt in writers(context.launch.body, sums))
