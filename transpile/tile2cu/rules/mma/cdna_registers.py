"""AMD's CDNA: what is kept in a lane's registers, and how many waves a SIMD then holds."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import viewed
from tile2cu.analysis.prelude import before, outermost
from tile2cu.analysis.uses import statements, users
from tile2cu.core.decisions import LAYOUT, LOADED_OPERAND, ON_WGMMA, PIPELINE, WARPS, WAVES_PER_SIMD
from tile2cu.core.program import Buffer, Copy, Gemm, Launch, Loop, Scope
from tile2cu.core.schedule import Pipeline
from tile2cu.passes.register_operands import LOADED
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.mma.cdna import WIDEST_READ, on_mfma, shared_bytes

_ATTENTION = """
Q_shared = T.alloc_shared((128, 64), "float16")
K_shared = T.alloc_shared((64, 64), "float16")
V_shared = T.alloc_shared((64, 64), "float16")
S = T.alloc_fragment((128, 64), "float32")
P = T.alloc_fragment((128, 64), "float16")
O = T.alloc_fragment((128, 64), "float32")
T.copy(Z[0, 0], Q_shared)
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[k * 64, 0], K_shared)
    T.copy(Z[k * 64, 64], V_shared)
    T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullRow)
    T.copy(S, P)
    T.gemm(P, V_shared, O, policy=T.GemmWarpPolicy.FullRow)
"""
# Addresses, counters and temporaries of one GEMM. Where there are several, clang loads the operands of one early only
# while registers are free: 30 tilings of attention compile for gfx942 with clang 19 as these counts predict.
_OTHER_REGISTERS = 40


@rule(
    LOADED,
    phase=Phase.PIPELINE,
    on=Loop,
    reads=(ON_WGMMA, LAYOUT, PIPELINE, WARPS),
    writes=(LOADED_OPERAND,),
    source="AMD Instinct MI300 ISA, 'LDS': 128 bytes per cycle for a CU, whose 4 SIMDs read operands from it",
    examples=(Example(_ATTENTION, 11, "loaded_operand", "Z", target="hip:gfx942", threads=256),),
)
def loaded_operand(op: Loop, context: Context) -> Iterator[Decision]:
    """A loop-invariant A operand whose rows belong to one wave each is loaded to registers, not to the LDS.

    Each wave would read its own rows of the tile from the LDS in every iteration. The tile is written by one copy
    before the loop and read by one GEMM in it, and the waves of that GEMM have rows of their own. Two waves fit on a
    SIMD with it.

    Gives: for the GEMM, the tensor. All decisions are then made again with a fragment in the tile's place.
    """
    if not context.target.mfma or context.launch.groups > 1:
        return
    inside, body = [*statements(op.body, Gemm)], context.launch.body
    for mma in (each for each in on_mfma(context) if each in inside and outermost(body, each) is op):
        if (tensor := _loaded_from(mma, context)) is not None:
            by_user = mma.a.buffer.scope is Scope.FRAGMENT
            if by_user or _waves_per_simd(context, _more_registers(mma, context)) == 2:
                yield mma, LOADED_OPERAND, tensor.name


def _loaded_from(mma: Gemm, context: Context) -> Buffer | None:
    """The tensor from which one copy before the loop writes the MMA's A operand, which nothing else reads or writes."""
    tile, launch = mma.a.buffer, context.launch
    used_by = users(launch.body, tile)
    above = before(launch.body, outermost(launch.body, mma))
    load = next((stmt for stmt in above if stmt in used_by), None)
    if not isinstance(load, Copy) or tile.of is not None or viewed(launch, tile):
        return None
    alone = {id(load), id(mma)} >= set(map(id, used_by))
    same = load.src.buffer.scope is Scope.GLOBAL and load.src.buffer.dtype == tile.dtype
    whole = load.dst.whole and mma.a.whole and not mma.transpose_a
    rows_of_one_wave = tile.dtype.bytes in (1, 2) and context.facts[mma, WARPS].n == 1
    return load.src.buffer if alone and load.plain and same and whole and rows_of_one_wave else None


def _more_registers(mma: Gemm, context: Context) -> int:
    """Registers per thread of an MMA's A operand, each element of which one thread holds, less those of its reads."""
    rows = mma.mnk[0] // context.facts[mma, WARPS].m
    return shared_bytes(mma.a.buffer) // 4 // context.launch.threads - _registers_of_reads(rows)


@rule(
    "launch.cdna.two-waves",
    phase=Phase.PIPELINE,
    on=Launch,
    reads=(ON_WGMMA, LAYOUT, PIPELINE, WARPS),
    writes=(WAVES_PER_SIMD,),
    source="AMD Instinct MI300 ISA, 'Vector Registers': 512 for each lane of a SIMD, 256 of them for accumulation",
    examples=(Example(_ATTENTION, "launch", "waves_per_simd", "2", target="hip:gfx942", threads=256),),
)
def two_waves_per_simd(launch: Launch, context: Context) -> Iterator[Decision]:
    """Where a wave's fragments leave registers for a second wave on the SIMD, the compiler is asked to keep two waves.

    A wave that has a SIMD to itself gets AccVGPRs, too, and the compiler lets MFMAs write to them: each value of an
    accumulator that vector instructions read or write then costs a v_accvgpr move. With half of the registers, all of
    them are VGPRs. More than 256 threads occupy each SIMD with two waves in any case.

    Gives: the waves per SIMD; None where a wave needs more registers.
    """
    one_wave_each = launch.threads <= context.target.simds * context.target.warp_size
    if context.target.mfma and one_wave_each and on_mfma(context):
        yield launch, WAVES_PER_SIMD, 2 if _waves_per_simd(context) == 2 else None


def _waves_per_simd(context: Context, more: int = 0) -> int:
    """The waves, of at most two, that a SIMD has registers for, with so many `more` for each lane; 0 for none."""
    operands = [_registers_of_step(op, context) for op in on_mfma(context)]
    tiles = _tile_registers(context.launch, context) + _staged_registers(context.launch, context) + more
    needed = tiles + sum(operands) + (_OTHER_REGISTERS if len(operands) == 1 else 0)
    return min(2, context.target.max_registers // needed)


def _tile_registers(launch: Launch, context: Context) -> int:
    """Registers per thread of its fragments.

    An element of 8 or 16 bits may take a whole register, but in an operand that is loaded packed.
    """
    packed = {id(op.a.buffer) for op in on_mfma(context) if _loaded_from(op, context) is not None}
    layouts = [(tile, context.facts.get(tile, LAYOUT)) for tile in launch.tiles if tile.scope is Scope.FRAGMENT]
    sizes = ((layout, tile.dtype.bytes, id(tile) in packed) for tile, layout in layouts if layout is not None)
    return sum(layout.words(size if is_packed else max(4, size)) for layout, size, is_packed in sizes)


def _staged_registers(launch: Launch, context: Context) -> int:
    """Registers per thread of 4 bytes for the tiles that are held in registers: loops run one at a time."""
    found: list[Pipeline | None] = [context.facts.get(op, PIPELINE) for op in context.statements]
    tiles = [[shared_bytes(tile) for tile in each.buffers] for each in found if each and each.staged]
    return max((sum(each) for each in tiles), default=0) // launch.threads // 4


def _registers_of_step(op: Gemm, context: Context) -> int:
    """Registers that one read of the operands takes in a lane; the plan knows those of all reads in flight."""
    (m, n, _), warps = op.mnk, context.facts[op, WARPS]
    of_a = _registers_of_reads(m // warps.m) if op.a.buffer.scope is Scope.SHARED else 0
    return of_a + _registers_of_reads(n // warps.n)


def _registers_of_reads(lines: int) -> int:
    """Registers of one read, of 16 bytes, of each 16 of a wave's rows of A or columns of B."""
    return lines // 16 * (WIDEST_READ // 4)
