"""MMAs of warpgroups: CuTe's atoms, their TiledMMA, and what is issued around them."""

from tile2cu.core.dtype import DType
from tile2cu.core.instruction import MmaInstruction
from tile2cu.core.layout import WgmmaAccumulator
from tile2cu.core.program import Scope
from tile2cu.core.span import Span
from tile2cu.plan import ops
from tile2cu.styles.cute.layouts import static
from tile2cu.styles.cute.support import unsupported

# CuTe's names of element types in those of its atoms.
_TYPES = {
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "TF32",
    "tfloat32": "TF32",
    "float8_e4m3fn": "E4M3",
    "float8_e5m2": "E5M2",
    "int8": "S8",
    "uint8": "U8",
}
_ACCUMULATORS = {"float16": "F16", "float32": "F32", "int32": "S32"}
_COLUMNS = (8, 16, 32, 64, 96, 128, 192, 256)  # of the atoms that CuTe has without its extended shapes
_K_MAJOR = "GMMA::Major::K"


def major(*, k_is_contiguous: bool) -> str:
    """How an operand in shared memory is stored."""
    return _K_MAJOR if k_is_contiguous else "GMMA::Major::MN"


def operands(op: ops.Mma) -> str:
    """How the operands of an MMA are stored, in words."""
    a = "A in registers" if op.a.buffer.scope is Scope.FRAGMENT else f"A {'MN' if op.a.transposed else 'K'}-major"
    return f"{a}, B {'K' if op.b.transposed else 'MN'}-major"


def atom_name(instruction: MmaInstruction, majors: tuple[str, str], *, a_in_registers: bool, span: Span) -> str:
    """CuTe's atom of an instruction, whose A is in registers (RS) or in shared memory (SS).

    Errors: T2C-E034 for one that CuTe does not have.
    """
    n, k, operands = instruction.n, instruction.k, instruction.operands
    if n not in _COLUMNS or instruction.sparse or instruction.through is not None:
        raise unsupported(f"the MMA {instruction}", span)
    a, b = (_TYPES.get(each.name, "") for each in operands)
    d = _ACCUMULATORS.get(instruction.accumulator.name, "")
    if not (a and b and d):
        raise unsupported(f"the MMA {instruction}", span)
    name = f"SM90_64x{n}x{k}_{d}{a}{b}_{'RS' if a_in_registers else 'SS'}"
    if operands[0].bytes == 2:
        return f"{name}<{', '.join(majors)}>"
    if majors != (_K_MAJOR, _K_MAJOR):
        raise unsupported("a wgmma of operands that are not 16 bits wide and not contiguous along K", span)
    return f"{name}_TN" + ("" if d == "S32" else "<>")


def mma_of_any(layout: WgmmaAccumulator, dtype: DType, span: Span) -> str:
    """The TiledMMA whose accumulator a fragment has that no MMA writes."""
    cols = layout.cols // layout.along_n
    n = next((each for each in reversed(_COLUMNS) if cols % each == 0), None)
    if n is None:
        raise unsupported(f"the layout WgmmaAccumulator of {cols} columns of {dtype}", span)
    return tiled_mma(layout, f"SM90_64x{n}x16_F32F16F16_SS<{_K_MAJOR}, {_K_MAJOR}>", n, 16, span)


def tiled_mma(layout: WgmmaAccumulator, atom: str, n: int, k: int, span: Span) -> str:
    """The TiledMMA whose C is the accumulator: a warpgroup holds contiguous rows and columns of the tile.

    It has the threads of one of the layout's copies.
    """
    rows, cols = layout.rows // layout.along_m, layout.cols // layout.along_n
    if layout.along_n > 1 and cols != n:
        raise unsupported("warpgroups along the columns of several MMAs", span)
    groups = f"Layout<Shape<{static(layout.along_m)}, {static(layout.along_n)}, _1>>{{}}"
    if rows == 64 or layout.along_m == 1:
        return f"make_tiled_mma({atom}{{}}, {groups})"
    shape = f"Shape<_64, {static(layout.along_m)}, {static(rows // 64)}>"
    along_m = f"Layout<{shape}, Stride<_1, {static(rows)}, _64>>"
    return f"make_tiled_mma({atom}{{}}, {groups}, Tile<{along_m}, {static(n * layout.along_n)}, {static(k)}>{{}})"


def fences(tiles: tuple[str, ...]) -> str:
    """What keeps the compiler from moving accesses of accumulators over a wait or a start."""
    return "\n".join(f"warpgroup_fence_operand({name});" for name in tiles)
