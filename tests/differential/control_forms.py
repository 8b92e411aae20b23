"""Forms of random kernels: control flow, nested, whose conditions and trip counts are known only at run time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tests.differential.writer import Writer

_COUNTS = (0, 1, 2, 3, -1, -3, 5)


@dataclass
class _Control:
    """A kernel of nested statements, all of whose values are small integers.

    `loops` are the variables of the loops around, `inside` whether a statement may leave an iteration.
    """

    w: Writer
    rows: int
    cols: int
    table: str
    source: str
    scalars: tuple[str, ...]
    tiles: tuple[str, ...]  # in registers
    shared: tuple[str, ...]
    to: str
    budget: int = 14  # statements
    loops: list[str] = field(default_factory=list)
    inside: bool = False
    count: int = 0

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def number(self) -> str:
        """An integer that all threads have."""
        w = self.w
        names = (*self.scalars, "v", "u", "bx", *self.loops, *self.loops)
        return str(w.one(*names, *names, f"{self.table}[{w.one('bx', 'v', *self.loops)} & 7]", w.one(0, 1, 2, 3)))

    def condition(self) -> str:
        w, number = self.w, self.number()
        simple = str(w.one(
            f"{number} % 2 == {w.one(0, 1)}", f"{number} > {self.number()}", f"{number} != {w.one(0, 1, 2)}",
            f"{number} < {w.one(1, 2, 3)}", f"{w.one(*self.shared)}[{w.one(0, 3)}, v & 7] > {w.one(0, 20)}",
        ))  # fmt: skip
        return f"{simple} {w.one('and', 'or')} v > {w.one(0, 1)}" if w.often(0.2) else simple

    def block(self, depth: int, most: int = 3) -> None:
        """One statement or several."""
        for _ in range(self.w.random.randint(1, most)):
            self.statement(depth)

    def statement(self, depth: int) -> None:
        self.budget -= 1
        kinds = ["tile", "tile", "scalar", "store"]
        if depth and self.budget > 0:
            kinds += ["if", "if", "for", "for", "while"]
        if self.inside:
            kinds += ["leave"]
        getattr(self, f"_{self.w.one(*kinds)}")(depth)

    def _tile(self, depth: int) -> None:
        w, tile, shared = self.w, self.w.one(*self.tiles), self.w.one(*self.shared)
        match w.one("add", "mirror", "to", "from", "load", "rows", "branch"):
            case "add":
                w.each("i, j", (self.rows, self.cols), f"{tile}[i, j] = ({tile}[i, j] + {self.number()}) & 63")
            case "mirror":
                at = w.one(f"{self.rows - 1} - i, j", f"i, {self.cols - 1} - j", f"(i + 3) % {self.rows}, j")
                value = f"({tile}[i, j] * 2 + {shared}[{at}]) & 63"
                w.each("i, j", (self.rows, self.cols), f"{tile}[i, j] = {value}")
            case "to":
                w.add(f"T.copy({tile}, {shared})")
            case "from":
                w.add(f"T.copy({shared}, {tile})")
            case "load":
                w.add(f"T.copy({self.source}[({self.number()} & 3) * {self.rows}, 0], {w.one(tile, shared)})")
            case "rows":
                w.add(f"T.reduce_max({tile}, R, dim=1)")
                w.each("i, j", (self.rows, self.cols), f"{tile}[i, j] = ({tile}[i, j] + R[i]) & 63")
            case _:
                with w.within(f"for i, j in T.Parallel({self.rows}, {self.cols}):"):
                    asked = w.one(f"i < {self.number()}", f"{tile}[i, j] > {self.number()}", "(i + j) % 3 == 1")
                    with w.within(f"if {asked}:"):
                        w.add(f"{tile}[i, j] = {w.one(f'{shared}[i, j]', '7', f'{tile}[i, j] ^ 5')}")

    def _scalar(self, depth: int) -> None:
        w = self.w
        match w.one("step", "step", "named", "element", "table"):
            case "step":
                w.add(f"{w.one('v', 'u')} = ({self.number()} * {w.one(1, 3)} + {w.one(1, 2)}) {w.one('& 7', '% 5')}")
            case "named":
                name = self.fresh("m")
                w.add(f"{name} = {self.number()}", f"u = ({name} + u) & 7")
            case "element":
                w.add(f"v = {w.one(*self.shared)}[v & 7, {w.one(0, 5)}] & 7")
            case _:
                w.add(f"u = {self.table}[(v + bx) & 7]")

    def _store(self, depth: int) -> None:
        w, at = self.w, f"(bx * 4 + ({self.number()} & 3)) * {self.rows}"
        if w.often(0.7):
            w.add(f"T.copy({w.one(*self.tiles, *self.shared)}, {self.to}[{at}, 0])")
            return
        w.each("i, j", (self.rows, self.cols), f"{self.to}[{at} + i, j] = {w.one(*self.tiles)}[i, j] + {self.number()}")

    def _if(self, depth: int) -> None:
        w = self.w
        with w.within(f"if {self.condition()}:"):
            self.block(depth - 1)
        if w.often(0.3):
            with w.within(f"elif {self.condition()}:"):
                self.block(depth - 1, 2)
        if w.often(0.4):
            with w.within("else:"):
                self.block(depth - 1)

    def _for(self, depth: int) -> None:
        w, var = self.w, self.fresh("k")
        trips = str(w.one(
            *self.scalars, f"{self.table}[{w.one('bx', 'v & 7')}] - {w.one(0, 2)}", "bx + 1", "v", w.one(1, 2, 3),
            f"T.min({self.number()}, 3)", f"T.ceildiv({w.one(*self.scalars)}, 2)",
        ))  # fmt: skip
        trips = f"T.min({trips}, 4)"
        form = str(w.one(
            f"T.serial({trips})", f"T.serial({trips})", f"T.serial({w.one(1, *self.scalars)}, {trips})",
            f"T.serial(0, {trips}, {w.one(1, 2)})", f"T.unroll({w.one(1, 2, 3)})",
            f"T.Pipelined({trips}, num_stages={w.one(1, 2, 3)})",
        ))  # fmt: skip
        with w.within(f"for {var} in {form}:"):
            self._within(var, depth)

    def _while(self, depth: int) -> None:
        """Its counter moves first, so that whatever leaves an iteration does not repeat it for ever."""
        w, var = self.w, self.fresh("c")
        w.lines.insert(0, f'{var} = T.alloc_var("int32", 0)')
        w.add(f"{var} = 0")
        asked = w.one("", f" and {self.condition()}", f" and {self.condition()}")
        with w.within(f"while {var} < {w.one(1, 2, 3, *self.scalars)}{asked}:"):
            w.add(f"{var} = {var} + 1")
            with w.within(f"if {var} > 4:"):
                w.add("break")
            self._within(var, depth)

    def _within(self, var: str, depth: int) -> None:
        self.loops.append(var)
        before, self.inside = self.inside, True
        self.block(depth - 1, 4)
        self.inside = before
        self.loops.pop()

    def _leave(self, depth: int) -> None:
        with self.w.within(f"if {self.condition()}:"):
            if self.w.often(0.3):
                self._tile(depth)
            self.w.add(str(self.w.one("break", "continue")))


def control_flow(w: Writer) -> None:
    """Loops, branches and exits of a block: counts of 0 and below, values that loops change, elements of tiles."""
    w.threads, w.grid = int(w.one(32, 64, 128)), (3,)
    rows, cols, kind = 16, int(w.one(32, 64)), "int32"
    table, source = w.tensor(8, dtype=kind), w.given(w.rng.integers(0, 64, (4 * rows, cols)).astype(np.int32))
    scalars = tuple(w.scalar(int(w.one(*_COUNTS))) for _ in range(2))
    tiles = tuple(w.fragment(rows, cols, dtype=kind) for _ in range(2))
    shared = tuple(w.shared(rows, cols, dtype=kind) for _ in range(2))
    to = w.tensor(12 * rows, cols, dtype=kind, written=True)
    w.allocations.append(f'R = T.alloc_fragment(({rows},), "{kind}")')
    w.allocations += ['v = T.alloc_var("int32", 0)', 'u = T.alloc_var("int32", 1)']
    control = _Control(w, rows, cols, table, source, scalars, tiles, shared, to)
    for place, tile in enumerate((*tiles, *shared)):
        w.add(f"T.copy({source}[{place % 4 * rows}, 0], {tile})")
    if w.often(0.2):
        with w.within(f"if {control.condition()}:"):
            w.add("T.thread_return()")
    control.block(3, 5)
    w.add("u = (u + v) & 7")
    w.each("i, j", (rows, cols), f"{tiles[0]}[i, j] = {tiles[0]}[i, j] + u")
    for tile in (*tiles, *shared):
        w.show(tile, rows, cols, dtype=kind)
