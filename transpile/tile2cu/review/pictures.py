"""Pictures of layouts: which thread and register hold an element, and in which banks a shared tile stores it."""

from collections.abc import Iterator, Mapping
from itertools import product

from tile2cu.analysis.banks import BANK_BYTES
from tile2cu.analysis.elements import Coordinates, Holder, byte_of, holders, warp_size
from tile2cu.core.layout import FragmentLayout, SharedLayout
from tile2cu.core.record import Record
from tile2cu.review import svg
from tile2cu.styles.base.layouts import described

_LEFT, _TOP, _LINE = 34, 40, 18  # margins for the axes and the caption, and the height of a line of text
_LETTER = 6.1  # pixels of a character
_ENTRY = 100  # pixels of a legend's entry
_VECTOR_COLUMNS = 64  # of a one-dimensional tile, which is shown in rows
_CHUNK_BITS = 128
_SMALL, _MOST_PARTS = 256, 256  # pixels of the picture of warps, and the most rectangles in it


class Window(Record, frozen=True, kw_only=True):
    """The part of a tile that is shown: its first rows and columns; None is all of them."""

    rows: int | None = None
    cols: int | None = None


WHOLE = Window()


class _Run(Record, frozen=True, kw_only=True):
    """Adjacent elements that are shown as one: `count` from `at` on, at a row and a column of the picture."""

    at: Coordinates
    count: int
    row: int
    col: int


def fragment_picture(name: str, layout: FragmentLayout, window: Window = WHOLE) -> str:
    """A fragment as SVG, coloured by warp.

    Elements that consecutive registers of the same threads hold are one rectangle: `data-at` is the first one's
    coordinates, `data-count` their number, `data-threads` who holds them, `data-register` the first register.
    """
    about = f"{name}: {described(layout)}"
    return held_picture(name, layout.shape, holders(layout), warp_size(layout), about, window)


def held_picture(
    name: str,
    shape: tuple[int, ...],
    found: Mapping[Coordinates, tuple[Holder, ...]],
    warp: int,
    about: str,
    window: Window = WHOLE,
) -> str:
    """The picture of a fragment by the threads and registers that hold each element, with warps of so many threads."""
    warps = sorted({threads[0][0] // warp for threads in found.values()})
    runs = list(_runs(shape, window, found))
    cells = [_fragment_cell(run, found[run.at], warp) for run in runs]
    legend = [(svg.colour(each), f"warp {each}") for each in warps[:8]]
    return _grid(name, shape, window, runs, cells, legend, about)


def mapping_picture(
    name: str, shape: tuple[int, ...], to: Mapping[Coordinates, Coordinates], about: str, window: Window = WHOLE
) -> str:
    """Where a layout puts each element, coloured by an eighth of the last output coordinate.

    Elements that go to consecutive places are one rectangle, with the first one's place: `data-at` and `data-count` are
    the elements, `data-to` that place.
    """
    extent = 1 + max(place[-1] for place in to.values())
    part = -(-extent // len(svg.PALETTE))
    runs = list(_consecutive(shape, window, to, part))
    cells = [_mapping_cell(run, to[run.at], part) for run in runs]
    groups = range(-(-extent // part))
    legend = [(svg.colour(group), f"{group * part}-{min((group + 1) * part, extent) - 1}") for group in groups]
    return _grid(name, shape, window, runs, cells, legend, about)


def shared_picture(
    name: str, layout: SharedLayout, banks: int = 32, window: Window = WHOLE, read_together: int = 0
) -> str:
    """A shared tile as SVG, coloured by bank.

    Each rectangle is a chunk of 16 bytes (or of what is left of a row), which is contiguous: `data-at` is its first
    element, `data-count` the elements, `data-byte` its offset in the tile, `data-banks` the banks of its bytes. With
    `read_together` the first chunks of so many rows are outlined, which an MMA reads in one pass.
    """
    runs = list(_chunks(layout, window))
    cells = [_shared_cell(run, layout, banks) for run in runs]
    in_chunk = 16 // BANK_BYTES
    legend = [
        (svg.colour(group), f"banks {group * in_chunk}-{(group + 1) * in_chunk - 1}")
        for group in range(min(8, banks // in_chunk))
    ]
    shape = " x ".join(map(str, layout.extents))
    about = f"{name}: {shape} elements of {layout.element_bits} bits, {layout}; {layout.bytes:,} bytes"
    if read_together:
        cells += [_outlined(run) for run in runs if run.col == 0 and run.row < read_together]
    return _grid(name, layout.extents, window, runs, cells, legend, about)


def warp_picture(name: str, layout: FragmentLayout) -> str:
    """Which warp holds which part of a tile of rows and columns, as SVG; empty where the parts are too many to show.

    `data-warp` of a rectangle is the warp that stores its elements, `data-rows` and `data-cols` the part.
    """
    if len(layout.shape) != 2:
        return ""
    parts = _warp_parts(layout)
    if len(parts) > _MOST_PARTS:
        return ""
    rows, cols = layout.shape
    scale = min(_SMALL / rows, _SMALL / cols)
    cells = [svg.text(10, 12, "held by warp", kind="note")]
    for warp, (top, bottom), (left, right) in parts:
        x, y, width, height = 10 + left * scale, 20 + top * scale, (right - left) * scale, (bottom - top) * scale
        title = f"warp {warp}: rows {top} to {bottom - 1}, columns {left} to {right - 1}"
        data = {"warp": warp, "rows": f"{top}-{bottom - 1}", "cols": f"{left}-{right - 1}"}
        cells.append(svg.rect(x, y, width, height, fill=svg.colour(warp), title=title, **data))
        if min(width, height) > 2 * svg.FONT:
            cells.append(svg.text(x + width / 2, y + height / 2 + 3, f"w{warp}", middle=True))
    about = "; ".join(
        f"warp {warp}: rows {top} to {bottom - 1}, columns {left} to {right - 1}"
        for warp, (top, bottom), (left, right) in parts
    )
    return svg.picture(cols * scale + 20, rows * scale + 30, cells, title=f"warps of {name}", about=about)


_Part = tuple[int, tuple[int, int], tuple[int, int]]  # a warp, and its rows and columns, ends excluded


def _warp_parts(layout: FragmentLayout) -> list[_Part]:
    """The largest parts of adjacent rows with the same columns that one warp holds."""
    found, size = holders(layout), warp_size(layout)
    parts: list[_Part] = []
    for row in range(layout.shape[0]):
        warps = [found[row, col][0][0] // size for col in range(layout.shape[1])]
        starts = [col for col, warp in enumerate(warps) if col == 0 or warps[col - 1] != warp]
        for start, end in zip(starts, [*starts[1:], len(warps)], strict=True):
            above = next((part for part in parts if part == (warps[start], (part[1][0], row), (start, end))), None)
            top = row
            if above is not None:
                parts.remove(above)
                top = above[1][0]
            parts.append((warps[start], (top, row + 1), (start, end)))
    return parts


def _fragment_cell(run: _Run, held: tuple[Holder, ...], size: int) -> str:
    threads = [thread for thread, _ in held]
    register = held[0][1]
    values = f"register {register}" if run.count == 1 else f"registers {register} to {register + run.count - 1}"
    who = f"thread {threads[0]} (warp {threads[0] // size}, lane {threads[0] % size})"
    if len(threads) > 1:
        who += f", and copies in {len(threads) - 1} more: {svg.ranges(threads)}"
    x, y = _place(run)
    fill = svg.colour(threads[0] // size)
    data = {"at": _at(run.at), "count": run.count, "threads": svg.ranges(threads), "register": register}
    title = f"{_elements(run)}: {who}, {values}"
    return svg.rect(x, y, run.count * svg.CELL, svg.CELL, fill=fill, title=title, **data) + _label(
        run, f"T{threads[0]}"
    )


def _shared_cell(run: _Run, layout: SharedLayout, banks: int) -> str:
    first = byte_of(layout, run.at)
    size = run.count * layout.element_bits // 8 or 1
    words = dict.fromkeys(byte // BANK_BYTES % banks for byte in range(first, first + size))
    of_banks = svg.ranges(sorted(words))
    x, y = _place(run)
    data = {"at": _at(run.at), "count": run.count, "byte": first, "banks": of_banks}
    title = f"{_elements(run)}: bytes {first} to {first + size - 1}, banks {of_banks}"
    fill = svg.colour(min(words) * BANK_BYTES // 16)
    return svg.rect(x, y, run.count * svg.CELL, svg.CELL, fill=fill, title=title, **data) + _label(run, of_banks)


def _outlined(run: _Run) -> str:
    """The outline of a chunk."""
    x, y = _place(run)
    box = f'x="{x + 1:g}" y="{y + 1:g}" width="{run.count * svg.CELL - 2:g}" height="{svg.CELL - 2:g}"'
    return f'<rect {box} fill="none" style="stroke:#111;stroke-width:2"/>'


def _elements(run: _Run) -> str:
    last = (*run.at[:-1], run.at[-1] + run.count - 1)
    return f"element ({_at(run.at)})" if run.count == 1 else f"elements ({_at(run.at)}) to ({_at(last)})"


def _at(at: Coordinates) -> str:
    return ",".join(map(str, at))


def _label(run: _Run, label: str) -> str:
    """The label of the rectangle, where it fits."""
    x, y = _place(run)
    width = run.count * svg.CELL
    return svg.text(x + width / 2, y + 12, label, middle=True) if len(label) * _LETTER <= width - 2 else ""


def _place(run: _Run) -> tuple[int, int]:
    return _LEFT + run.col * svg.CELL, _TOP + run.row * svg.CELL


def _rows(shape: tuple[int, ...], window: Window) -> Iterator[tuple[Coordinates, int, int]]:
    """The rows of the picture: the first coordinates, the first column and the columns of each."""
    if len(shape) == 1:
        end = min(shape[0], window.cols or shape[0])
        width = min(end, _VECTOR_COLUMNS)
        yield from (((), first, min(width, end - first)) for first in range(0, end, width))
        return
    cols = min(shape[-1], window.cols or shape[-1])
    leading = list(product(*map(range, shape[:-1])))
    yield from ((at, 0, cols) for at in leading[: window.rows])


def _runs(shape: tuple[int, ...], window: Window, found: Mapping[Coordinates, tuple[Holder, ...]]) -> Iterator[_Run]:
    for row, (leading, first, count) in enumerate(_rows(shape, window)):
        start = first
        for col in range(first + 1, first + count + 1):
            begins, here = (*leading, start), (*leading, col)
            ahead = tuple((thread, register + col - start) for thread, register in found[begins])
            if col == first + count or found[here] != ahead:
                yield _Run(at=begins, count=col - start, row=row, col=start - first)
                start = col


def _consecutive(
    shape: tuple[int, ...], window: Window, to: Mapping[Coordinates, Coordinates], part: int
) -> Iterator[_Run]:
    """Adjacent elements of a row whose places follow one another, in parts of one colour."""
    for row, (leading, first, count) in enumerate(_rows(shape, window)):
        start = first
        for col in range(first + 1, first + count + 1):
            begins, here = (*leading, start), (*leading, col)
            place = to[begins]
            ahead = (*place[:-1], place[-1] + col - start)
            if col == first + count or to[here] != ahead or ahead[-1] % part == 0:
                yield _Run(at=(*leading, start), count=col - start, row=row, col=start - first)
                start = col


def _mapping_cell(run: _Run, place: Coordinates, part: int) -> str:
    x, y = _place(run)
    data = {"at": _at(run.at), "count": run.count, "to": _at(place)}
    title = f"{_elements(run)} at ({_at(place)})" + (" and after" if run.count > 1 else "")
    cell = svg.rect(x, y, run.count * svg.CELL, svg.CELL, fill=svg.colour(place[-1] // part), title=title, **data)
    return cell + _label(run, _at(place))


def _chunks(layout: SharedLayout, window: Window) -> Iterator[_Run]:
    wide = max(1, _CHUNK_BITS // layout.element_bits)
    for row, (leading, first, count) in enumerate(_rows(layout.extents, window)):
        for col in range(first, first + count, wide):
            yield _Run(at=(*leading, col), count=min(wide, first + count - col), row=row, col=col - first)


def _grid(
    name: str,
    shape: tuple[int, ...],
    window: Window,
    runs: list[_Run],
    cells: list[str],
    legend: list[tuple[str, str]],
    about: str,
) -> str:
    rows, cols = max(run.row for run in runs) + 1, max(run.col + run.count for run in runs)
    width = max(_LEFT + cols * svg.CELL, _LEFT + len(legend) * _ENTRY, 420) + 10
    bottom = _TOP + rows * svg.CELL
    shown = "" if rows * cols >= len(_all_rows(shape)) * shape[-1] else f"; the first {rows} x {cols} are shown"
    parts = [svg.text(_LEFT, 12, f"{name} ({', '.join(map(str, shape))}){shown}", kind="note")]
    parts += [svg.text(_LEFT + col * svg.CELL, _TOP - 5, col, kind="axis") for col in range(0, cols, 8)]
    parts += _row_labels(shape, window)
    parts += cells
    parts += (part for index, each in enumerate(legend) for part in _legend(index, each, bottom))
    return svg.picture(width, bottom + 2 * _LINE, parts, title=f"layout of {name}", about=about + shown)


def _all_rows(shape: tuple[int, ...]) -> range:
    count = 1
    for extent in shape[:-1]:
        count *= extent
    return range(count)


def _row_labels(shape: tuple[int, ...], window: Window) -> Iterator[str]:
    for row, (leading, first, _) in enumerate(_rows(shape, window)):
        if row % 8 == 0 or len(shape) == 1:
            label = first if len(shape) == 1 else _at(leading)
            yield svg.text(2, _TOP + row * svg.CELL + 12, label, kind="axis")


def _legend(index: int, entry: tuple[str, str], bottom: int) -> Iterator[str]:
    fill, words = entry
    x, y = _LEFT + index * _ENTRY, bottom + 9
    yield svg.rect(x, y, 10, 10, fill=fill)
    yield svg.text(x + 14, y + 9, words, kind="axis")
