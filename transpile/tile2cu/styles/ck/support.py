"""What ck_tile's style supports; the rest is a diagnostic that names the style that does."""

from msgspec.structs import replace

from tile2cu.core.dtype import FLOATS_OF_8_BITS, FNUZ_FLOATS, INT8, OCP_FLOATS
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.span import Span
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.tensors import viewed_tensors
from tile2cu.targets import Target

TARGETS = ("hip:gfx942", "hip:gfx90a", "hip:gfx950")


def seen(target: Target) -> Target:
    """The target without what the style does not emit: tiles pass through registers, which transpose them.

    ck_tile of mid 2025 compiles gfx950's wide int8 instructions to nothing (its macro __gfx95__ is never defined).
    """
    if target.name not in TARGETS:
        return target
    mfma = tuple(each for each in target.mfma if each.operand != INT8 or each.lane_bytes <= 8)
    return replace(target, load_lds=(), transposing_reads=(), mfma=mfma)


def unsupported(what: str, span: Span) -> Tile2CuError:
    """The diagnostic for `what` this style does not have."""
    return Tile2CuError("T2C-E034", f"the style `ck` does not support {what}", span, help="`--style tl` does")


def check(launches: tuple[Resolved, ...]) -> None:
    """Errors: T2C-E034 for a target, or an 8-bit floating point of another target, which ck_tile has no type for."""
    first = launches[0]
    if first.target.name not in TARGETS:
        raise unsupported(f"{first.target.name}, but {', '.join(TARGETS)}", first.launch.span)
    own = {"fnuz": FNUZ_FLOATS, "ocp": OCP_FLOATS, "": ()}[first.target.fp8]
    for resolved in launches:
        for buffer in (*resolved.launch.tiles, *(each for each in viewed_tensors(resolved))):
            if buffer.dtype in FLOATS_OF_8_BITS and buffer.dtype not in own:
                raise unsupported(f"{buffer.dtype} on {first.target.arch}, whose own it is not", buffer.span)
