"""A kernel's plan as ck_tile: its views, tiles and windows, and the statements over them."""

from msgspec.structs import replace

from tile2cu.core.dtype import FLOAT32
from tile2cu.core.expr import Named, static_value
from tile2cu.core.layout import Replicated
from tile2cu.core.mfma_layout import MfmaTile
from tile2cu.core.program import Buffer, Scope
from tile2cu.plan import copy_ops, ops, structure
from tile2cu.plan.claims import ElementsTogether, Evicts, Executes, Streams, TotalsOnly
from tile2cu.plan.kernel import Kernel
from tile2cu.plan.scalar_ops import Assign, Atomic, Declare, Store
from tile2cu.plan.traversal import operations
from tile2cu.styles.base.claims import comment
from tile2cu.styles.base.comments import about_vote, listed, rule_line, wrapped
from tile2cu.styles.base.constants import Constants
from tile2cu.styles.base.elements import written_by
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.grid import block_indices
from tile2cu.styles.base.scalars import prelude_values, scalar
from tile2cu.styles.base.statements import Statements
from tile2cu.styles.base.view import Declaration, Section, StatementView, text_line
from tile2cu.styles.ck import vocabulary as words
from tile2cu.styles.ck.copies import Copies
from tile2cu.styles.ck.elementwise import ElementLoop
from tile2cu.styles.ck.expressions import CkPrinter
from tile2cu.styles.ck.fragments import Fragments, Temporary
from tile2cu.styles.ck.gemm import Gemms, layouts_of_operands, written_by_copies
from tile2cu.styles.ck.pipeline import Pipelines
from tile2cu.styles.ck.reductions import reduction
from tile2cu.styles.ck.scalars import atomic
from tile2cu.styles.ck.shared import SharedTiles
from tile2cu.styles.ck.support import unsupported
from tile2cu.styles.ck.tensors import Tensors

# What the comments of distributions refer to.
_VALUES = (
    "wave = thread / 64, lane = thread % 64; value v of a lane is get_thread_buffer()[v], whose bits are in VGPRs one "
    "after another: one value of 32 bits, two of 16 or four of 8 per VGPR"
)


# Of what only the style tl does: hints for caches, vectors of elements, and their order as they are unpacked.
_OF_STYLE_TL = (Evicts, Streams, ElementsTogether, TotalsOnly)


class CkKernel(Statements):
    """Prints one kernel of `file`."""

    printer: CkPrinter

    def __init__(self, plan: Kernel, printer: Printer, constants: Constants, file: str) -> None:
        """Errors: T2C-E034 for what no kernel may have."""
        self.plan = plan
        self._check()
        held = {each.tile.name: each.layout for each in plan.registers.fragments}
        everywhere = frozenset(name for name, layout in held.items() if isinstance(layout, Replicated))
        super().__init__(file, CkPrinter.of(printer, everywhere=everywhere))
        every = tuple(operations(plan.body))
        copied = written_by_copies(every)
        accumulators = {name: layout for name, layout in held.items() if isinstance(layout, MfmaTile)}
        by_columns = layouts_of_operands(every, accumulators)
        self.fragments = Fragments(plan, self.printer)
        self.tensors = Tensors(plan, self.printer)
        kept = {name: each for name, each in by_columns.items() if name in copied}
        self.shared = SharedTiles(plan, self.printer, constants, kept)
        self.copies = Copies(plan, self.printer, self.fragments, self.tensors, self.shared)
        self.gemms = Gemms(plan, self.printer, self.fragments, self.shared)
        self.pipelines = Pipelines(self.copies, constants)

    def _check(self) -> None:
        plan, span = self.plan, self.plan.launch.span
        asked = {
            "a producer warp": plan.producer is not None,
            "a persistent kernel": plan.persistent is not None,
            "barriers of the user's": plan.barriers is not None,
            "tiles staged for TMA": bool(plan.staging),
            "groups of threads": plan.launch.groups > 1 or bool(plan.launch.shares),
            "clusters": bool(plan.launch.cluster),
            "random numbers": plan.registers.random,
            "blocks of other than whole waves of 64 threads": plan.launch.threads % 64 != 0,
        }
        for what, found in asked.items():
            if found:
                raise unsupported(what, span)

    # ---- declarations -------------------------------------------------------------------------------------------

    def struct(self) -> Section:
        """The shared tiles."""
        return self.shared.struct()

    @property
    def tile_registers(self) -> int:
        """The registers of a thread for fragments, and for the next tile as this style distributes it."""
        held = self.plan.registers
        return held.count - held.prefetched + self.pipelines.prefetched

    def registers(self) -> Section:
        """The distributions of tiles, and the warp GEMMs."""
        count = self.tile_registers
        title = f"registers: {count} per thread for tiles" if count else "how loops are distributed over the threads"
        held = self.fragments.temporaries
        more = [f"{held[each]} for {each.value}" for each in Temporary if held.get(each)]
        taken = f"{'besides these, one statement' if count else 'a loop'} takes up to {listed(more)}"
        declared = [*self.gemms.declared(), *self.fragments.types()]
        if declared:
            about = (*(wrapped(taken) if more else ()), *wrapped(_VALUES))
            declared[0] = replace(declared[0], comments=(*about, *declared[0].comments))
        return Section(rule_line(title), tuple(declared))

    def setup(self) -> tuple[Declaration, ...]:
        """The block's indices, views of tensors, shared tiles and their windows."""
        declared = list(block_indices(self.plan.grid, self.printer))
        declared += prelude_values(self.plan.launch, self.printer)
        declared += self.tensors.declared()
        declared += self.shared.names()
        return tuple(declared)

    def tiles(self) -> tuple[Declaration, ...]:
        """The fragments."""
        return tuple(self.fragments.tensors())

    # ---- statements ---------------------------------------------------------------------------------------------

    def view(self, op: ops.Op) -> StatementView:
        """An operation without the user's comments."""
        self.printer.span = op.source.span
        match op:
            case structure.PipelinedLoop() if op.stores and op.direct is None:
                return self.pipelines.view(op, self.views)
            case structure.If() if (tile := self._changed(op)) is not None:
                name = self.printer.names(tile.name)
                opening = f"{words.CHANGE_IF}({self.printer.condition(op.condition)}, {name}, [&] {{"
                return replace(self.control(op), kind="ck_change_if", parts={"head": opening})
            case structure.If() | structure.For() | structure.While():
                return self.control(op)
            case _:
                text = self._text(op)
        claims = [each for each in op.claims if not isinstance(each, _OF_STYLE_TL)]
        if isinstance(op, ops.Mma):  # the style stores operands and reads them in its own way
            claims = [self.gemms.executed(each) if isinstance(each, Executes) else each for each in claims]
        if isinstance(op, structure.Elementwise) and op.scales is not None:
            return text_line(text, 0, about_vote(self.printer.names(op.scales.after.name), op.scales.rule))
        return text_line(text, 0, tuple(comment(each, self.printer.names) for each in claims))

    def _changed(self, op: structure.If) -> Buffer | None:
        """The accumulator that a loop under a condition changes, where it does nothing else."""
        if not isinstance(op.only, structure.Elementwise):
            return None
        written = written_by(op.only)
        tile = written.pop() if len(written) == 1 else None
        if tile is None or tile.scope is not Scope.FRAGMENT or tile.dtype != FLOAT32 or written:
            return None
        return tile if isinstance(self.fragments.layout(tile), MfmaTile) else None

    def _text(self, op: ops.Op) -> str:
        match op:
            case structure.Elementwise():
                voted = self._scaled(op.scales) if op.scales is not None else ""
                return voted or ElementLoop(op, self.printer, self.fragments, self.copies).lines()
            case ops.Fill():
                return self._fill(op)
            case ops.ClearIf():
                name = self.printer.names(op.tile.buffer.name)
                return f"if ({self.printer.condition(op.condition)}) clear_tile({name});"
            case ops.Barrier(scope=ops.BarrierScope.PARTICIPANTS | ops.BarrierScope.BLOCK):
                return "block_sync_lds();"
            case ops.Mma():
                return self.gemms.text(op)
            case ops.Reduce():
                return reduction(op, self.printer, self.fragments)
            case copy_ops.Copy():
                return self.copies.text(op)
            case copy_ops.LoadRegisters():
                return self.pipelines.load(op)
            case copy_ops.AtomicUpdate():
                return self.copies.add(op)
            case _:
                return self._scalar(op)

    def _scaled(self, scaled: structure.Scaled) -> str:
        """A rescale of rows that waves vote to skip."""
        names = self.printer.names
        changed = f"{words.ANY_CHANGED}({names(scaled.before.name)}, {names(scaled.after.name)})"
        return f"{words.SCALE_ROWS_IF}({changed}, {names(scaled.tile.name)}, {names(scaled.factor.name)});"

    def _fill(self, op: ops.Fill) -> str:
        """A fragment by each thread, or a shared tile by all of them."""
        tile, name = op.tile.buffer, self.printer.names(op.tile.buffer.name)
        if not op.tile.region.whole:
            raise unsupported(f"a fill of a part of {tile.name}", op.source.span)
        value = self.printer.text(op.value, tile.dtype)
        if tile.scope is Scope.SHARED:
            return f"{words.FILL_TILE}<threads>({self.printer.tile(tile)}, {value});"
        if tile.name in self.printer.everywhere:
            if tile.rank != 1:
                raise unsupported(
                    f"a fill of {tile.name}, of several dimensions that every thread holds", op.source.span
                )
            return f"for (auto& element : {name}) element = {value};"
        if static_value(op.value) == 0:
            return f"clear_tile({name});"
        # set_tile takes a reference, and a constant of the host has no address in device code
        return f"set_tile({name}, {f'{tile.dtype.cpp}({value})' if isinstance(op.value, Named) else value});"

    def _scalar(self, op: ops.Op) -> str:
        """An operation of each thread on its own variables."""
        names = self.printer.names
        match op:
            case ops.FillLocal():
                value = self.printer.text(op.value, op.buffer.dtype)
                if op.buffer.rank != 1:
                    raise unsupported("a fill of a private array of several dimensions", op.source.span)
                return f"for (auto& element : {names(op.buffer.name)}) element = {value};"
            case ops.Leave():
                return "continue;" if op.continues else "break;"
            case structure.Let() | Declare() | Assign():
                return scalar(op, self.printer)
            case Store():
                value = self.printer.text(op.value, op.buffer.dtype)
                return f"{self.printer.element(op.buffer, op.indices)} {op.operator}= {value};"
            case Atomic():
                return atomic(op, self.printer)
            case structure.PipelinedLoop():
                raise unsupported("a pipeline whose tiles do not pass through registers", op.source.span)
            case _:
                raise unsupported(f"the operation {type(op).__name__}", op.source.span)
