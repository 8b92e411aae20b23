"""A kernel's plan as CuTe: its tensors, fragments and shared tiles, and the statements over them."""

from collections.abc import Iterator, Mapping
from functools import cached_property

from msgspec.structs import replace

from tile2cu.core.expr import Named, static_value
from tile2cu.core.instruction import MmaUnit
from tile2cu.core.layout import (
    Replicated,
)
from tile2cu.core.program import Buffer, Scope
from tile2cu.plan import copy_ops, ops, producer_ops, structure
from tile2cu.plan.claims import Claim, CpAsyncs, ElementsTogether, Evicts, Streams, TotalsOnly
from tile2cu.plan.kernel import Kernel
from tile2cu.plan.ping_pong_ops import LoadSlabs, MmaOfSlabs, PingPong
from tile2cu.plan.scalar_ops import Assign, Atomic, Declare, Store
from tile2cu.plan.traversal import operations
from tile2cu.styles.base.claims import comment, fence_comment
from tile2cu.styles.base.comments import BODY_WIDTH, listed, rule_line, wrapped
from tile2cu.styles.base.constants import Constants
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.grid import block_indices
from tile2cu.styles.base.pipelined import NOT_DISJOINT, pipelined, release_method
from tile2cu.styles.base.register_sum import with_sum
from tile2cu.styles.base.scalars import prelude_values, scalar
from tile2cu.styles.base.tensor_map import TensorMap
from tile2cu.styles.base.view import Declaration, Section, StatementView, text_line
from tile2cu.styles.base.visits import each_active, visit
from tile2cu.styles.base.vocabulary import ALIGNED
from tile2cu.styles.cute import vocabulary as words
from tile2cu.styles.cute.atomics import atomic_add
from tile2cu.styles.cute.calls import comments, invoke, started
from tile2cu.styles.cute.consumers import consume, overlapped, visits
from tile2cu.styles.cute.copies import ByThreads, Copies, CopyType
from tile2cu.styles.cute.elementwise import ElementLoop
from tile2cu.styles.cute.expressions import CutePrinter
from tile2cu.styles.cute.fragments import Fragments
from tile2cu.styles.cute.maps import ByTma, Maps
from tile2cu.styles.cute.mma import Mmas
from tile2cu.styles.cute.parts import Parts
from tile2cu.styles.cute.ping_pong import load_slabs, mma_of_slabs, ping_pong
from tile2cu.styles.cute.producer import Role
from tile2cu.styles.cute.reductions import Reductions
from tile2cu.styles.cute.shared import SharedTiles
from tile2cu.styles.cute.support import unsupported
from tile2cu.styles.cute.types import SUPPORTED, VECTOR, WORD

OfProducer = (
    producer_ops.Produce
    | producer_ops.Consume
    | producer_ops.Overlapped
    | PingPong
    | LoadSlabs
    | MmaOfSlabs
    | producer_ops.Visit
    | producer_ops.Visits
    | producer_ops.EachActive
)
OfTiles = ByThreads | structure.Elementwise | ops.Fill | ops.Mma | ops.Reduce  # partitioned from thread 0 of the block


_OF_STAGES = f"{words.STAGE_OF}: operands by the descriptors of the first stage, plus the stage's distance"


class CuteKernel(Parts):
    """Prints one kernel of `file`."""

    def __init__(
        self,
        plan: Kernel,
        printer: Printer,
        constants: Constants,
        file: str,
        maps: Mapping[int, TensorMap],
        *,
        copies_alone: bool,
    ) -> None:
        """`maps` by the id of the statement; `copies_alone`: the file's kernels copy tiles and have no MMAs.

        Errors: T2C-E034 for what no kernel may have.
        """
        checked = {view.tensor.name: view.checked for view in plan.tensors.views if any(view.checked)}
        held = plan.registers.fragments
        everywhere = frozenset(each.tile.name for each in held if isinstance(each.layout, Replicated))
        super().__init__(file, CutePrinter.of(printer, checked=checked, everywhere=everywhere))
        self.plan, self.constants = plan, constants
        self._check()
        self.mmas: dict[str, ops.Mma] = {}  # by the accumulator
        role = plan.producer
        loading = (role.prologue, role.loads, role.nested) if role is not None else ()
        self.operations = tuple(operations(loading, plan.body))
        for op in self.operations:
            if isinstance(op, ops.Mma):
                first = self.mmas.setdefault(op.c.buffer.name, op)
                if first.instruction != op.instruction:
                    raise unsupported("two kinds of MMA into one accumulator", op.source.span)
        self.fragments = Fragments(plan, self.printer, self.mmas)
        self.copies = Copies(plan, self.printer, self.fragments, "<threads>" if copies_alone else "")
        self.maps = Maps(plan, self.printer, self.fragments, self.copies, maps)
        self.by_hardware = any(isinstance(op, ByTma) or _is_of_warpgroups(op) for op in self.operations)
        self.shared = SharedTiles(plan, self.printer, constants, self.fragments, by_hardware=self.by_hardware)
        self._indices = block_indices(plan.grid, self.printer) if plan.persistent is not None else ()
        self.role = Role(plan.producer, self, self._indices) if plan.producer is not None else None
        self.mma = Mmas(self.printer, self.fragments, self.copies)
        self.reductions = Reductions(self.printer, self.fragments)
        self._stages_told = False
        self._group = 0 if plan.launch.groups == 1 else -1  # the group of threads that does what is printed

    @property
    def by_instance(self) -> bool:
        """Whether the launcher chooses one of two instances, by where rows start."""
        return any(view.by_instance for view in self.plan.tensors.views)

    def _check(self) -> None:
        plan, span = self.plan, self.plan.launch.span
        asked = {
            "a persistent kernel without a producer": plan.persistent is not None and plan.producer is None,
            "groups of threads of the same size": plan.launch.groups > 1 and not plan.launch.shares,
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
        section = Section(rule_line(title), (*self.fragments.types(), *self._copies()))
        return with_sum(section, self.plan.registers, self.printer.names)

    @property
    def _copies_by_instance(self) -> tuple[CopyType, ...]:
        types = self.copies.types if self.by_instance else []
        return tuple(each for each in types if len({each.aligned, each.other, each.by_words}) > 1)

    def _copies(self) -> Iterator[Declaration]:
        """The tiled copies; those that differ between the instances of which the launcher chooses, of either one."""
        types = self._copies_by_instance
        yield from (
            Declaration(f"using {each.name} = {each.other};") for each in self.copies.types if each not in types
        )
        if not types:
            return
        bytes_ = self.plan.tensors.instance
        about = f"accesses of up to {bytes_} bytes where all rows are {bytes_}-byte aligned; else "
        by_words = any(each.by_words != each.other for each in types)
        if by_words:
            about += (
                f"cp.async of {WORD} bytes where the rows of all tensors that it loads are {WORD}-byte aligned; else "
            )
        about += "single elements"
        if any(each.packs for each in types):
            about += f", of which {words.COPY_TILE} stores a thread's neighbours to shared memory together"
        yield Declaration("template <class Alignment> struct Copies {", tuple(wrapped(about)))
        yield from (Declaration(f"using {each.name} = {each.other};") for each in types)
        yield Declaration("};")
        if by_words:
            yield Declaration(f"template <> struct Copies<{ALIGNED}<{WORD}>> {{")
            yield from (Declaration(f"using {each.name} = {each.by_words};") for each in types)
            yield Declaration("};")
        yield Declaration(f"template <> struct Copies<{ALIGNED}<{bytes_}>> {{")
        yield from (Declaration(f"using {each.name} = {each.aligned};") for each in types)
        yield Declaration("};")

    def setup(self) -> tuple[Declaration, ...]:
        """The instance's copies, tensors, shared tiles and the block's indices."""
        declared = [
            Declaration(f"using {each.name} = typename Copies<Alignment>::{each.name};")
            for each in self._copies_by_instance
        ]
        declared += [self._tensor(view.tensor) for view in self.plan.tensors.views]
        declared += self.shared.names()
        declared += started(plan.barriers, self.printer) if (plan := self.plan).barriers is not None else ()
        declared += self.role.setup() if self.role is not None else ()
        declared += block_indices(self.plan.grid, self.printer) if self.plan.persistent is None else ()
        return (*declared, *prelude_values(self.plan.launch, self.printer))

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
        return any(_target(op) is tensor for op in self.operations)

    def tensors(self) -> tuple[Declaration, ...]:
        """The fragments, and views of them that statements use."""
        states = self.role.consumer_states() if self.role is not None else ()
        return (*self.fragments.tensors(), *states)

    def map_functions(self) -> Section:
        """The functions that make the tensor maps."""
        return self.maps.section(self.operations)

    def leading(self) -> tuple[StatementView, ...]:
        """The producer's part."""
        return self.role.views() if self.role is not None else ()

    def body(self) -> tuple[StatementView, ...]:
        """What the others do; in a persistent kernel once for each tile of work."""
        plan, role = self.plan, self.role
        done = (*self.views(plan.body), *(replace(self.view(op), line=0, gap=True) for op in plan.each_end))
        end = tuple(replace(self.view(op), gap=True) for op in plan.end)
        if plan.persistent is None or role is None:
            return (*done, *end)
        first, *others = done
        each = (*role.each_tile(), replace(first, gap=True), *others)
        return (*role.over_tiles(role.next_tile(), each), *end)

    # ---- statements ---------------------------------------------------------------------------------------------

    def view(self, op: ops.Op) -> StatementView:
        """An operation without the user's comments."""
        self.printer.span = op.source.span
        if self._group and isinstance(op, OfTiles):
            raise unsupported(f"{type(op).__name__} by other threads than the first group's", op.source.span)
        kept: dict[type[Claim], bool]
        match op:
            case structure.PipelinedLoop(stores=(), direct=None):
                with self.continuing(""):
                    return pipelined(op, self.printer, self.constants, self.views)
            case structure.OfGroup():
                return self._of_group(op)
            case structure.If() | structure.For() | structure.While():
                return self.control(op)
            case op if isinstance(op, OfProducer):
                return self._of_producer(op)
            case ops.ProxyFence() | ops.MmaWait() | structure.Invoke():
                return self._ordering(op)
            case copy_ops.StoreByInstance():
                return self._by_instance(op)
            case structure.Elementwise():
                loop = ElementLoop(op, self.printer, self.fragments, self.copies)
                text, kept = loop.lines(), {ElementsTogether: loop.by_vectors, TotalsOnly: loop.unpacked}
            case _:
                kept = {Evicts: self.copies.evicts(op), Streams: self.copies.streams(op)}
                text = self._text(op)
        left_out = tuple(claim for claim, is_kept in kept.items() if not is_kept)
        claims = (stated for each in op.claims if (stated := self._stated(each, op)) and not isinstance(each, left_out))
        said = tuple(comment(each, self.printer.names) for each in claims)
        if isinstance(op, ops.Barrier):  # clang-format leaves lines that begin with a word and a colon
            said = tuple(line for each in said for line in wrapped(each, BODY_WIDTH))
        return text_line(text, 0, (*said, *self._about_stages(op)))

    def _about_stages(self, op: ops.Op) -> tuple[str, ...]:
        """What a stage is as an operand, above the first MMA that has one."""
        if self._stages_told or not isinstance(op, ops.Mma) or not self.mma.has_stages(op):
            return ()
        self._stages_told = True
        return (_OF_STAGES,)

    def _stated(self, claim: Claim, op: ops.Op) -> Claim | None:
        """A claim about a copy as it is made: its width, and the 16 bytes that alone have a hint; None of no cp.async.

        Where instances differ only the kernel's instance decides how wide it is.
        """
        match claim:
            case CpAsyncs() if isinstance(op, copy_ops.Copy):
                width = self.copies.asynchronous(op)
                chunks = claim.chunks * claim.bytes // width if width else 0
                return replace(claim, bytes=width, chunks=chunks, by_instance=self.by_instance) if width else None
            case Streams(by=by):
                tensors = tuple(each for each in claim.tensors if each in self._streamed)
                return replace(claim, by=f"{by} of {VECTOR} bytes" if by else "", tensors=tensors)
            case _:
                return claim

    @cached_property
    def _streamed(self) -> frozenset[Buffer]:
        """The tensors of which a copy by cp.async has a hint."""
        copies = (each for each in self.operations if isinstance(each, copy_ops.Copy))
        return frozenset(each.src.buffer for each in copies if self.copies.streams(each))

    def _of_group(self, op: structure.OfGroup) -> StatementView:
        outside, self._group = self._group, op.group
        views = self.views(op.body)
        self._group = outside
        return StatementView("branch", {"condition": f"{words.GROUP}() == {op.group}"}, body=views)

    def _by_instance(self, op: copy_ops.StoreByInstance) -> StatementView:
        condition = {"condition": f"{words.TMA_CAN_ADDRESS}<Alignment>", "static": "yes"}
        above = tuple(comment(each, self.printer.names) for each in op.claims)
        by_tma = self.view(op.by_tma)
        by_tma = replace(by_tma, comments=tuple(wrapped(" ".join(by_tma.comments), BODY_WIDTH - 2)))
        return StatementView("branch", condition, 0, above, (by_tma,), (self.view(op.by_threads),))

    def _ordering(self, op: ops.ProxyFence | ops.MmaWait | structure.Invoke) -> StatementView:
        """A fence, a wait, or a call for its effect on other threads, blocks or kernels."""
        match op:
            case ops.ProxyFence():
                return text_line("cutlass::arch::fence_view_async_shared();", 0, fence_comment(op, self.printer.names))
            case ops.MmaWait():
                return self.mma.wait(op)
            case structure.Invoke():
                return text_line(invoke(op, self.printer), 0, comments(op))

    def _text(self, op: ops.Op) -> str:
        match op:
            case ops.Fill():
                return self._fill(op)
            case ops.Mma():
                return self.mma.text(op)
            case ops.Reduce():
                return self.reductions.text(op)
            case op if isinstance(op, ByTma):
                return self.maps.text(op)
            case op if isinstance(op, ByThreads):
                return self.copies.by_threads(op)
            case ops.Barrier() | producer_ops.AcquireStage() | producer_ops.AwaitStage():
                return self._synchronised(op)
            case structure.AwaitPrologue() | structure.ReleasePrologue() | structure.AwaitStaging():
                return self._awaited(op)
            case producer_ops.PrefetchNext():
                return self.prefetches[id(op.prefetch)]
            case _:
                return self._scalar(op)

    def _synchronised(self, op: ops.Barrier | producer_ops.AcquireStage | producer_ops.AwaitStage) -> str:
        """A barrier of threads, or the wait for an empty or a full stage of a tile that has barriers of its own."""
        match op:
            case ops.Barrier(scope=ops.BarrierScope.PARTICIPANTS) if self.plan.launch.groups > 1:
                raise unsupported("a barrier of a group of threads", op.source.span)
            case ops.Barrier(scope=ops.BarrierScope.PARTICIPANTS | ops.BarrierScope.BLOCK):
                return "__syncthreads();"
            case ops.Barrier(scope=ops.BarrierScope.CONSUMERS):
                return f"{words.SYNC_CONSUMERS if op.fenced else words.SYNC_READERS}<threads>();"
            case ops.Barrier(scope=ops.BarrierScope.CLUSTER):
                return "cluster_sync();"
            case ops.Barrier():
                raise unsupported(f"a barrier of {op.scope.value}", op.source.span)
        assert self.role is not None
        if isinstance(op, producer_ops.AcquireStage):
            return self.role.acquire(op.tile, publishes=op.publishes)
        tile = op.ring.tile
        return f"{self.role.barriers(tile)}.consumer_wait({self.role.state(tile)});"

    def _awaited(self, op: structure.AwaitPrologue | structure.ReleasePrologue | structure.AwaitStaging) -> str:
        match op:
            case structure.AwaitPrologue():
                tiles = listed([self.printer.names(tile.name) for tile in op.tiles])
                have = "has" if len(op.tiles) == 1 else "have"
                if op.persistent:
                    wait = "prologue_barriers.consumer_wait(prologue_stage);"
                    return f"{wait}  // until {tiles} of this tile {have} arrived"
                return f"wait_barrier(prologue_full, 0);  // until {tiles} {have} arrived"
            case structure.ReleasePrologue():
                release = release_method(waits_for_loads=op.waits_for_loads)
                return f"prologue_barriers.{release}(prologue_stage);\n++prologue_stage;"
            case structure.AwaitStaging():
                until = "before the staging tile is overwritten" if op.again else "before the block ends"
                if op.completed:
                    until = NOT_DISJOINT
                return f"{words.TMA_STORE_WAIT if op.completed else words.TMA_STORE_WAIT_READ}();  // {until}"

    def _of_producer(self, op: OfProducer) -> StatementView:
        """A loop whose tiles a producer loads, or the way there."""
        assert self.role is not None
        match op:
            case producer_ops.Visit():
                return visit(op.visiting, self)
            case producer_ops.Visits():
                return visits(op, self)
            case producer_ops.EachActive():
                return each_active(op, self)
            case producer_ops.Produce():
                return self.role.loads_of(op)
            case producer_ops.Consume():
                return consume(op, self.role, self)
            case producer_ops.Overlapped():
                return overlapped(op, self.role, self)
            case LoadSlabs():
                return load_slabs(op, self.role, self, self.maps)
            case MmaOfSlabs():
                return mma_of_slabs(op, self.role, self, self.mma)
            case PingPong():
                return ping_pong(op, self.role, self, self.mma.warpgroup())

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
            case ops.ClearIf():
                return f"if ({self.printer.condition(op.condition)}) clear({names(op.tile.buffer.name)});"
            case ops.Leave():
                first = f"{self.at_continue}\n" if op.continues and self.at_continue else ""
                return first + ("continue;" if op.continues else "break;")
            case ops.FillLocal():
                value = self.printer.text(op.value, op.buffer.dtype)
                return f"for (auto& element : {names(op.buffer.name)}) element = {value};"
            case structure.Let() | Declare() | Assign():
                return scalar(op, self.printer)
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
        asked = self.printer.inside(op.buffer, op.indices)
        return f"if ({asked}) {text}" if asked else text


def _factor(text: str) -> str:
    """A factor of an expression."""
    return text if text.replace("_", "").isalnum() else f"({text})"


def _target(op: ops.Op) -> Buffer | None:
    """What an operation writes."""
    if isinstance(op, copy_ops.Copy | copy_ops.AtomicUpdate):
        return op.dst.buffer
    return op.buffer if isinstance(op, Store | Atomic) else None


def _is_of_warpgroups(op: ops.Op) -> bool:
    return isinstance(op, ops.Mma) and op.instruction.unit is MmaUnit.WARPGROUP
