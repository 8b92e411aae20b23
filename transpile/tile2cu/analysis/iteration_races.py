"""Elements of a shared tile that an iteration of T.Parallel reads and another one writes."""

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod

from tile2cu.analysis.accesses import Access, own_accesses
from tile2cu.analysis.bounds import Bounds, bounds_of
from tile2cu.analysis.linear import Linear
from tile2cu.analysis.uses import statements
from tile2cu.core.expr import Call, Expr, Var, static_value, walk
from tile2cu.core.program import Launch, Parallel, Scope, Store
from tile2cu.core.record import Record

_MOST = 1 << 16  # iterations of a loop that are compared


class Race(Record, frozen=True):
    """A load of an element that another iteration's store writes; iterations are unordered."""

    load: Access
    store: Access


def iteration_races(launch: Launch) -> Iterator[Race]:
    """The first race of each loop. What is under a condition is not examined: it may select disjoint elements."""
    bounds = bounds_of(launch)
    for loop in statements(launch.body, Parallel):
        found = next((race for race in _candidates(loop) if _meet(race, loop, bounds)), None)
        if found is not None:
            yield found


def _candidates(loop: Parallel) -> Iterator[Race]:
    """Pairs of accesses to one shared tile by different indices."""
    stores = [stmt for stmt in loop.body if isinstance(stmt, Store)]
    if any(isinstance(part, Call) and part.function == "if_then_else" for stmt in stores for part in walk(stmt.value)):
        return
    accesses = [access for stmt in stores for access in own_accesses(stmt) if access.buffer.scope is Scope.SHARED]
    for store in accesses:
        for load in accesses:
            same = load.buffer is store.buffer and load.indices != store.indices
            if store.is_store and not load.is_store and same and not (load.atomic or store.atomic):
                yield Race(load, store)


def _meet(race: Race, loop: Parallel, bounds: Bounds) -> bool:
    """Whether an iteration writes an element that another one reads, where both are known."""
    extents = [static_value(extent) for extent in loop.extents]
    known = [extent for extent in extents if isinstance(extent, int)]
    if len(known) < len(extents) or prod(known) > _MOST:
        return False
    pairs = [
        (_of_iteration(bounds.linear(one), loop), _of_iteration(bounds.linear(other), loop))
        for one, other in zip(race.store.indices, race.load.indices, strict=True)
    ]
    if any(one.rest != other.rest for one, other in pairs):
        return False
    numbers = [*product(*(range(extent) for extent in known))]
    writer = {tuple(one.at(number) for one, _ in pairs): number for number in numbers}
    return any(writer.get(tuple(other.at(number) for _, other in pairs), number) != number for number in numbers)


class _Index(Record, frozen=True):
    """An index: a sum over the variables of a loop, and the same `rest` in all iterations."""

    factors: tuple[int, ...]
    constant: int
    rest: Mapping[Expr, int]

    def at(self, number: tuple[int, ...]) -> int:
        return self.constant + sum(factor * at for factor, at in zip(self.factors, number, strict=True))


def _of_iteration(index: Linear, loop: Parallel) -> _Index:
    own: set[Var] = {*loop.vars}
    rest = {atom: factor for atom, factor in index.terms.items() if atom not in own}
    return _Index(tuple(index.terms.get(var, 0) for var in loop.vars), index.constant, rest)
