"""What a copy states about itself: the instructions that move it, and why it is there or is done that way."""

from collections.abc import Iterator
from math import gcd, prod

from tile2cu.analysis.access_width import access_bytes, run_of
from tile2cu.analysis.uses import statements
from tile2cu.core.decisions import (
    CALL,
    LAYOUT,
    SHARED_LAYOUT,
    SLICE_ALIGNMENT,
    STAGED_BECAUSE,
    STAGING_TILE,
    STORE_OUTSTANDING,
    STORE_STAGING,
    STREAMING,
)
from tile2cu.core.expr import static_value
from tile2cu.core.layout import MmaAccumulator, WgmmaAccumulator
from tile2cu.core.mfma_layout import WAVE, MfmaAccumulator
from tile2cu.core.program import Copy, Region, Scope, Stmt
from tile2cu.plan.claims import (
    Aligned,
    Claim,
    CpAsyncs,
    Evicts,
    Staged,
    StoredByLanes,
    StoredByTma,
    StoredByWarps,
    Streams,
    TmaBoxes,
)
from tile2cu.plan.resolved import Resolved

_POLICIES = ("evict_first", "evict_last")
_WIDEST = 16  # bytes of a cp.async; PTX ISA, 'cp.async', cp-size
_NARROWEST = 4
_BOX = 256  # the most elements of a box along a dimension; CUDA Driver API, cuTensorMapEncodeTiled


def copy_claims(op: Copy, resolved: Resolved) -> Iterator[Claim]:
    """The claims of a copy; those on how it is done are stated once of copies of one kind."""
    facts = resolved.facts
    if facts[op, CALL] in ("tma_load", "tma_copy") and op.dst.buffer.scope is Scope.SHARED:
        yield from _boxes(op, resolved)
    elif facts[op, CALL] == "copy_async" and resolved.target.cp_async:
        yield from _cp_asyncs(op, resolved)
    copies = [*statements(resolved.launch.body, Copy)]
    if op.reason:
        yield Staged(because=op.reason.replace("`", ""), rule=facts.rule(op, STAGED_BECAUSE))
    elif facts.get(op, STREAMING) is not None:
        streamed = [stmt for stmt in copies if facts.get(stmt, STREAMING) is not None and _cp_async(stmt, resolved)]
        if streamed and streamed[0] is op:
            tensors = tuple(dict.fromkeys(stmt.src.buffer for stmt in streamed))
            others = any(resolved.row_alignment(tensor) == 0 for tensor in tensors)
            yield Streams(tensors=tensors, by="cp.async" if others else "", rule=facts.rule(op, STREAMING))
    elif facts[op, CALL] == "tma_store":
        stores = (stmt for stmt in copies if facts.get(stmt, CALL) == "tma_store")
        if next(store for store in stores if _kind(store, resolved) == _kind(op, resolved)) is op:
            transposed, outstanding = _kind(op, resolved)
            yield _stored_by_tma(op, resolved, transposed=transposed, outstanding=outstanding)
    elif facts.get(op, SLICE_ALIGNMENT):
        yield Aligned(rule=facts.rule(op, SLICE_ALIGNMENT))
    elif op.evict in _POLICIES and next(stmt for stmt in copies if stmt.evict == op.evict) is op:
        yield Evicts(policy=op.evict)
    else:
        yield from _stored_by_lanes(op, resolved)
        yield from _stored_by_warps(op, resolved)


def _stored_by_lanes(op: Copy, resolved: Resolved) -> Iterator[StoredByLanes]:
    """How an MFMA accumulator leaves for a tensor (headers/tl/common/copy.h)."""
    layout, dst = resolved.facts.get(op.src.buffer, LAYOUT), op.dst.buffer
    if not isinstance(layout, MfmaAccumulator) or dst.scope is not Scope.GLOBAL or dst.strides is not None:
        return
    columns = layout.run * layout.interleave
    if dst.dtype.bits % 8 or op.dst.kept[-1:] != (dst.rank - 1,):
        return
    size, row = dst.dtype.bytes, layout.cols // layout.waves_of_columns // (WAVE // layout.size)
    width = access_bytes(columns, dst.dtype)
    rounded = str(dst.dtype) if dst.dtype.bytes < op.src.buffer.dtype.bytes and dst.dtype.is_float else ""
    known = resolved.row_alignment(dst) >= width
    yield StoredByLanes(columns=columns, count=row * size // width, bytes=width, rounded=rounded, if_aligned=not known)


def _stored_by_warps(op: Copy, resolved: Resolved) -> Iterator[StoredByWarps]:
    """How an accumulator of a tensor core leaves for a tensor (headers/tl/common/copy.h)."""
    layout, dst = resolved.facts.get(op.src.buffer, LAYOUT), op.dst.buffer
    if not isinstance(layout, MmaAccumulator | WgmmaAccumulator) or dst.scope is not Scope.GLOBAL:
        return
    if op.transposed or dst.strides is not None or dst.dtype.bits % 8 or op.dst.kept[-1:] != (dst.rank - 1,):
        return
    known = resolved.row_alignment(dst)
    bytes_ = min(access_bytes(run_of(layout) or 1, dst.dtype), known or _WIDEST)
    lanes, rows = layout.along(1).lanes, layout.along(0).lanes
    count = layout.registers * dst.dtype.bytes // bytes_
    yield StoredByWarps(count=count, bytes=bytes_, lanes=lanes, rows=rows, if_aligned=known == 0)


_WARP_ROWS = 16  # of a staging tile: headers/tl/common/sm90/boxes.h, BoxRows


def _stored_by_tma(op: Copy, resolved: Resolved, *, transposed: bool, outstanding: bool) -> StoredByTma:
    """The boxes by which a fragment leaves: a slab of the columns of a warp's rows at a time."""
    name = resolved.facts[op, STAGING_TILE]
    staging = next(each for each in resolved.facts[resolved.launch, STORE_STAGING] if each.name == name)
    layout = staging.layout
    slab = layout.swizzle * 8 // layout.element_bits if layout.swizzle else layout.extents[-1]
    return StoredByTma(
        transposed=transposed,
        outstanding=outstanding,
        rows=_WARP_ROWS,
        columns=min(slab, layout.extents[-1]),
        reused=layout.extents[-1] < (static_value(staging.like.shape[-1]) or 0) and not transposed,
        rule=resolved.facts.rule(op, CALL),
    )


def _boxes(op: Copy, resolved: Resolved) -> Iterator[TmaBoxes]:
    """The boxes of a load by TMA into a tile of rows and columns: one for each slab of its columns."""
    layout, extents = resolved.facts[op.dst.buffer, SHARED_LAYOUT], _extents(op.dst)
    if len(layout.extents) != 2 or len(extents) != 2:
        return
    rows, columns = extents
    width = layout.swizzle * 8 // layout.element_bits if layout.swizzle else columns
    if rows == 1:
        fits = (each for each in range(min(width, _BOX), 0, -1) if width % each == 0)
        width = next((each for each in fits if each * layout.element_bits % (8 * _WIDEST) == 0), width)
    yield TmaBoxes(rank=op.src.buffer.rank, boxes=columns // width, rows=rows, columns=width, swizzle=layout.swizzle)


def _cp_asyncs(op: Copy, resolved: Resolved) -> Iterator[CpAsyncs]:
    """The cp.asyncs of a copy into a shared tile."""
    width = _cp_async(op, resolved)
    if not width:
        return
    chunks = prod(_extents(op.dst)) * op.dst.buffer.dtype.bits // 8 // width
    threads = resolved.launch.threads if resolved.launch.groups == 1 else 0
    if_aligned = resolved.row_alignment(op.src.buffer) == 0
    yield CpAsyncs(bytes=width, chunks=chunks, threads=threads, if_aligned=if_aligned)


def _cp_async(op: Copy, resolved: Resolved) -> int:
    """The bytes of a copy's widest cp.async, as the rows of both sides are aligned; 0: it has none.

    Where the alignment of rows is known at run time alone, it also depends on where in its rows the tile starts.
    (headers/tl/common/copy_async.h)
    """
    extents, source = _extents(op.dst), op.src.buffer
    if op.row is not None or not extents:
        return 0
    row, layout = extents[-1] * op.dst.buffer.dtype.bits // 8, resolved.facts[op.dst.buffer, SHARED_LAYOUT]
    width = min(_WIDEST, row & -row, layout.row_bytes & -layout.row_bytes)
    if known := resolved.row_alignment(source):
        width = min(width, known)
    else:
        width = gcd(width, source.dtype.bytes_of(resolved.bounds.multiple_of(op.src.ranges[-1].start)))
    return width if width >= _NARROWEST else 0


def _extents(region: Region) -> tuple[int, ...]:
    """The extents of a region that are more than one index, where all of them are known."""
    values = [static_value(part.extent) for part in region.ranges]
    if not all(isinstance(value, int) for value in values):
        return ()
    return tuple(int(value) for value in values if value is not None)


def _kind(op: Stmt, resolved: Resolved) -> tuple[bool, bool]:
    """What distinguishes two stores by TMA: (transposed, outstanding)."""
    return isinstance(op, Copy) and op.transposed, bool(resolved.facts.get(op, STORE_OUTSTANDING))
