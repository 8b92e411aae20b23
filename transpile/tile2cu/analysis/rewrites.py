"""What a rewrite of a launch did to its statements, and whether the dependences allow it.

The difference of two launches is that of their operations (loops over elements are one): kept ones, which both have,
and those that are replaced. Kept operations that are in another order must commute; one that is in other loops must
give the same in each iteration; one that is in other branches runs where it did not. An operation that is left out
wrote what nothing reads, or another one writes that; a new one writes only what a replaced one wrote, or new tiles.
An operation on a condition that no thread of the block satisfies never runs, and is none.
That a replacement computes the same values is no question of dependences: tests run both in the interpreter.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache

from msgspec.structs import replace

from tile2cu.analysis.accesses import overwrites
from tile2cu.analysis.bounds import bounds_of
from tile2cu.analysis.control import places
from tile2cu.analysis.dependence import conflicts, same_storage
from tile2cu.analysis.effects import Access, Effects, own_effects
from tile2cu.core.dtype import BOOL
from tile2cu.core.expr import Expr, Unary, Var, binary, negated, static_value
from tile2cu.core.memo import kept
from tile2cu.core.program import Buffer, If, Launch, Loop, Parallel, Scope, Stmt, While
from tile2cu.core.record import Record

Body = tuple[Stmt, ...]


class Change(Enum):
    """A kind of change that is not legal by dependences alone."""

    ORDER = "moves past an operation that it depends on"
    LOOPS = "runs in other loops, where its result differs"
    BRANCHES = "runs under other conditions"
    LEFT_OUT = "is left out, although its result is used"
    WAITS = "is left out, although it orders others"
    ADDED = "writes what nothing before it wrote"


class Violation(Record, frozen=True):
    """A change that dependences do not allow, of one operation."""

    change: Change
    stmt: Stmt
    other: Stmt | None = None

    def __str__(self) -> str:
        past = f" on line {self.other.span.line}" if self.other is not None else ""
        return f"line {self.stmt.span.line} ({type(self.stmt).__name__}) {self.change.value}{past}"


class _Place(Record, frozen=True, eq=False):
    """An operation in a launch: its position, the variables of the loops around it, and the conditions that it is on.

    Of the second arm of a branch the condition is the opposite one: a branch has it that a pass leaves with that arm.
    """

    stmt: Stmt
    at: int
    loops: tuple[Var | int, ...]
    arms: tuple[Expr, ...]

    @property
    def effects(self) -> Effects:
        """Of the operation; of a loop or branch the evaluation of its ends or its condition."""
        return own_effects(self.stmt)


def violations(before: Launch, after: Launch) -> Iterator[Violation]:
    """The changes from one launch to the other that dependences do not allow."""
    old, new = _places(before), _places(after)
    pairs = _pairs(old, new)
    both = {place for pair in pairs for place in pair}
    left_out, added = ([place for place in all_ if place not in both] for all_ in (old, new))
    yield from _orders([*pairs, *_replaced(left_out, added)])
    for was, is_ in pairs:
        yield from _loops(was, is_, old, new)
        if was.arms != is_.arms and Counter(was.arms) != Counter(is_.arms):
            yield Violation(Change.BRANCHES, was.stmt)
    yield from _left_out(left_out, added, new, pairs)
    yield from _added(left_out, added, old)


@kept
def _places(launch: Launch) -> tuple[_Place, ...]:
    """The operations of a launch in order, without those that never run."""
    never_holds = cache(bounds_of(launch).never_holds)
    found = []
    for at, place in enumerate(places(launch.body)):
        if not any(isinstance(each, Parallel) for each in place.around):
            loops = (each for each in place.around if isinstance(each, Loop | While) and not _runs_once(each))
            around = tuple(each.var if isinstance(each, Loop) else each.span.line for each in loops)
            given = place.conditions
            if not any(never_holds(each if holds else Unary(BOOL, "not", each)) for each, holds in given):
                arms = tuple(each if holds else negated(each) for each, holds in given)
                found.append(_Place(place.stmt, at, around, arms))
    return tuple(found)


def _runs_once(loop: Loop | While) -> bool:
    return isinstance(loop, Loop) and static_value(binary("-", loop.stop, loop.start)) == 1


def _pairs(old: Iterable[_Place], new: Iterable[_Place]) -> list[tuple[_Place, _Place]]:
    """The operations that both have, in the order of the first; equal ones by their order."""
    left: defaultdict[tuple[type, int, int], list[_Place]] = defaultdict(list)
    for place in new:
        left[_key(place.stmt)].append(place)
    found = []
    for was in old:
        candidates = left[_key(was.stmt)]
        same = next((each for each in candidates if each.stmt is was.stmt), None)
        same = same or next((each for each in candidates if _head(each.stmt) == _head(was.stmt)), None)
        if same is not None:
            candidates.remove(same)
            found.append((was, same))
    return found


def _head(stmt: Stmt) -> object:
    """A statement without what is below it."""
    match stmt:
        case If() | While():
            return stmt.condition
        case Loop():
            return stmt.var, stmt.start, stmt.stop, stmt.step
        case _:
            return stmt


def _key(stmt: Stmt) -> tuple[type, int, int]:
    return type(stmt), stmt.span.line, stmt.span.column


def _replaced(left_out: list[_Place], added: list[_Place]) -> Iterator[tuple[_Place, _Place]]:
    """The operations that have one other in their place: the only one that writes the same."""
    writers, writes = ({id(each): _written(each) for each in places} for places in (left_out, added))
    for was in left_out:
        same = [each for each in added if writers[id(was)] and writes[id(each)] == writers[id(was)]]
        if len(same) == 1 and list(writers.values()).count(writers[id(was)]) == 1:
            yield was, same[0]


def _written(place: _Place) -> frozenset[Buffer | Var]:
    found = place.effects
    return frozenset(access.root for access in found.writes) | found.scalars_written


def _read(place: _Place) -> frozenset[Buffer | Var]:
    found = place.effects
    return frozenset(access.root for access in found.reads) | found.scalars_read


def _orders(pairs: list[tuple[_Place, _Place]]) -> Iterator[Violation]:
    """Those that are in another order must commute, as they were or as they are now."""
    for n, (first, moved) in enumerate(pairs):
        for second, passed in pairs[n + 1 :]:
            if (first.at < second.at) == (moved.at < passed.at):
                continue
            left = first.loops == moved.loops and second.loops == passed.loops  # else no `break` of them skips it
            if not _commute(first, second, left=left) and not _commute(moved, passed, left=left):
                yield Violation(Change.ORDER, first.stmt, second.stmt)


def _commute(one: _Place, other: _Place, *, left: bool) -> bool:
    """Whether two operations commute, of one iteration or of any; `left`: also where one leaves their loop."""
    same = one.loops == other.loops
    found = (place.effects if same else _anywhere(place.effects) for place in (one, other))
    first, second = (each if left else replace(each, may_leave=False) for each in found)
    return not any(True for _ in conflicts(first, second))


def _anywhere(found: Effects) -> Effects:
    """Effects of all iterations of the loops around: their boxes may be anywhere."""

    def whole(accesses: tuple[Access, ...]) -> tuple[Access, ...]:
        return tuple(replace(access, box=(None,) * len(access.box)) for access in accesses)

    return replace(found, reads=whole(found.reads), writes=whole(found.writes))


def _loops(was: _Place, is_: _Place, old: tuple[_Place, ...], new: tuple[_Place, ...]) -> Iterator[Violation]:
    """In or out of a loop, an operation gives the same in each iteration, and what it writes is used there alone."""
    for launch, place, other in ((old, was, is_), (new, is_, was)):
        for loop in set(place.loops) - set(other.loops):
            inside = [each for each in launch if loop in each.loops and each is not place]
            outside = [each for each in launch if loop not in each.loops and each is not other]
            earlier = [each for each in inside if each.at < place.at and _reads_of(each, place)]
            same = _same_each_time(place, loop) and all(_commute_or_read(place, each) for each in inside)
            if not same or earlier:  # an earlier one reads what was there before, in the first iteration
                yield Violation(Change.LOOPS, was.stmt)
            elif place is was and any(_reads_of(each, place) for each in outside):
                yield Violation(Change.LOOPS, was.stmt)  # without an iteration it does not run


def _same_each_time(place: _Place, loop: Var | int) -> bool:
    found = place.effects
    updates = any(same_storage(a.buffer, b.buffer) for a in found.writes for b in found.reads)
    combines = any(access.combines is not None for access in found.accesses)
    waits = found.orders or found.starts or found.awaits or found.may_leave
    varies = loop in found.scalars_read or found.scalars_read & found.scalars_written
    return not (updates or combines or waits or varies)


def _commute_or_read(place: _Place, other: _Place) -> bool:
    """Whether an operation changes nothing that this one reads, nor writes what it writes."""
    mine, its = _anywhere(place.effects), _anywhere(other.effects)
    return not any(True for _ in conflicts(replace(mine, writes=(), scalars_written=frozenset()), its)) and not any(
        same_storage(a.buffer, b.buffer) for a in mine.writes for b in its.writes
    )


def _reads_of(place: _Place, writer: _Place) -> bool:
    reads = place.effects
    stored = any(same_storage(a.buffer, b.buffer) for a in reads.reads for b in writer.effects.writes)
    return stored or bool(reads.scalars_read & writer.effects.scalars_written)


def _left_out(
    left_out: list[_Place], added: list[_Place], new: tuple[_Place, ...], pairs: list[tuple[_Place, _Place]]
) -> Iterator[Violation]:
    """What an operation that is left out wrote, another one writes, or nothing reads; what it ordered is ordered."""
    instead = {each for place in added for each in _written(place)}
    ordered = any(place.effects.orders or place.effects.awaits for place in added)
    for place in left_out:
        written = _written(place) - instead
        if any(_is_result(each) or _is_read(each, place, new, pairs) for each in written):
            yield Violation(Change.LEFT_OUT, place.stmt)
        elif not ordered and (place.effects.orders or place.effects.awaits or place.effects.may_leave):
            yield Violation(Change.WAITS, place.stmt)


def _is_read(written: Buffer | Var, place: _Place, new: tuple[_Place, ...], pairs: list[tuple[_Place, _Place]]) -> bool:
    """Whether an operation may read what one that is left out wrote: not before it, nor after all is overwritten."""
    before = {is_ for was, is_ in pairs if was.at < place.at and not set(was.loops) & set(place.loops)}
    readers = [each.at for each in new if each not in before and written in _read(each)]
    return bool(readers) and not any(
        was.at > place.at and is_.at < min(readers) and not is_.loops and not is_.arms and overwrites(is_.stmt, written)
        for was, is_ in pairs
        if isinstance(written, Buffer)
    )


def _is_result(written: Buffer | Var) -> bool:
    return isinstance(written, Buffer) and written.scope is Scope.GLOBAL


def _added(left_out: list[_Place], added: list[_Place], old: tuple[_Place, ...]) -> Iterator[Violation]:
    """What an added operation writes, a replaced one wrote, or it is new."""
    replaced = {each for place in left_out for each in _written(place)}
    known = {each for place in old for each in _written(place) | _read(place)}
    for place in added:
        if any(each in known or _is_result(each) for each in _written(place) - replaced):
            yield Violation(Change.ADDED, place.stmt)
