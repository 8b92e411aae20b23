"""The declarations around a kernel's body: sizes, shared tiles, layouts, tensors and fragments."""

from collections.abc import Iterator

from tile2cu.core.accesses import buffers_read, buffers_written, expressions
from tile2cu.core.expr import Expr, Var, walk
from tile2cu.core.layout import (
    Blocked,
    BlockedSlice,
    FragmentLayout,
    MmaAccumulator,
    MmaCols,
    MmaOperandA,
    MmaRows,
    Replicated,
    SharedLayout,
    Warps,
    slice_of,
)
from tile2cu.core.program import Buffer, Constant, Gemm, Loop, Parallel, Scope, Swizzle, walk_stmts
from tile2cu.core.schedule import Ledger, Pipeline, Workspace
from tile2cu.emit.comments import rule_line, wrapped
from tile2cu.emit.expressions import Printer, literal
from tile2cu.emit.settled import Settled
from tile2cu.emit.view import Declaration, Section

_SWIZZLES = {128: "tl::Swizzle128B", 64: "tl::Swizzle64B", 32: "tl::Swizzle32B"}


def sizes(settled: Settled, printer: Printer) -> Section:
    """The static numbers that the text names, and the block's threads."""
    constants = [c for c in settled.program.constants if c.name != "threads"]
    arguments = [c for c in constants if not c.formula and not c.comment]
    declared = [*_grouped(arguments, printer)]
    declared += [_constant(c, settled, printer) for c in constants if c.formula or c.comment]
    declared += _stages(settled)
    declared.append(Declaration(f"constexpr int threads = {settled.launch.threads};", _threads_about(settled)))
    return Section(rule_line("sizes"), tuple(declared))


def _grouped(constants: list[Constant], printer: Printer) -> Iterator[Declaration]:
    """Arguments of one type in one declaration, in the order in which they were given."""
    for cpp in dict.fromkeys(constant.dtype.cpp for constant in constants):
        group = [constant for constant in constants if constant.dtype.cpp == cpp]
        values = ", ".join(f"{printer.names(c.name)} = {literal(c.value, c.dtype)}" for c in group)
        yield Declaration(f"constexpr {cpp} {values};")


def _constant(constant: Constant, settled: Settled, printer: Printer) -> Declaration:
    place = f"{settled.program.source.name}:{constant.span.line}  "
    comments = wrapped(constant.comment) if constant.comment else []
    if constant.formula:
        comments += wrapped(place + constant.formula)
    text = f"constexpr {constant.dtype.cpp} {printer.names(constant.name)} = {literal(constant.value, constant.dtype)};"
    return Declaration(text, tuple(comments))


def _stages(settled: Settled) -> Iterator[Declaration]:
    """The depth of each pipeline, unless the user's own `num_stages` names it."""
    named = {c.value for c in settled.program.constants if c.name == "num_stages"}
    depths: dict[int, str] = {}
    for loop in walk_stmts(settled.launch.body):
        pipeline: Pipeline | None = settled.facts.get(loop, "pipeline") if isinstance(loop, Loop) else None
        if pipeline is not None and pipeline.stages not in named:
            depths.setdefault(pipeline.stages, settled.facts.rule(loop, "pipeline"))
    for stages, rule in depths.items():
        ahead = {1: "no tile", 2: "one tile"}.get(stages, f"{stages - 1} tiles")
        about = f"{ahead} in flight while one is used  [{rule}]"
        yield Declaration(f"constexpr int {stages_name(settled, stages)} = {stages};", (about,))


def stages_name(settled: Settled, stages: int) -> str:
    """The constant that holds a pipeline's depth: `num_stages`, numbered when depths differ."""
    depths: dict[int, None] = {}
    for loop in walk_stmts(settled.launch.body):
        pipeline: Pipeline | None = settled.facts.get(loop, "pipeline") if isinstance(loop, Loop) else None
        if pipeline is not None:
            depths.setdefault(pipeline.stages)
    order = list(depths).index(stages)
    return "num_stages" if order == 0 else f"num_stages_{order}"


def _threads_about(settled: Settled) -> tuple[str, ...]:
    """How many warps, and how they share the first product."""
    count = settled.launch.threads // settled.target.warp_size
    for op in walk_stmts(settled.launch.body):
        if isinstance(op, Gemm):
            warps: Warps = settled.facts[op, "warps"]
            rule = settled.facts.rule(op, "warps")
            return (f"{count} warps: {warps.m} along M x {warps.n} along N of a product  [{rule}]",)
    return (f"{count} warps",)


def shared(settled: Settled, printer: Printer) -> Section:
    """The struct of shared tiles, with the ledger."""
    ledger: Ledger = settled.facts[settled.launch, "ledger"]
    costs = dict(ledger.tiles)
    declared = [
        _shared_tile(tile, costs[tile.name], settled, printer)
        for tile in settled.launch.tiles
        if tile.scope is Scope.SHARED
    ]
    workspaces: tuple[Workspace, ...] = settled.facts[settled.launch, "workspaces"]
    rule = settled.facts.rule(settled.launch, "workspaces")
    for space in workspaces:
        about = f"{space.bytes:,} bytes; the parts of {space.warps} warps  [{rule}]"
        kind = f"tl::ReduceWorkspace<{space.dtype.cpp}, {space.extent}, {space.warps}>"
        declared.append(Declaration(f"{kind} {printer.names(space.name)};", (about,)))
    title = f"shared memory: {ledger.total:,} of {ledger.limit:,} bytes"
    return Section(rule_line(title), tuple(declared))


def _shared_tile(tile: Buffer, cost: int, settled: Settled, printer: Printer) -> Declaration:
    layout: SharedLayout = settled.facts[tile, "layout"]
    fact = settled.facts.fact(tile, "layout")
    slots = settled.facts.get(tile, "slots") or 1
    extents = ", ".join(printer.index(extent) for extent in tile.shape)
    swizzle = _SWIZZLES.get(layout.swizzle) or (f"tl::Padded<{layout.padding}>" if layout.padding else "tl::NoSwizzle")
    kind = "SharedTile1D" if tile.rank == 1 else "SharedTile"
    parameters = f"{tile.dtype.cpp}, {extents}" + (f", {swizzle}" if tile.rank > 1 else "")
    row = layout.extents[-1] * layout.element_bytes
    about = f"{cost:,} bytes" + (f" in {slots} slots" if slots > 1 else "")
    about += f"; rows of {row} bytes, {layout}  [{fact.rule}]" if tile.rank > 1 else ""
    comments = (wrapped(tile.comment) if tile.comment else []) + wrapped(about)
    array = f"[{stages_name(settled, slots)}]" if slots > 1 or settled.facts.get(tile, "slots") else ""
    return Declaration(f"tl::{kind}<{parameters}> {printer.names(tile.name)}{array};", tuple(comments))


class Layouts:
    """Names for the layouts of fragments and loops, in order of first use."""

    def __init__(self, settled: Settled, printer: Printer) -> None:
        self.settled = settled
        self.printer = printer
        self.names: dict[FragmentLayout, str] = {}
        self.users: dict[FragmentLayout, list[Buffer]] = {}
        self.reasons: dict[FragmentLayout, str] = {}
        for tile in settled.launch.tiles:
            if tile.scope is Scope.FRAGMENT and settled.facts.get(tile, "layout") is not None:
                self._add(settled.facts[tile, "layout"], tile.name, settled.facts.rule(tile, "layout"))
                self.users[settled.facts[tile, "layout"]].append(tile)
        for op in walk_stmts(settled.launch.body):
            if isinstance(op, Parallel):
                name = "".join(var.name for var in op.vars)
                self._add(settled.facts[op, "layout"], name, settled.facts.rule(op, "layout"))

    def _add(self, layout: FragmentLayout, wish: str, reason: str) -> None:
        if layout not in self.names:
            self.names[layout] = self.printer.names.fresh(f"{wish}_layout")
            self.users[layout] = []
            self.reasons[layout] = reason

    def section(self) -> Section:
        """One alias a layout, after those it is a slice of."""
        ordered = sorted(self.names, key=lambda layout: isinstance(layout, MmaRows | MmaCols | BlockedSlice))
        total = sum(
            self.settled.facts[tile, "layout"].registers * tile.dtype.bytes
            for tile in self.settled.launch.tiles
            if tile.scope is Scope.FRAGMENT and self.settled.facts.get(tile, "layout") is not None
        )
        title = f"registers: {-(-total // 4)} a thread for tiles" if total else "how loops are spread over the threads"
        return Section(rule_line(title), tuple(self._alias(layout) for layout in ordered))

    def _alias(self, layout: FragmentLayout) -> Declaration:
        users = ", ".join(self.printer.names(tile.name) for tile in self.users[layout])
        about = f"{_about(layout, self.settled.launch.threads)}  [{self.reasons[layout]}]"
        text = f"using {self.names[layout]} = {self.cpp(layout)};"
        return Declaration(text, (*wrapped(f"of {users}:" if users else "of a loop:"), *wrapped(about)))

    def cpp(self, layout: FragmentLayout) -> str:
        """The C++ type of a layout; sizes that a tile names keep their names."""
        match layout:
            case MmaAccumulator() | MmaOperandA():
                rows, cols = self._extents(layout)
                kind = "MmaAccumulator" if isinstance(layout, MmaAccumulator) else "MmaOperandA"
                return f"tl::{kind}<{rows}, {cols}, tl::Warps<{layout.warps.m}, {layout.warps.n}>>"
            case Blocked():
                extents, threads = ", ".join(self._extents(layout)), ", ".join(map(str, layout.threads))
                return f"tl::Blocked<tl::Shape<{extents}>, tl::Shape<{threads}>, {layout.vector}>"
            case Replicated():
                return f"tl::Replicated<tl::Shape<{', '.join(self._extents(layout))}>>"
            case _:
                return self._slice(layout)

    def _slice(self, layout: FragmentLayout) -> str:
        """A row or column slice, of a layout that has a name if there is one."""
        for whole, name in self.names.items():
            for kept, kind in ((0, "RowsOf"), (1, "ColsOf")):
                if slice_of(whole, kept) == layout:
                    return f"tl::{kind}<{name}>"
        match layout:
            case MmaRows(rows=rows, warps=warps):
                whole_layout: FragmentLayout = MmaAccumulator(rows, 8 * warps.n, warps)
                return f"tl::RowsOf<{self.cpp(whole_layout)}>"
            case MmaCols(cols=cols, warps=warps):
                whole_layout = MmaAccumulator(16 * warps.m, cols, warps)
                return f"tl::ColsOf<{self.cpp(whole_layout)}>"
            case BlockedSlice():
                return f"tl::{'RowsOf' if layout.kept == 0 else 'ColsOf'}<{self.cpp(layout.of)}>"
            case _:
                raise TypeError(f"no C++ type for {layout}")

    def _extents(self, layout: FragmentLayout) -> tuple[str, ...]:
        for tile in self.users.get(layout, []):
            return tuple(self.printer.index(extent) for extent in tile.shape)
        for op in walk_stmts(self.settled.launch.body):
            if isinstance(op, Parallel) and self.settled.facts[op, "layout"] == layout:
                return tuple(self.printer.index(extent) for extent in op.extents)
        return tuple(map(str, layout.shape))


def _about(layout: FragmentLayout, threads: int) -> str:
    """The layout in CuTe's notation, (threads, values) -> (rows, columns), and which warp holds what."""
    shape = ", ".join(map(str, layout.shape))
    text = f"(T{threads}, V{layout.registers}) -> ({shape})"
    match layout:
        case MmaAccumulator() | MmaOperandA():
            text += f"; {_warp_part(layout)}"
        case Blocked():
            grid = " x ".join(map(str, layout.threads))
            text += f"; {grid} threads with {layout.vector} consecutive elements each"
        case _:
            pass
    return text + (f"; {layout.replicas} threads hold the same value" if layout.replicas > 1 else "")


def _warp_part(layout: MmaAccumulator | MmaOperandA) -> str:
    """Which rows and columns of the tile a warp holds."""
    warps, rows, cols = layout.warps, layout.rows // layout.warps.m, layout.cols // layout.warps.n
    if warps.n == 1:
        return f"warp w holds rows {rows} w to {rows} w + {rows - 1}"
    if isinstance(layout, MmaOperandA):
        return f"warp w holds rows {rows} (w / {warps.n}) and the {rows - 1} after"
    return f"warp w holds {rows} rows from {rows} (w / {warps.n}) and {cols} columns from {cols} (w % {warps.n})"


def fragments(settled: Settled, printer: Printer, layouts: Layouts) -> tuple[Declaration, ...]:
    """The register tiles, those of one type in one declaration; and private arrays."""
    groups: dict[str, list[str]] = {}
    local: list[Declaration] = []
    for tile in settled.launch.tiles:
        if tile.scope is Scope.FRAGMENT and settled.facts.get(tile, "layout") is not None:
            kind = f"tl::Fragment<{tile.dtype.cpp}, {layouts.names[settled.facts[tile, 'layout']]}>"
            groups.setdefault(kind, []).append(printer.names(tile.name))
        elif tile.scope is Scope.LOCAL:
            extents = "".join(f"[{printer.index(extent)}]" for extent in tile.shape)
            local.append(Declaration(f"{tile.dtype.cpp} {printer.names(tile.name)}{extents};"))
    return (*(Declaration(f"{kind} {', '.join(names)};") for kind, names in groups.items()), *local)


def tensors(settled: Settled) -> tuple[Buffer, ...]:
    """The tensor parameters that the kernel touches."""
    reads, writes = touched(settled)
    names = {buffer.name for buffer in reads | writes}
    return tuple(p for p in settled.program.params if isinstance(p, Buffer) and p.name in names)


def touched(settled: Settled) -> tuple[frozenset[Buffer], frozenset[Buffer]]:
    """(read, written) buffers of the launch."""
    stmts = list(walk_stmts(settled.launch.body))
    reads = frozenset(buffer for stmt in stmts for buffer in buffers_read(stmt))
    return reads, frozenset(buffer for stmt in stmts for buffer in buffers_written(stmt))


def setup(settled: Settled, printer: Printer) -> tuple[Declaration, ...]:
    """Views of the tensors, names for the shared tiles, and the block's indices."""
    declared = [_tensor(tensor, settled, printer) for tensor in tensors(settled)]
    if declared:
        declared[0] = Declaration(declared[0].text, tuple(_tensors_about(settled)))
    for tile in settled.launch.tiles:
        if tile.scope is Scope.SHARED:
            name = printer.names(tile.name)
            declared.append(Declaration(f"auto& {name} = tl::shared<Shared>().{name};"))
    for space in settled.facts[settled.launch, "workspaces"]:
        name = printer.names(space.name)
        declared.append(Declaration(f"auto& {name} = tl::shared<Shared>().{name};"))
    declared += _block_indices(settled, printer)
    for let in settled.launch.prelude:
        value = printer.text(let.value, let.var.dtype)
        declared.append(Declaration(f"const {let.var.dtype.cpp} {printer.names(let.var.name)} = {value};"))
    return tuple(declared)


def _tensors_about(settled: Settled) -> Iterator[str]:
    """What the marks on the tensors' extents and rows mean."""
    views = tensors(settled)
    if any(any(settled.facts[tensor, "ragged"]) for tensor in views):
        rule = settled.facts.rule(views[0], "ragged")
        yield f"ragged: accesses may reach past this extent; there, reads give zero and writes are dropped  [{rule}]"
    starts = {settled.facts[tensor, "row_start"] for tensor in views}
    rule = settled.facts.rule(views[0], "row_start")
    if starts - {0}:
        yield f"RowStart: every row and offset is a multiple of so many bytes: vectors of that width  [{rule}]"
    if 0 in starts:
        yield f"AnyRowStart: a run-time size decides where rows start, so the width of copies too  [{rule}]"


def _block_indices(settled: Settled, printer: Printer) -> list[Declaration]:
    used = [printer.names(block.name) for block in settled.launch.blocks if uses(settled, block)]
    order = next((s for s in walk_stmts(settled.launch.body) if isinstance(s, Swizzle)), None)
    axes = "xyz"
    if order is not None and len(settled.launch.grid) > 1:
        about = f"blocks take their tiles in panels of {order.panel} {order.order}s, to meet in L2"
        block = printer.names.fresh("block")
        call = f"const auto {block} = tl::panel_order<{order.panel}, tl::Panels::{order.order}s>();"
        blocks = [
            f"{printer.names(b.name)} = {block}.{axes[i]}" if i < 2 else f"{printer.names(b.name)} = blockIdx.{axes[i]}"
            for i, b in enumerate(settled.launch.blocks)
            if printer.names(b.name) in used
        ]
        return [Declaration(call, (about,)), Declaration(f"const int {', '.join(blocks)};")]
    blocks = [
        f"{printer.names(block.name)} = blockIdx.{axes[i]}"
        for i, block in enumerate(settled.launch.blocks)
        if printer.names(block.name) in used
    ]
    return [Declaration(f"const int {', '.join(blocks)};")] if blocks else []


def _tensor(tensor: Buffer, settled: Settled, printer: Printer) -> Declaration:
    ragged: tuple[bool, ...] = settled.facts[tensor, "ragged"]
    row_start: int = settled.facts[tensor, "row_start"]
    extents = [
        f"tl::ragged({printer.index(extent)})" if guarded else printer.index(extent)
        for extent, guarded in zip(tensor.shape, ragged, strict=True)
    ]
    name = printer.names(tensor.name)
    start = f"tl::RowStart<{row_start}>" if row_start else "tl::AnyRowStart"
    if tensor.strides is not None:
        strides = ", ".join(printer.index(stride) for stride in tensor.strides)
        call = f"tl::strided_tensor<{start}>({name}_data, tl::strides({strides}), {', '.join(extents)})"
    else:
        call = f"tl::tensor<{start}>({name}_data, {', '.join(extents)})"
    return Declaration(f"const auto {name} = {call};")


def uses(settled: Settled, var: Var) -> bool:
    """Whether the kernel's text mentions a variable."""
    return any(part == var for expr in kernel_expressions(settled) for part in walk(expr))


def kernel_expressions(settled: Settled) -> Iterator[Expr]:
    """Every expression that the kernel itself evaluates, the extents of its tensors included."""
    for stmt in walk_stmts(settled.launch.body):
        yield from expressions(stmt)
    for tensor in tensors(settled):
        yield from tensor.shape
        yield from tensor.strides or ()
    for let in settled.launch.prelude:
        yield let.value


def used_sizes(settled: Settled) -> tuple[Var, ...]:
    """The run-time sizes that the kernel needs as arguments."""
    return tuple(size for size in settled.program.sizes if uses(settled, size))
