"""Lowering: tile operations without a call become loops over elements, or use a temporary tile that a call takes."""

from collections.abc import Callable, Iterator
from functools import cached_property

from msgspec.structs import replace

from tile2cu.analysis.accesses import Access, element_accesses
from tile2cu.analysis.uses import names_of, unused
from tile2cu.core.expr import Call, Expr, Load, Role, Var, binary, int_const, joined, static_value
from tile2cu.core.program import (
    Atomic,
    AtomicTile,
    Buffer,
    Copy,
    Fill,
    Gemm,
    If,
    Launch,
    Loop,
    LoopKind,
    Parallel,
    Range,
    Reduce,
    Region,
    Scope,
    Stmt,
    Store,
)
from tile2cu.core.rebuild import Body, in_body, under_comments, with_expressions
from tile2cu.passes.loop_names import LoopNames
from tile2cu.passes.read_first import begun
from tile2cu.passes.reducers import reduced_after
from tile2cu.passes.shifted_fragments import shifted
from tile2cu.passes.tiles import fresh, whole


def normal_form(launch: Launch) -> Launch:
    """The launch with only such tile operations as there are calls for; the others are loops over elements."""
    writer = _Writer(launch)
    body = in_body(launch.body, lambda body, position: writer.instead_of(body[position]))
    return replace(launch, body=body, tiles=(*launch.tiles, *writer.tiles))


class _Writer:
    """Emits the replacement of an operation, with names that the launch does not use yet."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.tiles: list[Buffer] = []
        self.names = LoopNames(launch)
        self.at: Stmt | None = None  # the statement that is replaced

    @cached_property
    def taken(self) -> set[str]:
        """The names that the launch has, and those that statements before this one got."""
        return names_of(self.launch)

    def variables(self, count: int, role: Role) -> tuple[Var, ...]:
        """The variables of one more loop."""
        assert self.at is not None
        return self.names.variables(count, role, self.at)

    def instead_of(self, stmt: Stmt) -> Body | None:
        """The replacement of this statement; None where it stays.

        What decides its places and numbers is read before it writes any.
        """
        if not isinstance(stmt, Copy | Fill | AtomicTile | Parallel):
            return self.lowered(stmt)
        lets, op = begun(stmt, self.taken)
        lowered = self.lowered(op, stmt)
        return under_comments(stmt, (*lets, *(lowered or (op,)))) if lets else lowered

    def lowered(self, stmt: Stmt, of: Stmt | None = None) -> Body | None:
        """The same of a statement that reads nothing that it writes; `of` is the one of the launch."""
        self.at = of or stmt
        match stmt:
            case Copy() | AtomicTile() if not (_direct(stmt.src) and _direct(stmt.dst)) or _lacks_ones(stmt):
                return (self.moved(stmt),)
            case AtomicTile() if not _has_call(stmt):
                return (self.moved(stmt),)
            case Fill() if not _is_filled_at_once(stmt.dst):
                return (self.filled(stmt),)
            case Reduce() if not _is_reducible(stmt):
                return self.reduced(stmt)
            case Gemm() if not (_is_operand(stmt.a) and _is_operand(stmt.b) and stmt.c.whole):
                return self.multiplied(stmt)
            case Parallel():
                parts = reduced_after(
                    stmt,
                    lambda like: self.tile(like, Scope.FRAGMENT, ""),
                    lambda like: self.tile(like, Scope.SHARED, "_updated"),
                    lambda wish: unused(wish, self.taken),
                )
                if parts is None:
                    ordered = self.in_rows(stmt) or _in_order(stmt)
                    found = _widened(ordered or stmt) or shifted(ordered or stmt)
                    return found or ((ordered,) if ordered else None)
                return tuple(by for part in parts for by in self.instead_of(part) or (part,))
            case _:
                return None

    def moved(self, op: Copy | AtomicTile) -> Stmt:
        """A copy, or its atomic kin, element by element."""

        def element(indices: Callable[[Region], tuple[Expr, ...]]) -> Stmt:
            src, dst = op.src.buffer, op.dst.buffer
            value: Expr = Load(src.dtype, src, indices(op.src))
            value = value if src.dtype == dst.dtype else Call(dst.dtype, "cast", (value,))
            if isinstance(op, AtomicTile):
                return Atomic(kind=op.kind, buffer=dst, indices=indices(op.dst), value=value, span=op.span)
            return Store(buffer=dst, indices=indices(op.dst), value=value, span=op.span)

        return self.loop(op, (op.dst, op.src), element)

    def filled(self, op: Fill) -> Stmt:
        def element(indices: Callable[[Region], tuple[Expr, ...]]) -> Stmt:
            return Store(buffer=op.dst.buffer, indices=indices(op.dst), value=op.value, span=op.span)

        return self.loop(op, (op.dst,), element)

    def loop(
        self, op: Stmt, regions: tuple[Region, ...], element: Callable[[Callable[[Region], tuple[Expr, ...]]], Stmt]
    ) -> Stmt:
        """A loop over the elements of equal regions, the one that is written first.

        A slice of a fragment is accessed by a loop over all of it, so that each thread moves its own elements; but not
        one that goes to another fragment, as all threads that hold an element of that must get it. Dimensions of extent
        1 that only one side, a fragment, has are the loop's, too. Operations with private arrays are executed by each
        thread, except atomic updates of memory: one thread makes each.
        """
        private = any(region.buffer.scope is Scope.LOCAL for region in regions)
        role = Role.LOOP if private and not isinstance(op, AtomicTile) else Role.PARALLEL
        with_ones = [region for region in regions if _has_ones(region)]
        parts = [region for region in regions if region.buffer.scope is Scope.FRAGMENT and not region.whole]
        parts += [] if parts else with_ones
        own = regions[:1] if regions[0].buffer.scope is Scope.FRAGMENT and not with_ones else regions
        part = next((region for region in parts if any(region is one for one in own)), None)
        whole_rank = part.buffer.rank if part else len(regions[0].kept)
        variables = self.variables(whole_rank, role)
        extents = part.buffer.shape if part else regions[0].extents
        steps: tuple[Expr, ...] = variables
        condition: Expr | None = None
        if part is not None:
            steps = tuple(binary("-", variables[dim], part.ranges[dim].start) for dim in part.kept)
            condition = joined("and", _inside(part, variables))

        def indices(region: Region) -> tuple[Expr, ...]:
            return variables if region is part else region.at(steps)

        body: Stmt = element(indices)
        if condition is not None:
            body = If(condition=condition, then=(body,), span=op.span)
        head = {"span": op.span, "comments": op.comments, "trailing": op.trailing}
        if role is Role.PARALLEL:
            laid_out = isinstance(op, Copy) and op.laid_out
            return Parallel(vars=variables, extents=extents, body=(body,), laid_out=laid_out, **head)  # type: ignore[arg-type]
        for variable, extent in reversed(list(zip(variables, extents, strict=True))):
            kind, zero, one = LoopKind.UNROLL, int_const(0), int_const(1)
            body = Loop(kind=kind, var=variable, start=zero, stop=extent, step=one, body=(body,), span=op.span)
        return replace(body, comments=op.comments, trailing=op.trailing)

    def reduced(self, op: Reduce) -> Body:
        """A reduction between fragments, with copies from and to the tiles."""
        before: list[Stmt] = []
        after: list[Stmt] = []
        src, dst = op.src, op.dst
        if src.scope is not Scope.FRAGMENT:
            src = self.tile(op.src, Scope.FRAGMENT, "_local")
            before.append(Copy(src=whole(op.src, op), dst=whole(src, op), span=op.span))
        if src.rank == 3 and op.dim < 2:
            src, iteration = self.turned(op, src)
            before.append(iteration)
        if dst.scope is not Scope.FRAGMENT:
            dst = self.tile(op.dst, Scope.FRAGMENT, "_local")
            if not op.clear:
                before.append(Copy(src=whole(op.dst, op), dst=whole(dst, op), span=op.span))
            after.append(Copy(src=whole(dst, op), dst=whole(op.dst, op), span=op.span))
        reduction = replace(op, src=src, dst=dst, dim=src.rank - 1 if src.rank == 3 else op.dim)
        return under_comments(op, [*before, reduction, *after])

    def turned(self, op: Reduce, src: Buffer) -> tuple[Buffer, Stmt]:
        """A tile whose last dimension is the reduced one, and the loop that fills it."""
        order = [dim for dim in range(src.rank) if dim != op.dim] + [op.dim]
        shape = tuple(src.shape[dim] for dim in order)
        turned = self.tile(replace(src, name=f"{src.name}_turned", shape=shape), Scope.FRAGMENT, "")
        variables = self.variables(src.rank, Role.PARALLEL)
        position = dict(zip(order, variables, strict=True))
        value = Load(src.dtype, src, tuple(position[dim] for dim in range(src.rank)))
        store = Store(buffer=turned, indices=variables, value=value, span=op.span)
        return turned, Parallel(vars=variables, extents=shape, body=(store,), span=op.span)

    def multiplied(self, op: Gemm) -> Body:
        """A GEMM whose operands or accumulator are slices that no call takes: temporary tiles."""
        copies: list[Stmt] = []
        operands = []
        for region in (op.a, op.b):
            if not _is_operand(region):
                shape = region.extents
                tile = self.tile(replace(region.buffer, shape=shape), Scope.SHARED, "_part")
                copies.append(Copy(src=region, dst=whole(tile, op), span=op.span))
                copies[-1] = self.instead_of(copies[-1])[0]  # type: ignore[index]
                region = whole(tile, op)
            operands.append(region)
        op = replace(op, a=operands[0], b=operands[1])
        if op.c.whole:
            return under_comments(op, [*copies, op])
        part = self.tile(replace(op.c.buffer, shape=op.c.extents), Scope.FRAGMENT, "_part")
        result = whole(part, op)
        if not op.clear:
            copies.append(self.moved(Copy(src=op.c, dst=result, span=op.span)))
        back = self.moved(Copy(src=result, dst=op.c, span=op.span))
        return under_comments(op, [*copies, replace(op, c=result), back])

    def in_rows(self, op: Parallel) -> Parallel | None:
        """A loop over the one row of a fragment, `L[0, j]`, has a variable for it, too: it runs over all of it."""
        rows = {access.indices: access.buffer for access in element_accesses(op.body) if _is_row(access, op)}
        if len(rows) != 1:
            return None
        ((indices, tile),) = rows.items()
        more = iter(self.variables(len(indices) - len(op.vars), Role.PARALLEL))
        variables = tuple(index if isinstance(index, Var) else next(more) for index in indices)

        def load(expr: Expr) -> Expr | None:
            if isinstance(expr, Load) and expr.indices == indices and _is_fragment(expr.buffer):
                return replace(expr, indices=variables)
            return None

        def store(body: Body, position: int) -> Body | None:
            stmt = body[position]
            if isinstance(stmt, Store | Atomic) and stmt.indices == indices and _is_fragment(stmt.buffer):
                return (replace(stmt, indices=variables),)
            return None

        body = with_expressions(in_body(op.body, store), load)
        return replace(op, vars=variables, extents=tile.shape, body=body)

    def tile(self, like: Buffer, scope: Scope, suffix: str) -> Buffer:
        """One more tile."""
        launch = replace(self.launch, tiles=(*self.launch.tiles, *self.tiles))
        made = replace(like, name=fresh(launch, like.name + suffix), scope=scope, comment="", reducer=None)
        self.tiles.append(made)
        return made


def _direct(region: Region) -> bool:
    """Whether a call takes the region as it is."""
    match region.buffer.scope:
        case Scope.GLOBAL:
            return True
        case Scope.SHARED:
            return region.is_shared_part
        case Scope.FRAGMENT:
            return region.whole and region.buffer.rank <= 3
        case Scope.LOCAL | Scope.BARRIER:
            return False


def _lacks_ones(op: Copy | AtomicTile) -> bool:
    """Whether a fragment of a copy has dimensions of extent 1 that no call finds in the other tile.

    Two fragments of one shape both have them; of a shared tile a call takes the last two dimensions.
    """
    src, dst = op.src.buffer, op.dst.buffer
    tiles = Scope.GLOBAL not in (src.scope, dst.scope)
    uniform = src.scope is dst.scope and src.shape == dst.shape
    return tiles and not uniform and (_has_ones(op.src) or _has_ones(op.dst))


def _has_call(op: AtomicTile) -> bool:
    """Whether a call combines a tile with another one: a fragment with memory, or a shared tile with a tensor."""
    scopes = (op.src.buffer.scope, op.dst.buffer.scope)
    return op.src.buffer.scope is Scope.FRAGMENT or scopes == (Scope.SHARED, Scope.GLOBAL)


def _has_ones(region: Region) -> bool:
    """Whether it is a whole fragment with dimensions of extent 1 among others."""
    return region.buffer.scope is Scope.FRAGMENT and region.whole and region.buffer.rank > max(1, len(region.kept))


def _is_filled_at_once(region: Region) -> bool:
    if region.buffer.scope is Scope.LOCAL:
        return region.whole and region.buffer.rank == 1
    return _direct(region) and region.buffer.scope is not Scope.GLOBAL


def _is_operand(region: Region) -> bool:
    return region.is_shared_part if region.buffer.scope is Scope.SHARED else region.whole


def _is_reducible(op: Reduce) -> bool:
    """Whether a call supports it: a fragment into a fragment, or a shared matrix into any vector."""
    if op.src.rank == 3 and op.dim < 2:
        return False
    if op.src.scope is Scope.SHARED:
        return op.src.rank <= 2 and op.dst.rank == 1
    return op.dst.scope is not Scope.SHARED


def _in_order(op: Parallel) -> Parallel | None:
    """A loop whose variables are permuted in its fragments, `L[j, i]`, runs in the order of the fragments.

    The iterations of T.Parallel are unordered, and so are its variables.
    """
    orders = {
        tuple(op.vars.index(index) for index in access.indices)
        for access in element_accesses(op.body)
        if access.buffer.scope is Scope.FRAGMENT and {*access.indices} == {*op.vars}
    }
    order = orders.pop() if len(orders) == 1 else ()
    if len(order) != len(op.vars) or order == tuple(range(len(order))):
        return None
    return replace(op, vars=tuple(op.vars[at] for at in order), extents=tuple(op.extents[at] for at in order))


def _is_row(access: Access, op: Parallel) -> bool:
    """Whether it is an element of a fragment that has dimensions of extent 1 besides those of the loop."""
    sides = zip(access.indices, access.buffer.static_shape if _is_fragment(access.buffer) else (), strict=False)
    left = tuple(index for index, extent in sides if extent != 1 or index in op.vars)
    return left == op.vars and len(left) < len(access.indices)


def _is_fragment(tile: object) -> bool:
    return isinstance(tile, Buffer) and tile.scope is Scope.FRAGMENT


def _widened(op: Parallel) -> Body | None:
    """A loop over the first elements of a fragment runs over all of it, under a condition."""
    extents = [static_value(extent) for extent in op.extents]
    shapes = {
        access.buffer.static_shape: access.buffer.shape
        for access in element_accesses(op.body)
        if access.buffer.scope is Scope.FRAGMENT and access.indices == op.vars
    }
    wider = [shape for shape in shapes if _is_wider(shape, extents)]
    if len(shapes) != 1 or not wider:
        return None
    shape = shapes[wider[0]]
    sides = zip(op.vars, op.extents, shape, strict=True)
    short = ((variable, extent) for variable, extent, full in sides if static_value(extent) != static_value(full))
    condition = joined("and", (binary("<", variable, extent) for variable, extent in short))
    assert condition is not None
    return (replace(op, extents=shape, body=(If(condition=condition, then=op.body, span=op.span),)),)


def _is_wider(shape: tuple[int, ...], extents: list[int | float | bool | None]) -> bool:
    pairs = [(full, extent) for full, extent in zip(shape, extents, strict=True) if extent is not None]
    return len(pairs) == len(shape) and all(f >= e for f, e in pairs) and any(f > e for f, e in pairs)


def _inside(part: Region, variables: tuple[Var, ...]) -> Iterator[Expr]:
    """The conditions that an element of the buffer belongs to the region."""
    for dim, (each, variable) in enumerate(zip(part.ranges, variables, strict=True)):
        extent, start = part.buffer.shape[dim], static_value(each.start)
        if dim not in part.kept:
            if static_value(extent) != 1:
                yield binary("==", variable, each.start)
            continue
        if start != 0:
            yield binary(">=", variable, each.start)
        if start is None or int(start) + int(static_value(each.extent) or 0) != static_value(extent):
            yield binary("<", variable, _end(each))


def _end(part: Range) -> Expr:
    return binary("+", part.start, part.extent)
