"""Groups of threads of different sizes: each fragment is one group's."""

from collections.abc import Iterator

from msgspec.structs import replace

from tile2cu.analysis.accesses import buffers_written
from tile2cu.analysis.groups import fragment_users, fragments, group_of, in_group, is_operation, outside_of_groups
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.program import Buffer, If, Launch, Scope, Stmt
from tile2cu.core.rebuild import Body, each_replaced, with_bodies, with_buffer
from tile2cu.core.record import Record
from tile2cu.passes.tiles import fresh


def disjoint(launch: Launch) -> Launch:
    """The launch with fragments of their own for the groups that use one of the same name.

    Groups of one size can share a name, since each thread has its registers; those of different sizes hold other
    elements. Statements that all groups reach are executed by those that use their fragments.
    Errors: T2C-P004 where an operation uses fragments of different groups.
    """
    if not launch.shares:
        return launch
    users = _users(launch)
    clones = {
        group: {
            tile: replace(tile, name=fresh(launch, f"{tile.name}_of_group_{group}"))
            for tile in _taken(launch, users, group)
        }
        for group in range(launch.groups)
    }
    for group, tiles in clones.items():
        clones[group] = {tile: _of_clone(clone, tiles) for tile, clone in tiles.items()}
    body = _Writer(users, clones).body(launch.body)
    more = (clone for tiles in clones.values() for clone in tiles.values())
    return replace(launch, body=body, tiles=(*launch.tiles, *more))


def _users(launch: Launch) -> dict[str, set[int]]:
    """The groups that use each fragment, also in statements that all groups reach."""
    users = fragment_users(launch.body)
    outside = [fragments(stmt) for stmt in outside_of_groups(launch.body) if is_operation(stmt)]
    for _ in outside:
        for tiles in outside:
            names = {tile.memory.name for tile in tiles}
            known = set().union(*(users.get(name, set()) for name in names))
            users |= {name: set(known) for name in names if known and not users.get(name)}
    return users


def _taken(launch: Launch, users: dict[str, set[int]], group: int) -> Iterator[Buffer]:
    """The fragments that a group uses and another one uses already."""
    for tile in launch.tiles:
        if tile.scope is Scope.FRAGMENT:
            found = users.get(tile.memory.name, set())
            if group in found and group != min(found):
                yield tile


def _of_clone(clone: Buffer, tiles: dict[Buffer, Buffer]) -> Buffer:
    """A view aliases the group's own fragment."""
    return clone if clone.of is None else replace(clone, of=tiles[clone.of])


class _Writer(Record, frozen=True):
    """Writes the statements again."""

    users: dict[str, set[int]]
    clones: dict[int, dict[Buffer, Buffer]]

    def body(self, body: Body) -> Body:
        return each_replaced(body, self.statement)

    def statement(self, stmt: Stmt) -> Body:
        group = group_of(stmt)
        match stmt:
            case If() if group is not None:
                return (self.of_group(stmt, group),)
            case _ if is_operation(stmt) and fragments(stmt):
                return self.operation(stmt)
            case _:
                return (with_bodies(stmt, self.body),)

    def of_group(self, stmt: Stmt, group: int) -> Stmt:
        for tile, clone in self.clones[group].items():
            stmt = with_buffer(stmt, tile, clone)
        return stmt

    def operation(self, stmt: Stmt) -> Body:
        """An operation on fragments by each group that uses them; one that writes memory by the first of them."""
        tiles = fragments(stmt)
        groups = set.intersection(*(self.users.get(tile.memory.name) or {0} for tile in tiles))
        if not groups:
            raise Tile2CuError(
                "T2C-P004",
                "groups of different sizes would share this operation: "
                + ", ".join(sorted(tile.name for tile in tiles)),
                stmt.span,
                help="let one `with T.ws(...):` do it, or give both groups as many threads",
            )
        written = {tile.scope for tile in buffers_written(stmt)}
        memory = bool(written & {Scope.SHARED, Scope.GLOBAL})
        if memory and Scope.FRAGMENT in written and len(groups) > 1:
            raise Tile2CuError(
                "T2C-P004",
                "groups of different sizes each need the fragments that this writes, and one of them may write memory",
                stmt.span,
                help="write the fragments in one loop and the memory in another",
            )
        return tuple(
            If(condition=in_group(group), then=(self.of_group(replace(stmt), group),), once=True, span=stmt.span)
            for group in sorted(groups)[: 1 if memory else None]
        )
