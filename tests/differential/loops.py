"""Random pipelined loops of two or three MMAs, as source: statements that schedules move, and those that block motion.

Scalars change between statements, accumulators are accessed through views, accumulation is cleared on conditions,
statements are in branches on iterations, scalars and tensors, statements follow the last MMA, and scalar arguments are
extreme. Values stay small, so that results compare within the tolerance of their types.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import numpy as np

ROWS, COLS, LENGTH = 128, 64, 5  # of the tiles; iterations
EXTREME = (0, -1, 1, 2, 100, 2**31 - 1, -(2**31))

_HEAD = """\
import tilelang
import tilelang.language as T


@tilelang.jit
def loop(N, threads={threads}):
    @T.prim_func
    def main(
        Q: T.Tensor(({rows}, 64), "float16"), K: T.Tensor((N, 64), "float16"), V: T.Tensor((N, 64), "float16"),
        table: T.Tensor((8,), "int32"), weights: T.Tensor((8, 64), "float32"), limit: T.int32, factor: T.float32,
        Out: T.Tensor(({rows}, 64), "float32"), Rows: T.Tensor(({rows},), "float32"),
        Last: T.Tensor(({rows}, 64), "float32"), Few: T.Tensor((32, 64), "float32"),
    ):
        with T.Kernel(1, threads=threads) as bx:
            Q_shared = T.alloc_shared(({rows}, 64), "float16")
            K_shared = T.alloc_shared((64, 64), "float16")
            V_shared = T.alloc_shared((64, 64), "float16")
            S = T.alloc_fragment(({rows}, 64), "float32")
            P = T.alloc_fragment(({rows}, 64), "float16")
            O = T.alloc_fragment(({rows}, 64), "float32")
            O_view = T.view(O, ({rows}, 4, 16))
            rows = T.alloc_fragment(({rows},), "float32")
            total = T.alloc_fragment(({rows},), "float32")
            line = T.alloc_shared((64,), "float32")
            F_shared = T.alloc_shared((32, 64), "float16")
            P_shared = T.alloc_shared(({rows}, 64), "float16")
            F = T.alloc_fragment((32, 64), "float32")
            s = T.alloc_var("float32", 1.0)
            place = T.alloc_var("int32", 0)
            T.copy(Q, Q_shared)
            T.copy(Q[0:32, 0:64], F_shared)
            T.clear(F)
            T.clear(O)
            T.clear(S)
            T.clear(total)
            for k in T.Pipelined(T.ceildiv(N, 64), num_stages={stages}):
"""
_TAIL = """\
            T.copy(O, Out)
            T.copy(total, Rows)
            T.copy(F, Few)
            for i, j in T.Parallel({rows}, 64):
                Last[i, j] = S[i, j] * s
"""


@dataclass
class Body:
    """The statements of an iteration in the making."""

    random: Random
    rows: int
    lines: list[str] = field(default_factory=list)
    named: bool = False

    def add(self, *lines: str) -> None:
        self.lines += lines

    def each(self, statement: str) -> list[str]:
        return [f"for i, j in T.Parallel({self.rows}, 64):", f"    {statement}"]

    def under(self, condition: str, lines: list[str]) -> None:
        self.add(f"if {condition}:", *(f"    {line}" for line in lines))

    def condition(self) -> str:
        return self.random.choice(
            ("k % 2 == 0", "k < limit", "s > 0.3", "table[k] > 1", "table[place] > 1", "k * 64 + 63 >= limit")
        )


def scale(b: Body) -> None:
    """Scales the accumulator by a number, a scalar that changes, or one value per row."""
    by = b.random.choice(("0.5", "s", "factor", "T.if_then_else(total[i] > 8.0, 0.5, 1.0)"))
    b.add(*b.each(f"O[i, j] = O[i, j] * {by}"))


def scale_view(b: Body) -> None:
    b.add(f"for i, g, j in T.Parallel({b.rows}, 4, 16):", "    O_view[i, g, j] = O_view[i, g, j] * 0.5")


def scale_under_branch(b: Body) -> None:
    b.under(b.condition(), b.each("O[i, j] = O[i, j] * 0.5"))


def change_scalar(b: Body) -> None:
    b.add(b.random.choice(("s = s * 0.5", "s = 1.5 - s", "s = weights[k, 0] * 0.25")))


def change_place(b: Body) -> None:
    b.add("place = (place + 3) % 8")


def mask(b: Body) -> None:
    first = "start" if b.named else "k * 64"
    b.add(*b.each(f"S[i, j] = T.if_then_else({first} + j < limit, S[i, j], 0)"))


def weigh(b: Body) -> None:
    b.add(*b.each(f"S[i, j] = S[i, j] * weights[{b.random.choice(('k', 'place', 'table[k]'))}, j]"))


def sum_rows(b: Body) -> None:
    b.add("T.reduce_sum(S, rows, dim=1)", f"for i in T.Parallel({b.rows}):")
    b.add(f"    total[i] = {b.random.choice(('total[i] * 0.5 + rows[i]', 'total[i] + rows[i]', 'rows[i] * s'))}")


def row_of_tensor(b: Body) -> None:
    b.add("T.copy(weights[k, 0:64], line)", *b.each("S[i, j] = S[i, j] + line[j]"))


def add_results(b: Body) -> None:
    b.add(*b.each("O[i, j] = O[i, j] + S[i, j] * 0.25"))


def few_rows(b: Body) -> None:
    """A GEMM of fewer rows than a warpgroup's instruction takes, of a tile that another one reads, too."""
    b.add("T.gemm(F_shared, K_shared, F, transpose_B=True)")
    b.add("for i, j in T.Parallel(32, 64):", "    F[i, j] = F[i, j] * 0.5")


def leave(b: Body) -> None:
    b.add("if k >= limit:", "    break" if b.random.random() < 0.5 else "    continue")


STEPS: tuple[Callable[[Body], None], ...] = (
    scale, scale_view, scale_under_branch, change_scalar, change_scalar, change_place, mask, weigh, sum_rows,
    row_of_tensor, add_results, few_rows,
)  # fmt: skip


@dataclass(frozen=True)
class RandomLoop:
    """A file with one kernel, and arguments for it."""

    text: str
    arguments: dict[str, object]


def random_loop(seed: int) -> RandomLoop:
    """The loop of a seed: always the same."""
    random = Random(seed)
    groups = random.choice((1, 2))
    b = Body(random, 64 * groups)
    clear = random.choice(
        ("clear_accum=True", "clear_accum=k % 2 == 0", "clear_accum=k == limit", "clear_accum=s > 0.3")
    )
    if random.random() < 0.4:
        b.named = True
        b.add("start = k * 64")
    first = "start" if b.named else "k * 64"
    if random.random() < 0.1:
        leave(b)
    b.add(f"T.copy(K[{first}, 0], K_shared)", f"T.copy(V[{first}, 0], V_shared)")
    _some(b, 1)
    b.add(f"T.gemm(Q_shared, K_shared, S, transpose_B=True, {clear}, policy=T.GemmWarpPolicy.FullRow)")
    _some(b, 4)
    b.add(*b.each("P[i, j] = T.cast(T.min(T.max(S[i, j], -8.0), 8.0), 'float16')"))
    _some(b, 1)
    cleared = random.choice(("", "", "", ", clear_accum=k == limit"))
    operand = random.choice(("P", "P", "P_shared"))
    if operand == "P_shared":
        b.add("T.copy(P, P_shared)")
    b.add(f"T.gemm({operand}, V_shared, O, policy=T.GemmWarpPolicy.FullRow{cleared})")
    _some(b, 2)
    b.add(*b.each("O[i, j] = T.min(T.max(O[i, j], -64.0), 64.0)") if random.random() < 0.3 else [])
    head = _HEAD.format(threads=128 * groups, rows=b.rows, stages=random.choice((0, 1, 2, 3)))
    text = head + "".join(f"{' ' * 16}{line}\n" for line in b.lines) + _TAIL.format(rows=b.rows) + "\n    return main\n"
    return RandomLoop(text, _arguments(random, b.rows))


def _some(b: Body, most: int) -> None:
    for _ in range(b.random.randint(0, most)):
        b.random.choice(STEPS)(b)


def _arguments(random: Random, rows: int) -> dict[str, object]:
    rng = np.random.default_rng(random.randrange(2**32))

    def small(*shape: int, dtype: str = "float16") -> np.ndarray:
        return (rng.integers(-2, 3, shape) * 0.25).astype(dtype)

    return {
        "Q": small(rows, 64),
        "K": small(64 * LENGTH, 64),
        "V": small(64 * LENGTH, 64),
        "table": rng.integers(0, 8, 8).astype(np.int32),
        "weights": small(8, 64, dtype="float32"),
        "limit": random.choice((2, 3, 130, 200, *EXTREME)),
        "factor": random.choice((0.5, 0.25, 1.0)),
        "Out": np.zeros((rows, 64), np.float32),
        "Rows": np.zeros((rows,), np.float32),
        "Last": np.zeros((rows, 64), np.float32),
        "Few": np.zeros((32, 64), np.float32),
    }
