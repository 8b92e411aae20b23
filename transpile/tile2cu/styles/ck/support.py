"""What ck_tile's style supports; the rest is a diagnostic that names the style that does."""

from tile2cu.core.errors import Tile2CuError
from tile2cu.core.span import Span
from tile2cu.plan.resolved import Resolved

TARGETS = ("hip:gfx942", "hip:gfx90a")


def unsupported(what: str, span: Span) -> Tile2CuError:
    """The diagnostic for `what` this style does not have."""
    return Tile2CuError("T2C-E034", f"the style `ck` does not support {what}", span, help="`--style tl` does")


def check(launches: tuple[Resolved, ...]) -> None:
    """Errors: T2C-E034 where the target is not supported."""
    first = launches[0]
    if first.target.name not in TARGETS:
        raise unsupported(f"{first.target.name}, but {', '.join(TARGETS)}", first.launch.span)
