"""Hopper and later: when a block gets a producer warp, when tiles move by TMA, and when GEMMs run on wgmma."""

from collections.abc import Iterator
from itertools import combinations

from tile2cu.analysis.accesses import expressions, used_by_itself
from tile2cu.analysis.bounds import Bounds
from tile2cu.analysis.clusters import waiting_before_end
from tile2cu.analysis.dependence import is_among
from tile2cu.analysis.prelude import around, before, outermost
from tile2cu.analysis.producer_loads import why_no_producer
from tile2cu.analysis.uniformity import uniformity_of
from tile2cu.analysis.uses import outside_of, statements
from tile2cu.core.decisions import (
    CALL,
    CLUSTER_SYNC,
    INSTRUCTION,
    LAYOUT,
    NO_PRODUCER,
    NO_TMA,
    NO_WGMMA,
    ON_WGMMA,
    PIPELINE,
    SCHEDULE,
    STAGES,
    TMA_COLUMNS_IF,
    TMA_IF,
    WARP_SPECIALISED,
    WARPS,
)
from tile2cu.core.expr import Binary, Expr, Role, Var, int_const, static_value, walk
from tile2cu.core.facts import rejected
from tile2cu.core.instruction import wgmma as wgmma_of
from tile2cu.core.layout import WgmmaAccumulator, widest_swizzle_of
from tile2cu.core.program import (
    Buffer,
    Copy,
    Gemm,
    If,
    Launch,
    Loop,
    LoopKind,
    Region,
    Scan,
    Scope,
    Stmt,
)
from tile2cu.core.schedule import Multiple, Pipeline, WarpSpecialised
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.memory.tensors import POINTER_BYTES
from tile2cu.rules.mma.alternating import gathers_unsupported
from tile2cu.rules.mma.warps import gathers_on_mma, mma_of, runs_on_wgmma
from tile2cu.rules.mma.wgmma_support import (
    WARPGROUP,
    instruction_of,
    registers_unsupported,
    split_of,
    wgmma_unsupported,
)
from tile2cu.rules.schedule.pipeline import ping_pong_of, pipeline_of, prefetchable_vectors
from tile2cu.targets.partition import MOST_COLUMNS

GEMM = """
A_shared = T.alloc_shared((64, 64), "float16")
B_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[0, k * 64], A_shared)
    T.copy(Z[k * 64, 0], B_shared)
    T.gemm(A_shared, B_shared, C_local)
T.copy(C_local, Z[0, 0])
"""


GEMMS_OVER_TILES = """
A_shared = T.alloc_shared((64, 64), "float16")
B_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
for tile in T.serial(bx, 64, 16):
    T.clear(C_local)
    for k in T.Pipelined(4, num_stages=2):
        T.copy(Z[tile * 64, k * 64], A_shared)
        T.copy(Z[k * 64, 0], B_shared)
        T.gemm(A_shared, B_shared, C_local)
    T.copy(C_local, Y[tile * 64, 0])
"""


_ROWS = """
A_shared = T.alloc_shared((64, 64), "float16")
row = T.alloc_shared((64,), "float32")
C_local = T.alloc_fragment((64, 64), "float32")
for k in T.Pipelined(4, num_stages=2):
    T.copy(A[k * 64, 0], row)
    T.copy(Z[k * 64, 0], A_shared)
    T.gemm(A_shared, A_shared, C_local)
    for i, j in T.Parallel(64, 64):
        C_local[i, j] += row[j]
T.copy(C_local, Z[0, 0])
"""


_ASYNCHRONOUS = """\
A_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
T.copy(Z[0, 0], A_shared)
T.clear(C_local)
T.wgmma_gemm(A_shared, A_shared, C_local)
T.wait_wgmma(0)"""


_FEW_ROWS = """
A_shared = T.alloc_shared((64, 64), "float16")
B_shared = T.alloc_shared((32, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
D_local = T.alloc_fragment((32, 64), "float32")
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[k * 64, 0], A_shared)
    T.copy(Z[k * 64, 0], B_shared)
    T.gemm(A_shared, A_shared, C_local)
    T.gemm(B_shared, A_shared, D_local)
T.copy(C_local, Z[0, 0])
T.copy(D_local, Z[0, 0])
"""
_FEW_ROWS_BECAUSE = (
    "the GEMM of line 19 is 32 x 64 x 64: wgmma takes 64 rows per warpgroup, "
    "N a multiple of 8 up to 256, K a multiple of 16"
)


def _example(about: str | int, what: str, value: str) -> tuple[Example, ...]:
    return (Example(GEMM, about, what, value, target="cuda:sm_90a"),)


PATTERN_ROWS = 8  # of a swizzle's period: headers/tl/common/swizzle.h
TMA_RANK = 5
TMA_BOX_ROWS = 256
LESSONS = "measured on an H200: benchmarks/RESULTS.md"


@rule(
    "launch.hopper.producer-warp",
    phase=Phase.WARPS,
    on=Launch,
    reads=(CLUSTER_SYNC, WARP_SPECIALISED),
    writes=(NO_PRODUCER, TMA_COLUMNS_IF, TMA_IF, WARP_SPECIALISED),
    source=f"{LESSONS}: a producer warp is worth 3 % over the same pipeline without one",
    examples=(
        *_example("launch", "warp_specialised", "yes"),
        Example(GEMMS_OVER_TILES, "launch", "warp_specialised", "yes", target="cuda:sm_90a"),
        Example(GEMM, "launch", "warp_specialised", "yes", target="cuda:sm_100a"),
    ),
)
def producer_warp(launch: Launch, context: Context) -> Iterator[Decision]:
    """A block whose pipelined loops have GEMMs gets a producer warp that loads by TMA, and wgmma for the GEMMs.

    Several loops, one after another, have tiles and pipelines of their own: the producer loads for the next one early.
    Where other loops enclose it, over tiles of a block, the producer runs them, too, and loads for the next tile during
    the epilogue. The tensors' rows must suit TMA, and on a target with wgmma a warpgroup must be able to take the
    GEMMs. On a target that has TMA and no wgmma, GEMMs use mma.sync, which reads TMA's swizzled tiles by ldmatrix.

    Gives: whether there is a producer warp, and why not; the conditions on the sizes of tensors that it loads, and on
    those that decide where its boxes start.
    """
    if context.target.tma:
        known = context.facts.get(launch, WARP_SPECIALISED)
        reason = known.because if known else _why_not(launch, context)
        yield launch, WARP_SPECIALISED, WarpSpecialised(not reason, reason)
        loads = producer_loads(context)
        for load in loads:
            yield load.src.buffer, TMA_IF, rows_aligned_if(load.src.buffer)
        columns = (columns_aligned_if(load.src, context.bounds) or () for load in loads)
        if conditions := tuple(dict.fromkeys(each for found in columns for each in found)):
            yield launch, TMA_COLUMNS_IF, conditions
        if reason:
            wish = "a producer warp, TMA and wgmma" if context.target.wgmma else "a producer warp and TMA"
            yield rejected(launch, NO_PRODUCER, reason, "change that: docs/hopper.md has the rest", named=wish)


@rule(
    "warps.gemm.on-wgmma",
    phase=Phase.WARPS,
    on=Launch,
    reads=(WARP_SPECIALISED,),
    writes=(NO_WGMMA, ON_WGMMA),
    source="PTX ISA, 'wgmma.mma_async': every thread of a warpgroup, four warps from a multiple of four on",
    examples=(
        *_example(7, "on_wgmma", "True"),
        Example(_ASYNCHRONOUS, 5, "on_wgmma", "True", target="cuda:sm_90a"),
        Example(_FEW_ROWS, 9, "not wgmma", _FEW_ROWS_BECAUSE, target="cuda:sm_90a"),
    ),
)
def on_wgmma(launch: Launch, context: Context) -> Iterator[Decision]:
    """With a producer warp, or in a kernel with an explicit pipeline, GEMMs by whole warpgroups run on wgmma.

    The others run on mma.sync, which reads the same swizzled tiles by ldmatrix. GEMMs that share a fragment need the
    same layout of it: all of them run on wgmma, or none.

    Gives: which GEMMs run on wgmma, and why others do not.
    """
    if not context.target.wgmma or not (is_specialised(context) or _is_explicit(launch, context)):
        return
    mmas, causes = statements(launch.body, Gemm), wgmma_unsupported(launch, context)
    for op in mmas:
        if because := causes[id(op)]:
            yield rejected(op, NO_WGMMA, because, "change that: docs/hopper.md has the rest")
        else:
            yield op, ON_WGMMA, True


def _is_explicit(launch: Launch, context: Context) -> bool:
    """Whether the user assigns work to threads and orders it: by groups, barriers, or asynchronous GEMMs."""
    by_user = launch.groups > 1 or any(tile.scope is Scope.BARRIER for tile in launch.tiles)
    return by_user or any(isinstance(op, Gemm) and op.begun for op in context.statements)


@rule(
    "warps.gemm.warpgroups",
    phase=Phase.WARPS,
    on=Gemm,
    reads=(ON_WGMMA, SCHEDULE),
    writes=(WARPS,),
    source="PTX ISA, 'Asynchronous Warpgroup Level Matrix Shape': M is 64",
    examples=_example(7, "warps", "Warps(m=4, n=1)"),
)
def share_among_warpgroups(op: Gemm, context: Context) -> Iterator[Decision]:
    """On wgmma a warpgroup owns consecutive rows of the GEMM, 64 at a time, and all or some of its columns.

    As many warpgroups as possible are along M, so that each has whole rows; under the FullCol policy along N. Where
    they alternate, one computes the whole GEMM of its iterations.
    Gives: the warps along M and along N.
    """
    if runs_on_wgmma(op, context):
        split = split_of(op, _sharing(op, context))
        assert split is not None, "a GEMM that warpgroups cannot share does not run on wgmma"
        yield op, WARPS, split


@rule(
    "select.gemm.wgmma",
    phase=Phase.STRICT,
    on=Gemm,
    reads=(ON_WGMMA, WARPS),
    writes=(INSTRUCTION,),
    source="PTX ISA, 'wgmma.mma_async'",
    examples=_example(7, "instruction", "wgmma.m64n64k16.f32.f16.f16"),
)
def wgmma(op: Gemm, context: Context) -> Iterator[Decision]:
    """With a producer warp, and in explicit groups, GEMMs run on wgmma, which reads shared memory itself.

    Shapes: M in 64s per warpgroup, N in 8s, K in 16s, of 8-bit operands in 32s, of float32 in 8s; all in elements.
    Gives: the instruction.
    """
    if runs_on_wgmma(op, context):
        columns = min(op.mnk[1] // context.facts[op, WARPS].n, MOST_COLUMNS)
        row = instruction_of(op, context)
        assert row is not None, "a GEMM that wgmma does not take runs on mma.sync"
        yield op, INSTRUCTION, wgmma_of(columns, row.k, row.operand, row.accumulator)


@rule(
    "layout.gemm.wgmma-accumulator",
    phase=Phase.STRICT,
    on=Gemm,
    reads=(ON_WGMMA, SCHEDULE, WARPS),
    writes=(LAYOUT,),
    source="PTX ISA, 'Register Fragments for wgmma.mma_async.m64nNk16'",
    examples=_example("C_local", "layout", "WgmmaAccumulator(rows=64, cols=64, along_m=1, along_n=1, copies=1)"),
)
def wgmma_accumulator(op: Gemm, context: Context) -> Iterator[Decision]:
    """The accumulator has wgmma's result layout, and so has a register-resident A operand.

    Gives: the layouts of the accumulator, and of an A operand in registers.
    """
    if runs_on_wgmma(op, context):
        m, n, k = op.mnk
        warps = context.facts[op, WARPS]
        groups = warps.m // 4
        each = context.threads // WARPGROUP // _sharing(op, context)
        yield op.c.buffer, LAYOUT, WgmmaAccumulator(m, n, groups, warps.n, copies=each)
        if op.a.buffer.scope is Scope.FRAGMENT:
            yield op.a.buffer, LAYOUT, WgmmaAccumulator(m, k, groups, copies=warps.n * each)


@rule(
    "pipeline.loop.tma",
    phase=Phase.PIPELINE,
    on=Loop,
    reads=(WARP_SPECIALISED,),
    writes=(CALL, NO_TMA, PIPELINE, STAGES),
    source="PTX ISA, 'cp.async.bulk.tensor' and 'mbarrier'",
    examples=(
        *_example("A_shared", "stages", "2"),
        Example(_ROWS, 5, "not TMA", "its tile has one dimension, and TMA's have two", target="cuda:sm_90a"),
    ),
)
def tma(op: Loop, context: Context) -> Iterator[Decision]:
    """The producer warp prefetches by TMA as many tiles as there are stages.

    A tile of one dimension has few elements: the threads that use it load it in its iteration. Rows that a tensor
    selects are gathered by cp.async, by all threads of a producer's warpgroup, for warpgroups that alternate
    (`pipeline.loop.ping-pong`): TMA has no load of rows that are not neighbours.

    Gives: the pipeline, and the number of stages of each prefetched tile.
    """
    pipeline = pipeline_of(op, context.launch, producer=True)
    if pipeline is not None and is_specialised(context):
        yield op, PIPELINE, pipeline
        for load in pipeline.copies:
            yield load.dst.buffer, STAGES, pipeline.stages
            yield load, CALL, "tma_load" if load.row is None else "copy_async"
        for line in prefetchable_vectors(op, context.launch):
            yield rejected(
                line, NO_TMA, "its tile has one dimension, and TMA's have two", "load rows of two dimensions"
            )


def is_specialised(context: Context) -> bool:
    """Whether the launch has a producer warp."""
    decided = context.facts.get(context.launch, WARP_SPECIALISED)
    return decided is not None and decided.producer


def all_on_wgmma(loop: Loop, context: Context) -> bool:
    """Whether all GEMMs of a producer's loop run on wgmma."""
    return is_specialised(context) and all(runs_on_wgmma(op, context) for op in statements(loop.body, Gemm))


def rows_aligned_if(tensor: Buffer) -> Multiple:
    """The condition under which TMA can read a tensor's rows: they start at multiples of 16 bytes."""
    decides = tensor.shape[-1]
    if tensor.strides is not None:
        *strides, _ = tensor.strides
        decides = next((stride for stride in strides if static_value(stride) is None), strides[-1])
    return Multiple(decides, tensor.dtype.elements_in(POINTER_BYTES))


def columns_aligned_if(region: Region, bounds: Bounds) -> tuple[Multiple, ...] | None:
    """The conditions on sizes under which a box starts at a multiple of 16 bytes of a row; None where no size decides.

    From another column TMA reads wrong addresses, or ends in an illegal instruction: measured on an H200.
    """
    elements = region.buffer.dtype.elements_in(POINTER_BYTES)
    start = bounds.linear(region.ranges[-1].start)
    conditions: list[Multiple] = []
    for term, factor in ((int_const(start.constant), 1), *start.terms.items()):
        if bounds.multiple_of(term) * (factor & -factor) % elements:
            decides = next(filter(_is_of_sizes, _factors(term, bounds)), None)
            if decides is None:
                return None
            conditions.append(Multiple(decides, elements))
    return tuple(conditions)


def _factors(expr: Expr, bounds: Bounds) -> Iterator[Expr]:
    """What an expression multiplies, with names by their values."""
    if isinstance(expr, Binary) and expr.op == "*":
        yield from (*_factors(expr.lhs, bounds), *_factors(expr.rhs, bounds))
    else:
        named = bounds.linear(expr)
        yield from named.terms if len(named.terms) == 1 and not named.constant else (expr,)


def _is_of_sizes(expr: Expr) -> bool:
    """Whether the launcher knows a value: it is computed from sizes alone, and is no number."""
    leaves = [part for part in walk(expr) if not isinstance(part, Binary) and static_value(part) is None]
    return bool(leaves) and all(isinstance(part, Var) and part.role is Role.SIZE for part in leaves)


def _sharing(op: Gemm, context: Context) -> int:
    """The number of warpgroups that share a GEMM."""
    alternating = ping_pong_of(context)
    return 1 if alternating is not None and op in alternating.own_mmas else context.threads // WARPGROUP


def warpgroups(launch: Launch) -> int:
    """The number of warpgroups that use the tiles, without the producer."""
    return launch.threads // WARPGROUP


def _why_not(launch: Launch, context: Context) -> str:
    """The first reason against a producer warp; empty for none."""
    if launch.groups > 1 or any(tile.scope is Scope.BARRIER for tile in launch.tiles):
        return "the kernel has groups of threads, or barriers, of its own"
    loops = [op for op in context.statements if isinstance(op, Loop) and op.kind is LoopKind.PIPELINED]
    if context.facts.get(launch, CLUSTER_SYNC) is not None and (line := _cluster_before_exit(loops, launch)):
        return f"line {line} is about the cluster, before the producer warp, which arrives at no barrier, has exited"
    if cause := _loops_unsupported(loops, launch):
        return cause
    for loop in loops:
        if not _same_in_all_threads(loop, launch):
            return f"the loop in line {loop.span.line} is in divergent code"
    if context.target.wgmma and launch.threads % WARPGROUP:
        return f"{launch.threads} threads are not a whole number of warpgroups"
    if launch.threads + 32 > context.target.max_threads:
        return f"{launch.threads} threads leave no room for a producer warp"
    pipelines = [pipeline_of(loop, launch, producer=True) for loop in loops]
    found = [(loop, each) for loop, each in zip(loops, pipelines, strict=True) if each is not None]
    if len(found) < len(loops):
        return _why_nothing_prefetched(loops[pipelines.index(None)])
    causes = [cause for loop, pipeline in found for cause in _loop_unsupported(loop, pipeline, found, launch)]
    causes += _gemms_unsupported(loops, launch, context)
    causes += [_scan_unsupported(op) for op in context.statements if isinstance(op, Scan)]
    causes += [gathers_unsupported(pipeline, launch, context.bounds) for _, pipeline in found]
    loads = (load for _, pipeline in found for load in pipeline.copies if load.row is None)
    return next(filter(None, (*causes, *(load_unsupported(load, context.bounds) for load in loads))), "")


def _cluster_before_exit(loops: list[Loop], launch: Launch) -> int:
    """The first line about other blocks of the cluster that is not below all pipelined loops; 0 if all are.

    A cluster's barriers wait for its threads that have not exited [PTX ISA, barrier.cluster.wait], and a producer exits
    after its loads.
    """
    early = waiting_before_end(loops, launch.body)
    return early[0].span.line if early else 0


def _loop_unsupported(
    loop: Loop, pipeline: Pipeline, loops: list[tuple[Loop, Pipeline]], launch: Launch
) -> Iterator[str]:
    """Why a producer cannot load for a loop, one of several; empty texts where it can."""
    same = tuple(other for other, of in loops if set(of.buffers) == set(pipeline.buffers))
    if not any(statements(pipeline.body, Gemm)):
        yield "the pipelined loop has no GEMM"
    yield why_no_producer(loop, pipeline.loads, launch, same)
    above = before(launch.body, outermost(launch.body, loop))
    yield _used_before_loop(pipeline.buffers, outside_of(same, above))


def _gemms_unsupported(loops: list[Loop], launch: Launch, context: Context) -> Iterator[str]:
    """Why GEMMs cannot run: on wgmma, where it takes one of a loop's, and else on mma.sync. Empty where they can."""
    mmas = [*statements(launch.body, Gemm)]
    if not context.target.wgmma:
        yield from (_mma_unsupported(op, context) for op in mmas)
        return
    causes = wgmma_unsupported(launch, context)
    if all(causes[id(op)] for loop in loops for op in statements(loop.body, Gemm)):
        yield from causes.values()
    yield from (_mma_unsupported(op, context) for op in mmas if causes[id(op)])
    yield from (registers_unsupported(op, launch) for op in mmas if not causes[id(op)])


def _loops_unsupported(loops: list[Loop], launch: Launch) -> str:
    """Why a producer cannot load for all pipelined loops, one after another; empty if it can."""
    if not loops:
        return "the kernel has no pipelined loop"
    lines = ", ".join(str(loop.span.line) for loop in loops)
    if len(loops) > 1 and launch.cluster:
        return f"the kernel has {len(loops)} pipelined loops (lines {lines}), and clusters"
    for loop in loops:
        if any(outer is other for outer in around(launch.body, loop) for other in loops):
            return f"the loop in line {loop.span.line} is in another pipelined loop, whose loads come between its runs"
    found = [each for loop in loops if (each := pipeline_of(loop, launch, producer=True)) is not None]
    for one, other in combinations(found, 2):
        both = {tile.memory.name for tile in one.buffers} & {tile.memory.name for tile in other.buffers}
        if both and (set(one.buffers), one.stages) != (set(other.buffers), other.stages):
            return f"the pipelined loops of lines {lines} load the same tile, `{min(both)}`, in different pipelines"
    return ""


def _why_nothing_prefetched(loop: Loop) -> str:
    """Why a pipelined loop has no loads for a producer."""
    for branch in statements(loop.body, If):
        if any(map(_is_load, statements((branch,), Copy))):
            where = f"the loop in line {loop.span.line} loads in a branch (line {branch.span.line})"
            return f"{where}, so that it cannot be prefetched"
    return f"the loop in line {loop.span.line} has no load that can be prefetched"


def _is_load(copy: Copy) -> bool:
    return (copy.src.buffer.scope, copy.dst.buffer.scope) == (Scope.GLOBAL, Scope.SHARED)


def _used_before_loop(tiles: tuple[Buffer, ...], above: list[Stmt]) -> str:
    """Why tiles cannot be filled from the start of the kernel on; empty if they can."""
    for stmt in above:
        for tile in tiles:
            if is_among(tile, used_by_itself(stmt)):
                return f"`{tile.name}`, which the loop prefetches, is used before it, in line {stmt.span.line}"
    return ""


def _same_in_all_threads(loop: Loop, launch: Launch) -> bool:
    """Whether the loops and branches around a loop are uniform over all threads."""
    uniformity = uniformity_of(launch)
    return all(uniformity.holds(expr) for stmt in around(launch.body, loop) for expr in expressions(stmt))


def _scan_unsupported(op: Scan) -> str:
    """Why a scan needs a barrier of the whole block, at which a producer does not arrive; empty if it needs none."""
    return f"the scan in line {op.span.line} is shared by several warps" if op.src.scope is Scope.FRAGMENT else ""


def _mma_unsupported(op: Gemm, context: Context) -> str:
    """Why a GEMM on mma.sync cannot read tiles as TMA fills them; empty if it can."""
    line = f"the GEMM of line {op.span.line}"
    if op.metadata is not None:
        return f"{line} is sparse, and TMA does not load its metadata"
    if mma_of(op, context) is None:
        return f"{line} has types or a size that mma.sync does not take"
    for region in (op.a, op.b):
        if region.buffer.scope is Scope.SHARED and gathers_on_mma(op, is_a=region is op.a):
            return f"{line} reads `{region.buffer.name}` element by element, from padded rows"
    return ""


def has_swizzle(tile: Buffer) -> bool:
    """Whether a swizzle of 32, 64 or 128 bytes divides a tile's rows: TMA and wgmma support no others."""
    return tile.rank == 2 and widest_swizzle_of(tile.dtype.bytes_of(tile.static_shape[1])) > 0


def producer_loads(context: Context) -> tuple[Copy, ...]:
    """The copies that the producer warp issues by TMA; none without one."""
    if not is_specialised(context):
        return ()
    pipelines = (pipeline_of(op, context.launch, producer=True) for op in context.statements if isinstance(op, Loop))
    return tuple(op for found in pipelines if found for op in found.copies if op.row is None)


def load_unsupported(load: Copy, bounds: Bounds) -> str:
    """Why TMA cannot do a load; empty if it can."""
    tile, tensor = load.dst.buffer, load.src.buffer
    line = f"the copy in line {load.span.line}"
    if load.by_threads:
        return f"{line} has disable_tma=True"
    if not has_swizzle(tile):
        return f"{line} fills a tile whose rows are not a multiple of 32 bytes"
    if tile.static_shape[-2] % PATTERN_ROWS:
        return f"{line} fills a tile of {tile.static_shape[-2]} rows, and TMA's swizzle repeats every {PATTERN_ROWS}"
    if load.row is not None:
        return f"{line} gathers rows"
    if load.ends:
        return f"{line} ends inside the tensor"
    cause = box_unsupported(load.src, load.dst)
    if not cause and columns_aligned_if(load.src, bounds) is None:
        cause = "may start at a column that is no multiple of 16 bytes, from which TMA does not load"
    return f"{line} {cause}" if cause else rows_unsupported(tensor)


def box_unsupported(region: Region, into: Region) -> str:
    """Why TMA cannot move a box of a tensor into a tile, or a plane of one; empty if it can."""
    tensor, tile = region.buffer, into.buffer
    if tensor.dtype.is_packed:
        return "moves elements that share bytes"
    if tensor.dtype != tile.dtype or tensor.rank > TMA_RANK or len(into.kept) != 2:
        return "changes the element type, or the rank of its tensor is over 5"
    if len(region.kept) != 2 or region.kept[-1] != tensor.rank - 1:
        return "does not run along the tensor's last dimension"
    if tile.static_shape[-2] > TMA_BOX_ROWS:
        return f"moves {tile.static_shape[-2]} rows, and a box of TMA has at most {TMA_BOX_ROWS}"
    return ""


def rows_unsupported(tensor: Buffer) -> str:
    """Why TMA cannot read a tensor's rows; the launcher checks run-time sizes."""
    if tensor.address is not None:
        return f"`{tensor.name}` is at an address that the kernel reads, so that the launcher has no tensor map of it"
    if tensor.dtype != tensor.memory.dtype:
        return f"`{tensor.name}` is a view as another type"
    strides = [static_value(stride) for stride in tensor.strides or (tensor.shape[-1], int_const(1))]
    if strides.pop() != 1:
        return f"`{tensor.name}` is not contiguous along its last dimension"
    if strides.count(None) > 1:
        return f"`{tensor.name}` has several run-time strides"
    aligned = all(tensor.dtype.bytes_of(int(stride)) % POINTER_BYTES == 0 for stride in strides if stride is not None)
    return "" if aligned else f"rows of `{tensor.name}` are not aligned to {POINTER_BYTES} bytes"
