"""Which thread accesses which element of a tile or a tensor: its own earlier accesses need no barrier."""

import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod
from types import MappingProxyType

from tile2cu.analysis.accesses import Access, element_accesses, own_accesses
from tile2cu.analysis.dependence import same_storage
from tile2cu.analysis.linear import Linear
from tile2cu.analysis.uniformity import Uniformity
from tile2cu.core.decisions import LAYOUT, VECTOR
from tile2cu.core.expr import (
    Binary,
    Call,
    Const,
    Expr,
    Named,
    Role,
    Unary,
    Var,
    int_const,
    static_value,
    substitute,
    walk,
)
from tile2cu.core.layout import Blocked, FragmentLayout
from tile2cu.core.program import (
    Assign,
    Atomic,
    Buffer,
    Copy,
    Declare,
    If,
    Let,
    Loop,
    Parallel,
    Range,
    Scope,
    Stmt,
    Store,
    While,
)
from tile2cu.core.record import Record
from tile2cu.passes.mask_after_gemm import conjuncts
from tile2cu.rules.engine import Context
from tile2cu.rules.vectors.decode_loops import SPREAD

# Of a loop or branch only the expressions in its head count.
_MOST_ELEMENTS = 1 << 15  # of an access that are listed: by all threads, in all iterations
_OF_ONE_THREAD = (Store, Let, Assign, Declare, If, While, Loop)
_SEVERAL = -1  # threads
_Positions = tuple[int, ...] | None
Conditions = tuple[tuple[Expr, bool], ...]


class Spread(Record, frozen=True):
    """The iterations of a loop access one element each: `positions` has the index of each loop variable, or None."""

    layout: FragmentLayout
    positions: tuple[int | None, ...]


class Side(Record, frozen=True):
    """A box along one dimension: its start, as loop-invariant terms and a constant, and its extent."""

    terms: frozenset[tuple[Expr, int]]
    constant: int
    extent: int

    def is_disjoint(self, other: "Side") -> bool:
        """Whether the two are provably disjoint: their starts differ by a constant."""
        (first, second) = (self, other) if self.constant <= other.constant else (other, self)
        return first.terms == second.terms and first.constant + first.extent <= second.constant


class Tiled(Record, frozen=True):
    """A tensor is accessed in tiles of a layout's shape that start at multiples of it: each element has its thread.

    `positions` has the dimension of the layout that each index of the tensor runs along, None for a fixed one. Or,
    without a layout, any threads access a `box` of it; a dimension without a side is unknown.
    """

    layout: FragmentLayout | None
    positions: tuple[int | None, ...]
    box: tuple[Side | None, ...] = ()

    def is_disjoint(self, other: "Tiled") -> bool:
        """Whether each thread accesses its own elements again, or the boxes are disjoint."""
        uniform = self.layout is not None and (self.layout, self.positions) == (other.layout, other.positions)
        sides = zip(self.box, other.box, strict=False)
        return uniform or any(one is not None and two is not None and one.is_disjoint(two) for one, two in sides)


class Listed(Record, frozen=True):
    """The elements that each thread accesses, at most one each."""

    elements: tuple[_Positions, ...]


class Alone(Record, frozen=True):
    """Any elements, by one thread."""

    thread: int


Touch = Spread | Tiled | Alone | frozenset[Listed] | None  # None: nothing is known


def disjoint(one: Touch, other: Touch) -> bool:
    """Whether no element that a thread accesses in the one way is accessed by another thread in the other way."""
    if isinstance(one, Tiled) and isinstance(other, Tiled):
        return one.is_disjoint(other)
    if isinstance(one, Alone) and isinstance(other, frozenset):
        return disjoint(other, one)
    if isinstance(one, frozenset) and isinstance(other, Alone):
        return all(thread == other.thread for thread in _owners(one).values())
    if not isinstance(one, frozenset) or not isinstance(other, frozenset):
        return one is not None and one == other
    first, second = _owners(one), _owners(other)
    return all(first[element] == second[element] != _SEVERAL for element in first.keys() & second.keys())


@lru_cache(maxsize=1 << 8)
def _owners(lists: frozenset[Listed]) -> Mapping[tuple[int, ...], int]:
    """The thread that accesses each element, or _SEVERAL."""
    found: dict[tuple[int, ...], int] = {}
    for listed in lists:
        for thread, element in enumerate(listed.elements):
            if element is not None and found.setdefault(element, thread) != thread:
                found[element] = _SEVERAL
    return found


class Owners:
    """Analyses a launch's accesses to shared tiles, and to tensors."""

    def __init__(self, context: Context, uniformity: Uniformity) -> None:
        self.context = context
        self.uniformity = uniformity
        self._known: dict[tuple[int, str, Conditions], Touch] = {}

    def touch(self, stmt: Stmt, tile: Buffer, conditions: Conditions) -> Touch:
        """How a statement accesses a tile; `conditions` are those of the enclosing branches, and their arm."""
        key = (id(stmt), tile.name, conditions)
        if key not in self._known:
            self._known[key] = self._touch(stmt, tile, conditions)
        return self._known[key]

    def _touch(self, stmt: Stmt, tile: Buffer, conditions: Conditions) -> Touch:
        if isinstance(stmt, Copy | Parallel) and self.context.launch.groups > 1:
            return None  # a layout numbers the threads of its own group
        if isinstance(stmt, Copy):
            return self._copied(stmt, tile)
        if isinstance(stmt, Parallel):
            accesses = tuple(access for access in element_accesses(stmt.body) if same_storage(access.buffer, tile))
            of = self._tiled if tile.scope is Scope.GLOBAL else self._spread
            return of(stmt, tile, accesses)
        if not isinstance(stmt, _OF_ONE_THREAD):
            return None
        accesses = tuple(each for each in own_accesses(stmt) if same_storage(each.buffer, tile))
        active = self._active(conditions)
        lists = [each for access in accesses for each in self._lists(access, tile, active)]
        if None in lists and sum(active) == 1:
            return Alone(active.index(True))
        return frozenset(each for each in lists if each is not None) if None not in lists else None

    def _copied(self, op: Copy, tile: Buffer) -> Tiled | None:
        """Between a tensor and a whole fragment whose threads hold runs of a row: each moves its own elements."""
        region, fragment = (op.src, op.dst) if op.src.buffer is tile else (op.dst, op.src)
        layout = self.context.facts.get(fragment.buffer, LAYOUT) if fragment.buffer.scope is Scope.FRAGMENT else None
        if tile.scope is not Scope.GLOBAL or region.buffer is not tile:
            return None
        box = tuple(map(self._side, region.ranges))
        if not isinstance(layout, Blocked) or not fragment.whole or op.transposed:
            return Tiled(None, (), box)
        positions = tuple(region.kept.index(dim) if dim in region.kept else None for dim in range(tile.rank))
        starts = tuple(self.context.bounds.linear(part.start) for part in region.ranges)
        same = tuple(map(static_value, region.extents)) == layout.shape
        fits = same and self._in_tiles(layout, positions, starts)
        return Tiled(layout, positions, box) if fits else Tiled(None, (), box)

    def _side(self, part: Range) -> Side | None:
        """The extent of a box along a dimension, in all iterations of the enclosing loops."""
        start, extent = self.context.bounds.linear(part.start), static_value(part.extent)
        invariant = all(isinstance(atom, Var) and atom.role in (Role.BLOCK, Role.SIZE) for atom in start.terms)
        known = invariant and isinstance(extent, int)
        return Side(frozenset(start.terms.items()), start.constant, int(extent or 0)) if known else None

    def _tiled(self, op: Parallel, tensor: Buffer, accesses: tuple[Access, ...]) -> Tiled | None:
        layout = self._whole_layout(op)
        if layout is None or any(access.buffer is not tensor for access in accesses):
            return None
        patterns = {self._shifted(op, layout, access.indices) for access in accesses}
        (positions,) = patterns if len(patterns) == 1 else (None,)
        return Tiled(layout, positions) if positions is not None else None

    def _shifted(
        self, op: Parallel, layout: FragmentLayout, indices: tuple[Expr, ...]
    ) -> tuple[int | None, ...] | None:
        """The variable of each index, apart from the start of its tile; None unless they select one element per
        iteration.
        """
        positions: list[int | None] = []
        starts: list[Linear] = []
        for index in map(self.context.bounds.linear, indices):
            found = [position for position, var in enumerate(op.vars) if index.terms.get(var) == 1]
            own = op.vars[found[0]] if len(found) == 1 else None
            positions.append(found[0] if own is not None else None)
            starts.append(Linear({atom: count for atom, count in index.terms.items() if atom != own}, index.constant))
        named = sorted(position for position in positions if position is not None)
        fits = named == list(range(len(op.vars))) and self._in_tiles(layout, tuple(positions), tuple(starts))
        return tuple(positions) if fits else None

    def _in_tiles(self, layout: FragmentLayout, positions: tuple[int | None, ...], starts: tuple[Linear, ...]) -> bool:
        """Whether all threads access the same tile, which starts at multiples of the layout's shape."""
        if layout.replicas != 1 or not all(self.uniformity.holds(atom) for start in starts for atom in start.terms):
            return False
        along = [(start, layout.shape[dim]) for start, dim in zip(starts, positions, strict=True) if dim is not None]
        return all(count % extent == 0 for start, extent in along for count in (start.constant, *start.terms.values()))

    def _spread(self, op: Parallel, tile: Buffer, accesses: tuple[Access, ...]) -> Spread | None:
        layout = self._whole_layout(op)
        patterns = {self._positions(op, access.indices) for access in accesses if access.buffer is tile}
        (positions,) = patterns if len(patterns) == 1 else (None,)
        alone = layout is not None and all(access.buffer is tile for access in accesses)
        return Spread(layout, positions) if layout is not None and alone and positions is not None else None

    def _whole_layout(self, op: Parallel) -> FragmentLayout | None:
        """The layout of a loop, if it has the loop's extents, and one thread per iteration accesses its elements."""
        layout = self.context.facts.get(op, LAYOUT)
        if layout is None or layout.replicas != 1:
            return None
        if self.context.facts.get(op, VECTOR) == SPREAD and not isinstance(layout, Blocked):
            return None  # lanes exchange vectors
        return layout if layout.shape == tuple(map(static_value, op.extents)) else None

    def _positions(self, op: Parallel, indices: tuple[Expr, ...]) -> tuple[int | None, ...] | None:
        """The variable of each index; None where they do not select one element per iteration."""
        expanded = [self.context.bounds.expanded(index) for index in indices]
        found = [op.vars.index(index) if isinstance(index, Var) and index in op.vars else None for index in expanded]
        fixed = [index for index, position in zip(expanded, found, strict=True) if position is None]
        named = sorted(position for position in found if position is not None)
        if named != list(range(len(op.vars))) or not all(map(self.uniformity.holds, fixed)):
            return None
        return tuple(found)

    def overlaps_itself(self, stmt: Stmt, tile: Buffer, conditions: Conditions) -> bool:
        """Whether threads may read elements of a tile that others write in the same statement.

        An element that a statement of single threads reads and writes is the thread's own where it is unknown which
        threads execute it.
        """
        if not isinstance(stmt, Store | Atomic):
            return False
        accesses = [each for each in own_accesses(stmt) if same_storage(each.buffer, tile)]
        writes = [access for access in accesses if access.is_store]
        known = self.taking(conditions) is not None
        indices = {(write.buffer, write.indices) for write in writes}
        reads = [
            access
            for access in accesses
            if not access.is_store and not access.atomic and (known or {(access.buffer, access.indices)} != indices)
        ]
        active = self._active(conditions)
        if not reads or not writes or sum(active) == 1:
            return False
        read, written = (
            [each for access in of for each in self._lists(access, tile, active)] for of in (reads, writes)
        )
        if None in read or None in written:
            return {(access.buffer, access.indices) for access in reads} != indices
        return not disjoint(
            frozenset(each for each in read if each is not None),
            frozenset(each for each in written if each is not None),
        )

    def is_one_for_all(self, condition: Expr) -> bool:
        """Whether a condition is uniform over all threads of the block: `tx < 256` in a block of 256."""
        alone = _is_of_thread_alone(self.context.bounds.expanded(condition))
        return alone and len(set(self._active(((condition, True),)))) == 1

    def taking(self, conditions: Conditions) -> tuple[bool, ...] | None:
        """Which threads take a branch under these conditions, where all of them do in uniform ones; None: unknown."""
        parts = (part for condition, arm in conditions for part in (conjuncts(condition) if arm else (condition,)))
        known = all(
            _is_of_thread_alone(self.context.bounds.expanded(part)) or self.uniformity.holds(part) for part in parts
        )
        return self._active(conditions) if known else None

    def _active(self, conditions: Conditions) -> tuple[bool, ...]:
        """The threads that may be active under the conditions."""
        active = [True] * self.context.launch.block_threads
        parts = [
            (part, arm) for condition, arm in conditions for part in (conjuncts(condition) if arm else (condition,))
        ]
        for condition, arm in parts:
            expanded = self.context.bounds.expanded(condition)
            if _is_of_thread_alone(expanded):
                values = _values(expanded, len(active))
                active = [comes and bool(value) == arm for comes, value in zip(active, values, strict=True)]
        return tuple(active)

    def _lists(self, access: Access, tile: Buffer, active: tuple[bool, ...]) -> Iterator[Listed | None]:
        """The elements that threads access, for each value of the enclosing loops' variables; None for unknown."""
        indices = tuple(map(self.context.bounds.expanded, access.indices))
        iterations = {
            part: self.context.bounds.interval(part)
            for index in indices
            for part in walk(index)
            if isinstance(part, Var) and part.role is Role.LOOP
        }
        values = [range(each.low or 0, (each.high or 0) + 1) for each in iterations.values()]
        bounded = all(each.low is not None and each.high is not None for each in iterations.values())
        if access.buffer is not tile or not bounded or prod(map(len, values)) * len(active) > _MOST_ELEMENTS:
            yield None
            return
        for chosen in itertools.product(*values):
            known: dict[Expr, Expr] = {var: int_const(value) for var, value in zip(iterations, chosen, strict=True)}
            yield self._listed(tuple(substitute(index, known) for index in indices), active)

    def _listed(self, indices: tuple[Expr, ...], active: tuple[bool, ...]) -> Listed | None:
        if not all(map(_is_of_thread_alone, indices)):
            return None
        each = zip(*(_values(index, len(active)) for index in indices), strict=True) if indices else [()] * len(active)
        return Listed(tuple(element if comes else None for element, comes in zip(each, active, strict=True)))


_OPERATORS: Mapping[str, Callable[[int, int], int]] = MappingProxyType(
    {
        "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
        "^": operator.xor, "&": operator.and_, "|": operator.or_, "<<": operator.lshift, ">>": operator.rshift,
        "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
        "!=": operator.ne, "and": lambda a, b: a and b, "or": lambda a, b: a or b,
    }
)  # fmt: skip

_SIGNS: Mapping[str, Callable[[int], int]] = MappingProxyType(
    {"-": operator.neg, "~": operator.invert, "not": operator.not_}
)


def _is_of_thread_alone(expr: Expr) -> bool:
    """Whether an integer expression depends on nothing but the thread's index."""
    for part in walk(expr):
        match part:
            case Const() | Named():
                known = isinstance(static_value(part), int)
            case Call(function="thread", args=()):
                known = True
            case Binary(op=op):
                divides = op in ("//", "%", "<<", ">>")
                known = op in _OPERATORS and (not divides or (static_value(part.rhs) or 0) > 0)
            case Unary(op=op):
                known = op in ("-", "not", "~")
            case _:
                known = False
        if not known:
            return False
    return True


def _values(expr: Expr, threads: int) -> Sequence[int]:
    """The values in each thread of an expression that depends on nothing but its index."""
    match expr:
        case Binary(op=op, lhs=lhs, rhs=rhs):
            return [*map(_OPERATORS[op], _values(lhs, threads), _values(rhs, threads))]
        case Unary(op=op, operand=operand):
            return [*map(_SIGNS[op], _values(operand, threads))]
        case Call():
            return range(threads)
        case _:
            return [int(static_value(expr) or 0)] * threads
