"""Layouts of the shared operands of GEMMs that are free of bank conflicts."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import has_view_of_other_rows
from tile2cu.analysis.banks import bank_ways
from tile2cu.core.decisions import (
    INSTRUCTION,
    LAYOUT,
    NO_SWIZZLE,
    ON_WGMMA,
    SHARED_LAYOUT,
    WARP_SPECIALISED,
    WARPS,
)
from tile2cu.core.facts import rejected
from tile2cu.core.instruction import MmaUnit
from tile2cu.core.layout import MmaAccumulator, SharedLayout, WgmmaAccumulator, widest_swizzle_of
from tile2cu.core.program import Buffer, Copy, Gemm, Parallel, Scope
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.mma.cdna import interleaves_rows, reads_wide_rows
from tile2cu.rules.mma.hopper import producer_loads
from tile2cu.rules.mma.warps import FMA_ROW, gathers_on_mma, k_across_rows, on_fma
from tile2cu.rules.vectors.decode_loops import decoded_tiles

_GEMM = """
A_shared = T.alloc_shared((128, 32), "float16")
B_shared = T.alloc_shared((32, 128), "float16")
C_local = T.alloc_fragment((128, 128), "float32")
T.gemm(A_shared, B_shared, C_local)
"""
_DECODED = """
P = T.alloc_shared((64, 128), "uint8")
B = T.alloc_shared((256, 64), "float16")
W = T.alloc_fragment((64, 256), "float16")
C = T.alloc_fragment((64, 64), "float32")
for i, j in T.Parallel(64, 256):
    W[i, j] = T.cast(T.cast(P[i, j // 2], "int32") >> (4 * (j % 2)) & 15, "float16")
T.gemm(W, B, C)
"""
_LANES = range(32)
_CHUNK_BYTES = 16  # rows stay aligned for the widest accesses


@rule(
    "layout.gemm.widest-swizzle",
    phase=Phase.STRICT,
    on=Gemm,
    reads=(ON_WGMMA, INSTRUCTION, WARPS),
    writes=(NO_SWIZZLE, SHARED_LAYOUT),
    source="PTX ISA, 'Swizzling Modes'; shared memory has 32 banks of 4 bytes (CUDA C++ Programming Guide)",
    examples=tuple(
        Example(
            _GEMM,
            name,
            "layout",
            swizzle,
        )
        for name, swizzle in (("A_shared", "64-byte swizzle"), ("B_shared", "128-byte swizzle"))
    ),
)
def widest_swizzle(op: Gemm, context: Context) -> Iterator[Decision]:
    """A shared operand has the widest swizzle that divides its row, so that ldmatrix is free of bank conflicts.

    Shapes: a row is compared in bytes with spans of 128, 64 and 32; a row of no such multiple is padded by 16 bytes,
    which is free of conflicts too when the row is an even number of chunks.
    Gives: a SharedLayout for each shared operand that some GEMM reads by ldmatrix or wgmma.
    """
    for buffer in (op.a.buffer, op.b.buffer):
        free = _is_stored_freely(buffer, context) and not _only_gathered(buffer, context)
        other = context.target.mfma and (reads_wide_rows(buffer, context) or interleaves_rows(buffer, context))
        if free and not other:
            layout = swizzled(buffer)
            yield buffer, SHARED_LAYOUT, layout
            if layout.swizzle < 128:
                row, elements = layout.row_bytes, buffer.dtype.elements_in(128)
                edit = f"make rows of `{buffer.name}` a multiple of {elements} elements"
                yield rejected(buffer, NO_SWIZZLE, f"rows of {row} bytes are not a multiple of 128", edit)


@rule(
    "layout.gemm.gathered-rows",
    phase=Phase.STRICT,
    on=Gemm,
    reads=(ON_WGMMA, INSTRUCTION),
    writes=(SHARED_LAYOUT,),
    source="CUDA C++ Programming Guide, 'Shared Memory': 32 banks of 4 bytes",
    examples=(
        Example(
            'A_shared = T.alloc_shared((32, 64), "float32")\n'
            'B_shared = T.alloc_shared((32, 64), "float32")\n'
            'C_local = T.alloc_fragment((64, 64), "float32")\n'
            "T.gemm(A_shared, B_shared, C_local, transpose_A=True)",
            "A_shared",
            "layout",
            "rows padded by 32 bytes",
        ),
    ),
)
def gathered_rows(op: Gemm, context: Context) -> Iterator[Decision]:
    """A shared operand that lanes read element by element gets the padding that leaves the fewest bank conflicts.

    Its rows stay aligned to 16 bytes, so that they are filled at full width.

    Gives: a SharedLayout for each shared operand that no GEMM reads by ldmatrix.
    """
    for buffer in (op.a.buffer, op.b.buffer):
        if _is_stored_freely(buffer, context) and _only_gathered(buffer, context):
            yield buffer, SHARED_LAYOUT, _padded(buffer, context)


@rule(
    "layout.copy.widest-swizzle",
    phase=Phase.LOOP,
    on=Copy,
    reads=(LAYOUT, WARP_SPECIALISED),
    absent=(SHARED_LAYOUT,),
    writes=(SHARED_LAYOUT,),
    source="CUDA C++ Programming Guide, 'Shared Memory': 32 banks of 4 bytes",
    examples=(
        Example(
            _GEMM + "\nS = T.alloc_shared((128, 128), 'float16')\nT.copy(S, C_local)", "S", "layout", "128-byte swizzle"
        ),
    ),
)
def copied_swizzle(op: Copy, context: Context) -> Iterator[Decision]:
    """A shared tile that a GEMM's fragment is copied from or to, or that TMA fills, has the widest swizzle, too.

    In such a fragment a warp holds eight rows of a column, which without a swizzle would share banks.

    Gives: a SharedLayout for the shared tile.
    """
    for tile, other in ((op.src.buffer, op.dst.buffer), (op.dst.buffer, op.src.buffer)):
        fits = _is_stored_freely(tile, context) and tile.rank == 2 and context.facts.get(tile, SHARED_LAYOUT) is None
        if fits and (
            isinstance(context.facts.get(other, LAYOUT), MmaAccumulator | WgmmaAccumulator)
            or any(op is load for load in producer_loads(context))
        ):
            yield tile, SHARED_LAYOUT, swizzled(tile)


@rule(
    "layout.loop.widest-swizzle",
    phase=Phase.LOOP,
    on=Parallel,
    reads=(LAYOUT,),
    absent=(SHARED_LAYOUT,),
    writes=(SHARED_LAYOUT,),
    source="CUDA C++ Programming Guide, 'Shared Memory': 32 banks of 4 bytes; on an H200: benchmarks/RESULTS.md, GEMV",
    examples=(Example(_DECODED, "P", "layout", "128-byte swizzle"),),
)
def decoded_swizzle(op: Parallel, context: Context) -> Iterator[Decision]:
    """A tile of 4-bit numbers that a loop decodes into a GEMM's fragment has the widest swizzle as well.

    A warp loads 16 bytes of each of eight rows together.

    Gives: a SharedLayout for the shared tile.
    """
    layout = context.facts.get(op, LAYOUT)
    for tile in () if layout is None else decoded_tiles(op, layout, context.bounds):
        if _is_stored_freely(tile, context) and tile.rank == 2 and context.facts.get(tile, SHARED_LAYOUT) is None:
            yield tile, SHARED_LAYOUT, swizzled(tile)


def _is_stored_freely(buffer: Buffer, context: Context) -> bool:
    """Whether it is a shared tile without views of other rows."""
    return buffer.scope is Scope.SHARED and not has_view_of_other_rows(buffer, context.launch)


def _only_gathered(buffer: Buffer, context: Context) -> bool:
    """Whether no GEMM reads the tile by ldmatrix or wgmma."""
    return not any(
        region.buffer is buffer and not _is_gathered(op, region is op.a, context)
        for op in _products(context)
        for region in (op.a, op.b)
    )


def _is_gathered(op: Gemm, is_a: bool, context: Context) -> bool:
    """Whether lanes read the operand element by element (headers/tl/common/mma_operands.h)."""
    if on_fma(op, context) or context.target.mfma:
        return on_fma(op, context)  # on AMD lanes read vectors of rows, whichever way K runs
    on_wgmma = context.facts[op, INSTRUCTION].unit is MmaUnit.WARPGROUP
    return not on_wgmma and gathers_on_mma(op, is_a=is_a)


def _padded(buffer: Buffer, context: Context) -> SharedLayout:
    """The layout with the smallest padding of those with the fewest conflicts."""
    row, dtype = buffer.dtype.bytes_of(buffer.static_shape[-1]), buffer.dtype
    reads = [
        _positions(op, region is op.a, context)
        for op in _products(context)
        for region in (op.a, op.b)
        if region.buffer is buffer
    ]

    def ways(padding: int) -> int:
        return max(
            bank_ways([r * (row + padding) + dtype.bytes_of(c) for r, c in positions], dtype.bytes)
            for positions in reads
        )

    padding = min(range(0, 128, _CHUNK_BYTES), key=lambda padding: (ways(padding), padding))
    return SharedLayout(buffer.static_shape, dtype.bits, padding=padding)


def _positions(op: Gemm, is_a: bool, context: Context) -> list[tuple[int, int]]:
    """(row, column) of the tile that each lane reads in one access."""
    if on_fma(op, context):  # the rows (of A) or columns (of B) of the lane's elements, at one k
        lines = [(lane // FMA_ROW if is_a else lane % FMA_ROW, 0) for lane in _LANES]
    else:  # lane 4g + t reads line g at word t
        each = max(1, (op.a if is_a else op.b).buffer.dtype.elements_in(4))
        lines = [(lane // 4, lane % 4 * each) for lane in _LANES]
    return [(k, line) for line, k in lines] if k_across_rows(op, is_a=is_a) else lines


def _products(context: Context) -> list[Gemm]:
    return [op for op in context.statements if isinstance(op, Gemm)]


def swizzled(buffer: Buffer) -> SharedLayout:
    shape = buffer.static_shape
    row = buffer.dtype.bytes_of(shape[-1])
    span = widest_swizzle_of(row)
    return SharedLayout(shape, buffer.dtype.bits, swizzle=span, padding=0 if span else _padding(row))


def _padding(row: int) -> int:
    """Bytes that make the row an odd number of 16-byte chunks, so that 8 rows touch all banks."""
    return 16 if row // 16 % 2 == 0 else 0
