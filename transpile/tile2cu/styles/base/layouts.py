"""Layouts of fragments in words: which thread holds what."""

from collections.abc import Container, Iterable, Mapping
from functools import cache

from tile2cu.analysis.elements import warp_size
from tile2cu.analysis.tv_layout import tv_layout
from tile2cu.core.layout import (
    Blocked,
    FragmentLayout,
    MmaAccumulator,
    MmaOperandA,
    MmaOperandB,
    Replicated,
    Slice,
    SplitColumns,
    WgmmaAccumulator,
    slice_of,
)
from tile2cu.core.mfma_layout import WAVE, MfmaAccumulator, MfmaOperandA, MfmaTile
from tile2cu.core.program import Buffer
from tile2cu.plan.registers import Alternation
from tile2cu.styles.base.comments import listed
from tile2cu.styles.base.digits import coordinates
from tile2cu.styles.base.names import Names


def described(layout: FragmentLayout, part: str = "", *, in_tv: bool = True) -> str:
    """The layout in CuTe's notation, (threads, values) -> (rows, columns), and which warp holds what.

    That is `part` where a style has another distribution over warps. `in_tv`: with CuTe's TV layout.
    """
    shape = ", ".join(map(str, layout.shape))
    text = f"(T{layout.threads_of_block} threads, V{layout.registers} values each) -> ({shape})"
    match layout:
        case MmaAccumulator() | MmaOperandA():
            text += f"; {part or _warp_part(layout)}"
        case MmaOperandB():
            cols = layout.n // layout.warps.n
            text += f"; warp w holds columns {cols} (w % {layout.warps.n}) and the {cols - 1} after of the MMA's B"
        case MfmaAccumulator() | MfmaOperandA():
            run = layout.run * layout.interleave
            text += f"; {_warp_part(layout)}, a lane {run} neighbouring columns of a row at a time"
        case WgmmaAccumulator():
            text += f"; {_warpgroup_part(layout)}, its warp w rows 16 w to 16 w + 15 of each 64 rows"
        case Blocked():
            grid = " x ".join(map(str, layout.threads))
            runs = layout.registers // (layout.vector * layout.rows)
            elements = "one element" if layout.vector == 1 else f"{layout.vector} consecutive elements"
            if runs > 1:
                elements = f"{runs} elements" if layout.vector == 1 else f"{runs} runs of {elements}"
            if layout.replicas == layout.threads_of_block:
                return f"{text}; {_in_all(layout)}" + (in_cute_notation(layout) if in_tv else "")
            text += f"; one thread with {elements}" if grid == "1" else f"; {grid} threads with {elements} each"
            text += f", of {layout.rows} neighbouring rows" if layout.rows > 1 else ""
        case SplitColumns():
            text += f"; the registers of a tile of ({layout.shape[0]}, {layout.shape[1] * layout.width})"
        case _:
            pass
    if layout.replicas > 1:
        alike = f"{layout.replicas} threads hold the same value"
        text += f"; {_in_all(layout) if layout.replicas == layout.threads_of_block else alike}"
    return text + (in_cute_notation(layout) if in_tv else "")


def in_order_of_unpacking(tiles: Iterable[Buffer], unpacked: Container[Buffer], names: Names) -> tuple[str, ...]:
    """Which of the tiles have their neighbours in registers in another order (headers/tl/common/nibbles.h)."""
    found = [names(tile.name) for tile in tiles if tile in unpacked]
    order = "each 8 neighbours are in the order 0, 4, 1, 5, 2, 6, 3, 7, in which they are unpacked"
    return (f"in {listed(found)} {order}",) * bool(found)


def of_now(alternation: Alternation, names: Names) -> tuple[str, ...]:
    """Which iteration fragments of other names belong to."""
    in_both = names.in_comments(alternation.operands[1].name)
    return (
        "names that end with _now belong to the iteration whose MMA is next, whichever warpgroup computed them:",
        f"{in_both} in both. Warpgroup 1 has the others: where k is odd it computed them in iteration k - 1,",
        "where k is even it receives them.",
    )


def of_alternating(layout: FragmentLayout, own: FragmentLayout, alternation: Alternation, names: Names) -> str:
    """The same where warpgroups alternate: each has a tile of its `own` layout, and rows of it."""
    shape = ", ".join(map(str, layout.shape))
    text = f"(T{layout.threads_of_block} threads, V{layout.registers} values each) -> ({shape}); each warpgroup "
    if layout == own:
        *mine, now = (names.in_comments(each.name) for each in (alternation.computed, *alternation.operands))
        text += f"holds a whole tile, in {listed(mine)} that of its own iteration, in {now} that of the iteration "
        text += "whose MMA is next, its warp w rows 16 w to 16 w + 15 of each 64 rows"
        return text + in_cute_notation(layout)
    if isinstance(layout, Slice) and layout == slice_of(own, layout.kept):
        groups = layout.threads_of_block // 128
        same = f"{layout.replicas // groups} threads of a warpgroup hold the same value"
        return f"{text}holds values of its own; {same}"
    return described(layout)


def _in_all(layout: FragmentLayout) -> str:
    """What each thread of the block holds where all hold the same."""
    return "every thread holds " + (f"all {layout.registers} values" if layout.registers > 1 else "the value")


def of_interleaved(layout: FragmentLayout, rule: str, tiles: Mapping[str, bool], *, in_runs: bool = False) -> str:
    """Which MFMA computes which of a lane's neighbouring columns, behind a semicolon; empty where one computes all.

    headers/tl/common/cdna/mfma_accumulator.h, register_of; `in_runs`: headers/tl/ck.h, block_gemm. By `rule` it is an
    accumulator's layout; the `tiles` that have it are accumulators, or operands where a name has True.
    """
    if not isinstance(layout, MfmaAccumulator) or layout.interleave == 1 or not rule.endswith(".mfma-accumulator"):
        return ""
    count, run = layout.interleave, layout.run
    of = f" of {listed([name for name, is_operand in tiles.items() if not is_operand])}" if any(tiles.values()) else ""
    value = f"{run} t + r" if in_runs else f"{count} r + t"
    owned = f"each own runs of {run} of these columns" if in_runs else "interleave their columns"
    tile, where = _tile_of_wave(layout)
    return f"; value {tile}{value}{of} is register r of MFMA t, of {count} that {owned}{where}"


def _tile_of_wave(layout: MfmaAccumulator) -> tuple[str, str]:
    """(the summand of a register's number, the words) of which rows and columns of its wave MFMAs compute, by m and n.

    Both are empty where interleaved MFMAs compute all rows and columns of the wave.
    """
    held, lanes = layout.run * layout.interleave, WAVE // layout.size
    rows, cols = layout.rows // layout.warps.m // layout.size, layout.cols // layout.warps.n // (held * lanes)
    number = " + ".join([f"{cols} m" if cols > 1 else "m"] * (rows > 1) + ["n"] * (cols > 1))
    words = [f"{layout.size} rows from {layout.size} m"] * (rows > 1)
    words += [f"{held * lanes} columns from {held * lanes} n"] * (cols > 1)
    factor = f"({number})" if rows > 1 and cols > 1 else number
    return (f"{held} {factor} + ", f", in the wave's {listed(words)}") if words else ("", "")


def in_cute_notation(layout: FragmentLayout) -> str:
    """The layout as CuTe writes it, behind a semicolon; on AMD, by formulas; empty where it adds nothing."""
    if formulas := _formulas(layout):
        return f"; {formulas}"
    found = _tv_layout(layout)
    return f"; TV layout {found}" if found else ""


def has_tv_layout(layout: FragmentLayout) -> bool:
    """Whether it has a TV layout in CuTe's notation."""
    return not _formulas(layout) and bool(_tv_layout(layout))


def _formulas(layout: FragmentLayout) -> str:
    return coordinates(layout) if warp_size(layout) == WAVE else ""


@cache
def _tv_layout(layout: FragmentLayout) -> str:
    return "" if isinstance(layout, Replicated) else tv_layout(layout)


def _warpgroup_part(layout: WgmmaAccumulator) -> str:
    """Which rows and columns of the tile a warpgroup holds."""
    rows, cols = layout.rows // layout.along_m, layout.cols // layout.along_n
    row = "g" if layout.along_n * layout.copies == 1 else f"(g % {layout.along_m})"
    col = f"{cols} g" if layout.along_m == 1 else f"{cols} (g / {layout.along_m})"
    held_rows = "all rows" if layout.along_m == 1 else f"rows {rows} {row} to {rows} {row} + {rows - 1}"
    if layout.along_n == 1 and layout.along_m == 1 < layout.copies:
        return f"each warpgroup holds {held_rows}"
    if layout.along_n == 1:
        return f"warpgroup g holds {held_rows}"
    return f"warpgroup g holds {held_rows} and columns {col} to {col} + {cols - 1}"


def _warp_part(layout: MmaAccumulator | MmaOperandA | MfmaAccumulator | MfmaOperandA) -> str:
    """Which rows and columns of the tile a warp holds."""
    warps, rows, cols = layout.warps, layout.rows // layout.warps.m, layout.cols // layout.warps.n
    warp = "wave" if isinstance(layout, MfmaTile) else "warp"
    if warps.n == 1:
        return f"{warp} w holds rows {rows} w to {rows} w + {rows - 1}"
    if isinstance(layout, MmaOperandA | MfmaOperandA):
        return f"{warp} w holds rows {rows} (w / {warps.n}) and the {rows - 1} after"
    held = f"{rows} rows from {rows} (w / {warps.n})" if warps.m > 1 else f"all {rows} rows"
    return f"{warp} w holds {held} and {cols} columns from {cols} (w % {warps.n})"
