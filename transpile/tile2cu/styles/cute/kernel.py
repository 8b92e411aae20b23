"""A kernel's plan as CuTe: its tensors, fragments and shared tiles, and the statements over them."""

from collections.abc import Iterator
from dataclasses import fields

from tile2cu.core.expr import Named, negated, static_value
from tile2cu.core.instruction import MmaUnit
from tile2cu.core.layout import Blocked, FragmentLayout, MmaAccumulator, Replicated, Slice, slice_of
from tile2cu.core.program import Buffer, Scope
from tile2cu.plan import copy_ops, ops, structure
from tile2cu.plan.claims import Claim, Evicts, Packets, Streams
from tile2cu.plan.kernel import Kernel
from tile2cu.plan.operands import Tile
from tile2cu.plan.scalar_ops import Assign, Atomic, Declare, Store
from tile2cu.styles.base.claims import comment
from tile2cu.styles.base.comments import rule_line
from tile2cu.styles.base.constants import Constants
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.grid import block_indices
from tile2cu.styles.base.loops import head
from tile2cu.styles.base.pipelined import pipelined
from tile2cu.styles.base.statements import Statements
from tile2cu.styles.base.view import Declaration, Section, StatementView, text_line
from tile2cu.styles.base.vocabulary import ALIGNED_ROWS
from tile2cu.styles.cute import vocabulary as words
from tile2cu.styles.cute.atomics import atomic_add
from tile2cu.styles.cute.copies import Copies
from tile2cu.styles.cute.elementwise import ElementLoop
from tile2cu.styles.cute.expressions import CutePrinter
from tile2cu.styles.cute.fragments import Fragments, sharing
from tile2cu.styles.cute.shared import SharedTiles
from tile2cu.styles.cute.support import unsupported
from tile2cu.styles.cute.types import SUPPORTED, in_cute


class CuteKernel(Statements):
    """Prints one kernel of `file`."""

    def __init__(self, plan: Kernel, printer: Printer, constants: Constants, file: str) -> None:
        """Errors: T2C-E034 for what no kernel may have."""
        checked = frozenset(view.tensor.name for view in plan.tensors.views if any(view.checked))
        held = plan.registers.fragments
        everywhere = frozenset(each.tile.name for each in held if isinstance(each.layout, Replicated))
        given = {each.name: getattr(printer, each.name) for each in fields(Printer)}
        self.plan, self.constants, self.file = plan, constants, file
        self._check()
        self.printer = CutePrinter(**given, checked=checked, everywhere=everywhere)
        self.mmas: dict[str, ops.Mma] = {}  # by the accumulator
        for op in _operations(plan.body):
            if isinstance(op, ops.Mma):
                first = self.mmas.setdefault(op.c.buffer.name, op)
                if first.instruction != op.instruction:
                    raise unsupported("two kinds of MMA into one accumulator", op.source.span)
        self.fragments = Fragments(plan, self.printer, self.mmas)
        self.copies = Copies(plan, self.printer, self.fragments)
        self.shared = SharedTiles(plan, self.printer, constants, self.fragments)

    @property
    def by_instance(self) -> bool:
        """Whether the launcher chooses one of two instances, by where rows start."""
        return any(view.by_instance for view in self.plan.tensors.views)

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
        }
        for what, found in asked.items():
            if found:
                raise unsupported(what, span)

    # ---- declarations -------------------------------------------------------------------------------------------

    def struct(self) -> Section:
        """The shared tiles."""
        return self.shared.struct()

    def registers(self) -> Section:
        """The TiledMMA or TiledCopy that partitions each tile, and the tiled copies."""
        count = self.plan.registers.count
        title = f"registers: {count} per thread for tiles" if count else "how loops are distributed over the threads"
        return Section(rule_line(title), (*self.fragments.types(), *self._copies()))

    def _copies(self) -> Iterator[Declaration]:
        """The tiled copies; where the launcher chooses, of either instance."""
        types = self.copies.types
        if not self.by_instance:
            yield from (Declaration(f"using {each.name} = {each.other};") for each in types)
            return
        about = "16-byte accesses where all rows are 16-byte aligned, else one element at a time"
        yield Declaration("template <class Alignment> struct Copies {", (about,))
        yield from (Declaration(f"using {each.name} = {each.other};") for each in types)
        yield Declaration("};")
        yield Declaration(f"template <> struct Copies<{ALIGNED_ROWS}> {{")
        yield from (Declaration(f"using {each.name} = {each.aligned};") for each in types)
        yield Declaration("};")

    def setup(self) -> tuple[Declaration, ...]:
        """The instance's copies, tensors, shared tiles and the block's indices."""
        names, declared = self.printer.names, []
        if self.by_instance:
            for each in self.copies.types:
                declared.append(Declaration(f"using {each.name} = typename Copies<Alignment>::{each.name};"))
        declared += [self._tensor(view.tensor) for view in self.plan.tensors.views]
        declared += self.shared.names()
        declared += block_indices(self.plan.grid, self.printer)
        for let in self.plan.launch.prelude:
            value = self.printer.text(let.value, let.var.dtype)
            declared.append(Declaration(f"const {let.var.dtype.cpp} {names(let.var.name)} = {value};"))
        return tuple(declared)

    def _tensor(self, tensor: Buffer) -> Declaration:
        reads_bits = tensor.of is not None and tensor.of.dtype != tensor.dtype
        if tensor.dtype.name not in SUPPORTED or reads_bits:
            raise unsupported(f"the tensor {tensor.name} of {tensor.dtype}", self.plan.launch.span)
        name, shape = self.printer.names(tensor.name), [self.printer.index(each) for each in tensor.shape]
        if tensor.strides is not None:
            strides = [f"int64_t({self.printer.index(each)})" for each in tensor.strides[:-1]]
            if static_value(tensor.strides[-1]) != 1:
                raise unsupported(f"the strides of {tensor.name}", self.plan.launch.span)
        else:
            strides = [
                " * ".join([f"int64_t({shape[dim + 1]})", *map(_factor, shape[dim + 2 :])])
                for dim in range(tensor.rank - 1)
            ]
        extents = ", ".join(map(self.printer.coordinate, tensor.shape))
        layout = f"make_shape({extents}), make_stride({', '.join([*strides, '_1{}'])})"
        const = "" if self._is_written(tensor) else "const "
        data = self.printer.names(tensor.memory.name)  # of another tensor, which this one shows in another shape
        return Declaration(f"{const}Tensor {name} = make_tensor(make_gmem_ptr({data}_data), {layout});")

    def _is_written(self, tensor: Buffer) -> bool:
        found = _operations(self.plan.body)
        return any(_target(op) is tensor for op in found)

    def tensors(self) -> tuple[Declaration, ...]:
        """The fragments, and views of them that statements use."""
        return tuple(self.fragments.tensors())

    def start(self) -> tuple[StatementView, ...]:
        """Blocks that would write nothing leave first."""
        early = self.plan.early
        if early is None:
            return ()
        first = self.views(early.before)
        text = f"if ({self.printer.text(early.condition)}) return;  // such a block would write nothing  [{early.rule}]"
        self.printer.holds = negated(early.condition)  # the others have left
        return (*first, text_line(text))

    # ---- statements ---------------------------------------------------------------------------------------------

    def view(self, op: ops.Op) -> StatementView:
        """An operation without the user's comments."""
        self.printer.span = op.source.span
        left_out: tuple[type[Claim], ...]
        match op:
            case structure.PipelinedLoop(stores=(), direct=None):
                return pipelined(op, self.printer, self.constants, self.views)
            case structure.If():
                condition = {"condition": self.printer.condition(op.condition)}
                return StatementView("branch", condition, body=self.views(op.then), orelse=self.views(op.orelse))
            case structure.For():
                return StatementView("loop", head(op, self.printer), body=self.views(op.body))
            case structure.While():
                condition = {"condition": self.printer.condition(op.condition)}
                return StatementView("while", condition, body=self.views(op.body))
            case structure.Elementwise():
                loop = ElementLoop(op, self.printer, self.fragments, self.copies)
                text, left_out = loop.lines(), () if loop.by_vectors else (Packets,)
            case _:
                text, left_out = self._text(op), (Evicts, Streams)  # CuTe has no loads with a cache policy
        claims = (each for each in op.claims if not isinstance(each, left_out))
        return text_line(in_cute(text), 0, tuple(comment(each, self.printer.names) for each in claims))

    def _text(self, op: ops.Op) -> str:
        names = self.printer.names
        match op:
            case ops.Fill():
                return self._fill(op)
            case ops.ClearIf():
                return f"if ({self.printer.condition(op.condition)}) clear({names(op.tile.buffer.name)});"
            case ops.Barrier(scope=ops.BarrierScope.PARTICIPANTS | ops.BarrierScope.BLOCK):
                return "__syncthreads();"
            case ops.Leave():
                return "continue;" if op.continues else "break;"
            case ops.Mma():
                return self._gemm(op)
            case ops.Reduce():
                return self._reduce(op)
            case copy_ops.Copy():
                return self.copies.text(op)
            case copy_ops.AtomicUpdate():
                return self.copies.add(op)
            case _:
                return self._scalar(op)

    def _fill(self, op: ops.Fill) -> str:
        """A fragment by each thread, or a shared tile by all of them."""
        tile, name = op.tile.buffer, self.printer.names(op.tile.buffer.name)
        if not op.tile.region.whole:
            raise unsupported(f"a fill of a part of {tile.name}", op.source.span)
        value = self.printer.text(op.value, tile.dtype)
        if tile.scope is Scope.SHARED:
            return f"{words.FILL_TILE}({self.copies.tile(tile)}, {value});"
        if static_value(op.value) == 0:
            return f"clear({name});"
        # fill takes a reference, and a constant of the host has no address in device code
        return f"fill({name}, {f'{tile.dtype.cpp}({value})' if isinstance(op.value, Named) else value});"

    def _scalar(self, op: ops.Op) -> str:
        """An operation of each thread on its own variables."""
        names = self.printer.names
        match op:
            case ops.FillLocal():
                value = self.printer.text(op.value, op.buffer.dtype)
                return f"for (auto& element : {names(op.buffer.name)}) element = {value};"
            case structure.Let():
                return f"const {op.var.dtype.cpp} {names(op.var.name)} = {self.printer.text(op.value, op.var.dtype)};"
            case Declare():
                return f"{op.var.dtype.cpp} {names(op.var.name)} = {self.printer.text(op.init, op.var.dtype)};"
            case Assign():
                return f"{names(op.var.name)} {op.operator}= {self.printer.text(op.value, op.var.dtype)};"
            case Store():
                return self._store(op)
            case Atomic():
                return self._inside(op, atomic_add(op, self.printer))
            case _:
                raise unsupported(f"the operation {type(op).__name__}", op.source.span)

    def _store(self, op: Store) -> str:
        """One element, by each thread that comes here."""
        text = f"{self.printer.place(op.buffer, op.indices)} {op.operator}= "
        text += f"{self.printer.text(op.value, op.buffer.dtype)};"
        return self._inside(op, text)

    def _inside(self, op: Store | Atomic, text: str) -> str:
        """A statement for an element in bounds."""
        if op.buffer.name not in self.printer.checked:
            return text
        at = ", ".join(map(self.printer.coordinate, op.indices))
        return f"if ({words.INSIDE}(make_coord({at}), shape({self.printer.names(op.buffer.name)}))) {text}"

    # ---- MMAs ---------------------------------------------------------------------------------------------------

    def _gemm(self, op: ops.Mma) -> str:
        """An MMA of shared tiles, or of an accumulator's registers and a shared tile."""
        flags = (op.starts, op.metadata is not None, op.overwrites_if is not None, op.paced, op.priority)
        if any(flags) or op.instruction.unit is not MmaUnit.WARP or not op.c.region.whole:
            raise unsupported("this form of MMA", op.source.span)
        c = self.printer.names(op.c.buffer.name)
        mma = self.fragments.partition(self.fragments.layout(op.c.buffer), op.source.span)
        assert isinstance(mma.layout, MmaAccumulator)
        even = mma.layout.cols // mma.layout.warps.n % 16 == 0
        load_b, b = self._operand(op.b, op, k_is_contiguous=op.b.transposed, wide=even)
        if not op.b.transposed:
            b = f"{words.SWAP_MODES}({b})"
        first = f"clear({c});\n" if op.overwrites else ""
        if op.a.buffer.scope is Scope.FRAGMENT:
            return f"{first}{words.GEMM}({mma.name}{{}}, {load_b}, {self._held(op)}, {b}, {c});"
        load_a, a = self._operand(op.a, op, k_is_contiguous=not op.a.transposed, wide=True)
        if op.a.transposed:
            a = f"{words.SWAP_MODES}({a})"
        return f"{first}{words.GEMM}({mma.name}{{}}, {load_a}, {load_b}, {a}, {b}, {c});"

    def _operand(self, tile: Tile, op: ops.Mma, *, k_is_contiguous: bool, wide: bool) -> tuple[str, str]:
        """(the atom that loads an operand from shared memory, the tile)."""
        if tile.buffer.scope is not Scope.SHARED or not tile.region.whole or tile.buffer.rank != 2:
            raise unsupported("an MMA's operand that is a part of a tile, or B in registers", op.source.span)
        element = in_cute(tile.buffer.dtype.cpp)
        if k_is_contiguous:
            kind = "SM75_U32x4_LDSM_N" if wide else "SM75_U32x2_LDSM_N"
        elif tile.buffer.dtype.bytes == 2:
            kind = "SM75_U16x8_LDSM_T" if wide else "SM75_U16x4_LDSM_T"
        else:  # ldmatrix transposes elements of 16 bits
            kind = f"UniversalCopy<{element}>"
        return f"Copy_Atom<{kind}, {element}>{{}}", self.copies.tile(tile.buffer)

    def _held(self, op: ops.Mma) -> str:
        """An accumulator's registers as the A operand."""
        layout, tile = self.fragments.layout(op.a.buffer), op.a.buffer
        is_same = isinstance(layout, MmaAccumulator) and layout.warps.n == 1 and op.instruction.k == 16
        if not is_same or op.a.transposed or not op.a.region.whole or tile.dtype.bytes != 2:
            raise unsupported(f"{tile.name} as an MMA's operand in registers", op.source.span)
        return f"{words.AS_OPERAND_A}({self.printer.names(tile.name)})"

    # ---- reductions ---------------------------------------------------------------------------------------------

    def _reduce(self, op: ops.Reduce) -> str:
        """A reduction of a fragment's rows or columns."""
        span, src, dst = op.source.span, op.src, op.dst
        if src.scope is not Scope.FRAGMENT or dst.scope is not Scope.FRAGMENT or dst.dtype.bits != 32:
            raise unsupported("a reduction other than of a fragment to 32 bits", span)
        layout, result = self.fragments.layout(src), self.fragments.layout(dst)
        if not isinstance(layout, MmaAccumulator | Blocked) or (isinstance(layout, Blocked) and layout.rows > 1):
            raise unsupported("a reduction of a fragment that is no tile", span)
        partition, kept = self.fragments.partition(layout, span), 1 - op.dim
        source, at, rows_at = self.printer.names(src.name), "", ""
        if src.rank == 1:
            if not isinstance(result, Replicated):
                raise unsupported("a reduction to a value that not every thread holds", span)
            at = f"{words.ONE_ROW}({self.fragments.at(partition)})" if partition.overhangs else ""
            source, rows_at, kept = f"{words.ONE_ROW}({source})", "make_identity_tensor(Shape<_1, _1>{})", 0
        else:
            self._check_reduced(op, layout, result)
            source = self.fragments.rowcol(source)
            if op.parts > 1 or partition.overhangs:
                at = self.fragments.at_rowcol(partition)
            if src.rank == 2 and op.dim == 0:
                source, at = f"{words.COLROW}({source})", f"{words.COLROW}({at})"
            rows_at = at
        kind = words.REDUCTIONS[op.kind.value]
        kind = f"{words.OR_NAN}<{kind}>" if op.keeps_nan else kind
        among = [kind, sharing(layout, op.dim, thread_local=op.thread_local)]
        arguments = [source, self.printer.names(dst.name)]
        if op.parts > 1:
            among += [str(kept)] * (kept == 1)
            arguments += [self.printer.names(f"{dst.name}_workspace"), rows_at]
        arguments += [f"{words.WITHIN}({at}, {partition.shape})"] * partition.overhangs
        name = words.ACCUMULATE_ROWS if op.accumulates else words.REDUCE_ROWS
        return f"{name}<{', '.join(among)}>({', '.join(arguments)});"

    def _check_reduced(self, op: ops.Reduce, layout: FragmentLayout, result: FragmentLayout) -> None:
        """Errors: T2C-E034 where the results are not those of a thread's rows or columns."""
        if op.src.rank == 2:
            is_held = isinstance(result, Slice) and slice_of(layout, (1 - op.dim,)) == result
        else:  # a thread's rows are those of the result, in the same order
            assert isinstance(layout, Blocked)
            of_rows = Blocked(layout.extents[:-1], layout.threads[:-1], 1, layout.block_threads)
            is_held = op.dim == op.src.rank - 1 and layout.threads[-1] == 1 and result == of_rows
        if not is_held:
            raise unsupported("a reduction to values that are no rows or columns of the fragment", op.source.span)


def _factor(text: str) -> str:
    """A factor of an expression."""
    return text if text.replace("_", "").isalnum() else f"({text})"


def _target(op: ops.Op) -> Buffer | None:
    """What an operation writes."""
    if isinstance(op, copy_ops.Copy | copy_ops.AtomicUpdate):
        return op.dst.buffer
    return op.buffer if isinstance(op, Store | Atomic) else None


def _operations(block: structure.Block) -> Iterator[ops.Op]:
    """All operations of a block, those that stand in loops and branches included."""
    for statement in (each for paragraph in block for each in paragraph.statements):
        yield from _of_statement(statement)


def _of_statement(statement: structure.Statement) -> Iterator[ops.Op]:
    for op in (*statement.before, *statement.first, statement.op, *statement.after):
        yield op
        for part in (getattr(op, name, ()) for name in ("loads", "body", "then", "orelse")):
            for each in part:
                inner = each.statements if isinstance(each, structure.Paragraph) else (each,)
                for statement in inner:
                    yield from _of_statement(statement)
