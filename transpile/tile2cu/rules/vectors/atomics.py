"""Vectorised atomics: updates of adjacent elements that the user requests together."""

from collections.abc import Iterator

from tile2cu.analysis.bounds import Bounds
from tile2cu.core.decisions import ATOMIC_VECTOR
from tile2cu.core.expr import Expr, Load, Var, binary, int_const, static_value, substitute, walk
from tile2cu.core.program import Atomic, Buffer, Loop, LoopKind, Reduction, Scope
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.memory.tensors import POINTER_BYTES, row_strides

_ADDED_TOGETHER = ("float32", "float16", "bfloat16")


@rule(
    "vector.atomic.vector",
    phase=Phase.LOOP,
    on=Loop,
    writes=(ATOMIC_VECTOR,),
    source="PTX ISA, 'Parallel Synchronization and Communication Instructions: red', .v2 and .v4: sm_90",
    examples=(
        Example(
            'S = T.alloc_shared((64, 64), "float32")\n'
            "T.copy(X[0, 0], S)\n"
            "for i, j in T.Parallel(64, 16):\n"
            "    T.atomic_addx4(X[i, j * 4], S[i, j * 4])",
            4,
            "atomic_vector",
            "4",
        ),
    ),
)
def vectorised_atomics(op: Loop, context: Context) -> Iterator[Decision]:
    """T.atomic_addx2 and x4 are one vectorised atomic where both sides are aligned to its size.

    Targets without an instruction for it add the elements one by one, as do starts of unknown alignment.

    Gives: the elements of the vector, for each such statement that returns no old values and has no memory order.
    """
    match op:
        case Loop(kind=LoopKind.UNROLL, body=(Atomic() as add,)) if op.count in (2, 4):
            pass
        case _:
            return
    if add.kind is not Reduction.SUM or add.order or add.previous is not None or not isinstance(add.value, Load):
        return
    assert isinstance(add.value.buffer, Buffer)
    to, source = _first(add.indices, op.var), _first(add.value.indices, op.var)
    if to is None or source is None or add.buffer.dtype.name not in _ADDED_TOGETHER:
        return
    if add.buffer.scope is Scope.GLOBAL and all(
        _starts_vector(buffer, first[-1], op.count, context.bounds)
        for buffer, first in ((add.buffer, to), (add.value.buffer, source))
    ):
        yield op, ATOMIC_VECTOR, op.count


def _first(indices: tuple[Expr, ...], lane: Var) -> tuple[Expr, ...] | None:
    """The indices of the first element, if `lane` counts adjacent elements from it on."""
    first = tuple(substitute(index, {lane: int_const(0)}) for index in indices)
    last = (binary("+", first[-1], lane), binary("+", lane, first[-1]))
    moved = indices[-1] in last and not any(lane in walk(index) for index in (*indices[:-1], first[-1]))
    return first if moved else None


def _starts_vector(buffer: Buffer, index: Expr, count: int, bounds: Bounds) -> bool:
    """Whether elements from an index of a row on are one vector: its start is aligned to the vector's size."""
    size = buffer.dtype.bytes_of(count)
    if buffer.of is not None or buffer.dtype.is_packed or size > POINTER_BYTES or bounds.multiple_of(index) % count:
        return False
    match buffer.scope:
        case Scope.SHARED:
            return buffer.static_shape[-1] % count == 0
        case Scope.GLOBAL:
            dense = buffer.strides is None or static_value(buffer.strides[-1]) == 1
            rows = all(bounds.multiple_of(stride) % count == 0 for stride in row_strides(buffer))
            return dense and rows and buffer.address is None
        case _:
            return False
