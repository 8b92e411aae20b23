"""What a launcher checks of run-time sizes: what it divides by, what ints may not hold, and how large a grid is."""

from collections.abc import Iterable, Iterator

from tile2cu.analysis.accesses import divisors, variables
from tile2cu.analysis.bounds import Bounds
from tile2cu.analysis.executed import divisors_executed, is_of_launcher, is_of_sizes
from tile2cu.analysis.trips import is_positive
from tile2cu.analysis.uses import statements
from tile2cu.core.decisions import PERSISTENT
from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Binary, Call, Expr, Role, Var, binary, children, int_const, static_value, walk
from tile2cu.core.memo import kept
from tile2cu.core.program import BindTensor, Buffer, If, Loop, Program
from tile2cu.core.record import Record
from tile2cu.plan.grid_schedule import values_of_sizes
from tile2cu.plan.largest import Largest, overflowing_indices
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.tensors import access_of, tensors

_WORK_ITEMS = 2**32 - 1  # of a grid along x


class Divisor(Record, frozen=True):
    """What must not be 0 where some numbers, of blocks and iterations, are positive."""

    value: Expr
    counts: tuple[Expr, ...] = ()


@kept
def divisors_of_extents(resolved: Resolved) -> tuple[Divisor, ...]:
    """What the extents of the grid and of tensors are divided by: the launcher computes them."""
    return _divisors((resolved.launch.grid, *(tensor.shape for tensor in tensors(resolved))), resolved.bounds)


def divisors_of_workspaces(resolved: Resolved) -> tuple[Divisor, ...]:
    """What the extents of workspaces are divided by: a query of its size has no launcher's checks before it."""
    return _divisors([tensor.shape for tensor in resolved.program.workspaces], resolved.bounds)


def _divisors(shapes: Iterable[tuple[Expr, ...]], bounds: Bounds) -> tuple[Divisor, ...]:
    found = dict.fromkeys(divisor for shape in shapes for extent in shape for divisor in divisors(extent))
    known = (each for each in found if is_of_launcher(each))
    return tuple(Divisor(each) for each in known if not is_positive(each, (), bounds))


@kept
def divisors_of_blocks(resolved: Resolved) -> tuple[Divisor, ...]:
    """What each block divides by, besides the divisors of extents."""
    found = (Divisor(*each) for each in divisors_executed(resolved.launch, resolved.bounds))
    of_extents = divisors_of_extents(resolved)
    return tuple(each for each in dict.fromkeys(found) if Divisor(each.value) not in of_extents)


def is_idle(divisor: Divisor, launches: tuple[Resolved, ...]) -> bool:
    """Whether all tensors that a call writes to are empty where a divisor is 0: there is nothing to compute."""
    bounds, params = launches[0].bounds, launches[0].program.params
    outputs = [each for each in params if isinstance(each, Buffer) and access_of(each, launches) != "read"]
    at_addresses = any(True for each in launches for _ in statements(each.launch.body, BindTensor))
    empty = all(is_positive(divisor.value, each.shape, bounds) for each in outputs)
    return empty and outputs != [] and not at_addresses


def overflowing(launches: tuple[Resolved, ...]) -> Iterator[tuple[Resolved, Expr, Expr | None]]:
    """The sizes that int may not hold: extents of tensors and of grids, and numbers that kernels count to.

    With what is added to such a number before it is compared, None for nothing.
    """
    ends = {part for each in launches for part, past in _counted(each) if past is not None}
    for each in launches:
        known = {*each.program.sizes, *each.program.params}
        counted = _with_largest([*_extents(each), *_counted(each)], each.bounds)
        for part, past in (*counted, *((part, None) for part in _of_last_tiles(each))):
            if (past is not None or part not in ends) and variables(part) <= known:
                yield each, part, past


def overflowing_sums(launches: tuple[Resolved, ...]) -> Iterator[tuple[Resolved, Largest]]:
    """What int may not hold of the largest values that a kernel computes from its indices, besides `overflowing`."""
    known = tuple(
        each.bounds.linear(part if past is None else binary("+", part, past))
        for each, part, past in overflowing(launches)
    )
    for each in launches:
        yield from ((each, found) for found in overflowing_indices(each.launch, each.bounds, known))


def counts_past(launches: tuple[Resolved, ...]) -> bool:
    """Whether a kernel counts past the last of the numbers that it compares with, or to the end of a last tile."""
    return any(past is not None for each in launches for _, past in _counted(each)) or any(
        True for each in launches for _ in _of_last_tiles(each)
    )


def open_rows(resolved: Resolved) -> tuple[Expr, ...]:
    """The extents of the grid along y and z that are known only at run time; of a persistent kernel none."""
    return () if _is_persistent(resolved) else _open(resolved.launch.grid[1:])


def open_columns(resolved: Resolved) -> tuple[tuple[Expr, int], ...]:
    """The extent of the grid along x, with the most blocks whose threads a dispatch of AMD's can count in 32 bits.

    [HSA Platform System Architecture, "Architected Queuing Language"]
    """
    most = _WORK_ITEMS // resolved.launch.block_threads
    found = _open(resolved.launch.grid[:1]) if resolved.target.is_amd else ()
    return tuple((extent, most) for extent in found if most < (resolved.bounds.interval(extent).high or _WORK_ITEMS))


def numbered_tiles(resolved: Resolved) -> tuple[Expr, ...]:
    """The grid of a persistent kernel, whose tiles an int numbers, where it is not known before a call."""
    grid = resolved.launch.grid
    return grid if _is_persistent(resolved) and _open(grid) else ()


def is_of_call(expr: Expr, program: Program) -> bool:
    """Whether a scalar argument decides an expression."""
    return any(var in program.params for var in variables(expr))


def _is_persistent(resolved: Resolved) -> bool:
    return resolved.facts.get(resolved.launch, PERSISTENT) is not None


def _open(extents: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Those that are known only at run time."""
    return tuple(extent for extent in extents if static_value(extent) is None)


def _with_largest(parts: list[tuple[Expr, Expr | None]], bounds: Bounds) -> Iterator[tuple[Expr, Expr | None]]:
    """The same, where a factor that has a bound is its largest value, once for each other factor.

    One condition then holds for all numbers of tiles times numbers of blocks.
    """
    largest: dict[Expr, Expr] = {}
    split = {part: _by_bounded(part, bounds) for part, past in parts if past is None}
    for free, most in filter(None, split.values()):
        largest[free] = max(largest.get(free, most), most, key=lambda each: static_value(each) or 0)
    for part, past in parts:
        found = split.get(part) if past is None else None
        yield (part, past) if found is None else (binary("*", found[0], largest[found[0]]), None)


_FEW = 1 << 16  # numbers of blocks, and the like


def _by_bounded(part: Expr, bounds: Bounds) -> tuple[Expr, Expr] | None:
    """Of two factors the one without a bound, and the largest value of the other: its name there, or a number."""
    if isinstance(part, Binary) and part.op == "*":
        for free, other in ((part.lhs, part.rhs), (part.rhs, part.lhs)):
            interval = bounds.interval(other)
            if static_value(other) is not None or interval.high is None or (interval.low or 0) < 0:
                continue
            if interval.high < _FEW <= (bounds.interval(free).high or _FEW):
                named = (each for each in walk(other) if static_value(each) == interval.high)
                return free, next(named, int_const(interval.high))
    return None


def _extents(resolved: Resolved) -> Iterator[tuple[Expr, None]]:
    """What may overflow in the extents of a grid and of tensors.

    A tensor's that is a number more than a size of at most 65,535 blocks, or of 2**30 tiles where a kernel runs, fits.
    """
    bounds, few = resolved.bounds, set[Expr]()
    for terms in map(_summands, (*open_rows(resolved), *numbered_tiles(resolved))):
        few |= set(terms) if all(map(bounds.never_negative, terms)) else set()
    yield from ((part, None) for extent in resolved.launch.grid for part in _not_fitting(extent, bounds))
    for extent in (extent for tensor in tensors(resolved) for extent in tensor.shape):
        match extent:
            case Binary(op="+", lhs=lhs, rhs=rhs) if static_value(rhs) is not None and lhs in few:
                pass
            case _:
                yield from ((part, None) for part in _not_fitting(extent, bounds))


def _summands(expr: Expr) -> list[Expr]:
    is_sum = isinstance(expr, Binary) and expr.op == "+"
    return [each for part in children(expr) for each in _summands(part)] if is_sum else [expr]


def _not_fitting(extent: Expr, bounds: Bounds) -> Iterator[Expr]:
    yield from _may_overflow(extent, bounds)
    yield from _not_ints(extent)


def _not_ints(extent: Expr) -> Iterator[Expr]:
    """An extent of another type, and what becomes an int in one: a scalar argument may be unsigned, or of 64 bits."""
    yield from () if INT32.has_all_of(extent.dtype) else (extent,)
    unsigned = (part for part in walk(extent) if isinstance(part, Var) and part.dtype.kind == "uint")
    yield from (part for part in unsigned if not INT32.has_all_of(part.dtype))


@kept
def _counted(resolved: Resolved) -> tuple[tuple[Expr, Expr | None], ...]:
    """What may overflow in numbers of tiles, with what is added to the last number before it is compared.

    A loop adds its step; a block whose tiles are a grid apart adds a grid.
    """
    return tuple(_each_counted(resolved))


def _each_counted(resolved: Resolved) -> Iterator[tuple[Expr, Expr | None]]:
    launch, bounds = resolved.launch, resolved.bounds
    for _, value in values_of_sizes(launch):
        chosen = any(isinstance(part, Call) and part.function == "if_then_else" for part in walk(value))
        for part in _may_overflow(value, bounds):
            if not chosen or _by_bounded(part, bounds) is not None:
                yield part, None
    for end, past in _ends(resolved):
        if static_value(end) is None and is_of_sizes(end):
            yield from ((part, None) for part in _may_overflow(end, bounds))
            if not bounds.fits(binary("+", end, past)):
                yield end, past


def _of_last_tiles(resolved: Resolved) -> Iterator[Expr]:
    """Sizes rounded up to whole tiles: the last tile has indices up to there. Those of 2**n elements end at 2**31."""
    launch, bounds = resolved.launch, resolved.bounds
    ends = (*launch.grid, *(stmt.stop for stmt in launch.statements if isinstance(stmt, Loop)))
    for part in dict.fromkeys(part for end in ends for part in walk(bounds.expanded(end))):
        match part:
            case Call(function="ceildiv", args=(Var(role=Role.SIZE), tile)) if 2**31 % int(static_value(tile) or 1):
                yield binary("*", part, tile)
            case _:
                pass


def _ends(resolved: Resolved) -> Iterator[tuple[Expr, Expr]]:
    """The numbers at which a kernel stops counting, with how far past one the counter may be."""
    launch, bounds = resolved.launch, resolved.bounds
    blocks = [extent for extent in launch.grid if static_value(extent) != 1]
    for stmt in launch.statements:
        if isinstance(stmt, Loop) and (static_value(stmt.step) or 0) > 1:
            yield bounds.expanded(stmt.stop), stmt.step
        elif isinstance(stmt, If) and len(blocks) == 1 and static_value(blocks[0]) is not None:
            for part in walk(stmt.condition):
                if isinstance(part, Binary) and part.op == "<":
                    counter = {var.role for var in variables(bounds.expanded(part.lhs))}
                    if {Role.BLOCK, Role.LOOP} <= counter:
                        yield bounds.expanded(part.rhs), blocks[0]


def _may_overflow(extent: Expr, bounds: Bounds) -> Iterator[Binary]:
    """The multiples and sums of run-time sizes in a number that int may not hold, the innermost first."""
    for part in children(extent):
        yield from _may_overflow(part, bounds)
    if isinstance(extent, Binary) and extent.op in ("+", "-", "*") and not bounds.fits(extent):
        yield extent
