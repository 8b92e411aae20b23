"""Layouts that a tensor-core product fixes: its accumulator, its register operand, its shared operands."""

from collections.abc import Iterator

from tile2cu.core.errors import Note, Tile2CuError
from tile2cu.core.layout import MmaAccumulator, SharedLayout, mma_operand_a
from tile2cu.core.program import Buffer, Gemm, Scope
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.targets import Mma

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
    source="PTX ISA, 'Warp Level Matrix Shape', mma.sync",
    examples=(Example(_GEMM, 4, "instruction", "mma.m16n8k16.float32.float16"),),
)
def mma_sync(op: Gemm, context: Context) -> Iterator[Decision]:
    """A product runs on mma.sync when the target's table has a row for its element types.

    Shapes: M in 16s, N in 8s, K in the row's k; all in elements.
    Gives: the instruction.
    Errors: T2C-S001 when no row has these types; T2C-S002 when K does not fit the row.
    """
    if context.facts.get(op, "instruction") is None:  # not on wgmma
        yield op, "instruction", _name(_instruction(op, context))


@rule(
    "layout.gemm.mma-accumulator",
    phase=Phase.STRICT,
    on=Gemm,
    source="PTX ISA, 'Matrix Fragments for mma.m16n8k16', accumulator",
    examples=(Example(_GEMM, "C_local", "layout", "MmaAccumulator(rows=128, cols=128, warps=Warps(m=2, n=2))"),),
)
def mma_accumulator(op: Gemm, context: Context) -> Iterator[Decision]:
    """The result of a product lies where mma.sync leaves it.

    Gives: the accumulator's layout over the product's warps.
    Errors: T2C-L011 when the result is not a fragment.
    """
    if op.c.buffer.scope is not Scope.FRAGMENT or not op.c.whole:
        raise Tile2CuError(
            "T2C-L011",
            f"the result of T.gemm must be a whole fragment, and `{op.c.buffer.name}` is not",
            op.span,
            help=f"allocate it with T.alloc_fragment and T.copy it to `{op.c.buffer.name}` afterwards",
        )
    if _on_mma_sync(op, context):
        m, n, _ = op.mnk
        yield op.c.buffer, "layout", MmaAccumulator(m, n, context.facts[op, "warps"])


@rule(
    "layout.gemm.mma-operand",
    phase=Phase.STRICT,
    on=Gemm,
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
    """A first operand in registers lies where mma.sync reads it.

    Where a warp owns whole rows, that is the place of an accumulator.

    Gives: the fragment's layout.
    Errors: T2C-S003 when the second operand is in registers, or the first is there transposed.
    """
    _refuse_register_operands(op)
    if op.a.buffer.scope is Scope.FRAGMENT and _on_mma_sync(op, context):
        m, _, k = op.mnk
        yield op.a.buffer, "layout", mma_operand_a(m, k, context.facts[op, "warps"])


@rule(
    "layout.gemm.widest-swizzle",
    phase=Phase.STRICT,
    on=Gemm,
    source="PTX ISA, 'Swizzling Modes'; shared memory has 32 banks of 4 bytes (CUDA C++ Programming Guide)",
    examples=(
        Example(_GEMM, "A_shared", "layout", "64-byte swizzle"),
        Example(_GEMM, "B_shared", "layout", "128-byte swizzle"),
    ),
)
def widest_swizzle(op: Gemm, context: Context) -> Iterator[Decision]:
    """A shared operand takes the widest swizzle that divides its row, so that ldmatrix meets no bank conflict.

    Shapes: a row is compared in bytes with spans of 128, 64 and 32; a row of no such multiple is
    padded by 16 bytes, which is free of conflicts too when the row is an even number of chunks.
    Gives: a SharedLayout for each shared operand.
    """
    for buffer in (op.a.buffer, op.b.buffer):
        if buffer.scope is Scope.SHARED:
            yield buffer, "layout", _swizzled(buffer)


def _on_mma_sync(op: Gemm, context: Context) -> bool:
    return str(context.facts[op, "instruction"]).startswith("mma.")


def _swizzled(buffer: Buffer) -> SharedLayout:
    shape = buffer.static_shape
    row = shape[-1] * buffer.dtype.bytes
    span = next((span for span in (128, 64, 32) if row % span == 0), 0)
    return SharedLayout(shape, buffer.dtype.bytes, swizzle=span, padding=0 if span else _padding(row))


def _padding(row: int) -> int:
    """Bytes that make the row an odd number of 16-byte chunks, so that 8 rows touch all banks."""
    return 16 if row // 16 % 2 == 0 else 0


def _instruction(op: Gemm, context: Context) -> Mma:
    a, b, c = (region.buffer.dtype for region in (op.a, op.b, op.c))
    found = context.target.instruction(a, c) if a == b else None
    if found is None:
        known = sorted({f"{row.operand} x {row.operand} -> {row.accumulator}" for row in context.target.mma})
        raise Tile2CuError(
            "T2C-S001",
            f"no instruction of {context.target.name} multiplies {a} by {b} into {c}",
            op.span,
            notes=(Note("it has " + ", ".join(known)),),
            help="allocate the operands or the accumulator with one of these types",
        )
    _check_k(op, found)
    return found


def _check_k(op: Gemm, found: Mma) -> None:
    _, _, k = op.mnk
    if k % found.k:
        raise Tile2CuError(
            "T2C-S002",
            f"K of this product is {k}, and {found.operand} products take K in {found.k}s",
            op.span,
            help=f"make K a multiple of {found.k}; tiles past the end of a tensor are filled with zeros",
        )
    if not found.transposable and (op.transpose_a or not op.transpose_b):
        wrong = "A" if op.transpose_a else "B"
        raise Tile2CuError(
            "T2C-S004",
            f"{found.operand} operands must have K along their rows, and {wrong} has it along its columns",
            op.span,
            notes=(Note("ldmatrix transposes 16-bit elements only (PTX ISA, 'ldmatrix')"),),
            help="keep A as (M, K) and B as (N, K) with transpose_B=True",
        )


def _refuse_register_operands(op: Gemm) -> None:
    a, b = op.a.buffer, op.b.buffer
    in_registers = [] if b.scope is Scope.SHARED else [b]
    if a.scope is not Scope.SHARED and (a.scope is not Scope.FRAGMENT or op.transpose_a):
        in_registers.append(a)
    if in_registers:
        name = in_registers[0].name
        raise Tile2CuError(
            "T2C-S003",
            f"`{name}` cannot be an operand of T.gemm where it is",
            op.span,
            notes=(Note("A may be a shared tile, or a fragment that is not transposed; B must be a shared tile"),),
            help=f"T.copy `{name}` to a shared tile first",
        )


def _name(row: Mma) -> str:
    return f"mma.m{row.m}n{row.n}k{row.k}.{row.accumulator}.{row.operand}"
