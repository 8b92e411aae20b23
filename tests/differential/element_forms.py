"""Forms of random kernels: numbers of a few bits, rows and vectors, loops over elements."""

from __future__ import annotations

from contextlib import nullcontext

from tests.differential.writer import Writer


def four_bits(w: Writer) -> None:
    """Tiles of two elements in a byte: cleared, copied, decoded."""
    dtype, rows, cols = str(w.one("int4", "uint4")), int(w.one(16, 32, 64)), int(w.one(32, 64, 128))
    fragment = w.fragment(rows, cols, dtype=dtype)
    if w.often():
        w.add(f"T.clear({fragment})")
    else:
        source = w.tensor(2 * rows, cols, dtype=dtype)
        w.add(f"T.copy({source}[bx * {rows}, 0], {fragment})")
    shared = w.shared(rows, cols, dtype=dtype)
    w.add(f"T.copy({fragment}, {shared})")
    wide = w.fragment(rows, cols)
    w.each("i, j", (rows, cols), f'{wide}[i, j] = T.cast({shared}[i, j], "float32") + 1.0')
    w.show(wide, rows, cols)


def decoded(w: Writer) -> None:
    """Bytes of two numbers each, decoded in registers: for a GEMM, or for sums along a row of a vector's products."""
    nibble = 'T.cast(T.cast({0}, "int32") >> (4 * (j % 2)) & 15, "float16")'
    if w.often():
        rows, depth, cols = int(w.one(64, 128)), int(w.one(128, 256)), int(w.one(32, 64))
        packed, right = w.shared(rows, depth // 2, dtype="uint8"), w.shared(depth, cols)
        left, out = w.fragment(rows, depth, dtype="float16"), w.fragment(rows, cols)
        w.add(f"T.copy({w.tensor(2 * rows, depth // 2, dtype='uint8')}[bx * {rows}, 0], {packed})")
        w.add(f"T.copy({w.tensor(depth, cols)}, {right})")
        w.each("i, j", (rows, depth), f"{left}[i, j] = {nibble.format(f'{packed}[i, j // 2]')}")
        w.add(f"T.gemm({left}, {right}, {out}, clear_accum=True)")
        w.perhaps_scaled(out, rows, cols)
        w.show(out, rows, cols)
        return
    rows, length, dtype = int(w.one(4, 8)), int(w.one(512, 1024)), str(w.one("float16", "float32"))
    packed, vector = w.shared(rows, length // 2, dtype="uint8"), w.shared(length)
    w.add(f"T.copy({w.tensor(2 * rows, length // 2, dtype='uint8')}[bx * {rows}, 0], {packed})")
    w.add(f"T.copy({w.tensor(length)}, {vector})")
    if w.often():
        sums, total = w.fragment(rows, length, dtype=dtype), w.fragment(rows)
        w.add(f"T.clear({sums})")
        value = f'T.cast({nibble.format(f"{packed}[i, j // 2]")} * {vector}[j], "{dtype}")'
        w.each("i, j", (rows, length), f"{sums}[i, j] += {value}")
        w.add(f"T.reduce_sum({sums}, {total}, dim=1)")
        w.show(total, rows)
        return
    run = int(w.one(32, 64))
    terms, sums = w.fragment(rows, length // run, run, dtype="float16"), w.fragment(rows, length // run, dtype=dtype)
    value = nibble.format(f"{packed}[i, (c * {run} + j) // 2]")
    w.each("i, c, j", (rows, length // run, run), f"{terms}[i, c, j] = {value} * {vector}[c * {run} + j]")
    w.add(f"T.reduce_sum({terms}, {sums}, dim=2)")
    w.show(sums, rows, length // run, dtype=dtype)


def rows_and_vectors(w: Writer) -> None:
    """Sums of rows by one thread each, values of rows, constants, scans, transposes and slices of a line."""
    rows, cols = int(w.one(16, 32)), int(w.one(128, 256))
    tile, row, scanned = w.shared(rows, cols, dtype="float32"), w.fragment(rows), w.fragment(rows, cols)
    w.add(f"T.copy({w.tensor(2 * rows, cols, dtype='float32')}[bx * {rows}, 0], {tile})")
    match w.one("sums", "rows", "constant", "scan", "scan", "line"):
        case "sums":
            w.add(f"T.clear({row})")
            with w.within(f"for i in T.Parallel({rows}):"), w.within(f"for j in T.serial({cols}):"):
                w.add(f"{row}[i] = {row}[i] + {tile}[i, j]")
            w.show(row, rows)
        case "rows":
            w.add(f"T.fill({row}, {w.one(2, 0.5)})")
            w.each("i, j", (rows, cols), f"{tile}[i, j] = {row}[i]")
            w.show(tile, rows, cols)
        case "constant":
            total = w.fragment(1)
            w.each("i", (w.threads,), f"{total}[0] = {w.one(1.0, 3.0)}")
            w.each("i, j", (rows, cols), f"{tile}[i, j] = {tile}[i, j] + {total}[0]")
            w.show(tile, rows, cols)
        case "scan":
            w.add(f"T.copy({tile}, {scanned})", f"T.{w.one('cumsum', 'cummax')}({scanned}, {scanned}, dim=1)")
            w.show(scanned, rows, cols)
        case _:
            line = w.shared(1024)
            w.add(f"T.clear({line})", f"T.copy({w.tensor(2, 64)}[bx, 0:64], {line}[bx * 64 : bx * 64 + 64])")
            w.show(line, 1024, dtype="float16")


def shared_to_shared(w: Writer) -> None:
    """A loop from one shared tile to another, and atomic additions of a tile or of its vectors."""
    size, dtype = int(w.one(32, 64)), str(w.one("float16", "float32"))
    first, second = w.shared(size, 64, dtype=dtype), w.shared(size, 64, dtype=dtype)
    w.add(f"T.copy({w.tensor(2 * size, 64, dtype=dtype)}[bx * {size}, 0], {first})")
    w.each("i, j", (size, 64), f'{second}[i, j] = {first}[i, j] * T.cast({w.one(2.0, 0.5)}, "{dtype}")')
    w.show(second, size, 64, dtype=dtype)
    if dtype == "float32":
        total = w.tensor(size, 64, dtype="float32", written=True)
        if w.often():
            w.each("i, j", (size, 16), f"T.atomic_addx4({total}[i, j * 4], {second}[i, j * 4])")
        else:
            fragment = w.fragment(size, 64)
            w.add(f"T.copy({second}, {fragment})", f"T.atomic_add({total}[0, 0], {fragment})")


def empty_tiles(w: Writer) -> None:
    """Blocks past a length that is in memory, and a wait for an earlier kernel that the target may not know."""
    w.grid, rows = (4,), int(w.one(16, 64))
    lengths, source = w.tensor(4, dtype="int32"), w.tensor(4 * rows, 64, dtype="float32")
    to = w.tensor(4 * rows, 64, dtype="float32", written=True)
    if w.often(0.3):
        w.add("T.pdl_sync()")
    w.add(f"length = {lengths}[{w.one(0, 1)}] * {w.one(8, 16)}")
    value = w.one(f"{source}[bx * {rows} + i, j]", f"{source}[bx * {rows} + i, j] * 2.0 + 1.0")
    with w.within(f"for i, j in T.Parallel({rows}, 64):"), w.within(f"if bx * {rows} + i < length:"):
        w.add(f"{to}[bx * {rows} + i, j] = {value}")


def lifetimes(w: Writer) -> None:
    """Shared tiles that do not all fit, each read by other threads than wrote it; some are read again at the end."""
    largest = {"cuda:sm_80": 256, "cuda:sm_90a": 352, "hip:gfx942": 96}[w.target]  # rows: half a KiB each
    w.threads, cols, rows = 256, 128, int(w.one(largest, largest // 4 * 3, largest // 8 * 5))
    phases, fragment = int(w.one(2, 3, 4)), w.fragment(rows, cols)
    source, tiles = w.tensor(2 * rows + phases, cols, dtype="float32"), []
    w.add(f"T.clear({fragment})")
    for phase in range(phases):
        tile = w.shared(rows, cols, dtype="float32")
        tiles.append(tile)
        other = w.one(f"{rows - 1} - i, j", f"i, {cols - 1} - j", f"(i + 1) % {rows}, (j + 5) % {cols}")
        kind = w.one("loaded", "computed", "loop")
        repeated = w.within(f"for t in T.serial({w.one(2, 3)}):") if kind == "loop" else nullcontext()
        with repeated:
            if phase and kind == "computed":
                w.add(f"T.copy({fragment}, {tile})")
            else:
                w.add(f"T.copy({source}[bx * {rows} + {'t % 2' if kind == 'loop' else phase}, 0], {tile})")
            w.each("i, j", (rows, cols), f"{fragment}[i, j] = {fragment}[i, j] * 0.5 + {tile}[{other}]")
    if w.often(0.2):
        w.each("i, j", (rows, cols), f"{fragment}[i, j] += {w.one(*tiles)}[i, {cols - 1} - j]")
    w.show(fragment, rows, cols)


def partial_sums(w: Writer) -> None:
    """Sums of a tile by many threads into fewer elements, of which the total is used, and perhaps a part."""
    rows, cols = int(w.one(16, 32, 64)), int(w.one(64, 128))
    first, second = int(w.one(4, 32, 128)), int(w.one(1, 2, 4))
    tile, total = w.fragment(rows, cols), w.fragment(1)
    w.add(f"T.copy({w.tensor(2 * rows, cols, dtype='float32')}[bx * {rows}, 0], {tile})")
    row = w.one(f"i % {first}", f"(i * {cols} + j) % {first}", f"(i // 8 * 32 + i % 8 * 4 + j % 8 // 2) % {first}")
    partials, at, line = w.fragment(first, second), f"{row}, j % {second}", f"{first * second}"
    if second == 1 and w.often():
        partials, at = w.fragment(first), str(row)
    summed = partials if at == str(row) else f"T.reshape({partials}, ({line},))"
    values = w.one("{0}", "T.abs({0})", "{0} * {0}", "T.max({0}, 0.0)", "T.if_then_else(i < j, {0}, 1.0)")
    w.add(f"T.clear({partials})" if w.often(0.8) else f"T.fill({partials}, {w.one(0, 0.5)})")
    w.each("i, j", (rows, cols), f"{partials}[{at}] += {str(values).format(f'{tile}[i, j]')}")
    clear = w.often(0.8)
    if not clear:
        w.add(f"T.fill({total}, {w.one(2, 0.5)})")
    w.add(f"T.reduce_sum({summed}, {total}, dim=0, clear={clear})")
    w.each("i, j", (rows, cols), f"{tile}[i, j] = {tile}[i, j] * 0.5 + {total}[0]")
    w.show(tile, rows, cols)
    if w.often(0.15):
        w.show(partials, *((first,) if at == str(row) else (first, second)))


def elements(w: Writer) -> None:
    """A tile in registers, changed through views, one row after another, by its row's sum, and in parts."""
    rows, cols = int(w.one(4, 8, 16)), int(w.one(64, 128))
    tile, source = w.fragment(rows, cols), w.tensor(8 * rows, cols, dtype="float32")
    w.add(f"T.copy({source}[bx * {rows}, 0], {tile})")
    for change in w.random.sample(_CHANGES, 3):
        change(w, source, tile, rows, cols)
    w.show(tile, rows, cols)


def _through_view(w: Writer, source: str, tile: str, rows: int, cols: int) -> None:
    group, view = int(w.one(4, 8, 16)), f"view{len(w.lines)}"
    w.add(f"{view} = T.view({tile}, ({rows}, {cols // group}, {group}))")
    w.each("i, g, j", (rows, cols // group, group), f"{view}[i, g, j] = {view}[i, g, j] * 0.5 + g")


def _row_after_row(w: Writer, source: str, tile: str, rows: int, cols: int) -> None:
    with w.within(f"for i in T.serial({rows}):"):
        w.each("j", (cols,), f"{tile}[i, j] = {tile}[i, j] * {w.one(2.0, 0.5)} + {source}[i + 1, j]")


def _by_row_sum(w: Writer, source: str, tile: str, rows: int, cols: int) -> None:
    total = w.fragment(rows)
    w.each("i, j", (rows, cols), f"{tile}[i, j] = {tile}[i, j] * {tile}[i, j] + 1.0")
    w.add(f"T.reduce_sum({tile}, {total}, dim=1)")
    w.each("i, j", (rows, cols), f"{tile}[i, j] = {tile}[i, j] / {total}[i] * {w.one(4, 2)}")


def _filled_part(w: Writer, source: str, tile: str, rows: int, cols: int) -> None:
    w.add(f"T.fill({tile}[{w.one(0, 1, 2)}:{rows - 1}, 0:{cols}], {w.one(3.0, 1.0)})")


def _column_sums(w: Writer, source: str, tile: str, rows: int, cols: int) -> None:
    part, total = w.fragment(rows, cols), w.fragment(cols)
    w.add(f"T.clear({total})")
    with w.within(f"for t in T.serial({w.one(2, 4)}):"):
        w.add(f"T.copy({source}[t * {rows}, 0], {part})", f"T.reduce_sum({part}, {total}, dim=0, clear=False)")
    w.each("i, j", (rows, cols), f"{tile}[i, j] += {total}[j]")


def _one_element(w: Writer, source: str, tile: str, rows: int, cols: int) -> None:
    shared = w.shared(4, dtype="float32")
    w.add(f"{shared}[0] = {w.one(1.0, 0.5)}")
    with w.within(f"for k in T.serial({w.one(2, 3)}):"):
        w.add(f"{shared}[0] = {shared}[0] + {source}[k, {w.one(0, 1)}]")
    w.each("i, j", (rows, cols), f"{tile}[i, j] += {shared}[0]")


def _difference(w: Writer, source: str, tile: str, rows: int, cols: int) -> None:
    now, step, before = w.fragment(rows), w.fragment(rows), w.shared(rows, dtype="float32")
    w.add(f"T.reduce_max({tile}, {now}, dim=1)", f"T.fill({before}, {w.one(0, 1)})", f"T.clear({step})")
    w.each("i", (rows,), f"{step}[i] = {step}[i] + {now}[i] - {before}[i]", f"{before}[i] = {now}[i]")
    w.show(step, rows)


def _units(w: Writer, source: str, tile: str, rows: int, cols: int) -> None:
    thin = w.fragment(1, rows, 1, cols)
    w.each("a, i, b, j", (1, rows, 1, cols), f"{thin}[a, i, b, j] = {source}[i + a, j + b] * {w.one(2.0, 0.5)}")
    to = w.tensor(2 * rows, cols, dtype="float32", written=True)
    w.each("a, i, b, j", (1, rows, 1, cols), f"{to}[bx * {rows} + i, j] = {thin}[a, i, b, j] + 1.0")


def _linear(w: Writer, source: str, tile: str, rows: int, cols: int) -> None:
    line, to = w.fragment(rows * cols), w.tensor(2 * rows, cols, dtype="float32", written=True)
    w.each("i, j", (rows, cols), f"{line}[i * {cols} + j] = {source}[i, j] * {w.one(2.0, 0.5)}")
    w.each("i, j", (rows, cols), f"{to}[bx * {rows} + i, j] = {line}[i * {cols} + j]")


def _forwarded(w: Writer, source: str, tile: str, rows: int, cols: int) -> None:
    shared, fragment = w.shared(rows, cols, dtype="float32"), w.fragment(rows, cols)
    w.add(f"T.copy({source}[0, 0], {shared})", f"T.copy({shared}, {fragment})")
    w.each("i, j", (rows, cols), f"{fragment}[i, j] = {fragment}[i, j] * {w.one(2.0, 0.5)}")
    w.add(f"T.copy({fragment}, {shared})")
    w.show(shared, rows, cols)


def _scanned(w: Writer, source: str, tile: str, rows: int, cols: int) -> None:
    other = w.fragment(rows, cols)
    w.add(f"T.{w.one('cumsum', 'cummax')}({tile}, {other}, dim=1)")
    w.show(other, rows, cols)


_CHANGES = (
    _through_view, _row_after_row, _by_row_sum, _filled_part, _column_sums, _one_element, _difference, _units, _linear,
    _forwarded, _scanned,
)  # fmt: skip
