"""The sizes that a launcher takes: each limit as the check that it makes, and in the words of the head of the file."""

from collections.abc import Callable, Iterable, Iterator

from tile2cu.analysis.bounds import Bounds, factors
from tile2cu.analysis.linear import Linear
from tile2cu.core.dtype import UINT64
from tile2cu.core.expr import Binary, Call, Expr, binary, int_const, static_value, walk
from tile2cu.core.record import Record
from tile2cu.core.schedule import Multiple
from tile2cu.emitter.tma import block_threads, distinct
from tile2cu.plan.requirements import required_multiples
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.size_limits import (
    Divisor,
    counts_past,
    divisors_of_blocks,
    divisors_of_extents,
    divisors_of_workspaces,
    is_idle,
    is_of_call,
    numbered_tiles,
    open_columns,
    open_rows,
    overflowing,
    overflowing_sums,
)
from tile2cu.styles.base.comments import listed
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.tensor_map import TensorMap
from tile2cu.styles.base.view import Limit
from tile2cu.styles.base.vocabulary import FITS_INT, INT_MAX, MAX_GRID_YZ, TILE_COUNT_FITS_INT


class Written(Record, frozen=True):
    """A launch whose kernel is written: what the launcher needs of it."""

    resolved: Resolved
    printer: Printer
    maps: dict[int, TensorMap]
    multiples: tuple[Multiple, ...] = ()  # more conditions on run-time sizes for 16-byte accesses, of the style


def size_limits(launches: tuple[Written, ...], *, of_call: bool) -> tuple[Limit, ...]:
    """The limits of a grid, and of tensors without elements, on run-time sizes, `of_call` where a scalar argument
    decides: NAME_supports, which is asked with sizes, has none.
    """
    limits = (
        *_divisors(launches, of_call),
        *_extent_limits(launches, of_call),
        *_index_limits(launches, of_call),
        *_grid_limits(launches, of_call),
        *_workitem_limits(launches, of_call),
        *_tile_limits(launches, of_call),
    )
    return tuple(limit for limit in limits if limit.conditions)


def _asked(
    launches: tuple[Written, ...], parts: Callable[[Resolved], Iterable[Expr]], of_call: bool
) -> list[tuple[Printer, Expr]]:
    """The parts of each launch that a scalar argument decides, or not."""
    asked = ((each, part) for each in launches for part in parts(each.resolved))
    return [(each.printer, part) for each, part in asked if of_call == is_of_call(part, each.resolved.program)]


def _divisors(launches: tuple[Written, ...], of_call: bool) -> Iterator[Limit]:
    """What the launcher itself divides by is not zero, nor what blocks divide by where they compute something."""
    found = _asked(launches, lambda resolved: [each.value for each in divisors_of_extents(resolved)], of_call)
    yield Limit(
        conditions=_unique(_is_zero(printer, Divisor(divisor)) for printer, divisor in found),
        comment="Extents are quotients",
        stated=f"{_words(found)} must not be 0",
    )
    resolved = tuple(each.resolved for each in launches)
    asked = _divisors_of_blocks(launches, of_call)
    others = [(printer, each) for printer, each in asked if not is_idle(each, resolved)]
    for counts in dict.fromkeys(each.counts for _, each in others):
        own = [(printer, each.value) for printer, each in others if each.counts == counts]
        yield Limit(
            conditions=_unique(_is_zero(printer, Divisor(divisor, counts)) for printer, divisor in own),
            comment="Blocks divide by it",
            stated=f"{_words(own)} must not be 0{_where(counts, launches[0].printer)}, as blocks divide by it",
        )


def idle(launches: tuple[Written, ...]) -> Limit:
    """Where a divisor is 0 because all tensors that a call writes to are empty: it launches nothing."""
    resolved = tuple(each.resolved for each in launches)
    asked = [*_divisors_of_blocks(launches, False), *_divisors_of_blocks(launches, True)]
    found = [(printer, Divisor(each.value)) for printer, each in asked if is_idle(each, resolved)]
    return Limit(
        conditions=_unique(_is_zero(printer, each) for printer, each in found),
        comment="No output has elements; blocks would divide by 0",
        stated="",
    )


def no_workspace(launches: tuple[Written, ...]) -> Limit:
    """Where a workspace has no size, as it would be a quotient by 0: the launcher rejects such a call."""
    first = launches[0]
    return Limit(
        conditions=_unique(_is_zero(first.printer, each) for each in divisors_of_workspaces(first.resolved)),
        comment="No quotient: the launcher returns TL_INVALID_SIZE",
        stated="",
    )


def _divisors_of_blocks(launches: tuple[Written, ...], of_call: bool) -> list[tuple[Printer, Divisor]]:
    return [
        (each.printer, divisor)
        for each in launches
        for divisor in divisors_of_blocks(each.resolved)
        if of_call == any(is_of_call(part, each.resolved.program) for part in (divisor.value, *divisor.counts))
    ]


def _is_zero(printer: Printer, divisor: Divisor) -> str:
    zero = printer.text(binary("==", divisor.value, int_const(0)))
    return " && ".join([*_positive(printer, divisor.counts), zero])


def _positive(printer: Printer, counts: tuple[Expr, ...]) -> list[str]:
    return [printer.text(binary(">", count, int_const(0))) for count in counts]


def _where(counts: tuple[Expr, ...], printer: Printer) -> str:
    """Where a limit holds: where some numbers of blocks and iterations are positive."""
    return f" where {listed([f'{printer.in_words(count)} > 0' for count in counts])}" if counts else ""


def _extent_limits(launches: tuple[Written, ...], of_call: bool) -> Iterator[Limit]:
    """The extents of tensors and of grids are ints, and so are the numbers that kernels count to."""
    printers, resolved = {each.resolved: each.printer for each in launches}, tuple(each.resolved for each in launches)
    found = dict.fromkeys(
        (
            _is_no_int(part, printers[each], past),
            printers[each].in_words(binary("+", part, past) if past is not None else part),
        )
        for each, part, past in overflowing(resolved)
        if of_call == is_of_call(part, each.program)
    )
    of_tiles = "Tile indices are ints; loops compute them up to a step past the end"
    yield Limit(
        conditions=tuple(condition for condition, _ in found),
        comment=of_tiles if counts_past(resolved) else "Extents are ints",
        stated=f"{listed([word for _, word in found])} must be at most 2,147,483,647 (32-bit ints)",
    )


def _index_limits(launches: tuple[Written, ...], of_call: bool) -> Iterator[Limit]:
    """What kernels compute from their indices are ints."""
    printers = {each.resolved: each.printer for each in launches}
    asked = [
        (each, found)
        for each, found in overflowing_sums(tuple(printers))
        if of_call == any(is_of_call(atom, each.program) for atom in found.most.terms)
    ]
    for counts in dict.fromkeys(found.counts for _, found in asked):
        own = [(each, found.most) for each, found in asked if found.counts == counts]
        words = _unique(_in_words(most, printers[each]) for each, most in own)
        numbers = _unique(_in_double(most, printers[each], each.bounds.of_values) for each, most in own)
        where = _positive(printers[own[0][0]], counts)
        yield Limit(
            conditions=tuple(" && ".join([*where, f"{number} > {INT_MAX}"]) for number in numbers),
            comment="Indices are ints",
            stated=f"{listed(list(words))} must be at most 2,147,483,647 (32-bit ints)"
            + _where(counts, launches[0].printer),
        )


def _in_words(sum_: Linear, printer: Printer) -> str:
    def factor(expr: Expr) -> str:
        text = printer.in_words(expr)
        return f"({text})" if isinstance(expr, Binary) else text

    return _terms(sum_, factor, factor)


def _in_double(sum_: Linear, printer: Printer, bounds: Bounds) -> str:
    """A sum of multiples in double, of whose parts only those that fit are computed in int."""

    def fits(expr: Expr) -> bool:
        return all(map(bounds.never_wraps, walk(expr)))

    def wide(expr: Expr) -> str:
        match expr:
            case _ if fits(expr):
                return f"double({printer.index(expr)})"
            case Binary(op="//", lhs=lhs, rhs=divisor):
                return f"std::floor({wide(lhs)} / {printer.index(divisor)})"
            case Call(function="ceildiv", args=(lhs, divisor)):
                return f"std::ceil({wide(lhs)} / {printer.index(divisor)})"
            case Binary(op="+" | "-" | "*" as op, lhs=lhs, rhs=rhs):
                return f"({wide(lhs)} {op} {factor(rhs)})"
            case _:
                raise AssertionError("limits have sums, multiples and quotients of sizes")

    def factor(expr: Expr) -> str:
        if not fits(expr):
            return wide(expr)
        text = printer.index(expr)
        return f"({text})" if isinstance(expr, Binary) else text

    return _terms(sum_, wide, factor)


def _terms(sum_: Linear, first: Callable[[Expr], str], other: Callable[[Expr], str]) -> str:
    """A sum of multiples, by the texts of the `first` factor of each and of any `other` one."""
    parts: list[tuple[bool, str]] = []
    for atom, multiple in sum_.terms.items():
        head, *rest = factors(atom)
        texts = [first(head), *map(other, rest), *([str(abs(multiple))] if abs(multiple) != 1 else [])]
        parts.append((multiple < 0, " * ".join(texts)))
    parts += [(sum_.constant < 0, str(abs(sum_.constant)))] if sum_.constant else []
    (is_less, found), *others = parts
    return ("-" if is_less else "") + found + "".join(f" {'-' if less else '+'} {each}" for less, each in others)


def _is_no_int(part: Expr, printer: Printer, past: Expr | None) -> str:
    """The check of a size that int may not hold: an unsigned one of 64 bits is compared as it is."""
    if part.dtype == UINT64 and not isinstance(part, Binary):
        return f"{printer.index(part)} > {INT_MAX}"
    return f"!{FITS_INT}({_in_64_bits(part, printer, past)})"


def _in_64_bits(expr: Expr, printer: Printer, past: Expr | None) -> str:
    """An operation on ints, and what is added, which cannot overflow in 64 bits."""
    added = f" + {printer.index(past)}" if past is not None else ""
    if not isinstance(expr, Binary) or expr.op not in ("+", "-", "*"):
        return f"int64_t({printer.index(expr)}){added}"
    rhs = printer.index(expr.rhs)
    wide = f"int64_t({printer.index(expr.lhs)}) {expr.op} {f'({rhs})' if isinstance(expr.rhs, Binary) else rhs}"
    return wide + added


def _grid_limits(launches: tuple[Written, ...], of_call: bool) -> Iterator[Limit]:
    found = _asked(launches, open_rows, of_call)
    blocks = "workgroups" if launches[0].resolved.target.is_amd else "blocks"
    yield Limit(
        conditions=_unique(f"{printer.index(extent)} > {MAX_GRID_YZ}" for printer, extent in found),
        comment=f"A grid may have 65,535 {blocks} along y, and along z",
        stated=f"{_words(found)} must be at most 65,535 ({blocks} of a grid along y or z)",
    )


def _workitem_limits(launches: tuple[Written, ...], of_call: bool) -> Iterator[Limit]:
    """A dispatch of AMD's counts the threads (work-items) of a grid along x in 32 bits."""
    found = [
        (each.printer, extent, most, "::".join(filter(None, (each.resolved.namespace, block_threads(each.resolved)))))
        for each in launches
        for extent, most in open_columns(each.resolved)
        if of_call == is_of_call(extent, each.resolved.program)
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
        (each.printer, grid)
        for each in launches
        if (grid := numbered_tiles(each.resolved))
        and of_call == any(is_of_call(extent, each.resolved.program) for extent in grid)
    ]
    counts = _unique(" times ".join(printer.in_words(extent) for extent in grid) for printer, grid in grids)
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


def _words(found: Iterable[tuple[Printer, Expr]]) -> str:
    return listed(list(_unique(printer.in_words(expr) for printer, expr in found)))


def _unique(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))
