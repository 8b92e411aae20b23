"""Forms of random kernels: single threads, groups and clusters of them, and explicit asynchronous operations."""

from __future__ import annotations

from tests.differential.writer import Writer


def threads(w: Writer) -> None:
    """Statements of single threads, votes of the block, and branches on threads."""
    w.threads = int(w.one(64, 128, 256))
    source, to = (w.tensor(2, w.threads, dtype="float32", written=each) for each in (False, True))
    w.add("tx = T.get_thread_binding()", f"n = T.syncthreads_count({source}[bx, tx] > {w.one(0.0, 0.25, -0.5)})")
    if w.often():
        lane = w.random.randrange(1, w.threads)
        with w.within(f"if tx < {lane}:"):
            w.add(f'{to}[bx, tx] = T.cast(n, "float32") + {source}[bx, tx]')
        with w.within("else:"):
            w.add(f"{to}[bx, tx] = {source}[bx, tx] * 0.5")
    else:
        w.add(f'{to}[bx, tx] = T.cast(n + tx, "float32")')


def private_branches(w: Writer) -> None:
    """Tile operations for one part of the threads, then for the others."""
    w.threads, rows = 256, int(w.one(16, 32))
    source, tile = w.tensor(2 * rows, 64, dtype="float32"), w.shared(rows, 64, dtype="float32")
    w.add("tx = T.get_thread_binding()")
    with w.within("if tx < 128:"):
        w.add(f"T.copy({source}[bx * {rows}, 0], {tile})")
    if w.often():
        with w.within("else:"):
            w.add(f"T.fill({w.shared(rows, 64, dtype='float32')}, 1)")
    w.show(tile, rows, 64)


def divergent_branches(w: Writer) -> None:
    """Some threads exchange values through shared memory, perhaps in a loop or branch; others may, in any tile."""
    w.threads = int(w.one(64, 128))
    lane, tile = w.random.randrange(1, w.threads), w.shared(w.threads, dtype="float32")
    source, to = (w.tensor(8, w.threads, dtype="float32", written=each) for each in (False, True))
    rows, mine = w.tensor(5, dtype="int32"), f"{tile}[tx]"
    w.add(f"T.clear({tile})", "tx = T.get_thread_binding()")
    condition = w.one(f"tx < {lane}", f"tx >= {lane}", "tx % 3 == 1", f"{source}[bx, tx] > 0.0", f"{mine} < bx")
    with w.within(f"if {condition}:"):
        if w.often():
            w.add(f"own = {source}[bx + 2, tx] * {w.one(2.0, 0.5)}")
            w.add(f"{mine} = own")
        else:
            w.add("own = 1.0", f"{mine} = {source}[bx + 4, tx]")
        if w.often(0.7):
            with w.within(f"for r in T.serial({w.one(2, 5, 'bx + 1')}):"):
                w.add(f"row = {rows}[r]")
                with w.within(f"if {w.one('row > 3', 'row % 2 == 0', f'tx % {w.one(2, 5)} == 0', 'bx == 0')}:"):
                    _exchanged(w, tile, f"{source}[row, tx]")
        else:
            _exchanged(w, tile, "1.0")
        w.add(f"{to}[bx, tx] = {mine} + own")
    if w.often():
        other = tile if w.often() else w.shared(w.threads, dtype="float32")
        w.lines.insert(0, f"T.clear({other})")
        with w.within("else:"):
            w.add(f"{other}[tx] = {source}[bx, tx] - 1.0")
            if w.often():
                _exchanged(w, other, "0.5")
            w.add(f"{to}[bx + 2, tx] = {other}[tx]")


def divergent_exits(w: Writer) -> None:
    """A loop that some threads leave, or an iteration of it, between statements that exchange values."""
    w.threads = int(w.one(64, 128))
    tile = w.shared(w.threads, dtype="float32")
    source, to = (w.tensor(8, w.threads, dtype="float32", written=each) for each in (False, True))
    w.add("tx = T.get_thread_binding()", f"{tile}[tx] = {source}[bx, tx]")
    with w.within(f"for r in T.{w.one('serial', 'unroll')}({w.one(2, 3, 4)}):"):
        for _ in range(int(w.one(2, 3, 4))):
            match w.one("exchange", "update", "exit", "exit", "store"):
                case "exchange":
                    _exchanged(w, tile, f"{source}[r, tx]")
                case "update":
                    w.add(f"{tile}[tx] {w.one('=', '+=')} {tile}[tx ^ {w.one(1, 3, 32)}] * 0.5")
                case "exit":
                    asked = w.one(f"{source}[r, tx] > 0.25", f"{tile}[tx] < 0.0", "tx % 5 == r", "r > bx + 1")
                    with w.within(f"if {asked}:"):
                        if w.often():
                            w.add(f"{tile}[tx] = {w.one(1.0, 2.0)}")
                        w.add(str(w.one("break", "continue")))
                case _:
                    w.add(f"{to}[bx + r * 2, tx] = {tile}[{w.threads - 1} - tx]")
    w.show(tile, w.threads)


def _exchanged(w: Writer, tile: str, value: str) -> None:
    """A thread's element becomes that of another thread, plus a value."""
    other = str(w.one(f"(tx + {w.one(1, 7, 40)}) % {w.threads}", f"{w.threads - 1} - tx"))
    w.add(f"neighbour = {tile}[{other}]", f"{tile}[tx] = neighbour * 0.5 + {value}")


def extern(w: Writer) -> None:
    """Inline user code with PTX, and functions of the user that take addresses in a tile."""
    w.runs, rows = False, int(w.one(32, 64))
    tile, own = w.shared(rows, 64), w.tile("local", 32, dtype="float16")
    w.add(f"T.copy({w.tensor(2 * rows, 64)}[bx * {rows}, 0], {tile})")
    if w.often():
        w.add("T.import_source('__device__ void load(__half* from, __half* to);')")
        w.add(f'T.call_extern("handle", "load", T.access_ptr({tile}[0, 0], "r", 32), T.access_ptr({own}, "w"))')
    else:
        kind = w.one("mul.bf16x2 %0, %0, %0;", "add.s32 %0, %0, 1;")
        w.add(f'T.import_source(\'__device__ void twice(int* x) {{ asm("{kind}" : "+r"(*x)); }}\')')
    w.show(tile, rows, 64, dtype="float16")


def cluster(w: Writer) -> None:
    """A GEMM whose blocks load tiles for one another, or blocks that only synchronise."""
    w.grid, w.options = (4,), f", cluster_dims={w.one(2, 4)}"
    if w.often(0.3):
        w.runs, rows = False, int(w.one(32, 64))
        if w.often():
            w.add("T.cluster_sync()")
        else:
            w.add(f"there = T.alloc_cluster_barrier({w.threads})")
            w.add("T.mbarrier_arrive(there, 0)", "T.mbarrier_wait_parity(there, 0)")
        tile = w.shared(rows, 64)
        w.add(f"T.copy({w.tensor(4 * rows, 64)}[bx * {rows}, 0], {tile})")
        w.show(tile, rows, 64, dtype="float16")
        return
    depth, cols, trips = int(w.one(32, 64)), int(w.one(64, 128)), int(w.one(3, 5))
    left, right, out = w.shared(64, depth), w.shared(depth, cols), w.fragment(64, cols)
    a, b = w.tensor(64, trips * depth), w.tensor(trips * depth, 4 * cols)
    w.add(f"T.clear({out})")
    with w.within(f"for k in T.Pipelined({trips}, num_stages={w.one(2, 3)}):"):
        w.add(f"T.copy({a}[0, k * {depth}], {left})", f"T.copy({b}[k * {depth}, bx * {cols}], {right})")
        w.add(f"T.gemm({left}, {right}, {out})")
    w.perhaps_scaled(out, 64, cols)
    w.show(out, 64, cols)


def explicit(w: Writer) -> None:
    """TMA copies with the user's barriers, asynchronous GEMMs with the user's waits, groups with their registers."""
    rows = 64
    tile, source = w.shared(rows, 64), w.tensor(2 * rows, 64)
    match w.one("load", "store", "wait", "idle", "groups"):
        case "load":
            w.add(f"there = T.alloc_barrier({w.threads})")
            w.add(f"T.tma_copy({source}[bx * {rows}, 0], {tile}, barrier=there)")
            w.add("T.barrier_arrive(there)", "T.barrier_wait(there, 0)")
            w.show(tile, rows, 64, dtype="float16")
        case "store":
            to = w.tensor(2 * rows, 64, written=True)
            w.add(f"T.fill({tile}, {w.one(1, 2)})", f"T.tma_copy({tile}, {to}[bx * {rows}, 0])", "T.tma_store_wait()")
        case "wait":
            out, other = w.fragment(rows, 64), w.fragment(rows, 64)
            w.add(f"T.copy({source}[bx * {rows}, 0], {tile})")
            w.add(f"T.wgmma_gemm({tile}, {tile}, {out}, clear_accum=True)")
            if w.often():
                w.add(f"T.fill({other}, {w.one(1, 3)})")
                w.show(other, rows, 64)
            w.add("T.wait_wgmma(0)")
            w.show(out, rows, 64)
        case "idle":
            out = w.fragment(rows, 64)
            w.add(f"T.copy({source}[bx * {rows}, 0], {tile})", f"T.clear({out})")
            w.add(f"T.gemm({tile}, {tile}, {out}{w.one('', ', wg_wait=-1')})", "T.wait_wgmma(0)")
            w.show(out, rows, 64)
        case _:
            w.threads, w.grid, fragment = 384, (1,), w.fragment(rows, 64, dtype="float16")
            registers = w.often()
            for first, group in ((0, "0"), (rows, "1, 2")):
                with w.within(f"with T.ws({group}):"):
                    if registers:
                        w.add(f"T.{'dec' if first == 0 else 'inc'}_max_nreg({40 if first == 0 else 232})")
                    w.add(f"T.copy({source}[{first}, 0], {fragment})")
                    to = w.tensor(rows, 64, written=True)
                    w.add(f"T.copy({fragment}, {to})")
