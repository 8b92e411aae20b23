"""Elementwise loops: over a thread's own elements of a tile, or over its rows and columns."""

from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field

from tile2cu.analysis.dependence import is_among, same_storage
from tile2cu.core.dtype import BOOL, FLOAT16
from tile2cu.core.expr import Binary, Expr, Load, binary, int_const, walk, walk_evaluated
from tile2cu.core.layout import Blocked, FragmentLayout, Replicated, Slice, WgmmaAccumulator, slice_of
from tile2cu.core.program import Buffer, Scope
from tile2cu.core.span import Span
from tile2cu.plan import ops, structure
from tile2cu.plan.scalar_ops import Assign, Atomic, Declare, Store
from tile2cu.styles.base.comments import BODY_WIDTH, wrapped
from tile2cu.styles.base.elements import (
    Access,
    ElementStatements,
    accesses_of,
    box_of,
    own_expressions,
    printed_expressions,
)
from tile2cu.styles.cute import vocabulary as words
from tile2cu.styles.cute.arrays import Arrays
from tile2cu.styles.cute.atomics import atomic_add
from tile2cu.styles.cute.copies import Copies, Place
from tile2cu.styles.cute.expressions import CutePrinter, Held
from tile2cu.styles.cute.fragments import Fragments, Partition
from tile2cu.styles.cute.support import unsupported
from tile2cu.styles.cute.types import COMPUTED, in_cute
from tile2cu.styles.cute.vectors import Uniform

_PAIRS_APART = 8  # columns, from a thread's two neighbours of an accumulator's row to its next ones
_MEMORY = (Scope.GLOBAL, Scope.SHARED)


@dataclass
class ElementLoop(ElementStatements):
    """Prints one loop."""

    op: structure.Elementwise
    printer: CutePrinter
    fragments: Fragments
    copies: Copies
    by_vectors: bool = False  # whether tensors are read and written a vector at a time
    unpacked: bool = False  # whether elements are in the order in which numbers of 4 bits come apart
    index: str = ""  # of an element among those of the thread
    first: str = "0"  # that of the first of its vector
    loads: list[str] = field(default_factory=list)  # of tiles of tensors to registers, before the loop
    stores: list[str] = field(default_factory=list)  # and back, behind it
    vectors: list[str] = field(default_factory=list)  # what comes before the elements of one vector
    stored: list[str] = field(default_factory=list)  # and behind them

    def lines(self) -> str:
        """The loop. Errors: T2C-E034."""
        op = self.op
        if isinstance(op.body[0].op, structure.DotsOfFour):
            return self._dots(op.body[0].op)
        accesses = list(accesses_of(op.body))
        if isinstance(op.layout, Replicated):
            return self._by_each_thread(accesses)
        partition = self.fragments.partition(op.layout, op.source.span)
        by_rows = isinstance(op.layout, Slice) or any(isinstance(self._layout(a.buffer), Slice) for a in accesses)
        counters = ("r", "c") if by_rows and len(op.vars) == 2 else ("e",)
        own = tuple(map(self.fragments.counter, counters))
        takes_vectors = self._takes_vectors(partition) and len(own) == 1
        try:
            found = self._by_vector(partition, own[0], accesses) if takes_vectors else None
            found = found or self._by_pairs(partition, accesses)
            return found or self._by_element(partition, own, accesses)
        finally:
            self.printer.places.clear()

    def _takes_vectors(self, partition: Partition) -> bool:
        """Whether a thread's elements are vectors along rows, all inside of the tile."""
        layout, vector = partition.layout, self.op.vector
        rows = isinstance(layout, Blocked) and layout.rows == 1 and not partition.overhangs
        return rows and vector >= 2 and partition.vector % vector == 0 and not isinstance(self.op.layout, Slice)

    def _by_pairs(self, partition: Partition, accesses: list[Access]) -> str | None:
        """A loop over rows and groups of columns of an accumulator of wgmma: pairs of neighbours, 8 columns apart."""
        op, layout = self.op, partition.layout
        r, c = own = (self.fragments.counter("r"), self.fragments.counter("c"))
        if not isinstance(layout, WgmmaAccumulator) or op.vector % 8 or len(op.vars) != 2:
            return None
        self.index, self.first = own[0], "0"
        with self.printer.names.noted() as read:
            self._places(accesses, partition, own)
            shared, kept, uniform = self._hoisted(op.vector // 2 * _PAIRS_APART)
            arrays = self._as_arrays(kept, uniform, op.vector, _PAIRS_APART)
        if arrays is None or self.loads or self.stores:
            self.printer.places.clear()
            self.loads.clear()
            self.stores.clear()
            return None
        self.by_vectors = True
        rows, columns = self._sizes(partition, own, accesses)
        lines = [*shared, *arrays]
        about = f"of {op.vector} elements, in pairs {_PAIRS_APART} columns apart"
        return "\n".join(
            [
                *("CUTE_UNROLL", f"for (int {r} = 0; {r} < {rows}; ++{r}) {{"),
                *("CUTE_UNROLL", f"for (int {c} = 0; {c} < {columns}; {c} += {op.vector}) {{"),
                *self._first_at(lambda: f"{self.fragments.at_rowcol(partition)}({r}, {c})", read, about),
                *(*lines, "}", "}"),
            ]
        )

    def _by_element(self, partition: Partition, own: tuple[str, ...], accesses: list[Access]) -> str:
        """A loop over all elements of the thread, or over its rows and columns."""
        op = self.op
        self.index, self.first = own[0], "0"
        self._places(accesses, partition, own)
        shared = list(self._shared_by_all(accesses))
        body = self.body(op.body)
        reads_index = any(self.reads(expr, op.vars) for expr in printed_expressions(op.body))
        touches_memory = any(a.buffer.scope in _MEMORY and a.key not in self.printer.places for a in accesses)
        sizes = self._sizes(partition, own, accesses)
        inner = list(self._indices(partition, own, reads=reads_index, memory=touches_memory))
        opening = []
        for name, size in zip(own, sizes, strict=True):
            opening += ["CUTE_UNROLL", f"for (int {name} = 0; {name} < {size}; ++{name}) {{"]
        return "\n".join([*shared, *self.loads, *opening, *inner, *body, *["}"] * len(own), *self.stores])

    def _shared_by_all(self, accesses: list[Access]) -> Iterator[str]:
        """Loads of predicated elements that all iterations read, before the loop.

        Else compilers branch on their condition around the loop's other loads, and wait for these there.
        """
        op, printer = self.op, self.printer
        named = (each.op for each in op.body)
        differ = {*op.vars, *(each.var for each in named if isinstance(each, structure.Let | Declare | Assign))}
        written = {each.buffer for each in accesses if each.writes}
        for load in dict.fromkeys(part for each in op.body for part in _loads(each.op)):
            buffer, indices = load.buffer, load.indices
            if not isinstance(buffer, Buffer) or is_among(buffer, written) or (buffer.name, indices) in printer.places:
                continue
            read = [part for index in indices for part in walk(index)]
            if any(isinstance(part, Load) or part in differ for part in read) or not printer.inside(buffer, indices):
                continue
            value = printer.names.fresh(f"{printer.names(buffer.name)}_value")
            yield f"const {in_cute(buffer.dtype.cpp)} {value} = {printer.element(buffer, indices)};  // of all elements"
            printer.places[buffer.name, indices] = Held(value)

    # ---- vectors ------------------------------------------------------------------------------------------------

    def _by_vector(self, partition: Partition, own: str, accesses: list[Access]) -> str | None:
        """A loop over vectors, and one over the elements of each; None where elements alone do."""
        op, printer, v = self.op, self.printer, self.fragments.counter("v")
        self.index, self.first = f"{v} + {own}", v
        with printer.names.noted() as read:
            self._places(accesses, partition, (own,))
            shared, kept, uniform = self._hoisted(op.vector)
        with printer.names.noted() as read_in_each:
            each = arrays = self._as_arrays(kept, uniform, op.vector)
        if each is None:
            with printer.names.noted() as read_in_each:
                loads = dict.fromkeys(part for statement in kept for part in _loads(statement.op))
                shared += [line for load in loads for line in self._hoisted_load(load, uniform, own)]
                body, last = self.body(kept), op.vars[-1:]
                if any(self.reads(expr, last) for expr in printed_expressions(kept)):
                    at = f"get<{len(op.vars) - 1}>({self.fragments.at(partition)}({self.index}))"
                    body = [f"const int {printer.names(last[0].name)} = {at};", *body]
                each = ["CUTE_UNROLL", f"for (int {own} = 0; {own} < {op.vector}; ++{own}) {{", *body, "}"]
        if not (shared or arrays or self.vectors or self.stored or self.loads or self.stores):
            printer.places.clear()
            return None
        self.by_vectors = True
        about = f"of {op.vector} elements"
        first = self._first_at(lambda: f"{self.fragments.at(partition)}({v})", read | read_in_each, about)
        size = self._size(accesses) or self.fragments.at(partition)
        opening = ["CUTE_UNROLL", f"for (int {v} = 0; {v} < size({size}); {v} += {op.vector}) {{"]
        inside = [*first, *shared, *self.vectors, *each, *self.stored]
        return "\n".join([*self.loads, *opening, *inside, "}", *self.stores])

    def _first_at(self, at: Callable[[], str], noted: Set[str], about: str) -> list[str]:
        """The indices of the first element of some, whose coordinates are `at`, that are among the names `noted`."""
        names = [self.printer.names(each.name) for each in self.op.vars]
        read = [(dim, name) for dim, name in enumerate(names) if name in noted]
        if not read:
            return []
        indices = ", ".join(f"{name} = get<{dim}>({at()})" for dim, name in read)
        return [f"const int {indices};  // of the first {about}"]

    def _hoisted(self, vector: int) -> tuple[list[str], tuple[structure.Statement, ...], Uniform]:
        """(the names of what all elements of a vector share, the other statements, what is shared)."""
        op, lines, kept = self.op, list[str](), list[structure.Statement]()
        accesses = list(accesses_of(op.body))
        written = [each.buffer for each in accesses if each.writes]
        layouts = [(each.buffer, self._layout(each.buffer)) for each in accesses]
        rows = [buffer for buffer, layout in layouts if isinstance(layout, Slice) and layout.kept == (0,)]
        uniform = Uniform(self.printer, op.vars[-1], vector, tuple(written), tuple(rows))
        for each in op.body:
            if isinstance(each.op, structure.Let) and uniform.holds(each.op.value):
                lines += self.statement(each.op, each.source.comments)
                continue
            if isinstance(each.op, structure.Let):
                uniform.others.add(each.op.var)
            kept.append(each)
        return lines, tuple(kept), uniform

    def _hoisted_load(self, load: Load, uniform: Uniform, own: str) -> Iterator[str]:
        """One load of what a vector's elements share, or of the bytes that they read."""
        buffer, vector = load.buffer, self.op.vector
        if not isinstance(buffer, Buffer) or (buffer.name, load.indices) in self.printer.places:
            return
        name = self.printer.names(buffer.name)
        if buffer.scope is Scope.GLOBAL and uniform.holds(load):
            value = self.printer.names.fresh(f"{name}_value")
            yield f"const {in_cute(buffer.dtype.cpp)} {value} = {self.printer.element(buffer, load.indices)};"
            self.printer.places[buffer.name, load.indices] = Held(value)
            return
        *outer, last = load.indices
        count = uniform.share(last) if buffer.scope is Scope.SHARED and buffer.dtype.bits == 8 else 0
        if count and not is_among(buffer, uniform.written) and all(map(uniform.holds, outer)):
            value = self.printer.names.fresh(f"{name}_bytes")
            tensor, at = self.printer.tensor_at(buffer, [*map(self.printer.coordinate, load.indices)])
            yield f"const auto {value} = {words.VECTOR_AT}<{count}>({tensor}, {at});"
            self.printer.places[buffer.name, load.indices] = Held(f"{value}[{own} / {vector // count}]")

    def _as_arrays(
        self, kept: tuple[structure.Statement, ...], uniform: Uniform, count: int, apart: int = 0
    ) -> list[str] | None:
        """The statements for `count` elements together, of a vector or of pairs that are `apart`."""
        lets = {each.op.var: each.op.value for each in kept if isinstance(each.op, structure.Let)}
        arrays, lines = Arrays(uniform, lets, count, apart, self.op.any_order), list[str]()
        for each in kept:
            if isinstance(each.op, structure.Let):
                continue
            place = (
                self.printer.places.get((each.op.buffer.name, each.op.indices)) if isinstance(each.op, Store) else None
            )
            if not isinstance(each.op, Store) or each.op.operator or place is None or each.op.buffer.dtype != FLOAT16:
                return None
            text = arrays.text(each.op.value)
            if text is None:
                return None
            lines += [f"// {line}" for comment in each.source.comments for line in wrapped(comment, BODY_WIDTH)]
            if apart:
                lines.append(f"{words.SET_COLUMNS}<{count}>({place.tensor}, {place.index}, {text});")
            else:
                lines.append(f"{words.ARRAY_AT}<{count}>({place.tensor}, {place.first}) = {text};")
        if self.op.any_order and not apart:
            self.unpacked = True
            self.fragments.unpacked += [each.op.buffer for each in kept if isinstance(each.op, Store)]
        return [*arrays.lines, *lines]

    def _dots(self, op: structure.DotsOfFour) -> str:
        """Dots of four bytes, in each vector of the thread's elements."""
        dot, printer, vector = op.dot, self.printer, self.op.vector
        partition = self.fragments.partition(self.op.layout, op.source.span)
        if not self._takes_vectors(partition) or partition.vector != vector:
            raise unsupported("dots of bytes whose vectors are no thread's", op.source.span)
        self.by_vectors = True
        v, last = self.fragments.counter("v"), printer.names(self.op.vars[-1].name)
        sums, packed = (printer.names(each.name) for each in (dot.sum.buffer, dot.packed))
        at, count = f"{self.fragments.at(partition)}({v})", len(self.op.vars) - 1
        row, first = printer.row(dot.tile, (binary("*", int_const(4), self.op.vars[-1]),))
        name = words.DP4A_TOTAL if dot.in_total else words.DP4A
        return (
            f"CUTE_UNROLL\nfor (int {v} = 0; {v} < size({sums}); {v} += {vector}) {{\n"
            f"const int {last} = get<{count}>({at});  // of the first of {vector} elements\n"
            f"{name}<{vector}>({sums}, {v}, {packed}, {dot.less}, {row}, {first});\n}}"
        )

    def _by_each_thread(self, accesses: list[Access]) -> str:
        """A loop that every thread runs over all elements: all of them hold these."""
        opening = []
        for var, extent in zip(self.op.vars, self.op.extents, strict=True):
            name = self.printer.names(var.name)
            opening += ["CUTE_UNROLL", f"for (int {name} = 0; {name} < {self.printer.index(extent)}; ++{name}) {{"]
        for each in accesses:
            if each.buffer.scope is Scope.FRAGMENT:
                self.printer.places[each.buffer.name, each.indices] = self._fragment(each.buffer, each.indices, ())
        body = self.body(self.op.body)
        self.printer.places.clear()
        return "\n".join([*opening, *body, *["}"] * len(self.op.vars)])

    # ---- where elements are -------------------------------------------------------------------------------------

    def _layout(self, buffer: Buffer) -> FragmentLayout | None:
        return self.fragments.layout(buffer) if buffer.scope is Scope.FRAGMENT else None

    def _places(self, accesses: list[Access], partition: Partition, own: tuple[str, ...]) -> None:
        span = self.op.source.span
        for each in accesses:
            buffer, key = each.buffer, (each.buffer.name, each.indices)
            if key in self.printer.places:
                continue
            if buffer.dtype.name not in COMPUTED:
                raise unsupported(f"{buffer.name} of {buffer.dtype} in an elementwise loop", span)
            if buffer.scope is Scope.FRAGMENT:
                self.printer.places[key] = self._fragment(buffer, each.indices, own)
            elif (
                buffer.scope in (Scope.GLOBAL, Scope.SHARED) and len(own) == 1 and not isinstance(self.op.layout, Slice)
            ):
                self._tile_of_tensor(buffer, each.indices, accesses, partition)
            elif buffer.scope in _MEMORY and len(own) == 2:
                self._columns_of_tensor(each, accesses, partition, own[1])

    def _fragment(self, buffer: Buffer, indices: tuple[Expr, ...], own: tuple[str, ...]) -> Held:
        layout, loop, variables = self._layout(buffer), self.op.layout, self.op.vars
        name = self.printer.names(buffer.name)
        if isinstance(layout, Replicated):
            return Held(name, ", ".join(map(self.printer.coordinate, indices)))
        if layout == loop and indices == tuple(variables):
            if len(own) == 1:
                return Held(name, self.index, self.first)
            return Held(self.fragments.rowcol(name), ", ".join(own))
        if isinstance(layout, Slice) and len(own) == 2 and slice_of(loop, layout.kept) == layout:
            (kept,) = layout.kept
            if indices == (variables[kept],):
                return Held(name, own[kept])
        raise unsupported(f"an element of {buffer.name} that another thread holds", self.op.source.span)

    def _tile_of_tensor(
        self, buffer: Buffer, indices: tuple[Expr, ...], accesses: list[Access], partition: Partition
    ) -> None:
        """Loads and stores a tensor's elements, or a shared tile's, a vector at a time, where they are a box."""
        of_memory = [each for each in accesses if same_storage(each.buffer, buffer)]
        same = [each for each in of_memory if each.buffer is buffer and each.indices == indices]
        found = self._box(buffer, indices)
        if found is None or self.op.vector < 2 or buffer.dtype == BOOL:  # of which CuTe has no tiled copy
            return
        writes = any(each.writes for each in of_memory)
        if writes and len(same) < len(of_memory) and not all(each.writes for each in of_memory):
            return  # another box is read, perhaps behind a store
        if not all(not each.atomic and self._is_bound(each) for each in same if each.writes):
            return
        name = self.printer.names.fresh(f"{self.printer.names(buffer.name)}_part")
        element, reads = in_cute(buffer.dtype.cpp), any(not each.writes for each in same)
        load, store = (
            self.copies.of_partition(partition, found, stores=way) if used else ""
            for way, used in ((False, reads), (True, writes))
        )
        arguments = f"{found.arguments}, {partition.shape}"
        if (
            self._takes_vectors(partition)
            and partition.vector == self.op.vector
            and not (writes and self.op.stores_last)
        ):
            v, n = self.fragments.counter("v"), self.op.vector
            declared = f"{words.LOAD_VECTOR}<{n}>({load}{{}}, {arguments}, {v})" if reads else ""
            declared = declared or f"make_tensor<{element}>(Int<{n}>{{}})"
            self.vectors.append(f"Tensor {name} = {declared};")
            if writes:
                self.stored.append(f"{words.STORE_VECTOR}<{n}>({store}{{}}, {name}, {arguments}, {v});")
            self.printer.places[buffer.name, indices] = Held(name, self.fragments.counter("e"))
        else:
            declared = f"{words.PARTITION_FRAGMENT}<{element}>({partition.name}{{}}, {partition.shape})"
            self.loads.append(f"Tensor {name} = {declared};")
            if reads:
                self.loads.append(f"{words.LOAD_TILE}({load}{{}}, {arguments}, {name});")
            if writes:
                self.stores.append(f"{words.STORE_TILE}({store}{{}}, {name}, {arguments});")
            self.printer.places[buffer.name, indices] = Held(name, self.index, self.first)
        self.by_vectors = True

    def _columns_of_tensor(self, access: Access, accesses: list[Access], partition: Partition, own: str) -> None:
        """Loads what a loop reads of each of the thread's columns before the loop, a vector at a time."""
        buffer, last = access.buffer, self.op.vars[-1]
        found = box_of(access.indices, (last,), self.printer)
        written = is_among(buffer, (each.buffer for each in accesses if each.writes))
        if found is None or written or found[1] != (buffer.rank - 1,):
            return
        starts, along = found
        if any(var in walk(self.printer.bounds.expanded(start)) for start in starts for var in self.op.vars):
            return
        if not self.copies.is_part(buffer, starts, {along[0]: self.op.extents[-1]}):
            return
        place = self.copies.box(buffer, starts, along, self.op.source.span)
        vector = self.copies.neighbours(partition, place)
        if vector < 2:
            return
        at = self.fragments.at_rowcol(partition)
        name = self.printer.names.fresh(f"{self.printer.names(buffer.name)}_columns")
        self.loads.append(f"Tensor {name} = make_tensor<{in_cute(buffer.dtype.cpp)}>(size<1>({at}));")
        start = self.printer.coordinate(place.start[-1])
        self.loads.append(f"{words.LOAD_VALUES}<1, {vector}>({place.tensor}, {start}, {at}, {name});")
        self.printer.places[access.key] = Held(name, own)

    def _is_bound(self, access: Access) -> bool:
        """Whether an element is written under no other condition than that it is in bounds, which stores ask, too."""
        bounds = self.printer.bounds

        def in_bounds(condition: Expr) -> bool:
            if not isinstance(condition, Binary) or condition.op != "<":
                return False
            index = bounds.expanded(condition.lhs)
            pairs = zip(access.indices, access.buffer.shape, strict=True)
            return any(bounds.expanded(each) == index and extent == condition.rhs for each, extent in pairs)

        return access.buffer.scope is Scope.GLOBAL and all(map(in_bounds, access.conditions)) or not access.conditions

    def _box(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Place | None:
        """Where the loop's elements of a tensor begin, if they are a box of it that runs along its rows."""
        found = box_of(indices, self.op.vars, self.printer)
        if found is None or found[1][-1] != buffer.rank - 1:
            return None
        starts, along = found
        if not self.copies.is_part(buffer, starts, dict(zip(along, self.op.extents, strict=True))):
            return None
        return self.copies.box(buffer, starts, along, self.op.source.span)

    # ---- text ---------------------------------------------------------------------------------------------------

    def _sizes(self, partition: Partition, own: tuple[str, ...], accesses: list[Access]) -> list[str]:
        """The sizes of the loops: of what the thread holds."""
        held = [self.printer.names(a.buffer.name) for a in accesses if self._layout(a.buffer) == self.op.layout]
        if len(own) == 2:
            view = self.fragments.rowcol(held[0]) if held else self.fragments.at_rowcol(partition)
            return [f"size<0>({view})", f"size<1>({view})"]
        if not held and isinstance(self.op.layout, Slice):
            return [f"size<{self.op.layout.kept[0]}>({self.fragments.at_rowcol(partition)})"]
        return [f"size({self._size(accesses) or self.fragments.at(partition)})"]

    def _size(self, accesses: list[Access]) -> str:
        """A tensor of as many elements as the thread has; empty where no statement names one."""
        held = [self.printer.names(a.buffer.name) for a in accesses if self._layout(a.buffer) == self.op.layout]
        loaded = (each.tensor for each in self.printer.places.values() if each.index == self.index)
        return next(iter((*held, *loaded)), "")

    def _indices(self, partition: Partition, own: tuple[str, ...], *, reads: bool, memory: bool) -> Iterator[str]:
        """The loop's variables, and the condition under which there is such an element."""
        overhangs = memory and partition.overhangs
        if not reads and not overhangs:
            return
        if isinstance(self.op.layout, Slice):
            kept = self.op.layout.kept[0]
            at = f"{self.fragments.at_rowcol(partition)}({f'{own[0]}, 0' if kept == 0 else f'0, {own[0]}'})"
            index = self.printer.names(self.op.vars[0].name)
            yield f"const int {index} = get<{kept}>({at});"
            if overhangs:
                yield f"if ({index} >= {self.printer.index(self.op.extents[0])}) continue;"
            return
        at = self.fragments.at_rowcol(partition) if len(own) == 2 else self.fragments.at(partition)
        at = f"{at}({', '.join(own)})"
        if overhangs:
            yield f"if (!{words.INSIDE}({at}, {partition.shape})) continue;"
        if reads:
            parts = [
                f"{self.printer.names(v.name)} = get<{dim}>({at})"
                for dim, v in enumerate(self.op.vars)
                if any(self.reads(expr, (v,)) for expr in printed_expressions(self.op.body))
            ]
            yield f"const int {', '.join(parts)};"

    def other(self, op: ops.Op) -> str:
        """Errors: T2C-E034."""
        raise unsupported(f"the operation {type(op).__name__} in an elementwise loop", op.source.span)

    @contextmanager
    def under(self, condition: Expr) -> Iterator[None]:
        """While a block is printed, in which a condition holds."""
        self.printer.known.append(condition)
        yield
        self.printer.known.pop()

    def store(self, op: Store) -> str:
        """Of the threads that hold an element, one writes it to memory; outside of a tensor none does."""
        printer, target = self.printer, self.printer.place(op.buffer, op.indices)
        text = f"{target} {op.operator}= {printer.text(op.value, op.buffer.dtype)};"
        if (op.buffer.name, op.indices) in printer.places or op.buffer.scope not in (Scope.GLOBAL, Scope.SHARED):
            return text
        return self._by_writer(op.buffer, op.indices, text, op.source.span)

    def atomic(self, op: Atomic) -> str:
        """One element of memory, added to."""
        return self._by_writer(op.buffer, op.indices, atomic_add(op, self.printer), op.source.span)

    def _by_writer(self, buffer: Buffer, indices: tuple[Expr, ...], text: str, span: Span) -> str:
        """A statement of one of the threads that hold an element, for an element in bounds."""
        asked = list(self._writer(span))
        asked += filter(None, (self.printer.inside(buffer, indices),))
        return f"if ({' && '.join(asked)}) {text}" if asked else text

    def _writer(self, span: Span) -> Iterator[str]:
        """What holds for one of the threads that hold an element."""
        layout = self.op.layout
        if isinstance(layout, Replicated):
            yield "threadIdx.x == 0"
            return
        partition = self.fragments.partition(layout, span)
        if partition.layout.replicas > 1:
            yield f"{words.TAKES_PART}({partition.name}{{}})"
        if isinstance(layout, Slice):
            (kept,) = layout.kept
            e = self.fragments.counter("e")
            at = f"{self.fragments.at_rowcol(partition)}({f'{e}, 0' if kept == 0 else f'0, {e}'})"
            yield f"get<{1 - kept}>({at}) == 0"


def _loads(op: ops.Op) -> Iterator[Load]:
    """The loads that are done under no condition."""
    evaluated = (part for expr in own_expressions(op) for part in walk_evaluated(expr))
    yield from (part for part in evaluated if isinstance(part, Load))
