"""Kernels as plans, for tests: examples, and statements of a body."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.unit.rules.kernels import resolved as decided
from tile2cu.api import resolve_launches
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
from tile2cu.plan.resolved import Resolved
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
    (context,) = resolve_launches(program, find(target))
    return _lowered(context)


def statements(text: str, *, target: str = "cuda:sm_80") -> Lowered:
    return _lowered(decided(text, target=target))


def _lowered(context: Context) -> Lowered:
    resolved = Resolved(context.program, context.launch, context.target, context.facts, context.bounds)
    return Lowered(tuple(op for stmt in walk_stmts(resolved.launch.body) for op in _ops(stmt, resolved)))


def _ops(stmt: Stmt, resolved: Resolved) -> Iterator[ops.Op]:
    yield from before(stmt, resolved, None)
    yield from mma.clear_before(stmt, resolved)
    if isinstance(
        stmt, Assign | Atomic | Declare | Store | AtomicTile | Copy | Fill | Gemm | Reduce | Sync | WgmmaWait
    ):
        yield lower(stmt, resolved, None)
    yield from mma.wait_after(stmt, resolved)
