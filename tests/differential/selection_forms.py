"""Forms of random kernels: pipelined GEMMs whose loads a branch selects, or whose rows have scales in shared memory."""

from __future__ import annotations

from tests.differential.writer import Writer


def selected_loads(w: Writer) -> None:
    """Loads of one or two tiles in the arms of a branch: from boxes of one tensor, or of two."""
    w.threads = int(w.one(128, 256))
    rows, cols, depth, trips = (int(w.one(*choices)) for choices in ((64, 128), (64, 128), (32, 64), (3, 4)))
    left, right, out = w.shared(rows, depth), w.shared(depth, cols), w.fragment(rows, cols)
    a, b = w.tensor(3 * rows, trips * depth), w.tensor((trips + 1) * depth, cols)
    other = w.tensor(3 * rows, trips * depth) if w.often(0.15) else a  # not a selection of one copy's source
    asked = w.one(f"k == {trips - 1}", "k % 2 == 0", "k > bx", "bx == 1", f"{w.tensor(trips, dtype='int32')}[k] > 3")
    first = f"T.copy({a}[bx * {rows}, k * {depth}], {left})"
    second = f"T.copy({other}[{w.one(0, rows, f'(bx + 1) * {rows}')}, {w.one('0', f'k * {depth}')}], {left})"
    both = w.often(0.4)
    w.add(f"T.clear({out})")
    with w.within(f"for k in T.Pipelined({trips}, num_stages={w.one(2, 3)}):"):
        with w.within(f"if {asked}:"):
            w.add(first, *([f"T.copy({b}[k * {depth}, 0], {right})"] if both else []))
        with w.within("else:"):
            w.add(second, *([f"T.copy({b}[(k + 1) * {depth}, 0], {right})"] if both else []))
        if not both:
            w.add(f"T.copy({b}[k * {depth}, 0], {right})")
        w.add(f"T.gemm({left}, {right}, {out})")
    w.perhaps_scaled(out, rows, cols)
    w.show(out, rows, cols)


def row_scales(w: Writer) -> None:
    """Scales of an iteration's rows, computed into shared memory, by which its own result is multiplied."""
    w.threads = int(w.one(128, 256))
    rows, cols, depth, trips = (int(w.one(*choices)) for choices in ((64, 128), (64, 128), (32, 64), (3, 4)))
    left, right = w.shared(rows, depth), w.shared(depth, cols)
    scales = w.shared(rows, dtype="float32")
    each, out = w.fragment(rows, cols), w.fragment(rows, cols)
    a, b = w.tensor(2 * rows, trips * depth), w.tensor(trips * depth, cols)
    given = w.tensor(2 * rows, trips, dtype="float32")
    value = w.one(f"{given}[bx * {rows} + i, k] * 2.0", f"T.max({given}[i, k], 0.25)", f"{given}[i, 0] + {given}[i, k]")
    load = f"T.copy({a}[bx * {rows}, k * {depth}], {left})"
    w.add(f"T.clear({out})")
    with w.within(f"for k in T.Pipelined({trips}, num_stages={w.one(2, 3)}):"):
        if w.often():
            w.add(load)
            w.each("i", (rows,), f"{scales}[i] = {value}")
        else:
            w.each("i", (rows,), f"{scales}[i] = {value}")
            w.add(load)
        w.add(f"T.copy({b}[k * {depth}, 0], {right})", f"T.gemm({left}, {right}, {each}, clear_accum=True)")
        used = str(w.one(f"{scales}[i]", f"{scales}[i] * 0.5", f"{scales}[{rows - 1} - i]"))
        w.each("i, j", (rows, cols), f"{out}[i, j] {w.one('+=', '+=', '-=')} {each}[i, j] * {used}")
        if w.often(0.2):  # another reader keeps the scales in shared memory
            w.each("i, j", (rows, cols), f"{out}[i, j] += {scales}[j % {rows}]")
    w.show(out, rows, cols)
