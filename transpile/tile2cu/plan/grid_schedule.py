"""Values that follow from the sizes alone and that both the launcher and a kernel compute."""

from collections.abc import Iterator, Mapping

from tile2cu.analysis.accesses import divisors, loaded, variables
from tile2cu.analysis.bounds import Bounds
from tile2cu.analysis.uses import statements
from tile2cu.core.decisions import PERSISTENT
from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Binary, Call, Expr, Role, Var, substitute, walk
from tile2cu.core.facts import Facts
from tile2cu.core.program import Launch, Let, Program
from tile2cu.core.record import Record

_FEWEST = 2  # named values of a kernel in the launcher's expressions: one alone is as short as its name


class GridSchedule(Record, frozen=True, kw_only=True):
    """The members of the struct from which the launcher has its grids and workspace, and kernels the same values.

    `members` are the statements that name them, in an order in which each follows from those before it; `values` are
    the same over `sizes` alone.
    """

    members: tuple[Let, ...]
    values: tuple[Expr, ...]
    sizes: tuple[Var, ...]

    def of_kernel(self, launch: Launch, facts: Facts) -> Mapping[Var, Expr]:
        """The kernel's variables that are members, with their values over sizes.

        A kernel with a tile scheduler has none: its tiles of work hold such values.
        """
        if facts.get(launch, PERSISTENT) is not None:
            return {}
        found: dict[Expr, Expr] = {}
        for let in statements((*launch.prelude, *launch.body), Let):
            value = substitute(let.value, found)
            if value in self.values:
                found[let.var] = value
        return {var: value for var, value in found.items() if isinstance(var, Var)}


def grid_schedule(program: Program, launches: tuple[tuple[Launch, Bounds], ...]) -> GridSchedule | None:
    """The named values of sizes that several of the launcher and the kernels compute, where it needs at least two.

    The launcher computes them for any sizes: none divides by what may be zero, but for the grid's own divisors.
    """
    extents = (*(launch.grid for launch, _ in launches), *(tensor.shape for tensor in program.workspaces))
    needed = {part for shape in extents for extent in shape for part in walk(extent)}
    found: dict[Expr, Let] = {}
    kernels: dict[Expr, int] = {}
    for launch, bounds in launches:
        values = {value: let for let, value in values_of_sizes(launch)}
        for value, let in values.items():
            safe = value in needed or _divides_safely(let.value, bounds)
            others = {each.var.name for of, each in found.items() if of != value}
            if isinstance(value, Binary | Call) and let.var.name not in others and safe:
                found.setdefault(value, let)
                kernels[value] = kernels.get(value, 0) + 1
    if sum(value in needed for value in found) < _FEWEST:
        return None
    members = {value: let for value, let in found.items() if value in needed or kernels[value] > 1}
    read = variables(*members)
    return GridSchedule(
        members=tuple(members.values()),
        values=tuple(members),
        sizes=tuple(size for size in program.sizes if size in read),
    )


def _divides_safely(value: Expr, bounds: Bounds) -> bool:
    return all((bounds.interval(by).low or 0) > 0 for by in divisors(value))


def values_of_sizes(launch: Launch) -> Iterator[tuple[Let, Expr]]:
    """The values that a kernel computes from sizes alone, as it names them and over sizes."""
    values: dict[Expr, Expr] = {}
    own = (*launch.prelude, *launch.body)
    for let in (stmt for stmt in own if isinstance(stmt, Let)):
        value = substitute(let.value, values)
        if let.var.dtype == INT32 and all(var.role is Role.SIZE for var in variables(value)) and not loaded(value):
            values[let.var] = value
            yield let, value
