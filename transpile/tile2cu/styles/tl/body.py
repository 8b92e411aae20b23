"""A kernel's body as views for the templates."""

from collections.abc import Callable

from msgspec.structs import replace

from tile2cu.core.expr import Expr
from tile2cu.core.layout import FragmentLayout
from tile2cu.core.program import Buffer
from tile2cu.plan import ops, structure
from tile2cu.plan.claims import StoredLast
from tile2cu.plan.producer_ops import AcquireStage, AwaitStage, PrefetchNext, Visit, Visits
from tile2cu.plan.scalar_ops import Atomic, AtomicVector, Store
from tile2cu.plan.structure import Elementwise, Purpose, Scaled, Statement, Writers
from tile2cu.styles.base.claims import comment
from tile2cu.styles.base.comments import about_vote, listed
from tile2cu.styles.base.constants import Constants
from tile2cu.styles.base.pipelined import NOT_DISJOINT, pipelined, release_method
from tile2cu.styles.base.view import StatementView, text_line
from tile2cu.styles.base.vocabulary import NAMESPACE
from tile2cu.styles.tl import vocabulary as tl
from tile2cu.styles.tl.consumers import OfProducer, of_producer
from tile2cu.styles.tl.elementwise import dots_of_four, let, packets
from tile2cu.styles.tl.iterations import pipeline_name
from tile2cu.styles.tl.operations import Operations
from tile2cu.styles.tl.parts import Parts
from tile2cu.styles.tl.staged import staged
from tile2cu.styles.tl.tensors import located

_PURPOSES = {
    Purpose.GRID_BARRIER: "grid-wide barrier: all blocks see each other's earlier writes",
    Purpose.AWAIT_KERNELS: (
        "up to here the kernel may overlap with earlier ones on its stream; now it reads their results"
    ),
    Purpose.START_KERNELS: "later kernels on the stream that are launched with the PDL attribute may start",
}
_Line = (
    structure.Let
    | structure.BindTensor
    | PrefetchNext
    | ops.Leave
    | structure.DotsOfFour
    | structure.AwaitPrologue
    | structure.ReleasePrologue
    | structure.AwaitStaging
)
_ON_ONE_LINE = Store | Atomic | AtomicVector | structure.DotsOfFour


class Body(Parts):
    """Prints blocks of a kernel of `file`. `layout_of` and `layout_of_tile` name layouts of loops and fragments."""

    def __init__(
        self,
        operations: Operations,
        constants: Constants,
        file: str,
        layout_of: Callable[[FragmentLayout, tuple[Expr, ...]], str],
        layout_of_tile: Callable[[Buffer], str],
        *,
        by_one: bool,
    ) -> None:
        super().__init__(operations, constants, file, layout_of_tile, by_one=by_one)
        self.layout_of = layout_of

    def statement(self, statement: Statement, above: list[str]) -> StatementView:
        """The statement under its comments; what a way visits is under those of its own statements."""
        match statement.op:
            case structure.ByOneHolder() as op:
                return self._by_one_holder(op, above)
            case Visits() | Visit() as op:
                return self.view(op)
            case _:
                return super().statement(statement, above)

    def view(self, op: ops.Op) -> StatementView:
        """An operation without the user's comments."""
        match op:
            case op if isinstance(op, OfProducer):
                return of_producer(op, self)
            case structure.PipelinedLoop():
                return self._pipelined(op)
            case Elementwise():
                return self._scaled(op, op.scales) if op.scales is not None else self._elementwise(op)
            case structure.If() | structure.For() | structure.While():
                return self.control(op)
            case structure.OfGroup():
                return StatementView("branch", {"condition": f"{tl.GROUP}() == {op.group}"}, body=self.views(op.body))
            case structure.Invoke():
                return self._invoke(op)
            case AwaitStage():
                return self._await_stage(op)
            case AcquireStage():
                return self._acquire_stage(op)
            case op if isinstance(op, _Line):
                return text_line(self._text(op))
            case _:
                return self.operations.view(op)

    def _by_one_holder(self, op: structure.ByOneHolder, above: list[str]) -> StatementView:
        first, *others = op.body
        views = (self.statement(first, above), *(self.statement(s, list(s.source.comments)) for s in others))
        holder = f"{tl.IS_WRITER}({self.layout_of(op.layout, op.extents)}{{}})"
        return StatementView("branch", {"condition": holder}, views[0].line, (), views)

    def _pipelined(self, op: structure.PipelinedLoop) -> StatementView:
        with self.continuing(""):
            if op.stores:
                return staged(op, self.operations, self.constants, self.views)
            return pipelined(op, self.printer, self.constants, self.views)

    def _invoke(self, op: structure.Invoke) -> StatementView:
        """A call; where it is given addresses of a tensor's elements that may be outside, only if they are inside."""
        condition = " && ".join(f"{tl.INSIDE}({self.printer.last_element(place)})" for place in op.places)
        text, place = self.printer.text(op.call), op.source.span.line
        if op.purpose in _PURPOSES:
            return text_line(f"{text};", place, (_PURPOSES[op.purpose],))
        if op.fills:
            *given, count = (self.printer.argument(arg, arg.dtype) for arg in op.call.args)
            text = f"{NAMESPACE}{op.call.function}({', '.join(given)}, {condition} ? {count} : 0)"
        call = text_line(f"{text};", place, tuple(comment(claim, self.printer.names) for claim in op.claims))
        if op.fills or not op.places:
            return call
        return StatementView("branch", {"condition": condition}, 0, (), (call,))

    def _acquire_stage(self, op: AcquireStage) -> StatementView:
        names = self.printer.names
        published = f", {names('__iteration')}" if op.publishes else ""
        acquired = f"{pipeline_name(op.tile, names)}.producer_acquire({self.printer.counts[op.tile.name]}{published});"
        text = f"{tl.BARRIER}& {names(f'__{op.tile.name}_full')} = {acquired}"
        return text_line(text, op.source.span.line)

    def _await_stage(self, op: AwaitStage) -> StatementView:
        assert self.texts is not None, "rings belong to a producer's loop"
        ring, texts = pipeline_name(op.ring.tile, self.printer.names), self.texts
        text = f"{ring}.consumer_wait({texts.before}{texts.k});"
        return text_line(text, op.source.span.line, tuple(comment(claim, self.printer.names) for claim in op.claims))

    def _leave(self, op: ops.Leave) -> str:
        first = f"{self.at_continue}\n" if op.continues and self.at_continue else ""
        return first + ("continue;" if op.continues else "break;")

    def _text(self, op: "_Line") -> str:
        match op:
            case structure.Let():
                return let(op, self.printer)
            case structure.BindTensor():
                return located(op, self.printer)
            case structure.DotsOfFour():
                return dots_of_four(op, self.printer)
            case ops.Leave():
                return self._leave(op)
            case PrefetchNext():
                return self.prefetches[id(op.prefetch)]
            case structure.AwaitPrologue() | structure.ReleasePrologue() | structure.AwaitStaging():
                return self._awaited(op)

    def _awaited(self, op: structure.AwaitPrologue | structure.ReleasePrologue | structure.AwaitStaging) -> str:
        match op:
            case structure.AwaitPrologue():
                tiles = listed([self.printer.names(tile.name) for tile in op.tiles])
                have = "has" if len(op.tiles) == 1 else "have"
                if op.persistent:
                    return f"prologue_pipeline.consumer_wait(tile_iter);  // until {tiles} of this tile {have} arrived"
                return f"{tl.MBARRIER_WAIT}(prologue_full, 0);  // until {tiles} {have} arrived"
            case structure.ReleasePrologue():
                return f"prologue_pipeline.{release_method(waits_for_loads=op.waits_for_loads)}(tile_iter);"
            case structure.AwaitStaging():
                until = "the warp's staged rows may be overwritten" if op.again else "the block may end"
                if op.completed:
                    until = NOT_DISJOINT
                wait = tl.TMA_STORE_WAIT if op.completed else tl.TMA_STORE_WAIT_READ
                return f"{wait}();  // lane 0 waits, then __syncwarp: {until}"

    def _scaled(self, op: Elementwise, scaled: Scaled) -> StatementView:
        """A rescale of rows that warps vote to skip."""
        names = self.printer.names
        before, after = names(scaled.before.name), names(scaled.after.name)
        changed = f"{tl.ANY_CHANGED}({before}, {after})"
        text = f"{tl.SCALE_ROWS_IF}({changed}, {names(scaled.tile.name)}, {names(scaled.factor.name)});"
        return text_line(text, op.source.span.line, about_vote(after, scaled.rule))

    def _elementwise(self, op: Elementwise) -> StatementView:
        """A loop over elements, with a word on each of its means that does not speak for itself."""
        names = self.printer.names
        parts = {
            "name": _head(op),
            "vector": str(op.vector) if op.vector > 1 else "",
            "layout": self.layout_of(op.layout, op.extents),
            "into": "",
            "indices": ", ".join(f"auto {names(v.name)}" if v in op.used else "auto" for v in op.vars),
        }
        with packets(op, self.printer, any_order=op.any_order), names.noted() as noted:
            body = tuple(self.statement(each, list(each.source.comments)) for each in op.body)
        said = tuple(about for name, about in tl.SAID_OF_NAMES.items() if name in noted)
        claims = [comment(claim, names) for claim in op.claims if not isinstance(claim, StoredLast)]
        comments = (*claims, *said)
        if op.stores_last:
            return self._stored_last(op, parts, body, comments)
        (only, *others) = op.body
        alone = not others and isinstance(only.op, _ON_ONE_LINE) and body[0].kind == "line"
        if alone and (isinstance(only.op, structure.DotsOfFour) or not body[0].comments):
            return StatementView("parallel_line", parts, only.source.span.line, comments, body)
        return StatementView("parallel", parts, 0, comments, body)

    def _stored_last(
        self, op: Elementwise, parts: dict[str, str], body: tuple[StatementView, ...], comments: tuple[str, ...]
    ) -> StatementView:
        """A loop whose vectors are all computed before the first is stored."""
        store = op.body[-1].op
        assert isinstance(store, Store)
        with packets(op, self.printer):
            result = f"return {self.printer.text(store.value, store.buffer.dtype)};"
        note = tuple(comment(claim, self.printer.names) for claim in op.claims if isinstance(claim, StoredLast))
        body = (*body[:-1], replace(body[-1], parts={"text": result}))
        parts = {**parts, "name": "parallel_into", "into": self.printer.tile(store.buffer)}
        return StatementView("parallel", parts, 0, (*comments, *note), body)


def _head(op: Elementwise) -> str:
    """The function that runs a loop."""
    if op.writers is Writers.ONCE:
        return "parallel_once"
    return "parallel_in_registers" if op.in_registers else "parallel"
