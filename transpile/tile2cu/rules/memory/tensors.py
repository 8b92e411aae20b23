"""Predicates and alignment of global tensors."""

import functools
from collections.abc import Callable, Iterator
from math import gcd

from tile2cu.analysis.access_width import WIDEST, access_bytes, copied_bytes
from tile2cu.analysis.accesses import expressions, loads, own_accesses, parts_of, written_through
from tile2cu.analysis.bounds import Bounds
from tile2cu.analysis.control import Place, places
from tile2cu.analysis.runs import of_vector
from tile2cu.analysis.whole_quotients import whole_multiples, whole_quotients
from tile2cu.core.decisions import (
    BOUNDS_CHECKED,
    LAYOUT,
    ROW_ALIGNMENT,
    ROW_ALIGNMENT_IF,
    SLICE_ALIGNMENT,
    TMA_IF,
    VECTOR,
)
from tile2cu.core.dtype import BOOL
from tile2cu.core.expr import (
    Expr,
    Role,
    Unary,
    Var,
    binary,
    int_const,
    quotient_of,
    static_value,
    walk,
)
from tile2cu.core.memo import kept
from tile2cu.core.program import (
    Atomic,
    AtomicTile,
    Buffer,
    Copy,
    Fill,
    Launch,
    Parallel,
    Region,
    Scope,
    Stmt,
    Store,
)
from tile2cu.core.record import Record
from tile2cu.core.schedule import Multiple
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule

Body = tuple[Stmt, ...]
Conditions = tuple[Expr, ...]
POINTER_BYTES = 16  # the launcher rejects tensors that are not aligned to this
_LANGUAGE = "TileLang documentation, T.copy: loads out of bounds give zero, stores are dropped"


class _Access(Record, frozen=True):
    """One access to a tensor: (start, extent) along each dimension, under the conditions `given`.

    A copy has its `region` of the tensor and the `other` one. An access of a T.Parallel has its `loop`, and `position`
    is the first element of a row with names by their values.
    """

    tensor: Buffer
    parts: tuple[tuple[Expr, Expr], ...]
    given: Conditions
    region: Region | None = None
    other: Region | None = None
    loop: Parallel | None = None
    position: Expr | None = None


class _Box(Record, frozen=True):
    """One access to a tensor: (start, extent) along each dimension, and its bytes, if it moves vectors; else 0.

    Its first element of a row is `position` divided by `divisor`; vectors start at multiples of their size of `along`,
    the last variable of a T.Parallel. It runs under the conditions `given`.
    """

    parts: tuple[tuple[Expr, Expr], ...]
    bytes: int
    given: tuple[Expr, ...] = ()
    divisor: int = 1
    divided: Expr | None = None
    along: Var | None = None

    @property
    def position(self) -> Expr:
        return self.parts[-1][0] if self.divided is None else self.divided


@rule(
    "guard.tensor.out-of-bounds",
    phase=Phase.MEMORY,
    on=Launch,
    reads=(LAYOUT, VECTOR),
    writes=(BOUNDS_CHECKED,),
    source=_LANGUAGE,
    examples=(
        Example(
            'A_shared = T.alloc_shared((64, 64), "float32")\nT.copy(A[bx * 64, 0], A_shared)',
            "A",
            "bounds_checked",
            "(True, False)",
        ),
        Example(
            "for i, j in T.Parallel(64, 64):\n    if bx * 64 + i < 1000 and j > 0:\n        A[bx * 64 + i, j - 1] = 0",
            "A",
            "bounds_checked",
            "(False, False)",
        ),
    ),
)
def tensor_bounds_checked(launch: Launch, context: Context) -> Iterator[Decision]:
    """Accesses to a dimension of a tensor are predicated unless all of them are provably within bounds.

    The proof uses the ranges of loops and grid, and the conditions of the branches around the access. Of the remaining
    predicates, copies of tiles that take many registers evaluate one for the whole tile (tl::copy); copies to shared
    memory and T.Parallel loops evaluate one per vector (benchmarks/RESULTS.md, 'Guards').

    Gives: one boolean per dimension, for each tensor.
    """
    for tensor, boxes in _boxes(context):
        yield (
            tensor,
            BOUNDS_CHECKED,
            tuple(
                not all(context.bounds.inside(*box.parts[dim], tensor.shape[dim], box.given) for box in boxes)
                for dim in range(tensor.rank)
            ),
        )


@rule(
    "vector.tensor.alignment",
    phase=Phase.MEMORY,
    on=Launch,
    reads=(LAYOUT, TMA_IF, VECTOR),
    writes=(ROW_ALIGNMENT,),
    source="PTX ISA, 'Addresses as Operands': an access is aligned to its size",
    examples=(
        Example(
            'A_shared = T.alloc_shared((64, 64), "float32")\nT.copy(A[bx * 64, 0], A_shared)',
            "A",
            "row_alignment",
            "16",
        ),
    ),
)
def tensor_row_alignment(launch: Launch, context: Context) -> Iterator[Decision]:
    """Vector accesses are as wide as the alignment of every row and every offset of the tensor.

    Where a run-time size decides, the width is chosen at run time; a size that the launcher requires to be a multiple,
    for TMA or since a quotient of it is an extent, is one. No more is asked of rows than the widest access needs: for a
    tensor without vector accesses only whole elements are promised.

    Gives: bytes (a power of two up to 16) for each tensor; 0 when only a run-time check can tell.
    """
    given = given_multiples(context)
    for tensor, boxes in _boxes(context):
        multiple = 1 if tensor.strides is not None else given.get(tensor.shape[-1], 1)
        widest, element = max(box.bytes for box in boxes), max(1, tensor.dtype.bytes)
        wide = [_row_alignment(tensor, box, context.bounds, multiple, widest) for box in boxes if box.bytes > element]
        yield tensor, ROW_ALIGNMENT, min(wide, default=element)


@rule(
    "vector.tile.alignment",
    phase=Phase.MEMORY,
    on=Launch,
    writes=(SLICE_ALIGNMENT,),
    source="PTX ISA, 'Addresses as Operands': an access is aligned to its size",
    examples=(
        Example(
            'S = T.alloc_shared((1024,), "float16")\nT.copy(X[bx, 0:64], S[bx * 64 : bx * 64 + 64])',
            2,
            "slice_alignment",
            "16",
        ),
    ),
)
def slice_alignment(launch: Launch, context: Context) -> Iterator[Decision]:
    """A slice of a shared tile of one dimension is moved in vectors as wide as the alignment of its start.

    Adjacent elements then go through one thread, as those of a whole tile do: the layout of a fragment assigns elements
    to threads.

    Gives: bytes (a power of two up to 16) for each copy and each fill of such a slice, where they are several elements.
    """
    for op in context.statements:
        regions = (op.src, op.dst) if isinstance(op, Copy) else (op.dst,) if isinstance(op, Fill) else ()
        if any(each.buffer.scope is Scope.FRAGMENT for each in regions):
            continue
        parts = [each for each in regions if each.buffer.scope is Scope.SHARED and each.buffer.rank == 1]
        parts = [each for each in parts if not each.whole]
        start = min((_slice_alignment(part, context.bounds) for part in parts), default=0)
        if any(8 * start > max(8, part.buffer.dtype.bits) for part in parts):
            yield op, SLICE_ALIGNMENT, start


def _slice_alignment(part: Region, bounds: Bounds) -> int:
    """Alignment in bytes of a slice's start; 0 for half a byte."""
    offset = bounds.linear(part.ranges[-1].start)
    starts = [bounds.multiple_of(atom) * (factor & -factor) for atom, factor in offset.terms.items()]
    return min(POINTER_BYTES, _aligned(part.buffer, [bounds.multiple_of(int_const(offset.constant)), *starts]))


@rule(
    "vector.tensor.alignment-dispatch",
    phase=Phase.MEMORY,
    on=Launch,
    reads=(LAYOUT, ROW_ALIGNMENT, VECTOR),
    writes=(ROW_ALIGNMENT_IF,),
    source="measured on an H200: a 4096^3 GEMM of run-time sizes 392 TFLOP/s with the choice, 339 without",
    examples=(
        Example(
            'S = T.alloc_shared((64, 64), "float16")\nT.copy(Y[bx * 64, 0], S)',
            "Y",
            "row_alignment_if",
            "n % 8 == 0",
        ),
    ),
)
def tensor_row_alignment_if(launch: Launch, context: Context) -> Iterator[Decision]:
    """Where only a run-time size decides whether rows are aligned to the widest access, the launcher checks it once.

    The kernel is compiled for aligned and for unaligned rows, and moves single elements for the latter.

    Gives: the extent whose multiples align all rows, and the multiple, in elements.
    """
    for tensor, boxes in _boxes(context):
        if tensor.address is not None:
            continue
        widest = max(box.bytes for box in boxes)
        wide = [box for box in boxes if box.bytes > max(1, tensor.dtype.bytes)]
        unknown = context.facts[tensor, ROW_ALIGNMENT] == 0 and tensor.strides is None
        if unknown and min(_offset_alignment(tensor, box, context.bounds) for box in wide) >= widest:
            yield tensor, ROW_ALIGNMENT_IF, Multiple(tensor.shape[-1], tensor.dtype.elements_in(widest))


def row_strides(tensor: Buffer) -> tuple[Expr, ...]:
    """The strides, in elements, of all dimensions but the last."""
    if tensor.strides is not None:
        return tensor.strides[:-1]
    strides: list[Expr] = []
    stride: Expr = int_const(1)
    for extent in reversed(tensor.shape[1:]):
        stride = binary("*", extent, stride)
        strides.insert(0, stride)
    return tuple(strides)


def _boxes(context: Context) -> list[tuple[Buffer, list[_Box]]]:
    """All accesses to each tensor, in program order of first use."""
    found: dict[int, tuple[Buffer, list[_Box]]] = {}
    for access in _accesses(context.launch, context.bounds):
        found.setdefault(id(access.tensor), (access.tensor, []))[1].append(_box(access, context))
    return list(found.values())


def _box(access: _Access, context: Context) -> _Box:
    """An access as the facts have it: the layouts of tiles, and the vectors of loops."""
    facts, tensor = context.facts, access.tensor
    if access.region is not None and access.other is not None:
        size = copied_bytes(access.region, access.other, facts.get(access.other.buffer, LAYOUT))
        return _Box(access.parts, size, access.given)
    if access.loop is None or access.position is None:
        return _Box(access.parts, WIDEST if access.region is not None else 0, access.given)
    vector, last, position = facts.get(access.loop, VECTOR) or 1, access.loop.vars[-1], access.position
    quotient = quotient_of(position, last)
    divided, divisor = quotient or (of_vector(position, last, vector, context.bounds), 1)
    wide = vector > 1 and divisor < vector and last in walk(position)
    bytes_ = access_bytes(vector // divisor, tensor.dtype) * wide
    return _Box(access.parts, bytes_, access.given, divisor, divided, along=last)


@kept
def _accesses(launch: Launch, bounds: Bounds) -> tuple[_Access, ...]:
    """All accesses to tensors, in program order."""

    @functools.cache
    def lasts(condition: Expr) -> bool:
        """Whether a condition that holds where a branch begins holds throughout it: the branch keeps its inputs."""
        return not bounds.may_change(bounds.expanded(condition))

    found = (access for place in places(launch.body) for access in _accesses_of(place, lasts, bounds))
    return tuple(access for access in found if access.tensor.scope is Scope.GLOBAL)


def _lasting_on(place: Place, lasts: Callable[[Expr], bool]) -> Conditions:
    """The conditions that hold throughout a statement."""
    found = ((condition, held) for condition, held in place.conditions if lasts(condition))
    return tuple(condition if held else Unary(BOOL, "not", condition) for condition, held in found)


def _accesses_of(place: Place, lasts: Callable[[Expr], bool], bounds: Bounds) -> Iterator[_Access]:
    """The accesses that a statement makes itself; a T.Parallel represents its whole body."""
    op, given = place.stmt, _lasting_on(place, lasts)
    match op:
        case Parallel():
            for inside in places((op,), place.path):
                for access in own_accesses(inside.stmt):
                    position, below = bounds.expanded(access.indices[-1]), _lasting_on(inside, lasts)
                    yield _Access(access.buffer, _points(access.indices), below, loop=op, position=position)
        case Copy() | AtomicTile():
            for region, other in ((op.src, op.dst), (op.dst, op.src)):
                parts = tuple((part.start, part.extent) for part in region.ranges)
                yield _Access(region.buffer, parts, given, region, other if isinstance(op, Copy) else None)
        case Store() | Atomic() if not _in_parallel(op):
            yield _Access(op.buffer, _points(op.indices), given)
        case _:
            pass
    if not isinstance(op, Parallel) and not _in_parallel(op):
        for expr in expressions(op):
            for access in (*loads(expr, op.span), *written_through(expr, op.span)):
                yield _Access(access.buffer, _points(access.indices), given)


def _in_parallel(op: object) -> bool:
    """Whether a statement uses an index of T.Parallel: then its loop represents it."""
    if isinstance(op, Copy):  # of rows whose number is such an index: no loop represents it
        return False
    parts = parts_of((op,))  # type: ignore[arg-type]
    return any(isinstance(part, Var) and part.role is Role.PARALLEL for part in parts)


def _points(indices: tuple[Expr, ...]) -> tuple[tuple[Expr, Expr], ...]:
    return tuple((index, int_const(1)) for index in indices)


def _row_alignment(tensor: Buffer, box: _Box, bounds: Bounds, given: int, widest: int) -> int:
    """Alignment in bytes of every row and of this access's first element; 0 where fewer than `widest` are known.

    All strides are multiples of `given`, in elements.
    """
    neighbours = static_value(tensor.strides[-1]) if tensor.strides is not None else 1
    if neighbours != 1:  # a row's elements may be strided
        return 0 if neighbours is None else tensor.dtype.bytes
    aligned = _offset_alignment(tensor, box, bounds)
    for stride in row_strides(tensor):
        bytes_ = _aligned(tensor, [max(bounds.multiple_of(stride), given)])
        if bytes_ < widest and _has_size(stride):
            return 0
        aligned = gcd(aligned, bytes_)
    return aligned


def given_multiples(context: Context) -> dict[Expr, int]:
    """The multiple that the launcher requires of a tensor's last extent, and so of all strides of a dense tensor."""
    copies = [op for op in context.statements if isinstance(op, Copy)]
    wanted = [context.facts.get(region.buffer, TMA_IF) for op in copies for region in (op.src, op.dst)]
    whole = whole_multiples(context.program)
    found: dict[Expr, int] = {}
    for multiple in (*(each for each in wanted if each is not None), *whole):
        found[multiple.value] = max(multiple.of, found.get(multiple.value, 1))
    for _, extent, divisor in whole_quotients(context.program):
        found[extent] = max(found.get(extent, 1), found[extent.lhs] // divisor)
    return found


def _offset_alignment(tensor: Buffer, box: _Box, bounds: Bounds) -> int:
    """Alignment in bytes of the access's offset within its row: of each vector of a T.Parallel."""
    offset = bounds.linear(box.position)
    factors = [(atom, factor) for atom, factor in offset.terms.items() if atom != box.along]
    multiples = [bounds.multiple_of(atom) * (factor & -factor) for atom, factor in factors]
    starts = [bounds.multiple_of(int_const(offset.constant)), *multiples]
    return _aligned(tensor, [start // box.divisor for start in starts])


def _aligned(tensor: Buffer, multiples: list[int]) -> int:
    return gcd(8 * POINTER_BYTES, *(tensor.dtype.bits * multiple for multiple in multiples)) // 8


def _has_size(expr: Expr) -> bool:
    return any(isinstance(part, Var) for part in walk(expr))
