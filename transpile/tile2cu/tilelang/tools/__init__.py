"""`tilelang.tools`: pictures of layouts."""

from pathlib import Path
from typing import Any

from tile2cu.core.errors import Tile2CuError
from tile2cu.review.layouts import TileLayout
from tile2cu.tilelang.layout import Layout
from tile2cu.tilelang.notes import once
from tile2cu.tilelang.symbols import Symbol

__all__ = ["Analyzer", "plot_layout"]

Analyzer = Symbol("tilelang.tools.Analyzer", "tilelang.tools.Analyzer")


def plot_layout(layout: Any, save_directory: str = "./tmp", name: str = "layout", **options: Any) -> Path:
    """Writes a layout of `kernel.layouts`, a `T.Layout` or a `T.Fragment` as SVG, and returns the file's path.

    Errors: T2C-C031 for something else, T2C-C005 where the file cannot be written.
    """
    if not isinstance(layout, TileLayout | Layout):
        raise Tile2CuError(
            "T2C-C031",
            "plot_layout takes a layout: of a kernel's tile, a T.Layout or a T.Fragment",
            help='plot_layout(kernel.layouts["C_local"]); `tile2cu layout FILE --tile NAME` plots without a program',
        )
    if options.get("formats", "svg") != "svg":
        once("`formats` of plot_layout has no effect: pictures are SVG")
    folder = Path(save_directory)
    folder.mkdir(parents=True, exist_ok=True)
    layout.plot(folder / f"{name}.svg")
    return folder / f"{name}.svg"
