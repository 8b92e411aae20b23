"""The statements of a launch: lowered to a plan and printed, with the parts of schedules that are printed here."""

from contextlib import AbstractContextManager
from dataclasses import replace

from tile2cu.core.decisions import EARLY_EXIT, STORE_OUTSTANDING
from tile2cu.core.expr import negated
from tile2cu.core.program import Loop, Stmt, walk_stmts
from tile2cu.core.schedule import Pipeline
from tile2cu.emitter.layouts import Layouts
from tile2cu.emitter.sections import block_indices
from tile2cu.emitter.tma import persistent_in
from tile2cu.plan.body import Lowering
from tile2cu.plan.producer import iterations_of
from tile2cu.plan.settled import Settled
from tile2cu.plan.structure import AwaitStaging, Where
from tile2cu.styles.base.view import StatementView
from tile2cu.styles.tl.body import Body
from tile2cu.styles.tl.constants import Constants
from tile2cu.styles.tl.expressions import Printer
from tile2cu.styles.tl.iterations import Texts
from tile2cu.styles.tl.operations import Operations
from tile2cu.styles.tl.tensor_map import TensorMap


class Statements:
    """Views of the statements of one launch."""

    def __init__(self, settled: Settled, printer: Printer, layouts: Layouts, maps: dict[int, TensorMap]) -> None:
        self.settled = settled
        self.facts = settled.facts
        self.printer = printer
        self.layouts = layouts
        self.operations = Operations.of(printer, maps)
        self.constants = Constants.of(settled)
        self.lowering = Lowering(settled)
        self.printed = Body(
            self.operations, self.constants, settled.program.source.name, layouts.of_extents, layouts.of_tile
        )
        self.walk = self.lowering.walk
        self.hoisted = self.lowering.hoisted
        self.where = Where()
        self.tile_indices = tuple(block_indices(settled, printer) if persistent_in(settled) is not None else ())

    def body(self, body: tuple[Stmt, ...]) -> tuple[StatementView, ...]:
        """The views of a block, paragraph by paragraph, each under its place in the Python file."""
        return self.printed.views(self.lowering.body(body, self.where))

    def paragraphs(self, body: tuple[Stmt, ...]) -> tuple[StatementView, ...]:
        """The same of these statements, wherever they stand in the program."""
        return self.printed.views(self.lowering.paragraphs(body, self.where))

    def loading(self, *way: Stmt, walking: bool = False) -> tuple[StatementView, ...]:
        """What a producer does on its way to its loads, in the loops around them."""
        outside, self.where = self.where, replace(self.where, loading=True, walking=walking)
        views = self.paragraphs(way)
        self.where = outside
        return views

    def visits(self, stmt: Stmt) -> StatementView:
        """What who loads does at each tile of work or iteration that the way leads to."""
        return self.printed.view(self.lowering.producing.visits(stmt, replace(self.where, loading=True)))

    def iterations(self, loop: Loop, pipeline: Pipeline) -> AbstractContextManager[Texts]:
        """The texts of the iterations of a producer's loop; inside, its tiles print with their iteration's stage."""
        of = iterations_of(loop, pipeline, self.settled, loading=self.where.loading)
        return self.printed.iterations(of)

    def start(self) -> tuple[StatementView, ...]:
        """What all threads do first: those of a block that would write nothing leave."""
        idle = self.facts.get(self.settled.launch, EARLY_EXIT)
        if idle is None:
            return ()
        about = f"such a block would write nothing  [{self.facts.rule(self.settled.launch, EARLY_EXIT)}]"
        text = f"if ({self.printer.text(idle.condition)}) return;  // {about}"
        first = self.paragraphs(idle.before)
        self.printer.holds = negated(idle.condition)  # the others have left
        return (*first, StatementView("line", {"text": text}))

    def end(self) -> tuple[StatementView, ...]:
        """What all threads but a producer's do last."""
        body = self.settled.launch.body
        left = next((stmt for stmt in walk_stmts(body) if self.facts.get(stmt, STORE_OUTSTANDING)), None)
        return () if left is None else (replace(self.printed.view(AwaitStaging(source=left, again=False)), gap=True),)
