"""Forms of random kernels: GEMMs, alone, in pipelined loops, and as attention computes with two of them."""

from __future__ import annotations

from tests.differential.writer import Writer


def loaded_operands(w: Writer) -> None:
    """Operands that are gathered, masked, copied under a condition, or of iterations as many as the block's number."""
    _loop_of_gemms(w, str(w.one("gathered", "mask", "branch", "priority", "lpt", "line")))


def computed_operands(w: Writer) -> None:
    """Operands that are scaled in shared memory or registers, or transposed; results scaled by the iteration's rows."""
    w.threads = int(w.one(128, 256))
    _loop_of_gemms(w, str(w.one("scaled", "computed", "computed", "transposed", "transposed", "rows")))


def _loop_of_gemms(w: Writer, kind: str) -> None:
    rows, cols, depth = int(w.one(64, 128)), int(w.one(64, 128)), int(w.one(32, 64, 64))
    if kind == "transposed":
        rows = depth = 64
    trips, stages = int(w.one(3, 4)), int(w.one(1, 2, 3))
    left, right = w.shared(rows, depth), w.shared(depth, cols)
    a, b = w.tensor(2 * rows, trips * depth), w.tensor(trips * depth, cols)
    out, used, options = w.fragment(rows, cols), right, ""
    order = w.one("bx + 1", "bx * 2 + 1") if kind == "lpt" else str(trips)
    lines = w.shared(rows, dtype="int32") if kind == "gathered" else ""
    if lines:
        w.add(f"T.copy({w.tensor(rows, dtype='int32')}[0:{rows}], {lines})")
    w.add(f"T.clear({out})")
    with w.within(f"for k in T.Pipelined({order}, num_stages={stages}):"):
        _load(w, kind, a, left, (rows, depth), trips, lines)
        w.add(f"T.copy({b}[k * {depth}, 0], {right})")
        if kind == "scaled":
            used = w.shared(depth, cols)
            w.each("i, j", (depth, cols), f'{used}[i, j] = {right}[i, j] * T.cast({w.one(2.0, 0.5)}, "float16")')
        if kind in ("computed", "transposed"):
            value = f"{left}[{'j, i' if kind == 'transposed' else 'i, j'}]"
            left = w.fragment(rows, depth, dtype="float16")
            factor = "" if kind == "transposed" else f' * T.cast({w.one(2.0, 0.5)}, "float16")'
            w.each("i, j", (rows, depth), f"{left}[i, j] = {value}{factor}")
        if kind == "priority":
            options = ', annotations={"priority": 1}'
        if kind == "rows":  # scales of the iteration, by which its own result is multiplied
            each, scale = w.fragment(rows, cols), w.fragment(rows)
            w.each("i", (rows,), f"{scale}[i] = {w.tensor(rows, trips, dtype='float32')}[i, k] * {w.one(2.0, 0.5)}")
            w.add(f"T.gemm({left}, {used}, {each}, clear_accum=True)")
            w.each("i, j", (rows, cols), f"{out}[i, j] += {each}[i, j] * {scale}[i]")
        else:
            w.add(f"T.gemm({left}, {used}, {out}{options})")
        if kind == "line":
            line = w.shared(rows, dtype="float32")
            w.each("i", (rows,), f"{line}[i] = {w.tensor(rows, trips, dtype='float32')}[i, k] * 2.0")
            w.each("i, j", (rows, cols), f"{out}[i, j] += {line}[i]")
    w.perhaps_scaled(out, rows, cols)
    _result(w, out, rows, cols)


def _load(w: Writer, kind: str, a: str, left: str, shape: tuple[int, int], trips: int, lines: str) -> None:
    """The iteration's tile of the left operand: of rows that `lines` names, masked, or another one at the end."""
    rows, depth = shape
    first = f"T.copy({a}[bx * {rows}, k * {depth}], {left})"
    if kind == "gathered":
        w.each("i, j", (rows, depth), f"{left}[i, j] = {a}[{lines}[i], k * {depth} + j]")
    elif kind == "mask":
        value = f"T.if_then_else(i < {rows - 6} - k, {a}[bx * {rows} + i, k * {depth} + j], 0)"
        w.each("i, j", (rows, depth), f"{left}[i, j] = {value}")
    elif kind == "branch":
        with w.within(f"if k == {trips - 1}:"):
            w.add(f"T.copy({a}[0, 0], {left})")
        with w.within("else:"):
            w.add(first)
    else:
        w.add(first)


def _result(w: Writer, out: str, rows: int, cols: int) -> None:
    """Stores a GEMM's result: directly, through shared memory, through another fragment, or transposed."""
    match w.one("direct", "shared", "fragment", "transposed"):
        case "direct":
            w.show(out, rows, cols, dtype=str(w.one("float32", "float16")))
        case "shared":
            staged = w.shared(rows, cols)
            w.add(f"T.copy({out}, {staged})")
            w.show(staged, rows, cols, dtype="float16")
        case "fragment":
            narrow = w.fragment(rows, cols, dtype="float16")
            w.add(f"T.copy({out}, {narrow})")
            w.show(narrow, rows, cols, dtype="float16")
        case _:
            to = w.tensor(2 * cols, rows, dtype=str(w.one("float32", "float16")), written=True)
            w.each("i, j", (rows, cols), f"{to}[bx * {cols} + j, i] = {out}[i, j]")


def small_gemm(w: Writer) -> None:
    """One GEMM of fewer threads than a wavefront, and sums of its rows."""
    w.threads, size = int(w.one(32, 32, 64)), int(w.one(16, 32))
    tile, out, total = w.shared(size, 64), w.fragment(size, size), w.fragment(size)
    w.add(f"T.copy({w.tensor(2 * size, 64)}[bx * {size}, 0], {tile})")
    w.add(f"T.gemm({tile}, {tile}, {out}, transpose_B=True, clear_accum=True)")
    w.perhaps_scaled(out, size, size)
    w.add(f"T.reduce_sum({out}, {total}, dim=1)")
    w.show(total, size)


def scalar_gemm(w: Writer) -> None:
    """GEMMs of fewer rows, columns or steps of K than an MMA instruction takes, or of types that none takes."""
    w.threads = int(w.one(64, 128))
    rows, cols, depth = int(w.one(1, 4, 8, 12)), int(w.one(8, 20, 64)), int(w.one(16, 24, 64))
    dtype, trips = str(w.one("float16", "float16", "float32")), int(w.one(1, 2, 3))
    result = str(w.one("float32", "float32", "float64"))
    if result == "float64":
        rows = int(w.one(rows, 32))
    turned = (w.often(0.3), w.often(0.3))
    shapes = [
        shape[::-1] if turn else shape for shape, turn in zip(((rows, depth), (depth, cols)), turned, strict=True)
    ]
    left, right = (w.shared(*shape, dtype=dtype) for shape in shapes)
    a, b = (w.tensor(2, trips, *shape, dtype=dtype) for shape in shapes)
    out = w.fragment(rows, cols, dtype=result)
    w.add(f"T.clear({out})")
    with w.within(f"for k in T.{w.one('serial', 'Pipelined')}({trips}):"):
        for source, tile, (extent, length) in zip((a, b), (left, right), shapes, strict=True):
            w.each("i, j", (extent, length), f"{tile}[i, j] = {source}[bx, k, i, j]")
        w.add(f"T.gemm({left}, {right}, {out}, transpose_A={turned[0]}, transpose_B={turned[1]})")
        w.perhaps_scaled(out, rows, cols)
    w.show(out, rows, cols, dtype=result)


def sparse_blocks(w: Writer) -> None:
    """A pipelined loop whose iterations work only where a table says so, which is in memory, registers or a name."""
    w.threads, rows, cols, depth = int(w.one(128, 256)), 128, int(w.one(64, 128)), int(w.one(32, 64))
    trips, limit = int(w.one(3, 5, 8)), int(w.one(1, 3, 6))
    left, right, out = w.shared(rows, depth), w.shared(depth, cols), w.fragment(rows, cols)
    a, b = w.tensor(2 * rows, 8 * depth), w.tensor(8 * depth, cols)
    of_block = w.often()
    table, at = (w.tensor(2, trips, dtype="int32"), "bx, k") if of_block else (w.tensor(trips, dtype="int32"), "k")
    place, kind = "k", w.one("memory", "registers", "name", "name")
    value = f"{table}[{at}]"
    if kind == "registers":
        held = w.fragment(trips, dtype="int32")
        w.add(f"T.copy({table}[{'bx, ' if of_block else ''}0:{trips}], {held})")
        value = f"{held}[k]"
    w.add(f"T.clear({out})")
    with w.within(f"for k in T.Pipelined({trips}, num_stages={w.one(1, 2, 3)}):"):
        if kind == "name":
            w.add(f"place = {value}")
            value, place = "place", str(w.one("k", "place"))
        with w.within(f"if {w.one(f'{value} >= {limit}', f'{value} < {limit}', f'{value} % 2 != 0')}:"):
            w.add(f"T.copy({a}[bx * {rows}, {place} * {depth}], {left})")
            w.add(f"T.copy({b}[{place} * {depth}, 0], {right})")
            w.add(f"T.gemm({left}, {right}, {out})")
            w.perhaps_scaled(out, rows, cols)
    _result(w, out, rows, cols)


def two_accumulators(w: Writer) -> None:
    """Two independent GEMMs of an iteration, and one of the first one's result; sums of results that are cleared."""
    size, trips = 64, int(w.one(3, 4))
    x, y = w.shared(size, size), w.shared(size, size)
    s, p, c, d = w.fragment(size, size), w.fragment(size, size, dtype="float16"), w.fragment(size, size), "sums"
    w.allocations.append(f'{d} = T.alloc_fragment(({size}, {size}), "float32")')
    a, b = w.tensor(trips * size, size), w.tensor(size, trips * size)
    cleared = w.often()
    w.add(f"T.clear({d})", f"T.clear({c})")
    with w.within(f"for k in T.Pipelined({trips}, num_stages={w.one(1, 2)}):"):
        w.add(f"T.copy({a}[k * {size}, 0], {x})", f"T.copy({b}[0, k * {size}], {y})")
        if cleared:  # after its use, as often as cleared before
            w.add(f"T.gemm({x}, {y}, {c})")
            w.each("i, j", (size, size), f"{d}[i, j] += {c}[i, j]")
            w.add(f"T.clear({c})")
        else:
            w.add(f"T.gemm({x}, {y}, {s}, clear_accum=True)", f"T.gemm({y}, {x}, {c}, clear_accum=True)")
            w.add(f"T.copy({s}, {p})", f"T.gemm({p}, {x}, {d})")
            w.each("i, j", (size, size), f"{d}[i, j] += {c}[i, j]")
    w.show(d, size, size)


def attention(w: Writer) -> None:
    """Scores, a mask in a branch or of the diagonal, a running sum, and a second GEMM, by one to three warpgroups."""
    groups = int(w.one(1, 2, 3))
    w.threads, rows, depth = 128 * groups, 64 * groups * int(w.one(1, 2) if groups < 3 else 1), int(w.one(64, 128))
    keys, trips, stages = int(w.one(64, 80, 128)), int(w.one(3, 5)), int(w.one(1, 2))
    q, k, v = w.shared(rows, depth), w.shared(keys, depth), w.shared(keys, depth)
    s, p, o = w.fragment(rows, keys), w.fragment(rows, keys, dtype="float16"), w.fragment(rows, depth)
    queries = w.tensor(2 * rows, depth)
    mask = w.one("causal", "causal", "branch", "none", "none")
    if mask == "causal":
        trips = -(-2 * rows // keys)
    loaded, weights = w.tensor(trips * keys, depth), w.tensor(trips * keys, depth)
    w.add(f"T.copy({queries}[bx * {rows}, 0], {q})", f"T.clear({o})")
    running = mask != "causal" and w.often()
    part, total = w.fragment(rows), w.fragment(rows)
    if running:
        w.add(f"T.fill({total}, 0)")
    length = f"T.ceildiv((bx + 1) * {rows}, {keys})" if mask == "causal" else str(w.one(trips, f"{trips} - bx"))
    full = ", policy=T.GemmWarpPolicy.FullRow"
    with w.within(f"for k in T.Pipelined({length}, num_stages={stages}):"):
        w.add(f"T.copy({loaded}[k * {keys}, 0], {k})", f"T.copy({weights}[k * {keys}, 0], {v})")
        if mask == "causal":
            value = f'T.if_then_else(bx * {rows} + i >= k * {keys} + j, 0, -T.infinity("float32"))'
            w.each("i, j", (rows, keys), f"{s}[i, j] = {value}")
            w.add(f"T.gemm({q}, {k}, {s}, transpose_B=True{full})")
            w.each("i, j", (rows, keys), f"{s}[i, j] = T.exp2({s}[i, j] * 0.0625)")
        else:
            w.add(f"T.gemm({q}, {k}, {s}, transpose_B=True, clear_accum=True{full})")
            if mask == "branch":
                limit = w.random.randrange(1, trips * keys)
                with w.within(f"if k * {keys} + {keys - 1} >= {limit}:"):
                    value = f"T.if_then_else(k * {keys} + j < {limit}, {s}[i, j], 0)"
                    w.each("i, j", (rows, keys), f"{s}[i, j] = {value}")
            if running:
                w.add(f"T.reduce_sum({s}, {part}, dim=1)")
                w.each("i", (rows,), f"{total}[i] = {total}[i] * {w.one(0.5, 0.25)} + {part}[i]")
            w.each("i, j", (rows, keys), f"{s}[i, j] = T.min(T.max({s}[i, j], -2.0), 2.0)")
        w.add(f"T.copy({s}, {p})", f"T.gemm({p}, {v}, {o}{full})")
    w.show(o, rows, depth, dtype=str(w.one("float32", "float16")))
    if running:
        w.show(total, rows)


def online_softmax(w: Writer) -> None:
    """Attention whose rows keep their reference until the maximum exceeds it by a slack, or take each maximum."""
    groups = int(w.one(1, 2))
    w.threads, rows, depth = 128 * groups, 64 * int(w.one(groups, 2)), int(w.one(64, 128))
    keys, trips, scale = int(w.one(32, 64)), int(w.one(3, 5)), w.one(1.0, 0.5, 0.125)
    q, k, v = w.shared(rows, depth), w.shared(keys, depth), w.shared(keys, depth)
    s, p, o = w.fragment(rows, keys), w.fragment(rows, keys, dtype="float16"), w.fragment(rows, depth)
    old, top, factor, part, total = (w.fragment(rows) for _ in range(5))
    function, full = w.one("exp", "exp2"), ", policy=T.GemmWarpPolicy.FullRow"
    loaded, weights = w.tensor(trips * keys, depth), w.tensor(trips * keys, depth)
    w.add(f"T.copy({w.tensor(2 * rows, depth)}[bx * {rows}, 0], {q})", f"T.clear({o})", f"T.clear({total})")
    w.add(f'T.fill({top}, -T.infinity("float32"))')
    loop = w.one(f"serial({trips})", f"Pipelined({trips}, num_stages=1)", f"Pipelined({trips}, num_stages=2)")
    with w.within(f"for k in T.{loop}:"):
        w.add(f"T.copy({loaded}[k * {keys}, 0], {k})", f"T.copy({weights}[k * {keys}, 0], {v})")
        w.add(f"T.gemm({q}, {k}, {s}, transpose_B=True, clear_accum=True{full})")
        w.add(f"T.copy({top}, {old})", f"T.reduce_max({s}, {top}, dim=1, clear=False)")
        slack = w.one(0, 0.25, 1.0, 8.0, None)
        if slack is not None:
            grown = f"{top}[i] - {old}[i]"
            kept = w.one(f"{grown} > {slack}, {top}[i], {old}[i]", f"{grown} <= {slack}, {old}[i], {top}[i]")
            w.each("i", (rows,), f"{top}[i] = T.if_then_else({kept})")
        w.each("i", (rows,), f"{factor}[i] = T.{function}({_difference(w, f'{old}[i]', f'{top}[i]', scale)})")
        w.each("i, j", (rows, keys), f"{s}[i, j] = T.{function}({_difference(w, f'{s}[i, j]', f'{top}[i]', scale)})")
        w.add(f"T.reduce_sum({s}, {part}, dim=1)")
        w.each("i", (rows,), f"{total}[i] = {total}[i] * {factor}[i] + {part}[i]")
        w.add(f"T.copy({s}, {p})")
        if w.often(0.2):  # the values are those of the factor no more
            w.add(f"T.copy({top}, {old})")
        w.each("i, j", (rows, depth), f"{o}[i, j] *= {factor}[i]")
        w.add(f"T.gemm({p}, {v}, {o}{full})")
    if w.often():
        w.each("i, j", (rows, depth), f"{o}[i, j] /= {total}[i]")
    w.show(o, rows, depth)
    w.show(total, rows)


def _difference(w: Writer, first: str, second: str, scale: object) -> str:
    """A scaled difference, as a product or as a difference of products."""
    return str(w.one(f"({first} - {second}) * {scale}", f"{first} * {scale} - {second} * {scale}"))


def latent(w: Writer) -> None:
    """Two warpgroups that share the columns of the second GEMM, whose operand goes through shared memory."""
    w.threads, rows, width, trips = 256, 64, int(w.one(128, 256)), int(w.one(2, 4, 5))
    keys, stages = int(w.one(64, 32)), int(w.one(1, 2))
    q, kv, shared = w.shared(rows, width), w.shared(keys, width), w.shared(rows, keys)
    s, o = w.fragment(rows, keys), w.fragment(rows, width)
    column = ", policy=T.GemmWarpPolicy.FullCol"
    part, total, running = w.fragment(rows), w.fragment(rows), w.often()
    cached = w.tensor(trips * keys, width)
    w.add(f"T.copy({w.tensor(2 * rows, width)}[bx * {rows}, 0], {q})", f"T.clear({o})", f"T.clear({total})")
    with w.within(f"for k in T.Pipelined({trips}, num_stages={stages}):"):
        w.add(f"T.copy({cached}[k * {keys}, 0], {kv})")
        w.add(f"T.gemm({q}, {kv}, {s}, transpose_B=True, clear_accum=True{column})")
        w.each("i, j", (rows, keys), f"{s}[i, j] = T.min(T.max({s}[i, j], -2.0), 2.0)")
        if running:
            w.add(f"T.reduce_sum({s}, {part}, dim=1)")
            w.each("i", (rows,), f"{total}[i] = {total}[i] + {part}[i]")
        w.add(f"T.copy({s}, {shared})", f"T.gemm({shared}, {kv}, {o}{column})")
    w.show(o, rows, width)
    if running:
        w.show(total, rows)
