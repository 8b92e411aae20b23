"""A kernel's plan as CuTe: layouts, tiled copies and MMAs, and the statements over them."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tile2cu.core.dtype import BFLOAT16, FLOAT16
from tile2cu.core.expr import Expr, Load, Var, static_value, walk
from tile2cu.core.layout import MmaAccumulator
from tile2cu.core.program import Buffer, Scope
from tile2cu.core.span import Span
from tile2cu.plan import copy_ops, ops, shared, structure
from tile2cu.plan.kernel import Kernel
from tile2cu.plan.operands import TensorTile, Tile
from tile2cu.plan.registers import Fragment
from tile2cu.plan.scalar_ops import Store
from tile2cu.styles.base.claims import comment
from tile2cu.styles.base.comments import rule_line, wrapped
from tile2cu.styles.base.constants import Constants
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.grid import block_indices
from tile2cu.styles.base.layouts import described
from tile2cu.styles.base.loops import head
from tile2cu.styles.base.pipelined import pipelined
from tile2cu.styles.base.statements import Statements
from tile2cu.styles.base.view import Declaration, Section, StatementView, text_line
from tile2cu.styles.cute import vocabulary as words
from tile2cu.styles.cute.layouts import ATOMS, atom, copy_threads, tiled_mma
from tile2cu.styles.cute.support import unsupported

_TYPES = {FLOAT16.cpp: "half_t", BFLOAT16.cpp: "bfloat16_t"}
_SUPPORTED_TYPES = ("float16", "bfloat16", "float32", "int32")
_VECTOR = 16  # bytes that a copy moves at once where rows start at multiples of them


def in_cute(text: str) -> str:
    """A text with CuTe's names of element types."""
    for ours, theirs in _TYPES.items():
        text = text.replace(ours, theirs)
    return text


@dataclass
class CutePrinter(Printer):
    """Prints an element of a fragment as one of the thread's own, numbered by `own`."""

    own: str = ""

    def element(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        if buffer.scope is Scope.FRAGMENT:
            return f"{self.names(buffer.name)}({self.own})"
        if buffer.scope is Scope.GLOBAL:
            inside = ", ".join(self.index(index) for index in indices)
            return f"{words.VALUE_AT}({self.names(buffer.name)}, {inside})"
        return super().element(buffer, indices)


@dataclass(frozen=True, kw_only=True)
class CopyType:
    """A tiled copy's name, and its types in the kernel's instance for rows that start at 16 bytes, and in the other."""

    name: str
    aligned: str
    other: str


@dataclass
class CuteKernel(Statements):
    """Prints one kernel."""

    plan: Kernel
    printer: Printer
    constants: Constants
    file: str
    copies: list[CopyType] = field(default_factory=list)
    mmas: dict[str, ops.Mma] = field(default_factory=dict)  # by the accumulator
    own: dict[str, str] = field(default_factory=dict)  # names that no name of the user's is

    def __post_init__(self) -> None:
        self._check()
        for op in _operations(self.plan.body):
            if isinstance(op, ops.Mma):
                first = self.mmas.setdefault(op.c.buffer.name, op)
                if first.instruction != op.instruction:
                    raise unsupported("two kinds of MMA into one accumulator", op.source.span)

    @property
    def by_instance(self) -> bool:
        """Whether the launcher chooses one of two instances, by where rows start."""
        return any(view.by_instance for view in self.plan.tensors.views)

    def _check(self) -> None:
        """Errors: T2C-E034 for what no kernel may have."""
        plan, span = self.plan, self.plan.launch.span
        asked = {
            "a producer warp": plan.producer is not None,
            "a persistent kernel": plan.persistent is not None,
            "barriers of the user's": plan.barriers is not None,
            "workspaces of reductions": bool(plan.workspaces),
            "tiles staged for TMA": bool(plan.staging),
            "shared memory aliasing": bool(plan.overlay.parts),
            "groups of threads": plan.launch.groups > 1 or bool(plan.launch.shares),
            "clusters": bool(plan.launch.cluster),
            "an early exit": plan.early is not None,
            "random numbers": plan.registers.random,
        }
        for what, found in asked.items():
            if found:
                raise unsupported(what, span)

    def _own(self, name: str, suffix: str) -> str:
        """The name of a tile's layout or TiledMMA."""
        wish = f"{name}_{suffix}"
        return self.own[wish] if wish in self.own else self.own.setdefault(wish, self.printer.names.fresh(wish))

    # ---- declarations -------------------------------------------------------------------------------------------

    def struct(self) -> Section:
        """The shared tiles with their layouts; stages are the last mode."""
        memory = self.plan.memory
        title = f"shared memory: {memory.total:,} of {memory.limit:,} bytes per block"
        members = (each for each in memory.members if not isinstance(each, shared.Workspaces))
        return Section(rule_line(title), tuple(line for member in members for line in self._tile(member)))

    def _tile(self, member: shared.Member) -> Iterator[Declaration]:
        if not isinstance(member, shared.SharedTile):
            raise unsupported(f"a {type(member).__name__} in shared memory", self.plan.launch.span)
        tile, found = member.tile, atom(member.layout)
        if found is None:
            raise unsupported(f"the layout of {tile.name} ({member.layout})", self.plan.launch.span)
        name, extents = self.printer.names(tile.name), [f"Int<{self.printer.index(each)}>" for each in tile.shape]
        if member.stages:
            extents.append(f"Int<{self.constants.stages_of(tile.memory, member.stages)}>")
        about = f"{member.bytes:,} bytes" + (f" in {member.stages} stages" if member.stages > 1 else "")
        about += f"; {member.layout}  [{member.rule}]"
        comments = (*(wrapped(tile.comment) if tile.comment else ()), *wrapped(about))
        yield Declaration(
            f"using {self._own(name, 'layout')} = decltype(tile_to_shape({found}, {_shape(extents)}));", comments
        )
        alignment = member.layout.alignment
        element = in_cute(tile.dtype.cpp)
        yield Declaration(f"array_aligned<{element}, cosize_v<{self._own(name, 'layout')}>, {alignment}> {name};")

    def registers(self) -> Section:
        """The TiledMMA of each accumulator, and the tiled copies."""
        found = self.plan.registers
        declared = [self._mma(each) for each in self._fragments()]
        if self.copies:
            declared += self._copies()
        return Section(rule_line(f"registers: {found.count} per thread for tiles"), tuple(declared))

    def _fragments(self) -> tuple[Fragment, ...]:
        return self.plan.registers.fragments

    def _mma(self, fragment: Fragment) -> Declaration:
        layout, op = fragment.layout, self.mmas.get(fragment.tile.name)
        if not isinstance(layout, MmaAccumulator) or op is None:
            raise unsupported(f"the fragment {fragment.tile.name}, which no MMA writes", self.plan.launch.span)
        name = ATOMS.get(str(op.instruction))
        if name is None:
            raise unsupported(f"the MMA {op.instruction}", op.source.span)
        if layout.threads_of_block != self.plan.launch.threads:
            raise unsupported("an MMA by a part of the threads", op.source.span)
        if layout.cols // layout.warps.n % 16:
            raise unsupported("warps with an odd number of n8 instructions", op.source.span)
        about = wrapped(f"{described(layout)}  [{fragment.rule}]")
        type_ = tiled_mma(layout, name, op.instruction.k)
        cpp_name = self.printer.names(fragment.tile.name)
        return Declaration(f"using {self._own(cpp_name, 'mma')} = decltype({type_});", (f"of {cpp_name}:", *about))

    def _copies(self) -> Iterator[Declaration]:
        """The tiled copies; where the launcher chooses, of either instance."""
        if not self.by_instance:
            yield from (Declaration(f"using {each.name} = {each.other};") for each in self.copies)
            return
        about = "16-byte accesses where all rows are 16-byte aligned, else one element at a time"
        yield Declaration("template <class Alignment> struct Copies {", (about,))
        yield from (Declaration(f"using {each.name} = {each.other};") for each in self.copies)
        yield Declaration("};")
        yield Declaration(f"template <> struct Copies<{words.ALIGNED_ROWS}> {{")
        yield from (Declaration(f"using {each.name} = {each.aligned};") for each in self.copies)
        yield Declaration("};")

    def setup(self) -> tuple[Declaration, ...]:
        """Tensors, shared tiles and the block's indices."""
        names = self.printer.names
        declared = [self._tensor(view.tensor) for view in self.plan.tensors.views]
        for each in self.plan.shared:
            if each.tile.of is not None:
                raise unsupported(f"{each.tile.name}, a shared tile in another shape", self.plan.launch.span)
            name = names(each.tile.name)
            data = f"make_smem_ptr({words.SHARED}().{name}.data())"
            shape = ", ".join([*map(self.printer.index, each.tile.shape), *(["stage"] if each.stages else [])])
            text = f"Tensor {name} = make_tensor({data}, Shared::{self._own(name, 'layout')}{{}});  // ({shape})"
            declared.append(Declaration(text))
        declared += block_indices(self.plan.grid, self.printer)
        for let in self.plan.launch.prelude:
            value = self.printer.text(let.value, let.var.dtype)
            declared.append(Declaration(f"const {let.var.dtype.cpp} {names(let.var.name)} = {value};"))
        return tuple(declared)

    def used_copies(self) -> tuple[Declaration, ...]:
        """Names for the copies of the kernel's instance."""
        if not self.by_instance:
            return ()
        return tuple(
            Declaration(f"using {each.name} = typename Copies<Alignment>::{each.name};") for each in self.copies
        )

    def _tensor(self, tensor: Buffer) -> Declaration:
        if tensor.dtype.name not in _SUPPORTED_TYPES or tensor.of is not None:
            raise unsupported(f"the tensor {tensor.name} of {tensor.dtype}", self.plan.launch.span)
        name, shape = self.printer.names(tensor.name), [self.printer.index(each) for each in tensor.shape]
        if tensor.strides is not None:
            strides = [f"int64_t({self.printer.index(each)})" for each in tensor.strides[:-1]]
            last = static_value(tensor.strides[-1])
            if last != 1:
                raise unsupported(f"the strides of {tensor.name}", self.plan.launch.span)
        else:
            extents = [self.printer.index(each) for each in tensor.shape]
            strides = [
                " * ".join([f"int64_t({extents[dim + 1]})", *extents[dim + 2 :]]) for dim in range(tensor.rank - 1)
            ]
        layout = f"make_shape({', '.join(shape)}), make_stride({', '.join([*strides, '_1{}'])})"
        const = "" if self._is_written(tensor) else "const "
        return Declaration(f"{const}Tensor {name} = make_tensor(make_gmem_ptr({name}_data), {layout});")

    def _is_written(self, tensor: Buffer) -> bool:
        stored = (op.dst for op in _operations(self.plan.body) if isinstance(op, copy_ops.Copy))
        return any(dst.buffer is tensor for dst in stored)

    def fragments(self) -> tuple[Declaration, ...]:
        """The accumulators."""
        names, declared = self.printer.names, []
        for each in self._fragments():
            name, shape = names(each.tile.name), _shape([f"Int<{self.printer.index(e)}>" for e in each.tile.shape])
            declared.append(
                Declaration(
                    f"Tensor {name} = partition_fragment_C({self._own(name, 'mma')}{{}}, {shape});  // (V, M, N)"
                )
            )
        for other in self.plan.registers.declared:
            if not isinstance(other, Fragment):
                raise unsupported(f"the private array {other.tile.name}", self.plan.launch.span)
        return tuple(declared)

    # ---- statements ---------------------------------------------------------------------------------------------

    def view(self, op: ops.Op) -> StatementView:
        """An operation without the user's comments."""
        match op:
            case structure.PipelinedLoop(stores=(), direct=None, may_leave=False) if op.stages > 1:
                return pipelined(op, self.printer, self.constants, self.views)
            case structure.If():
                condition = {"condition": self.printer.condition(op.condition)}
                return StatementView("branch", condition, body=self.views(op.then), orelse=self.views(op.orelse))
            case structure.For(stop_changes=False):
                return StatementView("loop", head(op, self.printer), body=self.views(op.body))
            case structure.Elementwise():
                return self._elementwise(op)
            case _:
                about = tuple(comment(claim, self.printer.names) for claim in op.claims)
                return text_line(self._text(op), 0, about)

    def _text(self, op: ops.Op) -> str:
        match op:
            case ops.Fill() if op.tile.buffer.scope is Scope.FRAGMENT:
                name, value = self.printer.names(op.tile.buffer.name), static_value(op.value)
                dtype = op.tile.buffer.dtype
                return f"clear({name});" if value == 0 else f"fill({name}, {self.printer.text(op.value, dtype)});"
            case ops.ClearIf():
                return f"if ({self.printer.condition(op.condition)}) clear({self.printer.names(op.tile.buffer.name)});"
            case ops.Barrier(scope=ops.BarrierScope.PARTICIPANTS | ops.BarrierScope.BLOCK):
                return "__syncthreads();"
            case ops.Mma():
                return self._gemm(op)
            case copy_ops.Copy():
                return self._copy(op)
            case structure.Let():
                cpp = op.var.dtype.cpp
                return f"const {cpp} {self.printer.names(op.var.name)} = {self.printer.text(op.value, op.var.dtype)};"
            case _:
                raise unsupported(f"the operation {type(op).__name__}", op.source.span)

    def _gemm(self, op: ops.Mma) -> str:
        """The MMA of two shared tiles: K is contiguous, or ldmatrix transposes."""
        flags = (op.starts, op.metadata is not None, op.overwrites_if is not None, op.paced, op.priority)
        in_shared = all(tile.buffer.scope is Scope.SHARED and tile.region.whole for tile in (op.a, op.b))
        if any(flags) or not in_shared:
            raise unsupported("this form of MMA", op.source.span)
        element, c = in_cute(op.a.buffer.dtype.cpp), self.printer.names(op.c.buffer.name)
        plain, trans = (f"Copy_Atom<{name}, {element}>{{}}" for name in ("SM75_U32x4_LDSM_N", "SM75_U16x8_LDSM_T"))
        load_a, load_b = (trans if op.a.transposed else plain), (plain if op.b.transposed else trans)
        a, b = self._whole(op.a.buffer), self._whole(op.b.buffer)
        a = f"{words.SWAP_MODES}({a})" if op.a.transposed else a
        b = b if op.b.transposed else f"{words.SWAP_MODES}({b})"
        first = f"clear({c});\n" if op.overwrites else ""
        return f"{first}{words.GEMM}({self._own(c, 'mma')}{{}}, {load_a}, {load_b}, {a}, {b}, {c});"

    def _whole(self, tile: Buffer) -> str:
        """A shared tile, of its stage where it has several."""
        name, stage = self.printer.names(tile.name), self.printer.stages.get(tile.name)
        return f"{name}({', '.join(['_'] * tile.rank)}, {stage})" if stage else name

    def _copy(self, op: copy_ops.Copy) -> str:
        src, dst = op.src, op.dst
        if op.evict or op.streaming is not None:
            raise unsupported("a cache policy", op.source.span)
        if isinstance(src, TensorTile) and isinstance(dst, Tile) and dst.buffer.scope is Scope.SHARED:
            return self._load(op, src, dst)
        if isinstance(dst, TensorTile) and isinstance(src, Tile) and src.buffer.scope is Scope.FRAGMENT:
            return self._store(op, src, dst)
        raise unsupported(
            "a copy other than from a tensor to shared memory, or from a fragment to a tensor", op.source.span
        )

    def _load(self, op: copy_ops.Copy, src: TensorTile, dst: Tile) -> str:
        tile, span = dst.buffer, op.source.span
        if tile.rank != 2 or not dst.region.whole or dst.transposed or tile.dtype != src.buffer.dtype:
            raise unsupported("a copy that converts, transposes, or loads a part of a shared tile", span)
        rows, cols = (int(extent) for extent in tile.static_shape)
        vector = _VECTOR // tile.dtype.bytes
        element, threads = in_cute(tile.dtype.cpp), self.plan.launch.threads
        wide, narrow = copy_threads(rows, cols, vector, threads), copy_threads(rows, cols, 1, threads)
        if wide is None or narrow is None:
            raise unsupported(f"a copy of {rows} x {cols} elements by {threads} threads", span)
        asynchronous = op.mechanism is copy_ops.CopyMechanism.CP_ASYNC
        atom_ = "SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t>" if asynchronous else "UniversalCopy<uint128_t>"
        name = self._add_copy(
            f"{self.printer.names(tile.name)}_copy",
            f"decltype(make_tiled_copy(Copy_Atom<{atom_}, {element}>{{}}, {wide}))",
            f"decltype(make_tiled_copy(Copy_Atom<UniversalCopy<{element}>, {element}>{{}}, {narrow}))",
            src,
            vector,
        )
        tensor, start = self._place(src, span)
        return f"{words.COPY_TILE}({name}{{}}, {tensor}, {start}, {self._whole(tile)});"

    def _store(self, op: copy_ops.Copy, src: Tile, dst: TensorTile) -> str:
        tile, out = src.buffer, dst.buffer.dtype
        if src.transposed or not src.region.whole or tile.rank != 2:
            raise unsupported("a store of a part of a fragment, or of its transpose", op.source.span)
        name, element = self.printer.names(tile.name), in_cute(out.cpp)
        if out != tile.dtype and out.bits != 16:
            raise unsupported(f"a store that converts {tile.dtype} to {out}", op.source.span)
        pair = {2: "uint32_t", 4: "uint64_t"}[out.bytes]
        mma = self._own(name, "mma")
        copy, other = (
            f"decltype(make_tiled_copy_C(Copy_Atom<UniversalCopy<{unit}>, {element}>{{}}, {mma}{{}}))"
            for unit in (pair, element)
        )
        copy = self._add_copy(f"{self.printer.names(dst.buffer.name)}_store", copy, other, dst, 2)
        value = name if out == tile.dtype else f"{words.CONVERTED}<{element}>({name})"
        tensor, start = self._place(dst, op.source.span)
        shape = _shape([f"Int<{self.printer.index(each)}>" for each in tile.shape])
        return f"{words.STORE_TILE}({copy}{{}}, {value}, {tensor}, {start}, {shape});"

    def _add_copy(self, wish: str, aligned: str, other: str, tile: TensorTile, vector: int) -> str:
        """A name for a tiled copy: in one instance of the kernel, or in the only one, it moves a vector at once."""
        view = next(each for each in self.plan.tensors.views if each.tensor is tile.buffer)
        starts_whole = self.printer.bounds.multiple_of(tile.region.ranges[-1].start) % vector == 0
        row = static_value(tile.buffer.shape[-1])
        dense = tile.buffer.strides is None
        always = dense and view.alignment >= _VECTOR and row is not None and int(row) % vector == 0
        if not starts_whole or not (always or (dense and view.by_instance)):
            aligned = other
        elif always:
            other = aligned
        found = next((each for each in self.copies if (each.aligned, each.other) == (aligned, other)), None)
        if found is None:
            found = CopyType(name=self.printer.names.fresh(wish), aligned=aligned, other=other)
            self.copies.append(found)
        return found.name

    def _place(self, tile: TensorTile, span: Span) -> tuple[str, str]:
        """The tensor, or its slice where dimensions are fixed, and the coordinate at which the tile starts."""
        if any(end is not None for end in tile.ends) or len(tile.along) != 2:
            raise unsupported("a box of other than two dimensions, or that ends before its tensor", span)
        if tile.along[-1] != tile.buffer.rank - 1:
            raise unsupported("a box that does not run along the tensor's last dimension", span)
        view = next(each for each in self.plan.tensors.views if each.tensor is tile.buffer)
        for dim, part in enumerate(tile.region.ranges):
            low = self.printer.bounds.interval(part.start).low
            if low is None or low < 0 or (dim not in tile.along and view.checked[dim]):
                raise unsupported(f"a box of {tile.buffer.name} that may begin outside of it", span)
        starts = [self.printer.index(part.start) for part in tile.region.ranges]
        tensor = self.printer.names(tile.buffer.name)
        if len(starts) > 2:
            inside = ["_" if dim in tile.along else start for dim, start in enumerate(starts)]
            tensor = f"{tensor}({', '.join(inside)})"
        return tensor, f"make_coord({', '.join(starts[dim] for dim in tile.along)})"

    def _elementwise(self, op: structure.Elementwise) -> StatementView:
        """A loop over an accumulator's own elements."""
        span, indices = op.source.span, tuple(op.vars)
        stores = [each.op for each in op.body]
        loops = [each for each in self._fragments() if each.layout == op.layout]
        if not loops or op.vector > 1 or any(not isinstance(each, Store) for each in stores):
            raise unsupported("an elementwise loop over other than accumulators", span)
        names, printer = self.printer.names, self.printer
        own = names.fresh("e")
        cute = CutePrinter(**{key: getattr(printer, key) for key in printer.__dataclass_fields__}, own=own)
        lines, of = [], names(loops[0].tile.name)
        for store in stores:
            assert isinstance(store, Store)
            self._check_elements(store, indices, loops, span)
            value = cute.text(store.value, store.buffer.dtype)
            lines.append(f"{cute.element(store.buffer, store.indices)} {store.operator}= {value};")
        opening = [f"CUTE_UNROLL\nfor (int {own} = 0; {own} < size({of}); ++{own}) {{"]
        if any(self._reads_index(store, indices) for store in stores):
            shape = _shape([f"Int<{printer.index(each)}>" for each in op.extents])
            at = names.fresh(f"{of}_at")
            slice_ = f"{self._own(of, 'mma')}{{}}.get_slice(threadIdx.x)"
            opening.insert(0, f"const Tensor {at} = {slice_}.partition_C(make_identity_tensor({shape}));")
            parts = ", ".join(f"{names(var.name)} = get<{dim}>({at}({own}))" for dim, var in enumerate(indices))
            opening.append(f"const int {parts};")
        about = tuple(comment(claim, names) for claim in op.claims)
        return text_line("\n".join([*opening, *lines, "}"]), 0, about)

    def _check_elements(self, store: Store, indices: tuple[Var, ...], same: list[Fragment], span: Span) -> None:
        """Errors: T2C-E034 where a loop reads or writes other than the thread's own elements of 32 bits."""
        loads = [part for part in walk(store.value) if isinstance(part, Load)]
        for buffer, at in ((store.buffer, store.indices), *((load.buffer, load.indices) for load in loads)):
            assert isinstance(buffer, Buffer)
            is_own = any(each.tile is buffer for each in same) and tuple(at) == indices
            lows = [self.printer.bounds.interval(index).low for index in at]
            is_inside = all(low is not None and low >= 0 for low in lows)  # the upper ends are asked
            is_read = buffer.scope is Scope.GLOBAL and buffer is not store.buffer and is_inside
            if not (is_own or is_read) or buffer.dtype.bits != 32:
                raise unsupported(f"{buffer.name} in an elementwise loop over an accumulator", span)

    def _reads_index(self, store: ops.Op, indices: tuple[Var, ...]) -> bool:
        assert isinstance(store, Store)
        own = [part for part in walk(store.value) if isinstance(part, Load) and tuple(part.indices) == indices]
        return sum(part in indices for part in walk(store.value)) > len(own) * len(indices)


def _shape(extents: list[str]) -> str:
    return f"Shape<{', '.join(extents)}>{{}}"


def _operations(block: structure.Block) -> Iterator[ops.Op]:
    """All operations of a block, those that stand in loops and branches included."""
    for statement in (each for paragraph in block for each in paragraph.statements):
        for op in (*statement.before, *statement.first, statement.op, *statement.after):
            yield op
            inner = [getattr(op, name, ()) for name in ("loads", "body", "then", "orelse")]
            for part in inner:
                if part and isinstance(part[0], structure.Paragraph):
                    yield from _operations(part)
