"""T.ws of warpgroups that other T.ws name in larger sets: the larger set executes their operations on whole tiles."""

from itertools import combinations

from msgspec.structs import replace

from tile2cu.analysis.control import only_arm
from tile2cu.analysis.groups import asked_warpgroups, in_warpgroups
from tile2cu.analysis.uniformity import MEMORY, Uniformity, uniformity_of
from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Call, Expr, binary, int_const
from tile2cu.core.program import If, Launch, Stmt
from tile2cu.core.rebuild import Body, each_replaced, with_bodies
from tile2cu.passes.distribute_branch import declared, shared_out, with_own_names

_WARPGROUP = 128  # threads, the unit of T.ws
_THREAD = Call(INT32, "thread", ())

Groups = frozenset[int]


def without_overlaps(launch: Launch) -> Launch:
    """The launch in which T.ws name disjoint sets of warpgroups, as far as that is equivalent.

    A T.ws of all warpgroups runs in all threads of the block. Where one set is within another, the larger one executes
    the operations on whole tiles of the smaller, whose threads alone execute the rest, as long as that orders nothing.
    """
    present = range(-(-launch.threads // _WARPGROUP))
    named = {_groups(stmt, present) for stmt in launch.statements} - {None}
    asked = {groups for groups in named if groups}
    if all(a.isdisjoint(b) for a, b in combinations(asked, 2)):
        return launch
    whole = frozenset(present)
    largest = frozenset(a for a in asked - {whole} if not any(a < b for b in asked - {whole}))
    return replace(launch, body=_Writer(launch, present, largest).body(launch.body, whole))


def _groups(stmt: Stmt, present: range) -> Groups | None:
    """The existing warpgroups that T.ws names."""
    numbers = asked_warpgroups(stmt)
    return None if numbers is None else frozenset(number for number in numbers if number in present)


class _Writer:
    def __init__(self, launch: Launch, present: range, largest: frozenset[Groups]) -> None:
        self.launch, self.present, self.largest = launch, present, largest
        self.known = uniformity_of(launch, MEMORY)
        self.names = declared(launch)

    def body(self, body: Body, here: Groups | None) -> Body:
        """Statements that the threads of these warpgroups run; None where that is unknown."""
        return each_replaced(body, lambda stmt: self.statement(stmt, here))

    def statement(self, stmt: Stmt, here: Groups | None) -> Body:
        groups = _groups(stmt, self.present)
        match stmt:
            case If() if groups is not None:
                return self.asked(stmt, groups, here)
            case If() if here and not self.known_of(here).holds(stmt.condition):
                here = None
        return (with_bodies(stmt, lambda body: self.body(body, here)),)

    def known_of(self, here: Groups) -> Uniformity:
        """The uniformity of values in these warpgroups: branches of T.ws that name all or none of them are uniform."""

        def uniform_branches(branch: If) -> bool:
            groups = _groups(branch, self.present)
            return groups is not None and (here <= groups or here.isdisjoint(groups))

        return Uniformity(self.launch, ordered=MEMORY, uniform_branches=uniform_branches)

    def asked(self, stmt: If, groups: Groups, here: Groups | None) -> Body:
        """A branch of T.ws: unchanged, without its condition, or with a larger group for its operations on tiles."""
        inside = with_bodies(stmt, lambda body: self.body(body, groups))
        body = only_arm(inside) or ()
        if groups == frozenset(self.present) and here == groups and body:
            first, *rest = with_own_names(body, self.names)
            return (replace(first, comments=(*stmt.comments, *first.comments)), *rest)
        larger = next((each for each in self.largest if groups < each), None)
        if here is None or larger is None or not larger <= here:
            return (inside,)
        shared = shared_out(body, self.among(groups), self.known, f"the threads of T.ws({_listed(groups)}) alone")
        if shared is None:
            return (inside,)
        said = f"by the threads of T.ws({_listed(larger)}): it does not matter which of them compute a tile's elements"
        condition = in_warpgroups(tuple(sorted(larger)))
        return (replace(stmt, condition=condition, then=shared, comments=(*stmt.comments, said)),)

    def among(self, groups: Groups) -> Expr:
        """The condition that a thread belongs to one of these warpgroups."""
        number = binary("//", _THREAD, int_const(_WARPGROUP))
        first, *others = (binary("==", number, int_const(group)) for group in sorted(groups))
        for other in others:
            first = binary("or", first, other)
        return first


def _listed(groups: Groups) -> str:
    return ", ".join(map(str, sorted(groups)))
