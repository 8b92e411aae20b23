"""Elementwise loops, for styles that print their statements one by one: what they access, and their text."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from msgspec import field
from msgspec.structs import replace

from tile2cu.analysis.linear import rest_of_sum
from tile2cu.core.expr import Expr, Load, Past, Var, binary, children, int_const, walk
from tile2cu.core.program import Buffer
from tile2cu.core.record import Record
from tile2cu.core.schedule import PackedDot
from tile2cu.core.span import Span
from tile2cu.plan import ops, structure
from tile2cu.plan.scalar_ops import Assign, Atomic, Declare, Store
from tile2cu.styles.base.comments import BODY_WIDTH, wrapped
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.scalars import scalar

T = TypeVar("T", bound="ElementPrinter")
Key = tuple[str, tuple[Expr, ...]]  # of an element: its buffer's name and its indices


class Access(Record, frozen=True, kw_only=True):
    """An element that a loop reads or writes, under `conditions`; an update is a read and a write."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    writes: bool
    atomic: bool = False
    conditions: tuple[Expr, ...] = ()

    @property
    def key(self) -> Key:
        """The element."""
        return self.buffer.name, self.indices


def written_by(loop: structure.Elementwise) -> set[Buffer]:
    """The tiles and tensors that a loop over elements writes."""
    accesses = accesses_of(loop.body)
    return {each.buffer for each in accesses if each.writes}


def accesses_of(body: tuple[structure.Statement, ...], conditions: tuple[Expr, ...] = ()) -> Iterator[Access]:
    """The elements that statements read and write, in order."""
    for op in (each.op for each in body):
        for expr in own_expressions(op):
            for part in walk(expr):
                if isinstance(part, Load) and isinstance(part.buffer, Buffer):
                    indices = tuple(part.indices)
                    yield Access(buffer=part.buffer, indices=indices, writes=False, conditions=conditions)
        if isinstance(op, Store | Atomic):
            atomic = isinstance(op, Atomic)
            element = Access(buffer=op.buffer, indices=op.indices, writes=True, atomic=atomic, conditions=conditions)
            if isinstance(op, Store) and op.operator:
                yield replace(element, writes=False)
            yield element
        if isinstance(op, structure.DotsOfFour):
            yield Access(buffer=op.dot.sum.buffer, indices=op.dot.sum.indices, writes=True, conditions=conditions)
        if isinstance(op, structure.If):
            for condition, inside in op.arms:
                yield from accesses_of(inside, (*conditions, condition))


def box_of(
    indices: tuple[Expr, ...], variables: tuple[Var, ...], printer: Printer
) -> tuple[tuple[Expr, ...], tuple[int, ...]] | None:
    """(where a loop's elements begin, the dimensions that its variables run along), if the elements are a box."""
    starts: list[Expr] = []
    along: list[tuple[int, Var]] = []
    for dim, index in enumerate(indices):
        expanded = printer.bounds.expanded(index)
        inside = [var for var in variables if var in walk(expanded)]
        if not inside:
            starts.append(index)
            continue
        start = rest_of_sum(expanded, inside[0])
        if len(inside) > 1 or start is None or any(part == inside[0] or isinstance(part, Past) for part in walk(start)):
            return None
        starts.append(start)
        along.append((dim, inside[0]))
    if not along or tuple(var for _, var in along) != variables:
        return None
    return tuple(starts), tuple(dim for dim, _ in along)


class ElementPrinter(Printer):
    """Prints elements: `places` has those that a loop holds in registers, by buffer and indices.

    `everywhere` are fragments that every thread holds; `span` is the line that is printed.
    """

    places: Mapping[Key, object] = field(default_factory=dict)
    everywhere: frozenset[str] = frozenset()
    span: Span | None = None

    @classmethod
    def of(cls: type[T], printer: Printer, **more: Any) -> T:
        """A printer of the same names."""
        return cls(**{name: getattr(printer, name) for name in Printer.__struct_fields__}, **more)


class ElementStatements(ABC):
    """Prints the statements of a loop's body; a style gives the text of those that access memory."""

    op: structure.Elementwise
    printer: ElementPrinter

    def __post_init__(self) -> None:
        """Each store and atomic asks for itself which of its threads does it."""
        body = (part for each in self.op.body for part in by_each_holder(each))
        self.op = replace(self.op, body=tuple(body))

    @abstractmethod
    def store(self, op: Store) -> str:
        """One element's new value."""

    @abstractmethod
    def atomic(self, op: Atomic) -> str:
        """One element's atomic update."""

    @abstractmethod
    def other(self, op: ops.Op) -> str:
        """Another operation. Errors: T2C-E034 where the style has none."""

    def under(self, condition: Expr) -> AbstractContextManager[object]:
        """While a block is printed, in which a condition holds."""
        return nullcontext()

    def statement(self, op: ops.Op, comments: tuple[str, ...] = ()) -> Iterator[str]:
        """The lines of a statement, under the user's comments; errors are at its place."""
        self.printer.span = op.source.span
        yield from (f"// {line}" for text in comments for line in wrapped(text, BODY_WIDTH))
        printer = self.printer
        match op:
            case Store():
                yield self.store(op)
            case Atomic():
                yield self.atomic(op)
            case structure.Let() | Declare() | Assign():
                yield scalar(op, printer)
            case structure.If():
                head = f"if ({printer.condition(op.condition)}) {{"
                for condition, inside in op.arms:
                    yield head
                    with self.under(condition):
                        yield from self.body(inside)
                    head = "} else {"
                yield "}"
            case _:
                yield self.other(op)

    def reads(self, expr: Expr, variables: tuple[Var, ...]) -> bool:
        """Whether one of the loop's variables is read other than to index an element that is held."""
        if isinstance(expr, Load) and (getattr(expr.buffer, "name", ""), expr.indices) in self.printer.places:
            return False
        return expr in variables or any(self.reads(each, variables) for each in children(expr))

    def body(self, body: tuple[structure.Statement, ...]) -> list[str]:
        """The lines of a loop's body."""
        return [line for each in body for line in self.statement(each.op, each.source.comments)]


def by_each_holder(statement: structure.Statement) -> Iterator[structure.Statement]:
    """A statement, or those that one of the threads is to run that hold the same element."""
    if isinstance(statement.op, structure.ByOneHolder):
        yield from statement.op.body
    else:
        yield statement


def own_expressions(op: ops.Op) -> Iterator[Expr]:
    """The expressions of an operation, without those of the blocks in it."""
    match op:
        case Store() | Atomic():
            yield op.value
            yield from op.indices
        case structure.Let() | Assign():
            yield op.value
        case Declare():
            yield op.init
        case structure.DotsOfFour(dot=dot):
            yield Load(dot.sum.buffer.dtype, dot.sum.buffer, dot.sum.indices)
            yield Load(dot.packed.dtype, dot.packed, dot.sum.indices)
            yield first_of_four(dot)
        case structure.If():
            yield op.condition


def first_of_four(dot: PackedDot) -> Load:
    """The first of the four int8 elements that are multiplied by the numbers of a byte."""
    return Load(dot.tile.dtype, dot.tile, (binary("*", int_const(4), dot.sum.indices[-1]),))


def printed_expressions(body: tuple[structure.Statement, ...]) -> Iterator[Expr]:
    """Those that are printed: an element that is stored to counts as a load of it."""
    for op in (each.op for each in body):
        if isinstance(op, Store | Atomic):
            yield op.value
            yield Load(op.buffer.dtype, op.buffer, op.indices)
            continue
        yield from own_expressions(op)
        match op:
            case structure.If():
                for _, inside in op.arms:
                    yield from printed_expressions(inside)
