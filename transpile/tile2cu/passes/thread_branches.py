"""Operations on whole tiles in branches on the thread: `if tx < 128:`."""

import functools
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from msgspec.structs import replace

from tile2cu.analysis.accesses import buffers_read, buffers_written, read_by_itself
from tile2cu.analysis.bounds import bounds_of
from tile2cu.analysis.control import arms, places_of_operations
from tile2cu.analysis.groups import asked_warpgroups, in_group, is_tile_work, tile_work
from tile2cu.analysis.uniformity import MEMORY, Uniformity, uniformity_of
from tile2cu.analysis.uses import outside_of, statements
from tile2cu.core.dtype import BOOL, INT32
from tile2cu.core.errors import Note, Tile2CuError
from tile2cu.core.expr import Call, Expr, Unary, binary, int_const, static_value, substitute
from tile2cu.core.program import Buffer, If, Launch, Scope, SetRegisters, Stmt
from tile2cu.core.rebuild import Body, each_replaced, under_comments, with_bodies
from tile2cu.core.record import Record
from tile2cu.passes.distribute_branch import (
    are_uniform,
    declared,
    is_only_tile_work,
    shared_out,
    with_own_names,
)
from tile2cu.passes.overlapping_groups import without_overlaps

_THREAD = Call(INT32, "thread", ())
_WARP = 32  # threads: groups are whole warps
_WARPGROUP = 128  # threads, the unit of T.ws
_GROUPS = 12  # at most: each has a named barrier of its own (headers/tl/cuda/sync.h)
_OUT_OF_THE_BRANCH = "move it out of the `if`, with the barriers and the values of single threads that it needs"
_BY_ALL = "by all threads of the block, whoever came here: it does not matter who computes an element"


def by_thread(launch: Launch, *, groups: bool) -> Launch:
    """The launch without operations on whole tiles in divergent code.

    Where branches partition the threads, each part is a group as with T.ws; this needs named barriers: `groups`.
    Otherwise operations on whole tiles are executed by all threads, one arm after the other, where the statements of
    single threads around them order nothing. The result is the same: the value of a tile does not depend on how many
    threads compute it, each arm is taken by some thread, and no barrier of the user's orders the arms, so that any
    order of them is valid.
    Errors: T2C-P004 where neither is possible.
    """
    launch = without_overlaps(launch)
    reader = _Reader(launch)
    branches = list(reader.branches())
    if not branches:
        return launch
    found = reader.groups(branches, by_branches=groups)
    body = _Writer(reader, branches, found, has_groups=groups).body(launch.body)
    sizes = tuple(map(len, found))
    if not sizes:
        return replace(launch, body=body)
    shares = sizes if len(set(sizes)) > 1 else ()
    return replace(launch, body=body, threads=sizes[0], groups=len(sizes), shares=shares)


class _Branch(Record, frozen=True):
    """A branch on the thread, and which threads take each arm; None where that is unknown, or no range."""

    stmt: If
    taken: range | None
    left: range | None
    asked: bool = False  # of T.ws

    @property
    def both(self) -> tuple[tuple[Body, range | None], ...]:
        (then, _), (orelse, _) = arms(self.stmt)
        return (then, self.taken), (orelse, self.left)

    @property
    def arms(self) -> tuple[tuple[Body, range | None], ...]:
        """The nonempty arms."""
        return tuple(arm for arm in self.both if arm[0])


class _Reader:
    """Analyses which threads of a launch run which statements."""

    def __init__(self, launch: Launch) -> None:
        self.launch, self.bounds, self.known = launch, bounds_of(launch), uniformity_of(launch, MEMORY)
        self.known_of_parts: dict[range, Uniformity] = {}

    def of_thread(self, stmt: If, threads: range | None) -> bool:
        """Whether the `threads` that reach the branch may diverge."""
        if asked_warpgroups(stmt) is not None:
            return True
        uniform = self.known.holds(stmt.condition) or (threads and self.known_of(threads).holds(stmt.condition))
        return not uniform

    def known_of(self, threads: range) -> Uniformity:
        """The uniformity of values in a part of the block: a group's own counter is uniform in the group."""

        def uniform_branches(branch: If) -> bool:
            return self.branch(branch, threads).taken in (threads, range(0))

        if threads not in self.known_of_parts:
            part = Uniformity(self.launch, ordered=MEMORY, uniform_branches=uniform_branches)
            self.known_of_parts[threads] = part
        return self.known_of_parts[threads]

    def branches(self) -> Iterator[_Branch]:
        """The branches on the thread that contain operations on whole tiles, outermost first."""
        found: dict[int, _Branch] = {}
        for place in places_of_operations(self.launch.body):
            if isinstance(place.stmt, If) and any(map(_needs_its_threads, statements((place.stmt,), Stmt))):
                taken = (found[id(outer)].both[arm][1] for outer, arm in reversed(place.path) if id(outer) in found)
                threads = next(taken, range(self.launch.threads))  # that reach the branch
                if self.of_thread(place.stmt, threads):
                    found[id(place.stmt)] = self.branch(place.stmt, threads)
                    yield found[id(place.stmt)]

    def branch(self, stmt: If, threads: range | None) -> _Branch:
        """The branch, with the threads that take its arms."""
        numbers = asked_warpgroups(stmt)
        if numbers is None:
            return _Branch(stmt, *((None, None) if threads is None else self.split(stmt.condition, threads)))
        among = range(self.launch.threads) if threads is None else threads
        taken = [thread for thread in among if thread // _WARPGROUP in numbers]
        return _Branch(stmt, _as_range(taken), range(0), asked=True)

    def split(self, condition: Expr, threads: range) -> tuple[range | None, range | None]:
        """Those of the threads for which the condition holds, and the others, where both are ranges."""
        condition = self.bounds.expanded(condition)
        values = [static_value(substitute(condition, {_THREAD: int_const(thread)})) for thread in threads]
        if any(value is None for value in values):
            return None, None
        taken = [thread for thread, value in zip(threads, values, strict=True) if value]
        left = [thread for thread, value in zip(threads, values, strict=True) if not value]
        return _as_range(taken), _as_range(left)

    def work(self, body: Body, threads: range | None) -> list[Stmt]:
        """What all `threads` of an arm execute together: operations on whole tiles, and setmaxnreg."""
        return [
            place.stmt
            for place in places_of_operations(body)
            if (is_tile_work(place.stmt) or isinstance(place.stmt, SetRegisters))
            and not any(isinstance(outer, If) and self.of_thread(outer, threads) for outer in place.around)
        ]

    def groups(self, branches: list[_Branch], *, by_branches: bool) -> tuple[range, ...]:
        """The threads of each group, where T.ws or the arms define groups; none where all threads may run the arms."""
        asked = [branch.taken for branch in branches if branch.asked]
        shares = _disjoint(asked)
        if asked and (shares is None or len(shares) > _GROUPS):
            raise _overlapping(branches)
        arms = [arm for branch in branches if not branch.asked for arm in branch.arms if self.work(*arm)]
        working = [arm for arm in arms if not self.is_split(arm, arms)]
        sizes = {0 if taken is None else len(taken) for _, taken in working}
        by_all = (len(working) < 2 or len(sizes) > 1) and all(is_only_tile_work(body) for body, _ in working)
        if not by_branches or not working or (by_all and not asked):
            return self.even(shares or ())
        both = _disjoint([*asked, *(taken for _, taken in working)])
        fits = both is not None and len(self.even(both)) <= _GROUPS and not self.passed_on(working)
        return self.even(both if fits and both is not None else shares or ())

    def is_split(self, arm: tuple[Body, range | None], arms: list[tuple[Body, range | None]]) -> bool:
        """Whether an arm itself only sets registers, and nested parts of its threads do the work."""
        body, taken = arm
        inner = (other for _, other in arms if taken is not None and other is not None and other != taken)
        split = any(set(other) <= set(taken or ()) for other in inner)
        return split and all(isinstance(stmt, SetRegisters) for stmt in self.work(body, taken))

    def even(self, shares: tuple[range, ...]) -> tuple[range, ...]:
        """The groups, with one for the threads that are in none; of one size where that is possible."""
        if not shares:
            return ()
        total, size = self.launch.threads, len(shares[0])
        aligned = all(len(share) == size and share.start % size == 0 for share in shares)
        if aligned and total % size == 0:
            return tuple(range(first, first + size) for first in range(0, total, size))
        ends = sorted({0, total, *(share.start for share in shares), *(share.stop for share in shares)})
        return tuple(range(first, stop) for first, stop in pairwise(ends))

    def passed_on(self, working: list[tuple[Body, range | None]]) -> bool:
        """Whether a fragment that an arm writes is read outside of the arms: a group has fragments of its own."""
        inside = [stmt for body, _ in working for stmt in body]
        read = _fragments(read_by_itself, outside_of(inside, self.launch.body))
        return bool(_fragments(buffers_written, inside) & read)


class _Writer:
    """Emits the statements again; arms of a group's threads become that group's statements."""

    def __init__(
        self, reader: _Reader, branches: list[_Branch], groups: tuple[range, ...], *, has_groups: bool
    ) -> None:
        self.reader, self.groups, self.has_groups = reader, groups, has_groups
        self.inside: range | None = None  # the group whose statements are emitted
        self.names = declared(reader.launch)
        self.given: tuple[Expr, ...] = ()  # the conditions around the statements, but for a group's
        self.known = {id(branch.stmt): branch for branch in branches}

    def body(self, body: Body) -> Body:
        return each_replaced(body, self.statement)

    def statement(self, stmt: Stmt) -> Body:
        match stmt:
            case If() if id(stmt) in self.known:
                return self.branch(self.known[id(stmt)])
            case _:
                return (with_bodies(stmt, self.body),)

    def branch(self, branch: _Branch) -> Body:
        """The arms one after the other: executed by a group, by all threads, or still conditional."""
        stmt = branch.stmt
        if not branch.asked and branch.taken is None and branch.left is None:
            return self.undivided(branch)
        shared = self.by_all(branch)
        if shared:
            first, *rest = with_own_names(self.body(shared), self.names)
            return (replace(first, comments=(*stmt.comments, _BY_ALL, *first.comments)), *rest)
        conditions = stmt.condition, Unary(BOOL, "not", stmt.condition)
        arms = zip(branch.both, conditions, strict=True)
        parts = [part for (arm, taken), condition in arms for part in self.arm(arm, taken, condition, branch)]
        return under_comments(stmt, parts) if parts else ()

    def undivided(self, branch: _Branch) -> Body:
        """A branch of unknown threads, unchanged: its condition is computed once, before its arms."""
        stmt = branch.stmt
        work = next(tile_work((stmt,)), None)
        if work is not None:
            raise _unsupported(branch, work, self.has_groups)
        given, self.given = self.given, ()
        whole = with_bodies(stmt, self.body)
        self.given = given
        return (If(condition=_all_of(given), then=(whole,), span=stmt.span),) if given else (whole,)

    def by_all(self, branch: _Branch) -> Body | None:
        """Both arms with their operations on whole tiles executed by all threads, where that is equivalent."""
        grouped = branch.asked or any(taken in self.groups for _, taken in branch.arms)
        if grouped or any(taken is None or not taken for _, taken in branch.arms):
            return None
        (then, _), (orelse, _) = branch.both
        if _share_fragments(then, orelse):
            return None
        first = self.for_all(then, branch.stmt.condition)
        second = self.for_all(orelse, Unary(BOOL, "not", branch.stmt.condition))
        return None if first is None or second is None else (*first, *second)

    def for_all(self, arm: Body, condition: Expr) -> Body | None:
        """An arm with its operations on whole tiles executed by all threads."""
        if is_only_tile_work(arm) and are_uniform(arm, self.reader.known):
            return arm
        return shared_out(arm, self.under(condition), self.reader.known)

    def under(self, condition: Expr) -> Expr:
        """The condition, with those around it."""
        return _all_of((*self.given, condition))

    def arm(self, body: Body, taken: range | None, condition: Expr, branch: _Branch) -> Iterator[Stmt]:
        if not body or (taken is not None and not taken):
            return
        if taken is not None and taken in self.groups:
            yield from self.of_group(body, taken, branch)
            return
        work = next(filter(is_tile_work, self.reader.work(body, taken)), None)
        if work is not None:
            raise _unsupported(branch, work, self.has_groups)
        for stmt in body:
            if any(id(part) in self.known for part in statements((stmt,), If)):
                outside, self.given = self.given, (*self.given, condition)
                yield from self.statement(stmt)
                self.given = outside
            else:
                yield If(condition=self.under(condition), then=(stmt,), span=stmt.span)

    def of_group(self, body: Body, taken: range, branch: _Branch) -> Body:
        """The statements of a group, under one condition."""
        outside, self.inside = self.inside, taken
        given, self.given = self.given, ()
        body = self.body(self.asked_once(body, taken))
        self.inside, self.given = outside, given
        if outside == taken or not body or len(self.groups) == 1:
            return body
        orelse, _ = branch.both[1]
        at = orelse[0].span if orelse and branch.taken != taken else branch.stmt.span
        return (If(condition=in_group(self.groups.index(taken)), then=body, span=at),)

    def asked_once(self, body: Body, taken: range | None) -> Body:
        """The arm without a redundant branch around all of it: all of the threads take it."""
        (first, *rest) = body
        if rest or taken is None or not isinstance(first, If) or self.reader.split(first.condition, taken)[0] != taken:
            return body
        (then, _), _ = arms(first)
        return self.asked_once(then, taken)


def _all_of(conditions: tuple[Expr, ...]) -> Expr:
    return functools.reduce(lambda a, b: binary("and", a, b), conditions)


def _needs_its_threads(stmt: Stmt) -> bool:
    """Whether a branch with this statement may be one of a group of threads."""
    return is_tile_work(stmt) or isinstance(stmt, SetRegisters) or asked_warpgroups(stmt) is not None


def _disjoint(asked: Iterable[range | None]) -> tuple[range, ...] | None:
    """Sets of whole warps that are equal or disjoint, each once, in order; None where they are not."""
    found: list[range] = []
    for share in asked:
        if share is None or len(share) % _WARP or share.start % _WARP:
            return None
        if any(share != other and share.start < other.stop and other.start < share.stop for other in found):
            return None
        found += [share] if len(share) and share not in found else []
    return tuple(sorted(found, key=lambda share: share.start))


def _overlapping(branches: list[_Branch]) -> Tile2CuError:
    first, *others = (branch.stmt for branch in branches if branch.asked)
    return Tile2CuError(
        "T2C-P004",
        "the groups of T.ws overlap, or leave out groups in their middle",
        others[0].span if others else first.span,
        notes=(Note("a group has a barrier and fragments of its own", first.span),),
        help="name the same groups together everywhere: T.ws(0) and T.ws(1, 2), or T.ws(0), T.ws(1) and T.ws(2); "
        "a part of a group may work on tiles, too, but neither wait nor be waited for",
    )


def _fragments(of: Callable[[Stmt], frozenset[Buffer]], stmts: Iterable[Stmt]) -> set[str]:
    """The fragments that statements read, or write."""
    return {buffer.memory.name for stmt in stmts for buffer in of(stmt) if buffer.scope is Scope.FRAGMENT}


def _share_fragments(then: Body, orelse: Body) -> bool:
    """Whether one arm writes a fragment that the other uses: each then has one of its own."""
    written = [_fragments(buffers_written, arm) for arm in (then, orelse)]
    used = [_fragments(buffers_read, arm) | names for arm, names in zip((then, orelse), written, strict=True)]
    return bool(written[0] & used[1] or written[1] & used[0])


def _as_range(threads: list[int]) -> range | None:
    if not threads:
        return range(0)
    found = range(threads[0], threads[-1] + 1)
    return found if len(found) == len(threads) else None


def _unsupported(branch: _Branch, work: Stmt, has_groups: bool) -> Tile2CuError:
    notes, help = [Note("the branch depends on the thread", branch.stmt.span)], _OUT_OF_THE_BRANCH
    if has_groups:
        help += ", or give each branch whole warps, which no other branch has: 128 and 256 of 384"
    else:
        notes += [Note("the target has one barrier per workgroup: a part of its threads cannot work on tiles alone")]
    return Tile2CuError(
        "T2C-P004",
        "only some threads of the block execute this operation on a whole tile",
        work.span,
        notes=tuple(notes),
        help=help,
    )
