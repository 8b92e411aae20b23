"""The table of effects holds: whatever the interpreter reads, writes or assigns in a statement is among its effects."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from msgspec.structs import replace

from tests.conformance.kernels import small_program
from tests.conformance.kernels_of_passes import PARAMS
from tests.conformance.reference import CannotInterpret, KernelFault, interpret, numpy_dtype
from tests.conformance.reference import program as running
from tests.conformance.reference.expressions import Values
from tests.conformance.reference.memory import Memory
from tests.conformance.reference.numbers import Array
from tests.conformance.test_reference import example
from tests.differential.programs import RandomProgram, random_programs
from tests.differential.test_programs import arguments
from tests.host.dependence.test_dependence import KERNELS, problem
from tile2cu.analysis.effects import Access, Effects, effects
from tile2cu.core.expr import Expr, Role, Var, int_const, static_value, substitute
from tile2cu.core.program import Buffer, Gemm, If, Program, Stmt
from tile2cu.frontend import programs

_BOUND = frozenset((running.Loop, running.Parallel))  # they bind variables that nothing outside of them knows


@dataclass
class Frame:
    """A statement that runs, and what its effects allow: elements of each root, scalars."""

    stmt: Stmt
    reads: dict[int, Array]
    writes: dict[int, Array]
    found: Effects


@dataclass
class Tracer:
    """Checks each access of the interpreter against the effects of all statements that run."""

    table: Callable[[Stmt], Effects]
    frames: list[Frame] = field(default_factory=list)
    quiet: int = 0
    accesses: int = 0
    ordered: int = 0  # statements that synchronise, issue or await

    def allowed(self, accesses: tuple[Access, ...], memory: Memory, values: Values, mask: Array) -> dict[int, Array]:
        """The elements of the roots' storage that boxes allow, evaluated where the statement begins."""
        found: dict[int, Array] = {}
        for access in accesses:
            shape = [memory._extent(extent) for extent in access.buffer.shape]
            inside = self.inside(access, shape, values, mask)
            flat, key = inside.reshape(-1), id(access.root)
            same = key not in found or len(found[key]) == len(flat)
            whole = np.ones(1, bool)  # shapes of other types than the root's do not compare: all of it
            found[key] = (found[key] | flat if key in found else flat) if same else whole
        return found

    def inside(self, access: Access, shape: list[int], values: Values, mask: Array) -> Array:
        """The elements in the box of any lane: sums of what enters and leaves boxes at their corners."""
        bounds: list[tuple[Array, Array]] = []
        for range_, extent in zip(access.box, shape, strict=True):
            ends = (values.of(end, mask) for end in range_) if range_ is not None else (0, extent)
            start, size = (np.broadcast_to(end, mask.shape)[mask].astype(np.int64) for end in ends)
            first = np.clip(start, 0, extent)
            bounds.append((first, np.clip(start + size, first, extent)))
        changes = np.zeros([extent + 1 for extent in shape], np.int64)
        if mask.any():
            for corner in itertools.product((0, 1), repeat=len(shape)):
                at = tuple(ends[side] for ends, side in zip(bounds, corner, strict=True))
                np.add.at(changes, at, (-1) ** sum(corner))
        for axis in range(len(shape)):
            changes = changes.cumsum(axis)
        return changes[tuple(slice(extent) for extent in shape)] > 0

    @contextmanager
    def frame(self, block: running.Block, stmt: Stmt, mask: Array) -> Iterator[None]:
        found = self.table(stmt)
        self.order(stmt, found)
        self.quiet += 1
        memory, values = block.memory, block.values
        reads, writes = (self.allowed(each, memory, values, mask) for each in (found.reads, found.writes))
        self.quiet -= 1
        self.frames.append(Frame(stmt, reads, writes, found))
        yield
        self.frames.pop()

    def order(self, stmt: Stmt, found: Effects) -> None:
        """A statement that synchronises, issues or awaits something, or leaves a loop, runs within others."""
        assert found.orders or not isinstance(stmt, running.Sync), f"line {stmt.span.line} synchronises"
        self.ordered += bool(found.orders | found.starts | found.awaits)
        for outer in self.frames:
            what = f"line {outer.stmt.span.line} ({type(outer.stmt).__name__}) has what is in it, line {stmt.span.line}"
            assert found.orders <= outer.found.orders, what
            assert found.starts <= outer.found.starts and found.awaits <= outer.found.awaits, what
        if isinstance(stmt, running.Break | running.Continue):
            inside = takewhile(
                lambda outer: not isinstance(outer.stmt, running.Loop | running.While), self.frames[::-1]
            )
            assert all(outer.found.may_leave for outer in inside), f"line {stmt.span.line} leaves a loop"

    def elements(self, memory: Memory, buffer: Buffer, chosen: Array, *, written: bool) -> None:
        """Elements of a buffer, by their places in its storage, are read or written."""
        if self.quiet:
            return
        self.accesses += 1
        for frame in self.frames:
            allowed = (frame.writes if written else frame.reads).get(id(buffer.memory))
            what = f"line {frame.stmt.span.line} ({type(frame.stmt).__name__}) {'writes' if written else 'reads'}"
            assert allowed is not None, f"{what} {buffer.name}, which its effects do not name"
            if len(allowed) > 1 and len(chosen):
                assert allowed[chosen].all(), f"{what} elements of {buffer.name} outside of its boxes"

    def scalar(self, var: Var, *, written: bool) -> None:
        if self.quiet or var.role is Role.SIZE:
            return
        for frame in reversed(self.frames):
            if written and type(frame.stmt) in _BOUND:
                return
            named = frame.found.scalars_written if written else frame.found.scalars_read
            if var not in named and _is_inside(var, frame.stmt):
                return
            assert var in named, f"line {frame.stmt.span.line} {'writes' if written else 'reads'} {var.name}"


def _is_inside(var: Var, stmt: Stmt) -> bool:
    """Whether a variable is one that only a statement's own body knows."""
    inner = [each for each in running.walk_stmts((stmt,)) if each is not stmt]
    bound = {each.var for each in inner if isinstance(each, running.Let | running.Declare | running.Loop)}
    bound |= {each.var for each in (stmt,) if isinstance(each, running.Loop)}
    loops = [each for each in (stmt, *inner) if isinstance(each, running.Parallel)]
    return var in bound or any(var in loop.vars for loop in loops)


def _places(memory: Memory, buffer: Buffer, places: list[Array], mask: Array) -> Array:
    """Elements at indices, by their places in the buffer's storage."""
    shape = [memory._extent(extent) for extent in buffer.shape]
    inside = mask.copy()
    for place, extent in zip(places, shape, strict=True):
        inside = inside & (place >= 0) & (place < extent)
    chosen = [np.broadcast_to(place, mask.shape)[inside].astype(np.int64) for place in places]
    return np.ravel_multi_index(chosen, shape) if chosen else np.zeros(0, np.int64)


def _box(memory: Memory, buffer: Buffer, ranges: tuple[range, ...]) -> Array:
    """The elements of a box, likewise."""
    shape = [memory._extent(extent) for extent in buffer.shape]
    parts = [np.arange(max(r.start, 0), max(min(r.stop, n), 0)) for r, n in zip(ranges, shape, strict=True)]
    return np.ravel_multi_index(np.meshgrid(*parts, indexing="ij"), shape).reshape(-1)


Hook = Callable[..., object]


def _of_elements(tracer: Tracer, method: Hook, *, written: bool) -> Hook:
    def run(memory: Memory, buffer: Buffer, indices: list[Array], *others: Array) -> object:
        mask = next(each for each in others if each.dtype == bool) if len(others) == 1 else others[1]
        tracer.elements(memory, buffer, _places(memory, buffer, indices, mask), written=written)
        return method(memory, buffer, indices, *others)

    return run


def _of_box(tracer: Tracer, method: Hook, *, written: bool) -> Hook:
    def run(memory: Memory, buffer: Buffer, ranges: tuple[range, ...], *others: Array, atomic: bool = False) -> object:
        shape_only = isinstance(tracer.frames[-1].stmt, Gemm) and not written  # of an accumulator, even a cleared one
        if not shape_only:
            tracer.elements(memory, buffer, _box(memory, buffer, ranges), written=written)
        return method(memory, buffer, ranges, *others, atomic=atomic)

    return run


def _of_variables(tracer: Tracer, method: Hook) -> Hook:
    def run(values: Values, expr: Expr, mask: Array) -> object:
        if isinstance(expr, Var):
            tracer.scalar(expr, written=False)
        return method(values, expr, mask)

    return run


def _of_assignments(tracer: Tracer, method: Hook) -> Hook:
    def run(values: Values, var: Var, found: Array, mask: Array | None = None) -> object:
        if tracer.frames and type(tracer.frames[-1].stmt) not in _BOUND:
            tracer.scalar(var, written=True)
        return method(values, var, found, mask)

    return run


def _of_statements(tracer: Tracer, method: Hook) -> Hook:
    def run(block: running.Block, stmt: Stmt, mask: Array) -> object:
        with tracer.frame(block, stmt, mask):
            return method(block, stmt, mask)

    return run


@contextmanager
def traced(table: Callable[[Stmt], Effects]) -> Iterator[Tracer]:
    """The interpreter, checked while it runs."""
    tracer = Tracer(table)
    hooks: list[tuple[type, str, Hook]] = [
        (running.Block, "_run", _of_statements(tracer, running.Block._run)),
        (Memory, "load", _of_elements(tracer, Memory.load, written=False)),
        (Memory, "store", _of_elements(tracer, Memory.store, written=True)),
        (Memory, "update", _of_elements(tracer, Memory.update, written=True)),
        (Memory, "box", _of_box(tracer, Memory.box, written=False)),
        (Memory, "set_box", _of_box(tracer, Memory.set_box, written=True)),
        (Values, "_of", _of_variables(tracer, Values._of)),
        (Values, "set", _of_assignments(tracer, Values.set)),
    ]
    with ExitStack() as stack:
        for owner, name, hook in hooks:
            stack.enter_context(patch.object(owner, name, hook))
        yield tracer


def check(program: Program, given: Mapping[str, object], table: Callable[[Stmt], Effects] = effects) -> Tracer:
    with traced(table) as tracer:
        interpret(program, given)
    assert tracer.accesses > 0
    return tracer


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_kernels_with_dependences(path: Path) -> None:
    program, given = problem(path, "cuda:sm_80")
    check(program, given)


EXAMPLES = {
    "gemm_relu.py": {"M": 160, "N": 136, "K": 96},
    "attention.py": {"batch": 1, "heads": 1, "seq_len": 72},
    "vector_add.py": {"N": 1025},
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str) -> None:
    program = example(name)
    sizes = {size.name: EXAMPLES[name].get(size.name, 64) for size in program.sizes}
    rng = np.random.default_rng(0)

    def extent(each: Expr) -> int:
        value = static_value(substitute(each, {size: int_const(sizes[size.name]) for size in program.sizes}))
        assert value is not None
        return int(value)

    given: dict[str, object] = {
        param.name: rng.integers(-2, 3, [extent(each) for each in param.shape]).astype(numpy_dtype(param.dtype))
        for param in program.params
        if isinstance(param, Buffer)
    }
    check(program, given | sizes)


@pytest.mark.nightly
@seed(0)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(random=random_programs())
def test_random_programs(random: RandomProgram) -> None:
    (program,) = programs(None, random.text)
    with suppress(CannotInterpret, KernelFault):
        check(program, arguments(program, random))


def test_a_table_that_leaves_something_out_is_noticed() -> None:
    program, given = problem(KERNELS[0], "cuda:sm_80")
    for part in ("reads", "writes", "scalars_read"):
        with pytest.raises(AssertionError):
            empty = () if part != "scalars_read" else frozenset()
            check(program, given, lambda stmt, part=part, empty=empty: replace(effects(stmt), **{part: empty}))


ORDERED = """
S = T.alloc_shared((64, 64), "float16")
C = T.alloc_fragment((64, 64), "float32")
bars = T.alloc_barrier([128])
T.copy(H[0:64, 0:64], S)
T.clear(C)
for k in T.serial(4):
    if k < 3:
        T.sync_threads()
        T.wgmma_gemm(S, S, C)
        T.wait_wgmma(0)
        T.barrier_arrive(bars[0])
        T.barrier_wait(bars[0], k % 2)
    else:
        break
T.copy(C, Y[0, 0])
"""
FIELDS = ("orders", "starts", "awaits", "may_leave")


def ordered() -> tuple[Program, dict[str, object]]:
    given = {name: np.ones((256, 64), kind) for name, kind in (("X", np.float32), ("H", np.float16), ("Y", np.float32))}
    return small_program(ORDERED, PARAMS), given | {"rows": np.zeros(256, np.int32)}


def test_synchronisation_and_leaving_are_seen_from_outside() -> None:
    program, given = ordered()
    assert check(program, given).ordered > 12


@pytest.mark.parametrize("part", FIELDS)
def test_a_branch_that_hides_its_synchronisation_is_noticed(part: str) -> None:
    program, given = ordered()
    nothing = False if part == "may_leave" else frozenset()

    def table(stmt: Stmt) -> Effects:
        return replace(effects(stmt), **{part: nothing}) if isinstance(stmt, If) else effects(stmt)

    with pytest.raises(AssertionError, match="line"):
        check(program, given, table)
