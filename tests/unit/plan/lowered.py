"""Kernels as plans, for tests: examples, and statements of a body."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.unit.rules.kernels import settled as decided
from tile2cu.api import settle
from tile2cu.core.program import (
    Assign,
    Atomic,
    AtomicTile,
    Copy,
    Declare,
    Fill,
    Gemm,
    Reduce,
    Stmt,
    Store,
    Sync,
    WgmmaWait,
    walk_stmts,
)
from tile2cu.frontend import programs
from tile2cu.plan import mma, ops
from tile2cu.plan.lower import before, lower
from tile2cu.plan.settled import Settled
from tile2cu.rules import Context
from tile2cu.targets import find

EXAMPLES = Path(__file__).parents[3] / "examples"
Kind = TypeVar("Kind", bound=ops.Op)


@dataclass(frozen=True)
class Lowered:
    """The operations of a kernel's statements, in program order."""

    ops: tuple[ops.Op, ...]

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [op for op in self.ops if isinstance(op, kind)]


def example(name: str, target: str, **bindings: object) -> Lowered:
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    (program,) = programs(EXAMPLES / name, text, kernel=None, bindings=bindings)
    (context,) = settle(program, find(target))
    return _lowered(context)


def statements(text: str, *, target: str = "cuda:sm_80") -> Lowered:
    return _lowered(decided(text, target=target))


def _lowered(context: Context) -> Lowered:
    settled = Settled(context.program, context.launch, context.target, context.facts, context.bounds)
    return Lowered(tuple(op for stmt in walk_stmts(settled.launch.body) for op in _ops(stmt, settled)))


def _ops(stmt: Stmt, settled: Settled) -> Iterator[ops.Op]:
    yield from before(stmt, settled, None)
    yield from mma.clear_before(stmt, settled)
    if isinstance(
        stmt, Assign | Atomic | Declare | Store | AtomicTile | Copy | Fill | Gemm | Reduce | Sync | WgmmaWait
    ):
        yield lower(stmt, settled, None)
    yield from mma.wait_after(stmt, settled)
