"""Layouts that a tensor-core GEMM fixes: its accumulator, its register operand, its shared operands."""

from collections.abc import Iterator

from tile2cu.core.decisions import INSTRUCTION, LAYOUT, NO_TENSOR_CORES, ON_WGMMA, WARPS
from tile2cu.core.errors import Note, Tile2CuError
from tile2cu.core.facts import rejected
from tile2cu.core.instruction import MmaInstruction
from tile2cu.core.instruction import fma as fma_of
from tile2cu.core.instruction import mma_sync as mma_sync_of
from tile2cu.core.layout import MmaAccumulator, MmaOperandB, mma_operand_a
from tile2cu.core.program import Gemm, Scope
from tile2cu.rules.engine import Context, Decision, Elsewhere, Example, Phase, rule
from tile2cu.rules.layout.free import blocked
from tile2cu.rules.mma.warps import FMA_ROW, mma_of, on_fma, too_small_for_tensor_cores
from tile2cu.targets import Mfma, Mma

_GEMM = """
A_shared = T.alloc_shared((128, 32), "float16")
B_shared = T.alloc_shared((32, 128), "float16")
C_local = T.alloc_fragment((128, 128), "float32")
T.gemm(A_shared, B_shared, C_local)
"""


@rule(
    "select.gemm.mma-sync",
    phase=Phase.STRICT,
    on=Gemm,
    absent=(INSTRUCTION,),
    writes=(INSTRUCTION,),
    source="PTX ISA, 'Warp Level Matrix Shape', mma.sync",
    examples=(Example(_GEMM, 4, "instruction", "mma.m16n8k16.f32.f16.f16.f32"),),
)
def mma_sync(op: Gemm, context: Context) -> Iterator[Decision]:
    """A GEMM runs on mma.sync when the target's table has a row for its element types.

    Shapes: M in 16s, N in 8s, K in the row's k; all in elements.
    Gives: the instruction.
    Errors: T2C-S002 when K does not fit the row.
    """
    row = mma_of(op, context)
    if context.facts.get(op, INSTRUCTION) is None and row is not None:  # not on wgmma
        check_k(op, row)
        yield op, INSTRUCTION, _instruction(row)


@rule(
    "select.gemm.fma",
    phase=Phase.STRICT,
    on=Gemm,
    reads=(ON_WGMMA,),
    writes=(INSTRUCTION, LAYOUT, NO_TENSOR_CORES),
    source="PTX ISA, 'mma': the element types of each shape",
    examples=(
        Example(
            'A_shared = T.alloc_shared((32, 24), "float16")\n'
            'B_shared = T.alloc_shared((24, 20), "float16")\n'
            'C_local = T.alloc_fragment((32, 20), "float64")\n'
            "T.gemm(A_shared, B_shared, C_local)",
            "C_local",
            "layout",
            "Blocked(extents=(32, 20), threads=(8, 16), vector=1, block_threads=128, rows=1)",
        ),
    ),
)
def fma(op: Gemm, context: Context) -> Iterator[Decision]:
    """A GEMM of types that no MMA instruction takes is computed by each thread, with FMA.

    So is one with fewer rows, columns or steps of K than an instruction takes, as a matrix-vector product.

    Gives: the instruction, and the layout of the accumulator; why tensor cores are not used.
    Errors: T2C-S008 when the GEMM is sparse, T2C-S001 when its own result is its operand, in registers that other
    threads cannot read.
    """
    if not on_fma(op, context):
        return
    _reject_sparse(op, context)
    _reject_fma_in_registers(op, context)
    yield op, INSTRUCTION, fma_of(op.a.buffer.dtype, op.b.buffer.dtype, op.c.buffer.dtype)
    m, n, k = op.mnk
    if too_small_for_tensor_cores(op, context):
        because = f"{m} x {n} x {k} is smaller than the shape of an MMA instruction"
        yield rejected(op, NO_TENSOR_CORES, because, "larger tiles")
    yield op.c.buffer, LAYOUT, blocked((m, n), 1, context, lanes=FMA_ROW)


@rule(
    "layout.gemm.mma-accumulator",
    phase=Phase.STRICT,
    on=Gemm,
    reads=(INSTRUCTION, WARPS),
    writes=(LAYOUT,),
    source="PTX ISA, 'Matrix Fragments for mma.m16n8k16', accumulator",
    examples=(Example(_GEMM, "C_local", "layout", "MmaAccumulator(rows=128, cols=128, warps=Warps(m=2, n=2))"),),
)
def mma_accumulator(op: Gemm, context: Context) -> Iterator[Decision]:
    """The accumulator of a GEMM has the layout of mma.sync's result.

    Gives: the accumulator's layout over the GEMM's warps.
    """
    if _on_mma_sync(op, context):
        m, n, _ = op.mnk
        yield op.c.buffer, LAYOUT, MmaAccumulator(m, n, context.facts[op, WARPS])


@rule(
    "layout.gemm.mma-operand",
    phase=Phase.STRICT,
    on=Gemm,
    reads=(INSTRUCTION, WARPS),
    writes=(LAYOUT,),
    source="PTX ISA, 'Matrix Fragments for mma.m16n8k16', multiplicand A",
    examples=(
        Example(
            'A_local = T.alloc_fragment((64, 32), "float16")\n'
            'B_shared = T.alloc_shared((32, 64), "float16")\n'
            'C_local = T.alloc_fragment((64, 64), "float32")\n'
            "T.gemm(A_local, B_shared, C_local, policy=T.GemmWarpPolicy.FullRow)",
            "A_local",
            "layout",
            "MmaAccumulator(rows=64, cols=32, warps=Warps(m=4, n=1))",
        ),
    ),
)
def mma_operand(op: Gemm, context: Context) -> Iterator[Decision]:
    """A register-resident operand has the layout that mma.sync reads.

    Where a warp owns whole rows, that is for the A operand the layout of an accumulator. Others go through shared
    memory.

    Gives: the fragments' layouts.
    Errors: T2C-S003 when such an operand is the GEMM's own result.
    """
    _reject_register_operands(op, context)
    if not _on_mma_sync(op, context):
        return
    m, n, k = op.mnk
    warps = context.facts[op, WARPS]
    if op.a.buffer.scope is Scope.FRAGMENT:
        yield op.a.buffer, LAYOUT, mma_operand_a(m, k, warps)
    if op.b.buffer.scope is Scope.FRAGMENT:
        yield op.b.buffer, LAYOUT, MmaOperandB(k, n, warps, transposed=op.transpose_b)


def _on_mma_sync(op: Gemm, context: Context) -> bool:
    return context.facts[op, INSTRUCTION].name.startswith("mma.")


def check_k(op: Gemm, found: Mma | Mfma) -> None:
    """Raises T2C-S002 when K is not a multiple of the instruction's."""
    _, _, k = op.mnk
    if k % found.k:
        raise Tile2CuError(
            "T2C-S002",
            f"K of this GEMM is {k}, and {found.operand} MMAs take K in {found.k}s",
            op.span,
            help=f"make K a multiple of {found.k}; tiles past the end of a tensor are filled with zeros",
        )


def _reject_register_operands(op: Gemm, context: Context) -> None:
    a, b = op.a.buffer, op.b.buffer
    why = {}
    if b.scope is Scope.FRAGMENT and context.target.mfma:
        why[b] = "a GEMM reads B from shared memory on AMD: `{}` is staged there"
    elif b.scope is Scope.FRAGMENT and b.dtype.bytes != 2:
        why[b] = ""
    if a.scope is Scope.FRAGMENT and (op.transpose_a or a.dtype.is_packed):
        why[a] = ""
    for tile in why:
        error = Tile2CuError(
            "T2C-S003",
            f"`{tile.name}` cannot be an operand of T.gemm where it is",
            op.span,
            notes=(Note("in registers, A may not be transposed or of 4 bits, and B must have elements of 16 bits"),),
            help=f"T.copy `{tile.name}` to a shared tile first",
        )
        raise Elsewhere.of(error, op, tile, why[tile])


def _reject_sparse(op: Gemm, context: Context) -> None:
    if op.metadata is None:
        return
    a, b, c = (region.buffer.dtype for region in (op.a, op.b, op.c))
    raise Tile2CuError(
        "T2C-S008",
        f"no instruction of {context.target.name} multiplies a sparse matrix of {a} by {b} into {c}",
        op.span,
        notes=(
            Note(
                "from sm_80 on, NVIDIA's multiply float16 and bfloat16 into float32 and int8 into int32, from sm_89 on "
                "float8 into float32"
            ),
        ),
        help="write the zeros of A, too, and T.gemm",
    )


def _reject_fma_in_registers(op: Gemm, context: Context) -> None:
    tile = next((region.buffer for region in (op.a, op.b) if region.buffer.scope is not Scope.SHARED), None)
    if tile is not None:
        raise Elsewhere.of(_no_instruction(op, context, tile.name), op, tile)


def _no_instruction(op: Gemm, context: Context, in_registers: str) -> Tile2CuError:
    a, b, c = (region.buffer.dtype for region in (op.a, op.b, op.c))
    types = [(row.operand, row.operand, row.accumulator) for row in context.target.mma if not row.sparse]
    types += [(*row.operands, row.accumulator) for row in context.target.mfma]
    known = sorted({f"{a} x {b} -> {accumulator}" for a, b, accumulator in types})
    return Tile2CuError(
        "T2C-S001",
        f"no instruction of {context.target.name} multiplies {a} by {b} into {c}, and `{in_registers}` is in registers",
        op.span,
        notes=(Note("it has " + ", ".join(known)),),
        help=f"use one of these types, or T.copy `{in_registers}` to a shared tile",
    )


def _instruction(row: Mma) -> MmaInstruction:
    return mma_sync_of(row.m, row.n, row.k, row.operand, row.accumulator, row.through, row.sparse)
