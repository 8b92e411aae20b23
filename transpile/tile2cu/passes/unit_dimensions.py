"""Fragments of more than three dimensions: all dimensions of extent 1 in the launch are left out."""

from msgspec.structs import replace

from tile2cu.analysis.uses import statements
from tile2cu.core.expr import Expr, Load, int_const, rebuilt, static_value
from tile2cu.core.fields import fields_of
from tile2cu.core.program import (
    Atomic,
    Buffer,
    Launch,
    Parallel,
    Reduce,
    Region,
    Scan,
    Scope,
    Stmt,
    Store,
)
from tile2cu.core.rebuild import with_expressions

_MOST = 3  # dimensions that fragment layouts support


def without_ones(launch: Launch) -> Launch:
    """The launch whose fragments, and loops over elements, have no dimensions of one element, if there are so many."""
    if all(tile.scope is not Scope.FRAGMENT or tile.rank <= _MOST for tile in launch.tiles):
        return launch
    narrow = _Narrow(launch)
    return replace(launch, tiles=tuple(map(narrow.buffer, launch.tiles)), body=narrow.body(launch.body))


class _Narrow:
    """Replaces fragments by those without dimensions of extent 1, and their indices."""

    def __init__(self, launch: Launch) -> None:
        folded = [(op.src.name, op.dim) for op in statements(launch.body, Reduce, Scan)]
        self.left: dict[str, tuple[int, ...]] = {}  # the dimensions that are kept, by the fragment's name
        self.new: dict[str, Buffer] = {}
        for tile in (each for each in launch.tiles if each.scope is Scope.FRAGMENT):
            wide = (dim for dim, extent in enumerate(tile.static_shape) if extent != 1 or (tile.name, dim) in folded)
            self.left[tile.name] = tuple(wide) or (0,)
        for tile in launch.tiles:
            if tile.name in self.left:
                shape = tuple(tile.shape[dim] for dim in self.left[tile.name])
                of = None if tile.of is None else self.new.get(tile.of.name, tile.of)
                self.new[tile.name] = replace(tile, shape=shape, of=of)

    def buffer(self, tile: Buffer) -> Buffer:
        return self.new.get(tile.name, tile) if tile.scope is Scope.FRAGMENT else tile

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(map(self.stmt, body))

    def stmt(self, stmt: Stmt) -> Stmt:
        """A statement with all below it."""
        found = {name: self._part(part) for name, part in fields_of(stmt).items()}
        match stmt:
            case Store() | Atomic():
                found["indices"] = self._left_of(
                    stmt.buffer, tuple(rebuilt(each, self._element) for each in stmt.indices)
                )
            case Reduce() | Scan() if stmt.src.name in self.left:
                found["dim"] = self.left[stmt.src.name].index(stmt.dim)
            case Parallel():
                return self._without_iterations(replace(stmt, **found))
            case _:
                pass
        return replace(stmt, **found)

    def _part(self, part: object) -> object:
        match part:
            case Buffer():
                return self.buffer(part)
            case Expr():
                return rebuilt(part, self._element)
            case Region():
                return self._region(part)
            case Stmt():
                return self.stmt(part)
            case tuple():
                return tuple(map(self._part, part))
            case _:
                return part

    def _element(self, expr: Expr) -> Expr | None:
        if not isinstance(expr, Load) or not isinstance(expr.buffer, Buffer) or expr.buffer.name not in self.left:
            return None
        return Load(expr.dtype, self.buffer(expr.buffer), self._left_of(expr.buffer, expr.indices))

    def _region(self, region: Region) -> Region:
        ranges = tuple(
            replace(part, start=rebuilt(part.start, self._element), extent=rebuilt(part.extent, self._element))
            for part in region.ranges
        )
        if region.buffer.name not in self.left:
            return replace(region, ranges=ranges)
        left = self.left[region.buffer.name]
        kept = tuple(position for position, dim in enumerate(left) if dim in region.kept) or (len(left) - 1,)
        ranges = tuple(ranges[dim] for dim in left)
        return replace(region, buffer=self.buffer(region.buffer), ranges=ranges, kept=kept)

    def _left_of(self, tile: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(indices[dim] for dim in self.left[tile.name]) if tile.name in self.left else indices

    def _without_iterations(self, loop: Parallel) -> Parallel:
        """The loop without the variables that are 0 in its only iteration along them."""
        iterations = zip(loop.vars, loop.extents, strict=True)
        left = [(var, extent) for var, extent in iterations if static_value(extent) != 1] or [
            (loop.vars[-1], loop.extents[-1])
        ]
        stay = tuple(var for var, _ in left)
        zeros: dict[Expr, Expr] = {var: int_const(0) for var in loop.vars if var not in stay}
        body = with_expressions(loop.body, zeros.get)
        return replace(loop, vars=stay, extents=tuple(extent for _, extent in left), body=body)
