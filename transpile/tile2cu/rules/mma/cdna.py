"""AMD's CDNA: GEMMs on the matrix cores, and tiles that are prefetched to registers and then stored to the LDS."""

from collections.abc import Iterator
from math import prod

from msgspec.structs import replace

from tile2cu.analysis.accesses import used_by_itself, viewed
from tile2cu.core.decisions import (
    INSTRUCTION,
    LAYOUT,
    ON_WGMMA,
    PIPELINE,
    ROW_ALIGNMENT,
    SHARED_LAYOUT,
    STAGES,
    WARPS,
    WAVE_PRIORITY,
)
from tile2cu.core.instruction import MmaInstruction, MmaUnit
from tile2cu.core.layout import SharedLayout
from tile2cu.core.mfma_layout import WAVE, MfmaAccumulator, mfma_operand_a
from tile2cu.core.program import Buffer, Copy, Gemm, Loop, Scope
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.layout.gemm import check_k
from tile2cu.rules.mma.warps import mfma_of, on_fma
from tile2cu.rules.schedule.pipeline import pipeline_of, prefetch_pipeline, staged_pipeline_of, stages_of
from tile2cu.targets import Mfma

_GEMM = """
A_shared = T.alloc_shared((128, 32), "float16")
B_shared = T.alloc_shared((32, 128), "float16")
C_local = T.alloc_fragment((128, 128), "float32")
for k in T.Pipelined(4, num_stages=3):
    T.copy(X[0, k * 32], A_shared)
    T.copy(X[k * 32, 0], B_shared)
    T.gemm(A_shared, B_shared, C_local)
"""
_HALVES = _GEMM.replace("X[", "Z[")
_REGISTERS = """
A_local = T.alloc_fragment((64, 32), "float16")
B_shared = T.alloc_shared((32, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
T.gemm(A_local, B_shared, C_local, policy=T.GemmWarpPolicy.FullRow)
"""
_WIDE = """
A_shared = T.alloc_shared((64, 32), "float16")
B_shared = T.alloc_shared((32, 128), "float16")
C_local = T.alloc_fragment((64, 128), "float32")
T.gemm(A_shared, B_shared, C_local, policy=T.GemmWarpPolicy.FullRow)
"""
_TRANSPOSED = _HALVES.replace("32", "64").replace('"float64"', '"float32"').replace("X", "Z")
_LAYOUTS = "AMD Instinct MI300 ISA, 'Dense Matrix Layouts'"


def _example(about: str | int, what: str, value: str, kernel: str = _GEMM) -> tuple[Example, ...]:
    return (Example(kernel, about, what, value, target="hip:gfx942"),)


@rule(
    "select.gemm.mfma",
    phase=Phase.STRICT,
    on=Gemm,
    writes=(INSTRUCTION,),
    source="AMD Instinct MI300 ISA, 'Matrix Arithmetic Instructions'",
    examples=_example(7, "instruction", "v_mfma_f32_16x16x16_f16"),
)
def mfma(op: Gemm, context: Context) -> Iterator[Decision]:
    """A GEMM runs on the first MFMA of the target's table that has its element types and divides its K.

    Shapes: M and N in 16s, K in the row's k; all in elements.
    Gives: the instruction.
    Errors: T2C-S002 when K fits no row of these types.
    """
    row = mfma_of(op, context)
    if row is not None:
        check_k(op, row)
        yield op, INSTRUCTION, _instruction(row)


def _instruction(row: Mfma) -> MmaInstruction:
    return MmaInstruction(
        name=row.name,
        unit=MmaUnit.WARP,
        m=row.size,
        n=row.size,
        k=row.k,
        operands=row.operands,
        accumulator=row.accumulator,
        through=row.through,
    )


@rule(
    "layout.gemm.mfma-accumulator",
    phase=Phase.STRICT,
    on=Gemm,
    reads=(ON_WGMMA, WARPS),
    writes=(LAYOUT,),
    source=_LAYOUTS,
    examples=_example("C_local", "layout", "MfmaAccumulator(rows=128, cols=128, warps=Warps(m=2, n=1), interleave=8)"),
)
def mfma_accumulator(op: Gemm, context: Context) -> Iterator[Decision]:
    """The accumulator of a GEMM has the layout of MFMA's result.

    Where K runs across the rows of B, a lane reads adjacent elements of a row of B together, and gives one to each of
    several MFMAs, whose columns are interleaved. All GEMMs with as many columns use the same interleaving, so that
    their accumulators have one layout.

    Gives: the accumulator's layout over the GEMM's waves.
    """
    row = mfma_of(op, context)
    if row is not None and op.c.buffer.scope is Scope.FRAGMENT:
        m, n, _ = op.mnk
        warps = context.facts[op, WARPS]
        yield op.c.buffer, LAYOUT, MfmaAccumulator(m, n, warps, _interleave(n, context), run=row.run)


@rule(
    "layout.gemm.mfma-rows",
    phase=Phase.STRICT,
    on=Gemm,
    reads=(ON_WGMMA, WARPS),
    writes=(SHARED_LAYOUT,),
    source="triton-lang/triton, pull request 11365: the lanes that ds_read_b128 serves together on MI300 and MI350",
    examples=_example("B_shared", "layout", "no swizzle", _WIDE),
)
def mfma_rows(op: Gemm, context: Context) -> Iterator[Decision]:
    """An operand that lanes read 16 bytes of a row at a time is stored row by row, without a swizzle.

    ds_read_b128 serves lanes 0 to 3 together with 20 to 23, and so on: four 16-byte chunks of one row, and of another
    row the four chunks after them. Without a swizzle these are in different banks; a swizzle by the row may map them to
    the same ones.

    Gives: a SharedLayout without a swizzle.
    """
    b = op.b.buffer
    if context.target.mfma and b.scope is Scope.SHARED and reads_wide_rows(b, context):
        yield b, SHARED_LAYOUT, SharedLayout(b.static_shape, b.dtype.bits)


@rule(
    "layout.gemm.mfma-interleaved-rows",
    phase=Phase.STRICT,
    on=Gemm,
    reads=(ON_WGMMA, WARPS),
    writes=(SHARED_LAYOUT,),
    source=f"{_LAYOUTS}: a lane's operand is 4 elements along K, in 8 bytes",
    examples=_example("B_shared", "layout", "rows interleaved by 4", _TRANSPOSED),
)
def mfma_interleaved_rows(op: Gemm, context: Context) -> Iterator[Decision]:
    """An operand of 16-bit elements whose K runs across the rows of the tensor is transposed as it is stored.

    A thread loads 16 bytes of each of 4 neighbouring rows, or 8 where the block has twice as many threads as the tile
    has such pieces, and stores the 4 elements of each column side by side: a lane then reads its operands of one or two
    MFMAs together, where it would otherwise read single elements, or pair the rows that it has read (v_perm_b32). The
    permutations are the same, but are executed once for an element, not by each wave that reads it.

    Shapes: rows in 4s, columns in 32s; the threads of the block have equal numbers of such pieces.
    Gives: a SharedLayout with interleaved rows, for a tile that is written by whole copies from tensors of its type,
    and read by MFMAs across its rows only; of B by more waves than one.
    """
    for buffer in (op.a.buffer, op.b.buffer):
        if context.target.mfma and interleaves_rows(buffer, context):
            yield buffer, SHARED_LAYOUT, SharedLayout(buffer.static_shape, buffer.dtype.bits, rows_interleaved=RUN)


@rule(
    "layout.gemm.mfma-operand",
    phase=Phase.FREE,
    on=Gemm,
    reads=(LAYOUT, WARPS),
    writes=(LAYOUT,),
    source=_LAYOUTS,
    examples=_example(
        "A_local", "layout", "MfmaAccumulator(rows=64, cols=32, warps=Warps(m=2, n=1), interleave=1)", _REGISTERS
    ),
)
def mfma_operand(op: Gemm, context: Context) -> Iterator[Decision]:
    """A register-resident A operand whose layout no other operation fixes has the layout that MFMA reads.

    MFMA may take K in any order, so an accumulator is an operand wherever its columns are in a lane. Where lanes read B
    along K, a lane holds as many adjacent elements of A as one LDS read has of B.

    Gives: the fragment's layout.
    """
    a, row = op.a.buffer, mfma_of(op, context)
    if row is not None and a.scope is Scope.FRAGMENT and context.facts.get(a, LAYOUT) is None:
        m, _, k = op.mnk
        yield a, LAYOUT, mfma_operand_a(m, k, context.facts[op, WARPS], row.run, _adjacent_runs(op, row))


@rule(
    "pipeline.loop.direct",
    phase=Phase.PIPELINE,
    on=Loop,
    reads=(ROW_ALIGNMENT, SHARED_LAYOUT),
    writes=(PIPELINE, STAGES),
    source="AMD CDNA4 ISA, 'Memory Buffer Load to LDS': 128 bits per lane, to adjacent addresses",
    examples=(
        Example(_HALVES, 4, "pipeline", "3 stages of A_shared, B_shared", target="hip:gfx950"),
        Example(_HALVES, "A_shared", "stages", "3", target="hip:gfx950"),
    ),
)
def direct(op: Loop, context: Context) -> Iterator[Decision]:
    """The copies of a pipelined loop load from global memory to the LDS, 16 bytes per lane, where all of them can.

    The hardware writes the 16 bytes of adjacent lanes to adjacent addresses, so a tile is a whole number of waves'
    loads and its rows are not padded; a swizzle permutes the addresses that lanes load. The tensor's rows are aligned
    to 16 bytes, or their alignment is checked at launch.

    Gives: the pipeline of the loop, and the number of stages of each prefetched tile.
    """
    pipeline = pipeline_of(op, context.launch, producer=False) if _DIRECT_BYTES in context.target.load_lds else None
    if pipeline is not None and all(_goes_direct(copy, context) for copy in pipeline.copies):
        bytes_per_load = _DIRECT_BYTES * context.launch.threads
        # Where the threads do not divide a tile, the first waves issue one load more.
        loads = sum(shared_bytes(tile) // bytes_per_load for tile in pipeline.buffers)
        yield op, PIPELINE, replace(pipeline, direct=loads)
        for buffer in pipeline.buffers:
            yield buffer, STAGES, stages_of(buffer, context.launch, prefetch_pipeline)


_DIRECT_BYTES = 16  # per lane and load


def _adjacent_runs(op: Gemm, row: Mfma) -> int:
    """Of how many instructions a lane holds adjacent elements of A: those of one LDS read of B along K."""
    along_k = row.run * (WAVE // row.size) * op.a.buffer.dtype.bytes  # bytes of a row of A, for each byte of a run
    read = WIDEST_READ // (row.run * op.a.buffer.dtype.bytes)
    _, _, k = op.mnk
    return read if op.transpose_b and read > 1 and k * op.a.buffer.dtype.bytes % (along_k * read) == 0 else 1


def _goes_direct(copy: Copy, context: Context) -> bool:
    """Whether loads from global memory to the LDS can fill the tile."""
    tensor, tile = copy.src.buffer, copy.dst.buffer
    layout = context.facts[tile, SHARED_LAYOUT]
    whole_rows = tile.rank <= 2 and tile.static_shape[-1] * tile.dtype.bytes % _DIRECT_BYTES == 0 and not layout.padding
    whole_waves = shared_bytes(tile) % (_DIRECT_BYTES * context.target.warp_size) == 0
    starts = context.facts[tensor, ROW_ALIGNMENT] in (0, _DIRECT_BYTES)
    return tensor.dtype == tile.dtype and whole_rows and whole_waves and starts


def shared_bytes(tile: Buffer) -> int:
    return prod(tile.static_shape) * tile.dtype.bytes


@rule(
    "pipeline.loop.registers",
    phase=Phase.PIPELINE,
    on=Loop,
    absent=(PIPELINE,),
    writes=(PIPELINE, STAGES),
    source="AMD Instinct MI300 ISA, 'Vector Memory Instructions': a load returns to registers, and is awaited there",
    examples=(
        *_example(4, "pipeline", "2 stages of A_shared, B_shared, one more tile in registers"),
        *_example("A_shared", "stages", "2"),
    ),
)
def registers(op: Loop, context: Context) -> Iterator[Decision]:
    """The copies of a pipelined loop are held in registers while a tile is used, and are stored when a stage is free.

    One of num_stages tiles is in registers, so that the LDS has one stage less. A third stage would be unused: the
    registers hold one tile, which is loaded during one iteration.

    Gives: the pipeline of the loop, and the number of stages of each prefetched tile.
    """
    pipeline = staged_pipeline_of(op, context.launch) if context.target.mfma else None
    found = context.facts.get(op, PIPELINE)
    if pipeline is not None and (found is None or found.staged):
        yield op, PIPELINE, pipeline
        for buffer in pipeline.buffers:
            yield buffer, STAGES, stages_of(buffer, context.launch, staged_pipeline_of)


@rule(
    "schedule.gemm.priority",
    phase=Phase.SELECT,
    on=Gemm,
    writes=(WAVE_PRIORITY,),
    source="AMD Instinct MI300 ISA, 'S_SETPRIO': 0 to 3, the highest issues first",
    examples=_example(7, "priority", "1", _GEMM.replace("C_local)\n", 'C_local, annotations={"priority": 1})\n')),
)
def priority(op: Gemm, context: Context) -> Iterator[Decision]:
    """Waves in a GEMM get issue priority over the other waves of their SIMD, if the user asks for it.

    T.gemm(A, B, C, annotations={"priority": 1}) asks. The matrix core is then busy while other waves load, store or
    compute. Priority is off by default, as its effect is not measured: no AMD hardware was available.

    Gives: the waves' priority during the GEMM.
    """
    if context.target.mfma and op.priority:
        yield op, WAVE_PRIORITY, op.priority


RUN = 4  # elements along K of a lane's operand, of 16 bits


def interleaves_rows(buffer: Buffer, context: Context) -> bool:
    """Whether the shared tile is transposed by the copies that write it (layout.gemm.mfma-interleaved-rows).

    So are then all tiles with as many columns along which GEMMs have K across the rows: their accumulators have one
    layout.
    """
    columns = {op.mnk[1] for op in on_mfma(context) if op.b.buffer is buffer}
    others = {id(op.b.buffer): op.b.buffer for op in on_mfma(context) if op.mnk[1] in columns and not op.transpose_b}
    return all(_may_interleave(each, context) for each in {id(buffer): buffer, **others}.values())


def _may_interleave(buffer: Buffer, context: Context) -> bool:
    """Whether a tile can be transposed by the copies that write it, and several waves would do so otherwise."""
    users = [stmt for stmt in context.statements if buffer in used_by_itself(stmt)]
    copies = [stmt for stmt in users if isinstance(stmt, Copy)]
    mmas = [stmt for stmt in users if isinstance(stmt, Gemm)]
    if not mmas or not copies or len(copies) + len(mmas) < len(users) or context.launch.groups > 1:
        return False
    return (
        _has_whole_groups(buffer, context)
        and all(_is_whole_load(copy, buffer) for copy in copies)
        and all(_reads_runs_across_rows(op, buffer, context) for op in mmas)
        and any(_is_read_by_several_waves(op, buffer, context) for op in mmas)
    )


def _has_whole_groups(buffer: Buffer, context: Context) -> bool:
    """Whether the threads of the block have equal numbers of 4 x 16 bytes of the tile, or of 4 x 8."""
    if buffer.scope is not Scope.SHARED or buffer.rank != 2 or buffer.of is not None or viewed(context.launch, buffer):
        return False
    if buffer.dtype.bits != 16 or buffer.dtype.bytes in context.target.transposing_reads:
        return False
    (rows, cols), wide = buffer.static_shape, WIDEST_READ // buffer.dtype.bytes
    return rows % RUN == 0 and cols % (4 * wide) == 0 and rows // RUN * (cols // wide) * 2 % context.launch.threads == 0


def _is_whole_load(copy: Copy, buffer: Buffer) -> bool:
    """Whether a copy writes the whole tile from a tensor of its type."""
    source = copy.src.buffer
    same = source.scope is Scope.GLOBAL and source.dtype == buffer.dtype
    return copy.dst.buffer is buffer and copy.plain and copy.dst.whole and same


def _reads_runs_across_rows(op: Gemm, buffer: Buffer, context: Context) -> bool:
    """Whether the MFMA of a GEMM takes runs of 4 elements along K, which is across the rows of the whole tile."""
    row = None if on_fma(op, context) else mfma_of(op, context)
    if row is None or row.through is not None or row.run != RUN or row.k * row.size != RUN * WAVE:
        return False
    sides = [(region, rows) for region, rows in ((op.a, op.transpose_a), (op.b, not op.transpose_b))]
    return all(region.whole and rows for region, rows in sides if region.buffer is buffer) and op.metadata is None


def _is_read_by_several_waves(op: Gemm, buffer: Buffer, context: Context) -> bool:
    """Whether several waves would transpose an element; of A, lanes would read single elements."""
    return op.a.buffer is buffer or context.facts[op, WARPS].m > 1


def reads_wide_rows(buffer: Buffer, context: Context) -> bool:
    """Whether GEMMs read the shared tile by 16 bytes of a row along K per lane, and in no other way."""
    if interleaves_rows(buffer, context):
        return False
    mmas = [op for op in on_mfma(context) if op.b.buffer is buffer]
    widths = {_interleave(op.mnk[1], context) * buffer.dtype.bytes for op in mmas}
    return widths == {WIDEST_READ} and _is_read_across_k(buffer, context)


WIDEST_READ = 16  # bytes per lane, by ds_read_b128


def _interleave(cols: int, context: Context) -> int:
    """The number of MFMAs whose columns are interleaved: the elements of one LDS read that fit each wave's part.

    It is the same for all GEMMs with as many columns. A read of interleaved rows has two columns, where a wave has
    them. Where a tile is also read in another way, reads are 8 bytes: its swizzle then serves both, and reads of 16
    bytes would have bank conflicts. Where reads transpose, each MFMA has its own columns.
    """
    mmas = [op for op in on_mfma(context) if op.mnk[1] == cols]
    if any(op.transpose_b for op in mmas):
        return 1
    if all(op.b.buffer.dtype.bytes in context.target.transposing_reads for op in mmas):
        return 1
    parts = [cols // (16 * context.facts[op, WARPS].n) for op in mmas]
    if all(interleaves_rows(op.b.buffer, context) for op in mmas):
        return 2 if all(part % 2 == 0 for part in parts) else 1
    one_way = all(_is_read_across_k(op.b.buffer, context) for op in mmas)
    read = WIDEST_READ if one_way else WIDEST_READ // 2
    widest = min(read // op.b.buffer.dtype.bytes for op in mmas)
    return next(count for count in (8, 4, 2, 1) if count <= widest and all(part % count == 0 for part in parts))


def _is_read_across_k(buffer: Buffer, context: Context) -> bool:
    """Whether each GEMM that reads the tile has it as its B, with K across the rows."""
    readers = [op for op in on_mfma(context) if buffer in (op.a.buffer, op.b.buffer)]
    return all(op.b.buffer is buffer and op.a.buffer is not buffer and not op.transpose_b for op in readers)


def on_mfma(context: Context) -> list[Gemm]:
    return [op for op in context.statements if isinstance(op, Gemm) and not on_fma(op, context)]
