"""The writer of a random kernel: its choices, parameters, tiles and statements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

import ml_dtypes
import numpy as np

_TEXT = """\
import tilelang
import tilelang.language as T


@tilelang.jit
def form():
    @T.prim_func
    def main({params}):
        with T.Kernel({launch}) as {blocks}:
{statements}
    return main
"""


@dataclass
class Writer:
    """A kernel in the making."""

    random: Random
    rng: np.random.Generator
    target: str
    threads: int = 128
    grid: tuple[int, ...] = (2,)
    options: str = ""
    runs: bool = True
    arguments: dict[str, object] = field(default_factory=dict)
    outputs: set[str] = field(default_factory=set)  # of the arguments, besides those that are called Y
    params: list[str] = field(default_factory=list)
    allocations: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    indent: str = ""

    def one(self, *choices: object) -> object:
        return self.random.choice(choices)

    def often(self, probability: float = 0.5) -> bool:
        return self.random.random() < probability

    def tensor(self, *shape: int, dtype: str = "float16", written: bool = False) -> str:
        """A parameter of small numbers, or of zeros that the kernel writes."""
        name = f"{'Y' if written else 'X'}{len(self.params)}"
        self.params.append(f'{name}: T.Tensor({shape!r}, "{dtype}")')
        if dtype in ("int4", "uint4"):  # two in a byte
            values = self.rng.integers(0, 256, (*shape[:-1], shape[-1] // 2)).astype(np.uint8)
        elif dtype == "uint8":
            values = self.rng.integers(0, 256, shape).astype(np.uint8)
        elif written:
            values = np.zeros(shape, getattr(ml_dtypes, dtype, dtype))
        elif dtype == "int32":
            values = self.rng.integers(0, 8, shape).astype(np.int32)
        else:
            values = (self.rng.integers(-2, 3, shape) * 0.25).astype(dtype)
        self.arguments[name] = np.zeros_like(values) if written else values
        return name

    def given(self, values: np.ndarray, dtype: str = "") -> str:
        """A parameter of these values."""
        name = f"X{len(self.params)}"
        self.params.append(f'{name}: T.Tensor({values.shape!r}, "{dtype or values.dtype}")')
        self.arguments[name] = values
        return name

    def scalar(self, value: int, dtype: str = "int32") -> str:
        """A parameter that is a number."""
        name = f"n{len(self.params)}"
        self.params.append(f"{name}: T.{dtype}")
        self.arguments[name] = value
        return name

    def tile(self, scope: str, *shape: int, dtype: str = "float16") -> str:
        name = f"{scope[0].upper()}{len(self.allocations)}"
        self.allocations.append(f'{name} = T.alloc_{scope}({shape!r}, "{dtype}")')
        return name

    def shared(self, *shape: int, dtype: str = "float16") -> str:
        return self.tile("shared", *shape, dtype=dtype)

    def fragment(self, *shape: int, dtype: str = "float32") -> str:
        return self.tile("fragment", *shape, dtype=dtype)

    def add(self, *lines: str) -> None:
        self.lines += [self.indent + line for line in lines]

    @contextmanager
    def within(self, line: str) -> Iterator[None]:
        """The statements of a loop or a branch."""
        self.add(line)
        before, self.indent = self.indent, self.indent + "    "
        yield
        self.indent = before

    def each(self, indices: str, extents: tuple[int, ...], *statements: str) -> None:
        with self.within(f"for {indices} in T.Parallel({', '.join(map(str, extents))}):"):
            self.add(*statements)

    def perhaps_scaled(self, tile: str, rows: int, cols: int) -> None:
        """Elementwise statements between others, or none."""
        if self.often(0.4):
            by = self.one("0.5", "T.if_then_else(i % 3 == 0, 0.5, 1.0)", "T.if_then_else(bx == 0, 0.25, 0.5)")
            self.each("i, j", (rows, cols), f"{tile}[i, j] = {tile}[i, j] * {by}")

    def show(self, tile: str, *shape: int, dtype: str = "float32") -> None:
        """Stores a tile to rows of a tensor that only this block writes."""
        blocks = int(np.prod(self.grid))
        number = "bx" if len(self.grid) == 1 else f"(by * {self.grid[0]} + bx)"
        to = self.tensor(blocks * shape[0], *shape[1:], dtype=dtype, written=True)
        at = f"{number} * {shape[0]}"
        self.add(f"T.copy({tile}, {to}[{', '.join([at, *('0' for _ in shape[1:])])}])" if len(shape) > 1 else
                 f"T.copy({tile}, {to}[{at} : {at} + {shape[0]}])")  # fmt: skip

    @property
    def text(self) -> str:
        launch = f"{', '.join(map(str, self.grid))}, threads={self.threads}{self.options}"
        statements = "\n".join(" " * 12 + line for line in self.allocations + self.lines)
        blocks = ("bx", "(bx, by)")[len(self.grid) - 1]
        return _TEXT.format(params=", ".join(self.params), launch=launch, blocks=blocks, statements=statements)
