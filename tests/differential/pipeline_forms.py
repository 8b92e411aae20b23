"""Forms of random kernels: pipelined loops whose copies, stores and GEMMs depend on what other iterations did.

Values are small multiples of a quarter, and accumulators are kept within bounds: sums are exact in any order, and
results compare bit for bit.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np

from tests.differential.writer import Writer

DEPTH = 64  # rows that an iteration loads
TILES = 5  # of the tensors


@dataclass
class _Loop:
    """A pipelined loop of one or two GEMMs in the making; `tensor` is what it loads from, `to` what it stores to."""

    w: Writer
    rows: int
    tensor: str
    table: str
    limit: str
    trips: str
    to: str
    view: str = ""  # the element of a row and of j of `tensor` that the loop writes

    def place(self) -> str:
        """A tile's number, which is one of the tensor's in all iterations."""
        return str(
            self.w.one(
                *("k", "k", "k", "named", "(k + 1) % 5", "place", "T.max(k - 1, 0)", f"T.min(k, {self.limit} & 3)"),
                *(f"{self.table}[k]", f"{self.table}[place]", f"(k + bx) % {TILES}"),
                f"T.if_then_else(k > {self.limit}, 0, k)",
            )
        )

    def condition(self) -> str:
        named = (f"k < {self.limit}", f"{self.table}[k] > 1")
        return str(self.w.one("k % 2 == 0", *named, "place > 2", "K_shared[0, 1] > 0.0", "k > 0", "bx == 0"))

    def each(self, statement: str) -> None:
        self.w.each("i, j", (self.rows, 64), statement)

    def some(self, most: int) -> None:
        """Statements between the copies and GEMMs of an iteration."""
        for _ in range(self.w.random.randint(0, most)):
            self.w.one(*_BETWEEN)(self)

    def load(self, tensor: str, tile: str) -> None:
        w, at = self.w, self.place()
        if at == "named":
            w.add(f"at{tile[0]} = {w.one('k', f'{self.table}[k]', 'place')}")
            at = f"at{tile[0]}"
        with w.within(f"if {self.condition()}:") if w.often(0.1) else nullcontext():
            w.add(f"T.copy({tensor}[({at}) * {DEPTH}, 0], {tile})")


def _place(loop: _Loop) -> None:
    w = loop.w
    changes = (f"(place + 2) % {TILES}", f"{loop.table}[place]", f"(k * 3 + 1) % {TILES}")
    w.add(f"place = {w.one(*changes)}")


def _scale(loop: _Loop) -> None:
    w = loop.w
    tile, most = w.one(("S", 16.0), ("O", 64.0))
    by = w.one("0.5", "T.if_then_else(k == 1, 0.5, 1.0)", f"T.if_then_else(k < {loop.limit}, 1.0, 0.5)", "f")
    loop.each(f"{tile}[i, j] = T.max(T.min({tile}[i, j] * {by}, {most}), -{most})")


def _scale_in_branch(loop: _Loop) -> None:
    with loop.w.within(f"if {loop.condition()}:"):
        loop.each("O[i, j] = O[i, j] * 0.5")


def _mask(loop: _Loop) -> None:
    loop.each(f"S[i, j] = T.if_then_else(k * 64 + j < {loop.limit} * 40, S[i, j], 0.0)")


def _by_row(loop: _Loop) -> None:
    loop.w.add("T.reduce_max(S, R, dim=1)")
    loop.each("O[i, j] = T.max(T.min(O[i, j] + R[i], 64.0), -64.0)")


def _store(loop: _Loop) -> None:
    """A tile to rows of a tensor that other iterations may write, too."""
    w, tile = loop.w, loop.w.one("S", "O", "K_shared")
    at = f"(bx * {TILES} + {w.one('k', 'place', f'{loop.table}[k]')}) * 128"
    if tile == "K_shared" and w.often():
        w.each("i, j", (DEPTH, 64), f"{loop.to}[{at} + i, j] = K_shared[{DEPTH - 1} - i, j]")
        return
    count = DEPTH if tile == "K_shared" else loop.rows
    w.add(f"T.copy({tile}, {loop.to}[{at} : {at} + {count}, 0:64])")


def _element(loop: _Loop) -> None:
    loop.w.add("f = T.if_then_else(K_shared[1, 2] > 0.0, 0.5, 1.0)")


def _shared(loop: _Loop) -> None:
    w = loop.w
    value = w.one("K_shared[i, j] * 0.5", "K_shared[63 - i, j]", "V_shared[i, j]")
    to = w.one("E_shared", "E_shared", "V_shared")
    if to not in value or value == "V_shared[i, j]":
        w.each("i, j", (DEPTH, 64), f"{to}[i, j] = {value}")


def _written_tensor(loop: _Loop) -> None:
    """Rows of the tensor that the loop loads from."""
    w, at = loop.w, loop.w.one("k + 1", "place", "(k + 2) % 5", "k")
    if loop.view:
        row = f"({at}) % {TILES} * {DEPTH} + i"
        w.each("i, j", (DEPTH, 64), f"{loop.view.format(row=row)} = {w.one('E_shared', 'P')}[i, j]")


def _leave(loop: _Loop) -> None:
    with loop.w.within(f"if {loop.condition()}:"):
        loop.w.add(str(loop.w.one("break", "continue", "continue")))


_BETWEEN = (
    *(_place, _place, _scale, _scale, _scale_in_branch, _mask, _by_row, _store, _store, _element, _shared, _leave),
    *(_written_tensor, _written_tensor),
)


def pipelines(w: Writer) -> None:
    """Tiles at computed places, in loops that store, or write the tensor that they load from, under another name."""
    w.grid = (int(w.one(1, 2)),)
    groups, blocks, count = int(w.one(1, 1, 2)), w.grid[0], TILES * DEPTH
    w.threads, rows = 128 * groups, int(w.one(64, 64 * groups))
    a, b, c = w.tensor(rows, 64), w.tensor(count, 64), w.tensor(count, 64)
    table, limit = w.given(w.rng.integers(0, TILES, 8).astype(np.int32)), w.scalar(int(w.one(-1, 0, 1, 2, 3, 4)))
    trips = w.scalar(int(w.one(0, 1, 2, 3, 4, 5, 5))) if w.often() else str(w.one("5", "4", "3", "1"))
    to = w.tensor(blocks * TILES * 128, 64, dtype=str(w.one("float16", "float32")), written=True)
    tiles = {"Q_shared": rows, "K_shared": DEPTH, "V_shared": DEPTH, "E_shared": DEPTH}
    w.allocations += [f'{name} = T.alloc_shared(({extent}, 64), "float16")' for name, extent in tiles.items()]
    kinds = {"S": "float32", "O": "float32", "P": "float16"}
    w.allocations += [f'{name} = T.alloc_fragment(({rows}, 64), "{kind}")' for name, kind in kinds.items()]
    w.allocations += [f'R = T.alloc_fragment(({rows},), "float32")', 'place = T.alloc_var("int32", 0)']
    w.allocations += ['f = T.alloc_var("float32", 1.0)']
    loop = _Loop(w, rows, b, table, limit, trips, to)
    if blocks == 1 and w.often(0.4):  # blocks that write what others read are in no order
        loop.view = _written(w, b, count)
    w.add(f"T.copy({a}, Q_shared)", "T.clear(S)", "T.clear(O)", "T.clear(E_shared)", "T.clear(P)")
    with w.within(f"for q in T.serial({w.one(2, 'bx + 1')}):") if w.often(0.25) else nullcontext():
        _iterations(loop, c)
        if w.often(0.4):
            tile = w.one("K_shared", "V_shared")  # the last that was loaded, if any was
            loop.each(f'O[i, j] = O[i, j] + T.cast({tile}[i % {DEPTH}, j], "float32")')
    for tile in ("O", "S"):
        w.show(tile, rows, 64)
    w.show("E_shared", DEPTH, 64, dtype="float16")


def _written(w: Writer, tensor: str, count: int) -> str:
    """The element of a row and of j, in the tensor, or in a view of it."""
    shape, element = w.one(
        (None, f"{tensor}[{{row}}, j]"),
        (f"({count * 64},)", "W[({row}) * 64 + j]"),
        (f"({count // 2}, 128)", "W[({row}) // 2, ({row}) % 2 * 64 + j]"),
        (f"({count}, 4, 16)", "W[{row}, j // 16, j % 16]"),
    )
    if shape:
        w.add(f"W = T.{w.one('view', 'reshape')}({tensor}, {shape})")
    w.outputs.add(tensor)
    return str(element)


def _iterations(loop: _Loop, other: str) -> None:
    w = loop.w
    clear = w.one("True", "k % 2 == 0", f"k == {loop.limit}", "k == 0", "place > 1", "False")
    two, early = w.often(0.6), w.often(0.7)
    w.lines[:0] = ["T.clear(V_shared)", "T.clear(K_shared)"]
    with w.within(f"for k in T.Pipelined({loop.trips}, num_stages={w.one(0, 1, 2, 2, 3, 3, 4)}):"):
        loop.some(1)
        loop.load(loop.tensor, "K_shared")
        loop.some(int(w.one(0, 0, 1)))
        if two and early:
            loop.load(str(w.one(other, other, loop.tensor)), "V_shared")
        loop.some(1)
        w.add(f"T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum={clear})")
        loop.each("S[i, j] = T.max(T.min(S[i, j], 16.0), -16.0)")
        loop.some(2)
        if two:
            _second_gemm(loop, "" if early else other)
        loop.some(2)


def _second_gemm(loop: _Loop, loads: str) -> None:
    w = loop.w
    if loads:
        loop.load(loads, "V_shared")
    w.add("T.copy(S, P)")
    loop.some(1)
    w.add(f"T.gemm(P, V_shared, O{w.one('', '', f', clear_accum=k == {loop.limit}')})")
    loop.each("O[i, j] = T.max(T.min(O[i, j], 64.0), -64.0)")
