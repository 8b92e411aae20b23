"""The sizes that a launcher takes: each limit as the check that it makes, and in the words of the head of the file."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tile2cu.analysis.accesses import divisors, variables
from tile2cu.analysis.bounds import Bounds
from tile2cu.core.expr import Binary, Call, Expr, Load, Role, binary, children, int_const, static_value, walk
from tile2cu.core.program import If, Loop, Program
from tile2cu.core.schedule import Multiple
from tile2cu.emitter.tma import block_threads, distinct, persistent_in
from tile2cu.plan.grid_schedule import values_of_sizes
from tile2cu.plan.requirements import required_multiples
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.tensors import tensors
from tile2cu.styles.base.comments import listed
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.tensor_map import TensorMap
from tile2cu.styles.base.view import Limit
from tile2cu.styles.base.vocabulary import FITS_INT, MAX_GRID_YZ, TILE_COUNT_FITS_INT


@dataclass(frozen=True)
class Written:
    """A launch whose kernel is written: what the launcher needs of it."""

    resolved: Resolved
    printer: Printer
    maps: dict[int, TensorMap]
    multiples: tuple[Multiple, ...] = ()  # more conditions on run-time sizes for 16-byte accesses, of the style


_WORK_ITEMS = 2**32 - 1  # of a grid along x


def size_limits(launches: tuple[Written, ...], *, of_call: bool) -> tuple[Limit, ...]:
    """The limits of a grid, and of tensors without elements, on run-time sizes, `of_call` where a scalar argument
    decides: NAME_supports, which is asked with sizes, has none.
    """
    limits = (
        *_divisors(launches, of_call),
        *_extent_limits(launches, of_call),
        *_grid_limits(launches, of_call),
        *_workitem_limits(launches, of_call),
        *_tile_limits(launches, of_call),
    )
    return tuple(limit for limit in limits if limit.conditions)


def _divisors(launches: tuple[Written, ...], of_call: bool) -> Iterator[Limit]:
    """What the launcher itself divides by is not zero."""
    found = [
        (each.printer, divisor)
        for each in launches
        for extent in each.resolved.launch.grid
        for divisor in divisors(extent)
        if static_value(divisor) is None
        if of_call == is_of_call(divisor, each.resolved.program)
    ]
    yield Limit(
        conditions=_unique(f"{printer.index(divisor)} == 0" for printer, divisor in found),
        comment="The grid's extents are quotients",
        stated=f"{_words(found)} must not be 0",
    )


def _extent_limits(launches: tuple[Written, ...], of_call: bool) -> Iterator[Limit]:
    """The extents of tensors and of grids are ints, and so are the numbers that kernels count to."""
    ends = {part: past for each in launches for part, past in _counted(each.resolved) if past is not None}
    found = dict.fromkeys(
        (_in_64_bits(part, each.printer, past), _word(each.printer, part if past is None else binary("+", part, past)))
        for each in launches
        for part, past in _with_largest([*_extents(each), *_counted(each.resolved)], each.resolved.bounds)
        if past is not None or part not in ends
        if variables(part) <= {*each.resolved.program.sizes, *each.resolved.program.params}
        if of_call == is_of_call(part, each.resolved.program)
    )
    of_tiles = "Tile indices are ints; loops compute them up to a step past the end"
    yield Limit(
        conditions=tuple(f"!{FITS_INT}({wide})" for wide, _ in found),
        comment=of_tiles if ends else "Extents are ints",
        stated=f"{listed([word for _, word in found])} must be at most 2,147,483,647 (32-bit ints)",
    )


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


def _extents(written: Written) -> Iterator[tuple[Expr, None]]:
    """What may overflow in the extents of a grid and of tensors."""
    resolved = written.resolved
    for extent in (*resolved.launch.grid, *(extent for tensor in tensors(resolved) for extent in tensor.shape)):
        yield from ((part, None) for part in _may_overflow(extent, resolved.bounds))


def _counted(resolved: Resolved) -> Iterator[tuple[Expr, Expr | None]]:
    """What may overflow in numbers of tiles, with what is added to the last number before it is compared.

    A loop adds its step; a block whose tiles are a grid apart adds a grid.
    """
    launch, bounds = resolved.launch, resolved.bounds
    for _, value in values_of_sizes(launch):
        chosen = any(isinstance(part, Call) and part.function == "if_then_else" for part in walk(value))
        for part in _may_overflow(value, bounds):
            if not chosen or _by_bounded(part, bounds) is not None:
                yield part, None
    for end, past in _ends(resolved):
        if static_value(end) is None and _is_of_sizes(end):
            yield from ((part, None) for part in _may_overflow(end, bounds))
            if not bounds.fits(binary("+", end, past)):
                yield end, past


def _is_of_sizes(expr: Expr) -> bool:
    """Whether the launcher knows an expression: it reads no memory of the kernel."""
    reads = any(isinstance(part, Load) for part in walk(expr))
    return not reads and all(var.role is Role.SIZE for var in variables(expr))


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
    """The multiples and sums of run-time sizes in an extent that int may not hold, the innermost first.

    No tensor has an extent `batch + 1` that overflows: 2**31 is no extent that a caller can pass.
    """
    for part in children(extent):
        yield from _may_overflow(part, bounds)
    if isinstance(extent, Binary) and extent.op in ("+", "-", "*") and not bounds.fits(extent):
        by_number = any(static_value(side) is not None for side in (extent.lhs, extent.rhs))
        if extent.op == "*" or not by_number:
            yield extent


def _in_64_bits(expr: Expr, printer: Printer, past: Expr | None) -> str:
    """An operation on ints, and what is added, which cannot overflow in 64 bits."""
    added = f" + {printer.index(past)}" if past is not None else ""
    if not isinstance(expr, Binary) or expr.op not in ("+", "-", "*"):
        return f"int64_t({printer.index(expr)}){added}"
    rhs = printer.index(expr.rhs)
    wide = f"int64_t({printer.index(expr.lhs)}) {expr.op} {f'({rhs})' if isinstance(expr.rhs, Binary) else rhs}"
    return wide + added


def _grid_limits(launches: tuple[Written, ...], of_call: bool) -> Iterator[Limit]:
    found = [
        (each.printer, extent)
        for each in launches
        if persistent_in(each.resolved) is None
        for extent in _open(each.resolved.launch.grid[1:])
        if of_call == is_of_call(extent, each.resolved.program)
    ]
    blocks = "workgroups" if launches[0].resolved.target.is_amd else "blocks"
    yield Limit(
        conditions=_unique(f"{printer.index(extent)} > {MAX_GRID_YZ}" for printer, extent in found),
        comment=f"A grid may have 65,535 {blocks} along y, and along z",
        stated=f"{_words(found)} must be at most 65,535 ({blocks} of a grid along y or z)",
    )


def _workitem_limits(launches: tuple[Written, ...], of_call: bool) -> Iterator[Limit]:
    """A dispatch counts the threads (work-items) of a grid along x in 32 bits. [HSA Platform System Architecture,
    "Architected Queuing Language"]
    """
    found = [
        (each.printer, extent, most, "::".join(filter(None, (each.resolved.namespace, block_threads(each.resolved)))))
        for each in launches
        if each.resolved.target.is_amd
        for extent in _open(each.resolved.launch.grid[:1])
        if of_call == is_of_call(extent, each.resolved.program)
        for most in [_WORK_ITEMS // each.resolved.launch.block_threads]
        if most < (each.resolved.bounds.interval(extent).high or _WORK_ITEMS)
    ]
    for most in dict.fromkeys(limit for _, _, limit, _ in found):
        own = [(printer, extent, size) for printer, extent, limit, size in found if limit == most]
        yield Limit(
            conditions=_unique(f"{printer.index(extent)} > int(UINT32_MAX / {size})" for printer, extent, size in own),
            comment="A grid may have 2^32 - 1 threads along x",
            stated=f"{_words([each[:2] for each in own])} must be at most {most:,} "
            "(the threads of a grid along x are counted in 32 bits)",
        )


def _tile_limits(launches: tuple[Written, ...], of_call: bool) -> Iterator[Limit]:
    """The tiles of a persistent kernel are numbered by an int."""
    grids = [
        (each.printer, each.resolved.launch.grid)
        for each in launches
        if persistent_in(each.resolved) is not None
        and (extents := _open(each.resolved.launch.grid))
        and of_call == any(is_of_call(extent, each.resolved.program) for extent in extents)
    ]
    counts = _unique(" times ".join(_word(printer, extent) for extent in grid) for printer, grid in grids)
    yield Limit(
        conditions=_unique(f"!{TILE_COUNT_FITS_INT}({', '.join(map(printer.index, grid))})" for printer, grid in grids),
        comment="At most 2^30 tiles: an int numbers them, to which a block adds the number of blocks",
        stated=f"{listed(list(counts))} must be at most 1,073,741,824 (tiles)",
    )


def quotient_limits(launches: tuple[Written, ...]) -> tuple[Limit, ...]:
    """A tensor without elements whose size is a quotient of one that is not zero has no tensor map.

    Where a size itself is zero nothing is loaded along it. A GPU that loads without a map reports an illegal
    instruction.
    """
    required = required_multiples(tuple(each.resolved for each in launches))
    whole = {each.value: each.of for each in required}  # a remainder is unsupported already
    found = {
        each.printer.text(extent): (each.printer, extent)
        for each in launches
        for view in distinct(each.maps)
        for extent in view.tensor.shape
        if isinstance(extent, Binary) and extent.op == "//" and static_value(extent.rhs) not in (None, 1)
        if static_value(extent) is None and whole.get(extent.lhs, 1) % int(static_value(extent.rhs) or 1) != 0
    }
    return tuple(
        Limit(
            conditions=(f"{printer.text(extent.lhs)} > 0 && {text} == 0",),
            comment="" if n else "TMA has no map of a tensor without elements",
            stated=f"{_words([(printer, extent)])} must not be 0 where {_words([(printer, extent.lhs)])} is not",
        )
        for n, (text, (printer, extent)) in enumerate(found.items())
    )


def is_of_call(expr: Expr, program: Program) -> bool:
    """Whether a scalar argument decides an expression."""
    return any(var in program.params for var in variables(expr))


def _open(extents: tuple[Expr, ...]) -> list[Expr]:
    """Those that are known only at run time."""
    return [extent for extent in extents if static_value(extent) is None]


def _words(found: Iterable[tuple[Printer, Expr]]) -> str:
    return listed(list(_unique(_word(printer, expr) for printer, expr in found)))


def _word(printer: Printer, expr: Expr) -> str:
    """An expression as the head of a file has it."""
    return printer.in_words(expr)


def _unique(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))
