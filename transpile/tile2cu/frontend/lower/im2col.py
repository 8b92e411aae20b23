"""T.im2col: one tile of the matrix whose rows are the patches that a convolution multiplies."""

from collections.abc import Callable

from tile2cu.core.expr import Call, Const, Expr, Load, binary, called, int_const, joined
from tile2cu.core.program import Buffer, Parallel, Scope, Store
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lower.operand import as_buffer, as_count, as_integer
from tile2cu.frontend.subscript import extents_text


def im2col(
    cx: Context,
    img: object,
    col: object,
    nhw_step: object,
    c_step: object,
    kernel: object,
    stride: object,
    dilation: object,
    pad: object,
    eviction_policy: object = None,
) -> None:
    """`T.im2col(img, col, nhw_step, c_step, kernel, stride, dilation, pad)` of an image (N, H, W, C).

    Row m of the matrix is the patch of output pixel m, its columns run over (kernel row, kernel column, channel);
    `col` is the tile at block row `nhw_step` and block column `c_step`. Pixels outside of the image are 0.
    """
    cx.recorder.require_tile_operation("T.im2col")
    image, tile = as_buffer(cx, img, "the image of T.im2col"), as_buffer(cx, col, "the tile of T.im2col")
    if image.rank != 4 or tile.rank != 2 or tile.scope is not Scope.SHARED:
        raise Fault(
            "T2C-F023",
            f"T.im2col takes an image of 4 dimensions and a shared tile of 2, not `{image.name}` "
            f"{extents_text(image.shape)} and `{tile.name}` {extents_text(tile.shape)}",
        )
    size = as_count(kernel, "`kernel` of T.im2col", least=1)
    steps = as_count(stride, "`stride` of T.im2col", least=1), as_count(dilation, "`dilation` of T.im2col", least=1)
    padding = as_count(pad, "`pad` of T.im2col")
    at = cx.recorder.take()
    i, j = cx.recorder.indices(tile.shape)
    row = binary("+", binary("*", as_integer(nhw_step, "`nhw_step`"), tile.shape[0]), i)
    column = binary("+", binary("*", as_integer(c_step, "`c_step`"), tile.shape[1]), j)
    called(row, "pixel")
    called(column, "column")
    value = _pixel(image, row, column, size, steps, padding)
    store = Store(buffer=tile, indices=(i, j), value=cx.expression(value), span=at.span)
    cx.recorder.emit(
        Parallel(
            vars=(i, j),
            extents=tile.shape,
            body=(store,),
            **at.fields,
        )
    )


def _pixel(image: Buffer, row: Expr, column: Expr, size: int, steps: tuple[int, int], padding: int) -> Expr:
    """The element of the matrix at (row, column)."""
    _, height, width, channels = image.shape
    rows, columns = (_positions(extent, size, steps, padding) for extent in (height, width))
    called(rows, "output_height")
    called(columns, "output_width")
    y = binary("//", binary("%", row, binary("*", rows, columns)), columns)
    x = binary("%", row, columns)
    kernel_y = binary("//", column, binary("*", int_const(size), channels))
    kernel_x = binary("%", binary("//", column, channels), int_const(size))
    at_y, at_x = (_source(*pair, steps, padding) for pair in ((y, kernel_y), (x, kernel_x)))
    called(at_y, "input_y")
    called(at_x, "input_x")
    sides = [
        test
        for place, extent in ((at_y, height), (at_x, width))
        for test in (binary(">=", place, int_const(0)), binary("<", place, extent))
    ]
    inside = joined("and", sides)
    assert inside is not None
    number = binary("//", row, binary("*", rows, columns))
    load = Load(image.dtype, image, (number, at_y, at_x, binary("%", column, channels)))
    return Call(image.dtype, "if_then_else", (inside, load, Const(image.dtype, 0)))


def _positions(extent: Expr, size: int, steps: tuple[int, int], padding: int) -> Expr:
    """How many places a kernel has along an extent."""
    stride, dilation = steps
    more = 2 * padding - (dilation * (size - 1) + 1)  # than the extent has, from a position's first pixel to its last
    if stride == 1:
        return _moved(extent, more + 1)
    return binary("+", binary("//", _moved(extent, more), int_const(stride)), int_const(1))


def _moved(number: Expr, by: int) -> Expr:
    return binary("-", number, int_const(-by)) if by < 0 else binary("+", number, int_const(by))


def _source(position: Expr, tap: Expr, steps: tuple[int, int], padding: int) -> Expr:
    """The pixel that a tap of the kernel reads at an output position."""
    stride, dilation = steps
    moved = binary("+", binary("*", position, int_const(stride)), binary("*", tap, int_const(dilation)))
    return binary("-", moved, int_const(padding))


FUNCTIONS: dict[str, Callable[..., object]] = {"im2col": im2col, "c2d_im2col": im2col}
