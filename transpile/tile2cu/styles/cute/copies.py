"""Copies of tiles: by tiled copies between memories, and between memory and fragments."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from tile2cu.core.dtype import BOOL
from tile2cu.core.expr import Expr, static_value
from tile2cu.core.layout import Blocked, FragmentLayout, Replicated, SharedLayout, Slice, WgmmaAccumulator
from tile2cu.core.program import Buffer, Copy, Reduction, Scope
from tile2cu.core.record import Record
from tile2cu.core.span import Span
from tile2cu.plan import copy_ops, ops
from tile2cu.plan.kernel import Kernel
from tile2cu.plan.operands import Operand, TensorTile, Tile
from tile2cu.styles.cute import vocabulary as words
from tile2cu.styles.cute.expressions import CutePrinter
from tile2cu.styles.cute.fragments import ACCUMULATORS, Fragments, Partition
from tile2cu.styles.cute.layouts import adds_up, copy_threads, is_stacked, threads_and_values
from tile2cu.styles.cute.support import unsupported
from tile2cu.styles.cute.types import VECTOR, WORD, access, in_cute, is_half

ByThreads = (
    copy_ops.Copy | copy_ops.CopyToBlock | copy_ops.AtomicUpdate | copy_ops.LoadRegisters | copy_ops.StoreRegisters
)


class CopyType(Record, frozen=True, kw_only=True):
    """A tiled copy's name, and its types in the kernel's instances: for rows that start at multiples of 16 bytes, of 4
    bytes, which not all kernels have, and others.
    """

    name: str
    aligned: str
    other: str
    by_words: str
    packs: bool = False  # whether the other one stores a thread's neighbours to shared memory together


class Place(Record, frozen=True, kw_only=True):
    """A box of a tensor or a shared tile: the tensor's text and the coordinate at which the box starts."""

    buffer: Buffer
    tensor: str
    start: tuple[Expr, ...]
    start_text: str
    contiguous: bool  # along its last dimension

    @property
    def arguments(self) -> str:
        return f"{self.tensor}, {self.start_text}"


class Waiting(Record, frozen=True, kw_only=True):
    """The registers that hold a vector before it is stored to shared memory, and the tiled copy that moves it."""

    name: str
    copy: str
    shape: str
    element: str

    @property
    def declaration(self) -> str:
        """The fragment."""
        return f"Tensor {self.name} = {words.PARTITION_FRAGMENT}<{self.element}>({self.copy}{{}}, {self.shape});"


@dataclass
class Copies:
    """Prints copies. `types` are the tiled copies that it decided on.

    `threads` is the template argument with the number of threads that call: a copy that all of them share needs no test
    of their index. It is empty in kernels with MMAs, some of which are slower without the test (docs/lab/cute.md).
    """

    plan: Kernel
    printer: CutePrinter
    fragments: Fragments
    threads: str = ""
    types: list[CopyType] = field(default_factory=list)
    registers: dict[int, "Waiting"] = field(default_factory=dict)  # by the statement of the copy

    def by_threads(self, op: ByThreads) -> str:
        """A copy, the half of one, or an atomic update. Errors: T2C-E034."""
        match op:
            case copy_ops.Copy():
                return self.text(op)
            case copy_ops.CopyToBlock():
                return self.to_block(op)
            case copy_ops.AtomicUpdate():
                return self.add(op)
            case copy_ops.LoadRegisters():
                return self.load_registers(op)
            case copy_ops.StoreRegisters():
                return self.store_registers(op)

    def text(self, op: copy_ops.Copy) -> str:
        """A copy. Errors: T2C-E034 for what no tiled copy does."""
        src, dst, span = op.src, op.dst, op.source.span
        scopes = (src.buffer.scope, dst.buffer.scope)
        if self.plan.launch.groups > 1 and Scope.FRAGMENT not in scopes:
            raise unsupported("a copy between memories by a group of threads", span)
        if scopes == (Scope.FRAGMENT, Scope.FRAGMENT):
            return self._between_fragments(src, dst, span)
        if scopes == (Scope.GLOBAL, Scope.SHARED):
            return self._to_shared(op, src, dst)
        if Scope.FRAGMENT not in scopes:
            return self._from_shared(src, dst, span)
        fragment, memory = (dst, src) if scopes[1] is Scope.FRAGMENT else (src, dst)
        evict = op.evict if self.evicts(op) else ""
        return self._fragment(fragment, memory, loads=fragment is dst, span=span, evict=evict)

    def evicts(self, op: ops.Op) -> bool:
        """Whether a copy loads with the user's cache policy, for which only vectors of 16 bytes have an operation."""
        if not isinstance(op, copy_ops.Copy) or not op.evict or op.dst.buffer.scope is not Scope.FRAGMENT:
            return False
        layout, dtype = self.fragments.layout(op.dst.buffer), op.src.buffer.dtype
        if not isinstance(layout, Blocked):
            return False
        return self.fragments.partition(layout, op.source.span).vector * dtype.bytes >= VECTOR

    def streams(self, op: ops.Op) -> bool:
        """Whether a copy is a cp.async of data that is evicted first; narrow ones have no hint."""
        if not isinstance(op, copy_ops.Copy) or op.streaming is None:
            return False
        return op.mechanism is copy_ops.CopyMechanism.CP_ASYNC and self.asynchronous(op) == VECTOR

    def asynchronous(self, op: copy_ops.Copy) -> int:
        """The bytes of a copy's cp.async, in the instance of the kernel where they are most; 0: it has none."""
        tile, tensor, place = op.dst.buffer, op.src.buffer, self.place(op.src, op.source.span)
        extents, vector = tuple(int(extent) for extent in tile.static_shape), max(1, VECTOR // tensor.dtype.bytes)
        if self._has_vectors(tile, extents, vector) and any(self._starts_of_rows(place, vector)):
            return VECTOR
        return WORD if self._by_words(tensor, place, extents)[0] else 0

    def _has_vectors(self, tile: Buffer, extents: tuple[int, ...], vector: int) -> bool:
        """Whether vectors divide a shared tile among the threads, and are aligned in it."""
        return (
            copy_threads(extents, vector, self.plan.launch.threads) is not None and self._row_bytes(tile) % VECTOR == 0
        )

    def _between_fragments(self, src: Operand, dst: Operand, span: Span) -> str:
        if self._whole(src, span) != self._whole(dst, span):
            raise unsupported("a copy between fragments of different layouts", span)
        names = f"{self.printer.names(src.buffer.name)}, {self.printer.names(dst.buffer.name)}"
        return f"copy({names});" if src.buffer.dtype == dst.buffer.dtype else f"{words.CONVERT}({names});"

    def _whole(self, tile: Operand, span: Span, *, transposed: bool = False) -> object:
        """The layout of a fragment, all of which is copied."""
        if not isinstance(tile, Tile) or tile.transposed != transposed or not tile.region.whole:
            raise unsupported("a copy of a part of a fragment, or of its transpose", span)
        return self.fragments.layout(tile.buffer)

    # ---- memory -------------------------------------------------------------------------------------------------

    def _to_shared(self, op: copy_ops.Copy, src: Operand, dst: Operand) -> str:
        tile, span = dst.buffer, op.source.span
        if not isinstance(dst, Tile) or not isinstance(src, TensorTile) or dst.transposed or not dst.region.whole:
            raise unsupported("a copy that transposes, or loads a part of a shared tile", span)
        if len(src.along) != tile.rank:
            raise unsupported("a copy to a shared tile of another rank", span)
        asynchronous = op.mechanism is copy_ops.CopyMechanism.CP_ASYNC and src.buffer.dtype == tile.dtype
        place, wish = self.place(src, span), f"{self.printer.names(tile.name)}_copy"
        name = self._by_threads(wish, tile, place, src.buffer, span, asynchronous=asynchronous, packs=True)
        given = [f"{name}{{}}", place.arguments, self.tile(tile)]
        if not self.streams(op):
            return f"{words.COPY_TILE}{self._arguments(src)}({', '.join(given)});"
        if op.streaming:
            given.append(" && ".join(f"{self.printer.index(extent)} == 1" for extent in op.streaming))
        return f"{words.COPY_TILE_ONCE}{self._arguments(src)}({', '.join(given)});"

    def _arguments(self, src: TensorTile) -> str:
        """The template arguments of a copy to shared memory: a 1-D tensor may end within a vector, rows never."""
        return self.threads if src.buffer.rank > 1 else f"<{self.threads[1:-1] or 0}, {words.ENDS_WITHIN}>"

    def _from_shared(self, src: Operand, dst: Operand, span: Span) -> str:
        tile = src.buffer
        if not isinstance(src, Tile) or not isinstance(dst, TensorTile) or src.transposed or not src.region.whole:
            raise unsupported("a copy between shared tiles, of a part of one, or that transposes", span)
        if len(dst.along) != tile.rank or tile.dtype != dst.buffer.dtype:
            raise unsupported("a copy from a shared tile that converts, or to another rank", span)
        place = self.place(dst, span)
        wish = f"{self.printer.names(dst.buffer.name)}_store"
        name = self._by_threads(wish, tile, place, dst.buffer, span, asynchronous=False, packs=False)
        return f"{words.STORE_TILE}({name}{{}}, {self.tile(tile)}, {place.arguments});"

    def to_block(self, op: copy_ops.CopyToBlock) -> str:
        """A copy of a shared tile, or of a part, to the shared memory of another block of the cluster."""
        src, dst, span = op.src, op.dst, op.source.span
        if op.arrives_at is not None or not (isinstance(src, Tile) and isinstance(dst, Tile)):
            raise unsupported("a copy to another block that arrives at a barrier", span)
        extents = tuple(int(static_value(part.extent) or 0) for part in src.region.ranges)
        same = src.buffer.dtype == dst.buffer.dtype and src.buffer.rank == dst.buffer.rank
        if not same or not all(extents) or len(extents) != src.buffer.rank:
            raise unsupported("a copy to another block that converts, or to another rank", span)
        element, vector = in_cute(dst.buffer.dtype.cpp), max(1, VECTOR // dst.buffer.dtype.bytes)
        places = self.place(src, span), self.place(dst, span)
        by_vectors = all(self._starts_of_rows(place, vector)[0] for place in places)
        threads = copy_threads(extents, vector, self.plan.launch.threads) if by_vectors else None
        unit = access(vector, dst.buffer.dtype) if threads is not None else element
        threads = threads or copy_threads(extents, 1, self.plan.launch.threads)
        copy = f"decltype(make_tiled_copy(Copy_Atom<UniversalCopy<{unit}>, {element}>{{}}, {threads}))"
        name = self._named(f"{self.printer.names(dst.buffer.name)}_copy", copy, copy)
        shape = self.fragments.shape(tuple(part.extent for part in src.region.ranges))
        given = [f"{name}{{}}", self.printer.index(op.block), *(place.arguments for place in places), shape]
        return f"{words.COPY_TO_BLOCK}({', '.join(given)});"

    def _by_threads(
        self, wish: str, tile: Buffer, place: Place, tensor: Buffer, span: Span, *, asynchronous: bool, packs: bool
    ) -> str:
        """A tiled copy between a tensor and a shared tile, in vectors along the rows of both.

        Single elements are loaded to vectors of the tile, if it `packs` them.
        """
        if BOOL in (tensor.dtype, tile.dtype):  # of which CuTe's copies take elements for single bits
            raise unsupported("a copy of bool", span)
        element, threads = in_cute(tensor.dtype.cpp), self.plan.launch.threads
        extents = tuple(int(extent) for extent in tile.static_shape)
        vector = max(1, VECTOR // max(tensor.dtype.bytes, tile.dtype.bytes))
        wide, narrow = copy_threads(extents, vector, threads), copy_threads(extents, 1, threads)
        assert narrow is not None
        unit, by_vectors = access(vector, tensor.dtype), self._has_vectors(tile, extents, vector)
        atom = "SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t>" if asynchronous else f"UniversalCopy<{unit}>"
        parts = wide if packs and by_vectors else narrow
        other = f"decltype(make_tiled_copy(Copy_Atom<UniversalCopy<{element}>, {element}>{{}}, {parts}))"
        aligned = f"decltype(make_tiled_copy(Copy_Atom<{atom}, {element}>{{}}, {wide}))"
        always, by_instance = self._starts_of_rows(place, vector) if by_vectors else (False, False)
        by_words, rows_of_words = self._by_words(tensor, place, extents) if asynchronous else ("", False)
        other = aligned if always else by_words if rows_of_words else other
        by_words = by_words if not always and by_words else other
        name = self._named(wish, aligned if by_instance else by_words, other, by_words)
        if packs and by_vectors:
            self.types = [replace(each, packs=True) if each.name == name else each for each in self.types]
        return name

    def _by_words(self, tensor: Buffer, place: Place, extents: tuple[int, ...]) -> tuple[str, bool]:
        """A tiled copy by cp.async of 4 bytes, of several elements, and whether rows start at words in every instance;
        empty where they do in none.
        """
        in_word = WORD // tensor.dtype.bytes
        threads = copy_threads(extents, in_word, self.plan.launch.threads) if in_word > 1 else None
        always, by_instance = self._starts_of_rows(place, in_word)
        if threads is None or not (always or by_instance):
            return "", False
        element = in_cute(tensor.dtype.cpp)
        return f"decltype(make_tiled_copy(Copy_Atom<{words.CP_ASYNC_WORD}, {element}>{{}}, {threads}))", always

    def _row_bytes(self, tile: Buffer) -> int:
        """The distance of a shared tile's rows."""
        layout = self._layout(tile)
        return layout.row_bytes + layout.padding

    def _layout(self, tile: Buffer) -> SharedLayout:
        """How a shared tile is stored."""
        return next(each.layout for each in self.plan.shared if each.tile is tile)

    def waiting(self, op: Copy) -> Waiting:
        """The registers of a copy whose vector is loaded some time before it is stored."""
        if id(op) not in self.registers:
            tile, source = op.dst.buffer, op.src.buffer.dtype
            if tile.rank != 1 or tile.scope is not Scope.SHARED or op.transposed:
                raise unsupported("a tile that is staged in registers for shared memory", op.span)
            extents = tuple(int(extent) for extent in tile.static_shape)
            threads, element = copy_threads(extents, 1, self.plan.launch.threads), in_cute(source.cpp)
            copy = f"decltype(make_tiled_copy(Copy_Atom<UniversalCopy<{element}>, {element}>{{}}, {threads}))"
            name = self.printer.names(tile.name)
            self.registers[id(op)] = Waiting(
                name=self.printer.names.fresh(f"{name}_next"),
                copy=self._named(f"{name}_copy", copy, copy),
                shape=self.fragments.shape(tile.shape),
                element=element,
            )
        return self.registers[id(op)]

    def load_registers(self, op: copy_ops.LoadRegisters) -> str:
        """The first half of such a copy."""
        assert isinstance(op.source, Copy)
        found, place = self.waiting(op.source), self.place(op.src, op.source.span)
        if len(place.start) != 1:
            raise unsupported("a copy from a box of another rank", op.source.span)
        return f"{words.LOAD_TILE}({found.copy}{{}}, {place.arguments}, {found.shape}, {found.name});"

    def store_registers(self, op: copy_ops.StoreRegisters) -> str:
        """The second half."""
        assert isinstance(op.source, Copy)
        found, tile = self.waiting(op.source), op.dst.buffer
        value = found.name
        if op.source.src.buffer.dtype != tile.dtype:
            value = f"{words.CONVERTED}<{in_cute(tile.dtype.cpp)}>({value})"
        place = self.place(op.dst, op.source.span)
        return f"{words.STORE_TILE}({found.copy}{{}}, {value}, {place.arguments}, {found.shape});"

    # ---- fragments ----------------------------------------------------------------------------------------------

    def add(self, op: copy_ops.AtomicUpdate) -> str:
        """A fragment or a shared tile, added to a box of a tensor element by element."""
        src, dst, span = op.src, op.dst, op.source.span
        if src.buffer.scope not in (Scope.FRAGMENT, Scope.SHARED) or dst.buffer.scope is not Scope.GLOBAL:
            raise unsupported("an atomic update other than of a tensor by a tile", span)
        types = {src.buffer.dtype.name, dst.buffer.dtype.name}
        if op.kind is not Reduction.SUM or types not in ({"float32"}, {"int32"}):
            raise unsupported("an atomic update other than a sum of 32 bits", span)
        if src.buffer.scope is Scope.SHARED:
            return self._add_shared(src, dst, span)
        layout, place = self._whole(src, span), self.place(dst, span)
        if not isinstance(layout, ACCUMULATORS | Blocked) or layout.replicas > 1:
            raise unsupported("an atomic update by values that several threads hold", span)
        partition, name = self.fragments.partition(layout, span), self.printer.names(src.buffer.name)
        if len(place.start) != src.buffer.rank:
            raise unsupported("an atomic update of a box of another rank", span)
        call = f"({name}, {self.fragments.at(partition)}, {place.arguments}, {partition.shape});"
        neighbours = min(partition.vector, VECTOR // dst.buffer.dtype.bytes)
        if neighbours < 2 or dst.buffer.dtype.name != "float32":
            return f"{words.ADD_TILE}{call}"
        always, _ = self._starts_of_rows(place, neighbours)
        ends = isinstance(dst, TensorTile) and any(end is not None for end in dst.ends)
        known = always and dst.buffer.rank > 1 and not ends
        return f"{words.ADD_TILE if known else words.ADD_TILE_BY_ROWS}<{neighbours}>{call}"

    def _add_shared(self, src: Operand, dst: Operand, span: Span) -> str:
        """A shared tile, added one element at a time: neighbouring threads add to neighbours of a row."""
        if not isinstance(src, Tile) or src.transposed or not src.region.whole:
            raise unsupported("an atomic update by a part of a shared tile, or by its transpose", span)
        place, tile = self.place(dst, span), src.buffer
        if len(place.start) != tile.rank:
            raise unsupported("an atomic update of a box of another rank", span)
        extents = tuple(int(extent) for extent in tile.static_shape)
        threads, element = copy_threads(extents, 1, self.plan.launch.threads), in_cute(tile.dtype.cpp)
        copy = f"decltype(make_tiled_copy(Copy_Atom<UniversalCopy<{element}>, {element}>{{}}, {threads}))"
        name = self._named(f"{self.printer.names(tile.name)}_add", copy, copy)
        return f"{words.ADD_TILE}({name}{{}}, {self.tile(tile)}, {place.arguments});"

    def _fragment(self, fragment: Operand, memory: Operand, *, loads: bool, span: Span, evict: str = "") -> str:
        transposed = isinstance(fragment, Tile) and fragment.transposed and not loads
        layout, tile = self._whole(fragment, span, transposed=transposed), fragment.buffer
        if transposed and not isinstance(layout, ACCUMULATORS | Blocked):
            raise unsupported("a copy of the transpose of rows", span)
        if isinstance(layout, Replicated):
            return self._of_each_thread(fragment, memory, loads=loads, span=span)
        if isinstance(layout, Slice):
            return self._of_rows(layout, fragment, memory, loads=loads, span=span)
        assert isinstance(layout, ACCUMULATORS | Blocked)
        if memory.buffer.dtype == BOOL:
            raise unsupported("a copy of bool", span)
        if loads and self._by_ldmatrix(layout, fragment, memory):
            partition = self.fragments.partition(layout, span)
            source, kind = self.tile(memory.buffer), "SM75_U32x4_LDSM_N"
            if isinstance(memory, Tile) and memory.transposed:
                source, kind = f"{words.SWAP_MODES}({source})", "SM75_U16x8_LDSM_T"
            atom = f"Copy_Atom<{kind}, {in_cute(memory.buffer.dtype.cpp)}>{{}}"
            arguments = [atom, f"{partition.name}{{}}", source, self.printer.names(tile.name)]
            return f"{words.LOAD_OPERAND_A}({', '.join(arguments)});"
        place, partition = self.place(memory, span), self.fragments.partition(layout, span)
        place = self._transposed(place) if transposed else place
        if len(place.start) != tile.rank:
            raise unsupported("a copy between a fragment and a box of another rank", span)
        copy = self.of_partition(partition, place, stores=not loads, evict=evict)
        name, element = self.printer.names(tile.name), in_cute(memory.buffer.dtype.cpp)
        self.check_conversion(*((memory, fragment) if loads else (fragment, memory)), span)
        if loads:
            return f"{words.LOAD_TILE}({copy}{{}}, {place.arguments}, {partition.shape}, {name});"
        value = name if memory.buffer.dtype == tile.dtype else f"{words.CONVERTED}<{element}>({name})"
        return f"{words.STORE_TILE}({copy}{{}}, {value}, {place.arguments}, {partition.shape});"

    def _by_ldmatrix(self, layout: FragmentLayout, fragment: Operand, memory: Operand) -> bool:
        """Whether a shared tile is read as an operand of wgmma."""
        shared = isinstance(memory, Tile) and memory.buffer.scope is Scope.SHARED and memory.region.whole
        of_two_bytes = memory.buffer.dtype.bytes == 2 and (
            memory.buffer.dtype == fragment.buffer.dtype
            or (is_half(memory.buffer.dtype) and fragment.buffer.dtype.name == "float32")
        )
        return shared and of_two_bytes and isinstance(layout, WgmmaAccumulator) and layout.cols % 16 == 0

    def _of_rows(self, layout: Slice, fragment: Operand, memory: Operand, *, loads: bool, span: Span) -> str:
        """The values of rows or columns, one by one; of those that hold one the thread at the row's start stores it."""
        place, (kept,) = self.place(memory, span), layout.kept
        if len(place.start) != 1:
            raise unsupported("a copy of the values of rows from or to a box of another rank", span)
        self.check_conversion(*((memory, fragment) if loads else (fragment, memory)), span)
        partition, e = self.fragments.partition(layout, span), self.fragments.counter("e")
        name, own = self.printer.names(fragment.buffer.name), self.fragments.at_rowcol(partition)
        at = f"{own}({e}, 0)" if kept == 0 else f"{own}(0, {e})"
        (start,) = place.start
        if loads:
            vector = self.neighbours(partition, place) if kept else 1
            form = f"{kept}, {vector}" if vector > 1 else kept
            arguments = f"{place.tensor}, {self.printer.coordinate(start)}, {own}, {name}"
            return f"{words.LOAD_VALUES}<{form}>({arguments});"
        index = f"get<{kept}>({at})"
        if static_value(start) != 0:
            index = self.printer.behind(start, index, max(fragment.buffer.static_shape))
        loop = f"CUTE_UNROLL\nfor (int {e} = 0; {e} < size({name}); ++{e}) {{\n"
        part = f"{words.TAKES_PART}({partition.name}{{}}) && " if partition.layout.replicas > 1 else ""
        if partition.overhangs:
            part += f"get<{kept}>({at}) < {self.printer.index(fragment.buffer.shape[0])} && "
        asked = f"{part}get<{1 - kept}>({at}) == 0 && {words.INSIDE}(make_coord({index}), shape({place.tensor}))"
        value = self._as(memory.buffer, fragment.buffer, f"{name}({e})")
        return f"{loop}if ({asked}) {place.tensor}({index}) = {value};\n}}"

    def neighbours(self, partition: Partition, place: Place) -> int:
        """How many values of a thread's columns are neighbours that one load has, always."""
        extent = static_value(place.buffer.shape[-1])
        vector = min(partition.vector, VECTOR // place.buffer.dtype.bytes)
        if vector < 2 or extent is None or int(extent) % vector or partition.overhangs:
            return 1
        always, _ = self._starts_of_rows(place, vector)
        return vector if always else 1

    def _of_each_thread(self, fragment: Operand, memory: Operand, *, loads: bool, span: Span) -> str:
        """A fragment that every thread holds: each loads all of it, one stores it."""
        place, name, e = self.place(memory, span), self.printer.names(fragment.buffer.name), self.fragments.counter("e")
        if len(place.start) != 1 or fragment.buffer.rank != 1:
            raise unsupported(
                "a copy between memory and a fragment that every thread holds, of several dimensions", span
            )
        self.check_conversion(*((memory, fragment) if loads else (fragment, memory)), span)
        (start,) = place.start
        index = e if static_value(start) == 0 else f"{self.printer.index(start)} + {e}"
        loop = f"CUTE_UNROLL\nfor (int {e} = 0; {e} < size({name}); ++{e}) {{\n"
        if loads:
            value = self._as(fragment.buffer, memory.buffer, f"{words.VALUE_AT}({place.tensor}, {index})")
            return f"{loop}{name}({e}) = {value};\n}}"
        value = self._as(memory.buffer, fragment.buffer, f"{name}({e})")
        asked = f"threadIdx.x == 0 && {words.INSIDE}(make_coord({index}), shape({place.tensor}))"
        return f"{loop}if ({asked}) {place.tensor}({index}) = {value};\n}}"

    def _as(self, to: Buffer, value: Buffer, text: str) -> str:
        """A value of one tile as another's element."""
        return text if to.dtype == value.dtype else f"{in_cute(to.dtype.cpp)}({text})"

    def check_conversion(self, src: Operand, dst: Operand, span: Span) -> None:
        """Errors: T2C-E034 where the conversion is none that CUTLASS's types do as C++ does."""
        types = {src.buffer.dtype, dst.buffer.dtype}
        if len(types) > 1 and not all(is_half(each) or each.name == "float32" for each in types):
            raise unsupported(f"a copy that converts {src.buffer.dtype} to {dst.buffer.dtype}", span)

    def of_partition(self, partition: Partition, place: Place, *, stores: bool, evict: str = "") -> str:
        """The tiled copy that moves a fragment of a partition from or to a box, perhaps with a cache policy."""
        dtype, layout = place.buffer.dtype, partition.layout
        vector = min(partition.vector, max(1, VECTOR // dtype.bytes))
        element, unit = in_cute(dtype.cpp), access(vector, dtype)
        if isinstance(layout, ACCUMULATORS):
            head, tail = "make_tiled_copy_C(", f"{partition.name}{{}})"
        else:
            head, tail = "make_tiled_copy(", f"{threads_and_values(layout)})"
        operation = words.EVICT[evict] if evict else f"UniversalCopy<{unit}>"
        aligned, other = (
            f"decltype({head}Copy_Atom<{each}, {element}>{{}}, {tail})"
            for each in (operation, f"UniversalCopy<{element}>")
        )
        role = "store" if stores else "load"
        of_tensor = f"{self.printer.names(place.buffer.name)}_{role}"
        wish = of_tensor if isinstance(layout, ACCUMULATORS) else f"{partition.of}_{evict or role}"
        return self._add(wish, aligned, other, place, vector)

    def _add(self, wish: str, aligned: str, other: str, place: Place, vector: int) -> str:
        """A name for a tiled copy: in one instance of the kernel, or in the only one, it moves a vector at once."""
        always, by_instance = self._starts_of_rows(place, vector)
        if not (always or by_instance):
            aligned = other
        elif always:
            other = aligned
        return self._named(wish, aligned, other)

    def _named(self, wish: str, aligned: str, other: str, by_words: str = "") -> str:
        """The name of a tiled copy, whose types these are."""
        of = (aligned, other, by_words or other)
        found = next((each for each in self.types if (each.aligned, each.other, each.by_words) == of), None)
        if found is None:
            name = self.printer.names.fresh(wish)
            found = CopyType(name=name, aligned=aligned, other=other, by_words=by_words or other)
            self.types.append(found)
        return found.name

    def _starts_of_rows(self, place: Place, vector: int) -> tuple[bool, bool]:
        """Whether vectors are aligned, in every instance of the kernel or in one."""
        buffer = place.buffer
        if not place.contiguous or self.printer.bounds.multiple_of(place.start[-1]) % vector:
            return False, False
        if buffer.scope is Scope.SHARED:
            return self._row_bytes(buffer) % (vector * buffer.dtype.bytes) == 0, False
        view = next(each for each in self.plan.tensors.views if each.tensor is buffer)
        row = static_value(buffer.shape[-1])
        if buffer.strides is not None:
            return False, False
        # Rows of a run-time size are as long as they are aligned: nothing pads them.
        rows = buffer.rank == 1 or row is None or int(row) % vector == 0
        width = min(VECTOR, vector * buffer.dtype.bytes)
        return rows and view.alignment >= width, view.by_instance and self.plan.tensors.instance >= width

    # ---- places -------------------------------------------------------------------------------------------------

    def plane(self, tile: Tile, span: Span) -> str:
        """One of several swizzled tiles, as a whole."""
        first, *others = tile.region.ranges
        layout = next(each.layout for each in self.plan.shared if each.tile is tile.buffer)
        whole = all(
            static_value(part.start) == 0 and part.extent == extent
            for part, extent in zip(others, tile.buffer.shape[1:], strict=True)
        )
        if not is_stacked(tile.buffer, layout) or static_value(first.extent) != 1 or not whole:
            raise unsupported("a tile of planes, or a part of a plane", span)
        return f"{self.printer.names(tile.buffer.name)}(_, _, {self.printer.index(first.start)})"

    def tile(self, tile: Buffer) -> str:
        """A shared tile, of its stage where it has several."""
        if any(each.tile is tile and is_stacked(tile, each.layout) for each in self.plan.shared):
            raise unsupported(f"several tiles of {tile.name} together", self.plan.launch.span)
        name, stage = self.printer.names(tile.name), self.printer.stages.get(tile.name)
        return f"{name}({', '.join(['_'] * tile.rank)}, {stage})" if stage else name

    def place(self, operand: Operand, span: Span) -> Place:
        """A box of a tensor, or a part of a shared tile."""
        starts = tuple(part.start for part in operand.region.ranges)
        if isinstance(operand, Tile):
            if operand.transposed:
                raise unsupported("a copy that transposes", span)
            self.check_part(operand, span)
            along = tuple(range(operand.buffer.rank))
            return self._box(operand.buffer, self.tile(operand.buffer), starts, along, (), span)
        tensor = self.printer.names(operand.buffer.name)
        return self._box(operand.buffer, tensor, starts, operand.along, operand.ends, span)

    def _box(
        self,
        buffer: Buffer,
        tensor: str,
        starts: tuple[Expr, ...],
        along: tuple[int, ...],
        ends: tuple[Expr | None, ...],
        span: Span,
    ) -> Place:
        if along != tuple(sorted(along)):
            raise unsupported("a box that runs along the tensor's dimensions in another order", span)
        texts = [self.printer.coordinate(start) for start in starts]
        for dim, end in enumerate(ends):
            if end is not None:
                tensor = f"{words.UP_TO}<{dim}>({tensor}, {self.printer.index(end)})"
        if len(along) < len(starts):
            fixed = ", ".join("_" if dim in along else text for dim, text in enumerate(texts))
            leaves = any(self._may_leave(buffer, dim, start) for dim, start in enumerate(starts) if dim not in along)
            tensor = f"{words.SLICE_OR_EMPTY}({tensor}, {fixed})" if leaves else f"{tensor}({fixed})"
        return Place(
            buffer=buffer,
            tensor=tensor,
            start=tuple(starts[dim] for dim in along),
            start_text=f"make_coord({', '.join(texts[dim] for dim in along)})",
            contiguous=along[-1] == buffer.rank - 1,
        )

    def _transposed(self, place: Place) -> Place:
        """The same box, whose columns are seen as rows."""
        first, second = map(self.printer.coordinate, place.start)
        return Place(
            buffer=place.buffer,
            tensor=f"{words.SWAP_MODES}({place.tensor})",
            start=place.start[::-1],
            start_text=f"make_coord({second}, {first})",
            contiguous=False,
        )

    def _may_leave(self, buffer: Buffer, dim: int, start: Expr) -> bool:
        """Whether an index in a fixed dimension is checked, or may be negative."""
        if buffer.scope is Scope.SHARED:
            return False
        view = next(each for each in self.plan.tensors.views if each.tensor is buffer)
        low = self.printer.bounds.interval(start).low
        return view.checked[dim] or low is None or low < 0

    def is_part(self, buffer: Buffer, starts: tuple[Expr, ...], extents: Mapping[int, Expr]) -> bool:
        """Whether CuTe addresses a part of a shared tile, of these extents by dimension, or of a tensor."""
        if buffer.scope is not Scope.SHARED:
            return True
        layout, multiple_of = self._layout(buffer), self.printer.bounds.multiple_of
        return all(
            static_value(starts[dim]) == 0
            or adds_up(layout, dim, multiple_of(starts[dim]), int(static_value(extent) or layout.extents[dim]))
            for dim, extent in extents.items()
        )

    def check_part(self, tile: Tile, span: Span) -> None:
        """Errors: T2C-E034 where CuTe does not address a part of a shared tile."""
        ranges = tile.region.ranges
        if not self.is_part(
            tile.buffer, tuple(part.start for part in ranges), {dim: part.extent for dim, part in enumerate(ranges)}
        ):
            what = f"a part of {tile.buffer.name}, swizzled, that starts at no multiple of its extents"
            raise unsupported(what, span)

    def box(self, buffer: Buffer, starts: tuple[Expr, ...], along: tuple[int, ...], span: Span) -> Place:
        """The box of an elementwise loop's elements, which starts there."""
        tensor = self.tile(buffer) if buffer.scope is Scope.SHARED else self.printer.names(buffer.name)
        return self._box(buffer, tensor, starts, along, (), span)
