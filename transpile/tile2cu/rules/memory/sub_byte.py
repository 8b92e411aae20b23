"""Sub-byte elements: what is unsupported, so that no two threads write halves of one byte."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import Access, element_accesses, expressions, used_by_itself
from tile2cu.core.decisions import LAYOUT, PACKED_BUFFERS, PACKED_GROUP, VECTOR
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import Address, Expr, static_value, walk
from tile2cu.core.layout import Blocked, FragmentLayout, MmaAccumulator, MmaOperandA, WgmmaAccumulator
from tile2cu.core.program import (
    Atomic,
    AtomicTile,
    Buffer,
    Copy,
    Fill,
    Gemm,
    Launch,
    Parallel,
    Print,
    Reduce,
    Region,
    Scan,
    Scope,
    Stmt,
)
from tile2cu.core.span import Span
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule

_IN_MEMORY = (Scope.GLOBAL, Scope.SHARED)
_BYTES = "PTX ISA, 'st': no store is narrower than a byte"
_EXAMPLE = """
Q = T.alloc_shared((64, 64), "int4")
X_local = T.alloc_fragment((64, 64), "int4")
T.clear(X_local)
T.copy(X_local, Q)
"""
_ELSE = {
    Reduce: "the result of a reduction",
    Scan: "a running sum",
    Atomic: "an atomic update",
    AtomicTile: "an atomic update",
    Print: "T.print",
}


@rule(
    "guard.packed.whole-bytes",
    phase=Phase.WARPS,
    on=Launch,
    writes=(PACKED_BUFFERS,),
    source=_BYTES,
    examples=(Example(_EXAMPLE, "launch", "packed", "('X_local', 'Q')"),),
)
def whole_bytes(launch: Launch, context: Context) -> Iterator[Decision]:
    """Tensors and shared tiles of 4-bit elements hold two per byte: rows, and slices of them, are whole bytes.

    Loops, copies and GEMMs take them, and reductions with wider results; other operations take wider elements.

    Gives: the names of the buffers of such elements, if there are any.
    Errors: T2C-L015 for odd extents and starts, and for operations that do not take them.
    """
    found: dict[str, None] = {}
    for stmt in context.statements:
        for buffer in sorted(used_by_itself(stmt), key=lambda buffer: buffer.name):
            if buffer.dtype.is_packed:
                found[buffer.name] = None
                _require_even(buffer)
                _require_taken(stmt, buffer)
        _require_no_address(stmt)
        match stmt:
            case Copy():
                _require_parts(stmt, (stmt.src, stmt.dst), context)
            case Fill():
                _require_parts(stmt, (stmt.dst,), context)
            case Gemm():
                _require_parts(stmt, stmt.regions, context)
            case _:
                pass
    if found:
        yield launch, PACKED_BUFFERS, tuple(found)


@rule(
    "guard.packed.pairs",
    phase=Phase.MEMORY,
    on=(Copy, Parallel),
    reads=(LAYOUT, VECTOR),
    writes=(PACKED_GROUP,),
    source=_BYTES,
    examples=(Example(_EXAMPLE, 4, "packed_group", "32"),),
)
def pairs(op: Copy | Parallel, context: Context) -> Iterator[Decision]:
    """Elements that share a byte are written by one thread, together, or each by an atomic operation.

    If two threads wrote halves of one byte, one half would be lost, since each thread reads the byte and writes it
    back.

    Gives: the adjacent elements that a thread writes together, for each operation that writes such elements to memory.
    Errors: T2C-L015 where a copy writes single ones.
    """
    match op:
        case Copy() if _is_packed_memory(op.dst.buffer) and op.src.buffer.scope not in _IN_MEMORY:
            yield (
                op,
                PACKED_GROUP,
                _require(op.dst.buffer, op.span, _neighbours(context.facts.get(op.src.buffer, LAYOUT))),
            )
        case Parallel():
            for access in filter(_is_packed_store, element_accesses(op.body)):
                vector = context.facts.get(op, VECTOR) or 1
                yield op, PACKED_GROUP, 1 if vector == 1 else _require(access.buffer, access.span, vector)
        case _:
            pass


def _is_packed_store(access: Access) -> bool:
    return access.is_store and _is_packed_memory(access.buffer)


def _is_packed_memory(buffer: Buffer) -> bool:
    return buffer.dtype.is_packed and buffer.scope in _IN_MEMORY


def _neighbours(layout: FragmentLayout | None) -> int:
    """Adjacent elements of a row in one thread, from an even index on."""
    match layout:
        case Blocked():
            return layout.vector
        case MmaAccumulator() | MmaOperandA() | WgmmaAccumulator():
            return 2
        case _:
            return 1


def _require(buffer: Buffer, span: Span, together: int) -> int:
    if together % buffer.dtype.fewest_written:
        raise Tile2CuError(
            "T2C-L015",
            f"a thread would write single elements of `{buffer.name}`, and two {buffer.dtype} share a byte",
            span,
            help="store them one by one in a T.Parallel loop, which takes atomic operations",
        )
    return together


def _require_even(buffer: Buffer) -> None:
    last = static_value(buffer.shape[-1]) if buffer.rank else None
    if buffer.scope in _IN_MEMORY and last is not None and int(last) % buffer.dtype.fewest_written:
        raise Tile2CuError(
            "T2C-L015",
            f"rows of `{buffer.name}` have {last} elements, and two {buffer.dtype} share a byte",
            buffer.span,
            help="make the last extent even",
        )


def _require_taken(stmt: Stmt, buffer: Buffer) -> None:
    name = _ELSE.get(type(stmt))
    if name is not None and not (isinstance(stmt, Reduce) and stmt.dst is not buffer):
        raise Tile2CuError(
            "T2C-L015",
            f"{name} does not take {buffer.dtype}, of which `{buffer.name}` is",
            stmt.span,
            help="take a wider result" if isinstance(stmt, Reduce) else "T.copy it to a tile of wider elements first",
        )


def _require_no_address(stmt: Stmt) -> None:
    for expr in expressions(stmt):
        for part in walk(expr):
            if isinstance(part, Address) and isinstance(part.buffer, Buffer) and part.buffer.dtype.is_packed:
                raise Tile2CuError(
                    "T2C-L015",
                    f"an element of `{part.buffer.name}` has no address: two {part.buffer.dtype} share a byte",
                    stmt.span,
                    help="give the function a tensor of uint8, with half as many elements per row",
                )


def _require_parts(op: Stmt, regions: tuple[Region, ...], context: Context) -> None:
    for region in regions:
        buffer = region.buffer
        if not _is_packed_memory(buffer):
            continue
        last = region.ranges[-1]
        even = [_is_even(last.start, context), static_value(last.extent) is None or _is_even(last.extent, context)]
        if not all(even) or region.kept[-1:] != (buffer.rank - 1,):
            raise Tile2CuError(
                "T2C-L015",
                f"a part of `{buffer.name}` that may start or end inside a byte: two {buffer.dtype} share one",
                op.span,
                help="take parts along the last dimension that start at, and have, a multiple of 2 elements",
            )


def _is_even(expr: Expr, context: Context) -> bool:
    return context.bounds.multiple_of(expr) % 2 == 0
