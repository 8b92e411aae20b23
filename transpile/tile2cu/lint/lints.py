"""The lints: questions to analysis/ and to the facts, and the words of the answers."""

import re
from collections.abc import Iterable, Iterator

from tile2cu.analysis.bounds import bounds_of
from tile2cu.analysis.coalescing import SECTOR_BYTES, warp_accesses
from tile2cu.analysis.coverage import Swapped, Tail, swapped_indices, tails, tiles_by_dimension
from tile2cu.analysis.integer_sums import overflowing_sums
from tile2cu.analysis.iteration_races import iteration_races
from tile2cu.analysis.registers import peak_of
from tile2cu.analysis.uniformity import uniformity_of
from tile2cu.analysis.uninitialised import read_unwritten
from tile2cu.analysis.uses import comments_of, statements
from tile2cu.core.decisions import INSTRUCTION, LAYOUT, NO_TENSOR_CORES
from tile2cu.core.errors import Note, Tile2CuWarning
from tile2cu.core.expr import static_value
from tile2cu.core.instruction import MmaUnit
from tile2cu.core.layout import Blocked
from tile2cu.core.program import Copy, Gemm, Launch, Parallel, Scope
from tile2cu.core.span import Span
from tile2cu.plan.resolved import Resolved
from tile2cu.styles.base.comments import ascii_only

_WASTE = 4  # times as many sectors as the elements fill
_FEW = 4  # fragments that are named
_LEAST_BYTES = 4096  # of a loop's accesses to one tensor


def _as_written(resolved: Resolved) -> Launch:
    """The launch as the file has it, before any pass."""
    return next(
        (launch for launch in resolved.program.launches if launch.span == resolved.launch.span), resolved.launch
    )


def reads_of_unwritten_tiles(resolved: Resolved) -> Iterator[Tile2CuWarning]:
    """T2C-W001."""
    for tile, span in read_unwritten(_as_written(resolved)).items():
        where = "registers" if tile.scope is not Scope.SHARED else "shared memory"
        yield Tile2CuWarning(
            code="T2C-W001",
            message=f"`{tile.name}` is read before it is written",
            span=span,
            notes=(Note(f"the values are what the {where} held before"),),
            help=f"initialise it first, with T.clear({tile.name}) or T.fill",
        )


def uncovered_dimensions(resolved: Resolved) -> Iterator[Tile2CuWarning]:
    """T2C-W002 and T2C-W003."""
    launch = _as_written(resolved)
    bounds = bounds_of(launch)
    dimensions = tuple(tiles_by_dimension(launch, bounds))
    yield from map(_uncovered_tail, tails(dimensions, bounds))
    for found in swapped_indices(dimensions, launch):
        yield _swapped_blocks(found, launch.span)


def _uncovered_tail(tail: Tail) -> Tile2CuWarning:
    tile = tail.tile
    what = f"dimension {tile.dim} of `{tile.tensor.name}`"
    size = static_value(tile.extent)
    if tail.count is None:
        message = f"where {what} is no multiple of {tile.length}, its tail is never accessed"
    else:
        message = f"the last {tail.count} of {size} elements along {what} are never accessed"
    return Tile2CuWarning(
        code="T2C-W002",
        message=message,
        span=tile.span,
        help=f"count the tiles with T.ceildiv(size, {tile.length}); accesses past the end are bounds-checked",
    )


def _swapped_blocks(found: Swapped, grid: Span) -> Tile2CuWarning:
    tile = found.tile
    return Tile2CuWarning(
        code="T2C-W003",
        message=f"`{found.block.name}` does not cover dimension {tile.dim} of `{tile.tensor.name}`,"
        f" but `{found.other.name}` does",
        span=tile.span,
        notes=(Note("the grid's indices are named here, x first", grid),),
        help=f"swap `{found.block.name}` and `{found.other.name}` here or in the grid",
    )


def uncoalesced_accesses(resolved: Resolved) -> Iterator[Tile2CuWarning]:
    """T2C-W004."""
    bounds = bounds_of(resolved.launch)
    loops = statements(resolved.launch.body, Parallel)
    for loop in loops:
        layout = resolved.facts.get(loop, LAYOUT)
        if not isinstance(layout, Blocked):
            continue
        for found in warp_accesses(loop, layout, bounds):
            if found.sectors < _WASTE * found.least or found.bytes < _LEAST_BYTES:
                continue
            access = found.access
            yield Tile2CuWarning(
                code="T2C-W004",
                message=f"{'stores to' if access.is_store else 'loads from'} `{access.buffer.name}` are not coalesced",
                span=access.span,
                notes=(
                    Note(
                        f"the lanes of a warp touch {found.sectors} sectors of {SECTOR_BYTES} bytes;"
                        f" their elements fill {found.least}"
                    ),
                ),
                help=f"index the last dimension of `{access.buffer.name}` with the last loop variable,"
                " or transpose a tile in shared memory",
            )


def dropped_calls(resolved: Resolved) -> Iterator[Tile2CuWarning]:
    """T2C-W005."""
    for span, name in resolved.program.dropped:
        yield Tile2CuWarning(
            code="T2C-W005",
            message=f"`{name}` has no effect in the kernel",
            span=span,
            notes=(Note("Python calls it when the file is traced; tile2cu does not execute the file"),),
            help="T.print prints a value or a tile from the kernel",
        )


def rebound_names(resolved: Resolved) -> Iterator[Tile2CuWarning]:
    """T2C-W010."""
    for span, name in resolved.program.rebound:
        yield Tile2CuWarning(
            code="T2C-W010",
            message=f"`{name}` is bound again, and later iterations of the loop read the value from before the loop",
            span=span,
            notes=(
                Note("the loop's body is traced once, as TileLang does: a name carries no value between iterations"),
            ),
            help=f"declare it before the loop, `{name} = T.alloc_var(...)`, or give this value another name",
        )


def copies_from_several_places(resolved: Resolved) -> Iterator[Tile2CuWarning]:
    """T2C-W011. Groups of threads have places of their own, and so have private arrays."""
    launch = _as_written(resolved)
    if launch.groups > 1:
        return
    same = uniformity_of(launch)
    for op in statements(launch.body, Copy):
        if not op.plain or Scope.LOCAL in (op.src.buffer.scope, op.dst.buffer.scope):
            continue
        if all(same.holds(each.start) for region in (op.src, op.dst) for each in region.ranges):
            continue
        yield Tile2CuWarning(
            code="T2C-W011",
            message="the threads of the block copy a tile from or to different places",
            span=op.span,
            notes=(
                Note("each thread moves the elements that the layout gives it, at the place that it computes itself"),
            ),
            help="compute the place from the block's index, or copy into T.alloc_local, which each thread has itself",
        )


def races_of_iterations(resolved: Resolved) -> Iterator[Tile2CuWarning]:
    """T2C-W012."""
    for race in iteration_races(_as_written(resolved)):
        tile = race.load.buffer.name
        yield Tile2CuWarning(
            code="T2C-W012",
            message=f"iterations read elements of `{tile}` that others write",
            span=race.load.span,
            notes=(Note("the iterations of T.Parallel are unordered: this is a race"),),
            help=f"read a copy from before the loop: T.copy({tile}, F) to a fragment F",
        )


def scalar_gemms(resolved: Resolved) -> Iterator[Tile2CuWarning]:
    """T2C-W006."""
    mmas = statements(resolved.launch.body, Gemm)
    for op in mmas:
        instruction = resolved.facts.get(op, INSTRUCTION)
        if instruction is None or instruction.unit is not MmaUnit.FMA:
            continue
        rejected = resolved.facts.get(op, NO_TENSOR_CORES)
        types = f"{op.a.buffer.dtype} x {op.b.buffer.dtype} + {op.c.buffer.dtype}"
        yield Tile2CuWarning(
            code="T2C-W006",
            message="the GEMM runs on scalar FMA, not on tensor cores",
            span=op.span,
            notes=(
                Note(
                    rejected.because
                    if rejected is not None
                    else f"no MMA instruction of {resolved.target.name} computes {types}"
                ),
            ),
            help=f"tensor cores need {rejected.edit}" if rejected is not None else "",
        )


def lost_comments(resolved: Resolved, source: str) -> Iterator[Tile2CuWarning]:
    """T2C-W008. `source` is the emitted source, in which a comment may be wrapped."""
    written = _words(line.partition("//")[2] for line in source.splitlines())
    for comment, stmt in comments_of(_as_written(resolved)):
        if _words([ascii_only(comment)]) not in written:
            yield Tile2CuWarning(
                code="T2C-W008",
                message="a comment is not in the emitted source",
                span=stmt.span,
                notes=(Note(f"# {comment}"),),
            )


def _words(lines: Iterable[str]) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", " ".join(lines).lower()))


def integer_overflows(resolved: Resolved) -> Iterator[Tile2CuWarning]:
    """T2C-W007."""
    for found in overflowing_sums(_as_written(resolved)):
        tile = found.accumulator
        yield Tile2CuWarning(
            code="T2C-W007",
            message=f"`{tile.name}` may overflow",
            span=found.span,
            notes=(Note(f"the sum of {found.count:,} values of up to {found.largest:,} does not fit {tile.dtype}"),),
            help="accumulate in a wider type, or in several parts",
        )


def spilled_fragments(resolved: Resolved) -> Iterator[Tile2CuWarning]:
    """T2C-W009."""
    launch, target = resolved.launch, resolved.target
    if launch.groups > 1:
        return  # a thread has the fragments of its group only
    layouts = {tile: resolved.facts.get(tile, LAYOUT) for tile in launch.tiles if tile.scope is Scope.FRAGMENT}
    words = {tile: layout.words(tile.dtype.bytes) for tile, layout in layouts.items() if layout is not None}
    peak = peak_of(launch, {tile: count for tile, count in words.items() if tile.of is None})
    limit = min(target.max_registers, target.registers_of_block // launch.threads)
    if peak.words <= limit:
        return
    largest = sorted(peak.tiles, key=lambda tile: -words[tile])[:_FEW]
    listed = ", ".join(f"{tile.name} {words[tile]}" for tile in largest)
    yield Tile2CuWarning(
        code="T2C-W009",
        message=f"fragments need {peak.words} registers per thread, and a thread has {limit}: they spill",
        span=launch.span,
        notes=(Note(f"live at one time, by registers: {listed}"),),
        help="use more threads, smaller tiles, or keep a tile in shared memory; `tile2cu resources` states what the "
        "compiler allocates",
    )
