"""Uniform updates of memory by all threads of a block, `S[0] = S[0] + x`: all threads read before one writes."""

from functools import cached_property

from msgspec.structs import replace

from tile2cu.analysis.accesses import expressions, value_after
from tile2cu.analysis.bounds import bounds_of
from tile2cu.analysis.dependence import same_storage
from tile2cu.analysis.groups import group_of
from tile2cu.analysis.uniformity import MEMORY, uniformity_of
from tile2cu.analysis.uses import names_of, unused
from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Call, Expr, Load, Role, Var, binary, int_const, walk
from tile2cu.core.program import Buffer, If, Launch, Let, Stmt, Store
from tile2cu.core.rebuild import Body, each_replaced, with_bodies

_ELECTED = "One thread of the group updates the element, once"
_WHY = "Every thread writes this value: all have read the element when the first does"


def with_uniform_updates(launch: Launch) -> Launch:
    """The launch in which such an update first names its value, so that a barrier separates reads and writes.

    A late thread would otherwise read another thread's new value, and update it twice. In a group of several, whose
    barriers may be the user's, one thread updates the element.
    """
    if launch.block_threads == 1:
        return launch
    writer = _Writer(launch) if launch.groups == 1 else _Electing(launch)
    body = writer.body(launch.body)
    return launch if body is launch.body else replace(launch, body=body)


class _Writer:
    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.known, self.bounds = uniformity_of(launch, MEMORY), bounds_of(launch)

    @cached_property
    def names(self) -> set[str]:
        return names_of(self.launch)

    def body(self, body: Body) -> Body:
        return each_replaced(body, self.statement)

    def statement(self, stmt: Stmt) -> Body:
        match stmt:
            case Store() if stmt.buffer.scope in MEMORY:
                return self.store(stmt)
            case _ if all(map(self.known.holds, expressions(stmt))):
                return (with_bodies(stmt, self.body),)
            case _:
                return (stmt,)

    def update(self, stmt: Store) -> Expr | None:
        """The value of a uniform update; None for other stores."""
        value = value_after(stmt)
        uniform = all(map(self.known.holds, (value, *stmt.indices)))
        return value if uniform and self.may_read(value, stmt) else None

    def store(self, stmt: Store) -> Body:
        """The update in two statements: its value, and the store."""
        value = self.update(stmt)
        if value is None:
            return (stmt,)
        wish = f"{stmt.buffer.name}_new"
        name = unused(wish, self.names)
        self.names.add(name)
        named = Var(value.dtype, name, Role.LET)
        let = Let(var=named, value=value, span=stmt.span, comments=(*stmt.comments, _WHY))
        return (let, replace(stmt, value=named, op="", comments=()))

    def may_read(self, value: Expr, stmt: Store) -> bool:
        """Whether a value may depend on the element that it is stored to."""
        loads = (part for part in walk(value) if isinstance(part, Load))
        same = (load for load in loads if isinstance(load.buffer, Buffer) and same_storage(load.buffer, stmt.buffer))
        return any(load.buffer is not stmt.buffer or not self.disjoint(load.indices, stmt.indices) for load in same)

    def disjoint(self, one: tuple[Expr, ...], other: tuple[Expr, ...]) -> bool:
        """Whether two elements certainly differ."""
        gaps = (self.bounds.linear(a).plus(self.bounds.linear(b), -1) for a, b in zip(one, other, strict=True))
        return any(not gap.terms and gap.constant for gap in gaps)


class _Electing(_Writer):
    """Lets the first thread of a group execute its uniform updates."""

    group: int | None = None

    def statement(self, stmt: Stmt) -> Body:
        group = group_of(stmt)
        if group is None or self.group is not None:
            return super().statement(stmt)
        self.group = group
        changed = with_bodies(stmt, self.body)
        self.group = None
        return (changed,)

    def store(self, stmt: Store) -> Body:
        if self.group is None or self.update(stmt) is None:
            return (stmt,)
        first = binary("==", Call(INT32, "thread", ()), int_const(sum(self.launch.sizes[: self.group])))
        branch = If(condition=first, then=(replace(stmt, comments=(), trailing=""),), span=stmt.span)
        return (replace(branch, comments=(*stmt.comments, _ELECTED), trailing=stmt.trailing),)
