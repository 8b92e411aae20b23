"""Blocks of a plan as views: paragraphs under their comments, each statement behind what it waits for."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from tile2cu.analysis.accesses import expressions
from tile2cu.analysis.wrapping import may_wrap, taken_modulo
from tile2cu.core.expr import negated, walk
from tile2cu.core.program import Stmt
from tile2cu.plan import ops, structure
from tile2cu.plan.claims import Claim, CpAsyncs, TmaBoxes
from tile2cu.plan.kernel import EarlyExit
from tile2cu.plan.producer_ops import Visit
from tile2cu.plan.structure import Block, Paragraph, Statement
from tile2cu.styles.base.comments import BODY_WIDTH, Place, file_of, heading, place_of, wrapped
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.loops import head
from tile2cu.styles.base.view import StatementView, text_line

_WRAPS = "wrapping: no launcher checks the numbers that decide this one, and signed overflow is undefined"
_PER_TILE = (CpAsyncs, TmaBoxes)  # true of each tile: stated above the first of neighbours with equal ones


class Statements(ABC):
    """Prints the blocks of a kernel of `file`; a style gives the view of an operation."""

    def __init__(self, file: str, printer: Printer) -> None:
        self.file, self.printer = file, printer
        self.prefetches: dict[int, str] = {}  # the calls that load the next iteration's vectors
        self.at_continue = ""  # what a `continue` must do first
        self.places: list[Place] = []  # that comments name
        self._wrapping_told = False

    @abstractmethod
    def view(self, op: ops.Op) -> StatementView:
        """An operation without the user's comments."""

    def views(self, block: Block) -> tuple[StatementView, ...]:
        """The views of a block, paragraph by paragraph, each under its place in the Python file."""
        views: list[StatementView] = []
        for paragraph in block:
            first, *others = self._paragraph(paragraph)
            views += [replace(first, gap=bool(views)), *others]
        return tuple(views)

    def control(self, op: structure.If | structure.For | structure.While) -> StatementView:
        """A branch, or a loop of each thread."""
        match op:
            case structure.If():
                condition = {"condition": self.printer.condition(op.condition)}
                return StatementView("branch", condition, body=self.views(op.then), orelse=self.views(op.orelse))
            case structure.For():
                with self.continuing(""):
                    return StatementView("loop", head(op, self.printer), body=self.views(op.body))
            case structure.While():
                condition = {"condition": self.printer.condition(op.condition)}
                with self.continuing(""):
                    return StatementView("while", condition, body=self.views(op.body))

    @contextmanager
    def continuing(self, first: str) -> Iterator[None]:
        """Prints a loop in which a `continue` does something `first`."""
        outside, self.at_continue = self.at_continue, first
        yield
        self.at_continue = outside

    def early_exit(self, early: EarlyExit | None, blocks: str, printer: Printer) -> tuple[StatementView, ...]:
        """What all threads do first: those of a block that would write nothing leave. `blocks`: the target's word."""
        if early is None:
            return ()
        first = self.views(early.before)
        about = f"such a {blocks.removesuffix('s')} would write nothing  [{early.rule}]"
        text = f"if ({printer.text(early.condition)}) return;  // {about}"
        printer.holds = negated(early.condition)  # the others have left
        return (*first, text_line(text))

    def statement(self, statement: Statement, above: list[str]) -> StatementView:
        """The statement under its comments: its paragraph's, the one at its line's end, and its claims."""
        trailing = statement.source.trailing
        own = [trailing] if trailing and not any(trailing in line for line in above) else []
        own += self._about_wrapping(statement.op.source)
        view = self.view(statement.op)
        return self._placed(statement, view, [*above, *own], view.line or statement.op.source.span.line)

    def _about_wrapping(self, stmt: Stmt) -> list[str]:
        """Why arithmetic wraps, above the first statement with some that does because of what no launcher knows."""
        bounds = self.printer.bounds
        parts = (part for expr in expressions(stmt) for part in walk(expr))
        if self._wrapping_told or not any(
            part not in taken_modulo(bounds.launch) and may_wrap(bounds, part) for part in parts
        ):
            return []
        self._wrapping_told = True
        return [_WRAPS]

    def heading(self, group: tuple[Stmt, ...]) -> list[str]:
        """The comment above a paragraph."""
        place = place_of(group)
        self.places += [] if place is None else [place]
        return heading(group)

    def _paragraph(self, paragraph: Paragraph) -> Iterator[StatementView]:
        above: list[str] = []
        if not isinstance(paragraph.statements[0].op, Visit):  # the loop itself, whose heading it is, is elsewhere
            above = self.heading(paragraph.sources) if paragraph.heading else list(paragraph.sources[0].comments)
        previous: tuple[Claim, ...] = ()
        for statement in paragraph.statements:
            claims = statement.op.claims if any(isinstance(each, _PER_TILE) for each in statement.op.claims) else ()
            op = replace(statement.op, claims=()) if claims and claims == previous else statement.op
            yield from self._around(replace(statement, op=op), above)
            previous, above = claims, []

    def _around(self, statement: Statement, above: list[str]) -> Iterator[StatementView]:
        """The statement, behind what it waits for; `above` are the comments of its paragraph."""
        yield from map(self.view, statement.before)
        for op in statement.first:
            view = self.view(op)
            yield self._placed(statement, view, above, view.line)
            above = []
        yield self.statement(statement, above)
        yield from map(self.view, statement.after)

    def _placed(self, statement: Statement, view: StatementView, above: list[str], line: int) -> StatementView:
        """The view under comments, at a Python line; the manifest has no lines of other files than the kernel's."""
        comments = tuple(line for text in (*above, *view.comments) for line in wrapped(text, BODY_WIDTH))
        is_own = file_of(statement.source) == self.file
        return replace(view, line=line if is_own else 0, comments=comments)
