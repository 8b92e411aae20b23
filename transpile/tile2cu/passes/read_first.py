"""What a statement reads of the memory that it writes has a name before it.

An operation's places, numbers and extents are evaluated where it begins: those that take elements of what it writes
have names. `S[tx] = S[tx + 1]`, in which threads read elements that others write, is `value = S[tx + 1]`, a barrier,
`S[tx] = value`.
"""

from msgspec.structs import replace

from tile2cu.analysis.accesses import loaded, value_after
from tile2cu.analysis.dependence import may_overlap
from tile2cu.analysis.effects import effects, evaluated
from tile2cu.analysis.uses import names_of, unused
from tile2cu.core.expr import Call, Const, Expr, Load, Role, Var
from tile2cu.core.program import Atomic, AtomicTile, Copy, Fill, Launch, Let, Parallel, Stmt, Store
from tile2cu.core.rebuild import under_comments, with_expressions, with_instead


class _Names:
    """Names for values before a statement; `taken` are those that the launch has."""

    def __init__(self, stmt: Stmt, taken: set[str]) -> None:
        self.stmt, self.taken = stmt, taken
        self.values: dict[Var, Expr] = {}  # by their names

    def named(self, expr: Expr, wish: str) -> Var:
        var = Var(expr.dtype, unused(wish, self.taken), Role.LET)
        self.taken.add(var.name)
        self.values[var] = expr
        return var

    @property
    def lets(self) -> tuple[Let, ...]:
        return tuple(Let(var=var, value=value, span=self.stmt.span) for var, value in self.values.items())


def begun(op: Copy | Fill | AtomicTile | Parallel, taken: set[str]) -> tuple[tuple[Let, ...], Stmt]:
    """The names for elements of what an operation writes that decide its places, numbers and extents; and the operation
    with these names, which `taken` has, too, then.
    """
    names = _Names(op, taken)
    wish = "value" if isinstance(op, Fill) else "index"
    writes = effects(op).writes

    def own(expr: Expr) -> Expr | None:
        match expr:
            case Load():
                reads = (read for read in evaluated(expr).reads if read.buffer is expr.buffer)
                changes = any(may_overlap(read, write) for read in reads for write in writes)
                return names.named(expr, wish) if changes else None
            case Call(args=(Var() as element,)) if expr.function.startswith("atomic_load") and element in names.values:
                names.values[element] = replace(expr, args=(names.values[element],))
                return element
            case _:
                return None

    if isinstance(op, Parallel):
        changed: Stmt = replace(op, extents=with_expressions(op.extents, own))
    else:
        changed = with_expressions(op, own)
    return names.lets, changed


def reads_first(launch: Launch, stmt: Stmt) -> Launch:
    """The launch with the values that a statement of single threads reads named before it."""
    assert isinstance(stmt, Store | Atomic)
    names = _Names(stmt, names_of(launch))

    def named(expr: Expr, wish: str) -> Expr:
        return expr if isinstance(expr, Const) or not loaded(expr) else names.named(expr, wish)

    indices = tuple(named(index, "index") for index in stmt.indices)
    value = named(value_after(stmt) if isinstance(stmt, Store) else stmt.value, "value")
    changed = replace(stmt, indices=indices, value=value)
    changed = replace(changed, op="") if isinstance(changed, Store) else changed
    return replace(launch, body=with_instead(launch.body, {id(stmt): under_comments(stmt, (*names.lets, changed))}))
