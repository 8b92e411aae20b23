"""Values that a statement computes several times, declared before it by the name that the user's helper has for them.

A helper runs when the kernel is traced: what it computes is an expression, repeated wherever the helper uses its name.
A statement that repeats one declares it first, if it evaluates it in any case, or if evaluating it has no effect: the
arm of a choice that is not taken may read memory at an index outside of it, or divide by zero. A statement reads before
it writes, so that all places have one value; a value that threads exchange is left where it is.
"""

from collections import Counter
from collections.abc import Mapping
from typing import TypeVar

from msgspec.structs import replace

from tile2cu.analysis.accesses import moved_index
from tile2cu.analysis.bounds import Bounds, bounds_of
from tile2cu.analysis.runs import is_run
from tile2cu.analysis.uses import names_of, statements, unused, variables_of_loops
from tile2cu.core.decisions import VECTOR
from tile2cu.core.dtype import BOOL, FLOAT16, INT32
from tile2cu.core.expr import (
    Binary,
    Call,
    Expr,
    Load,
    Role,
    Unary,
    Var,
    buffers_loaded,
    children,
    depends_on_thread,
    divisors,
    is_weak,
    static_value,
    substitute,
    user_name,
    walk,
    walk_evaluated,
    works_among_threads,
)
from tile2cu.core.memo import kept
from tile2cu.core.program import Assign, Atomic, Let, Parallel, Stmt, Store
from tile2cu.core.rebuild import Body, under_comments, with_instead
from tile2cu.plan.resolved import Resolved

Computing = Let | Store | Assign | Atomic
Kind = TypeVar("Kind", Let, Computing)

_LEAST_OPERATIONS = 2  # of a value that has a name: a single sum is as easily read as its name
_LEAST_SAVED = 3  # operations that a reader then need not compare
_OF_TYPE = ("cast", "reinterpret")  # functions whose value is of its type, for any operands


def with_named_values(resolved: Resolved) -> Resolved:
    """The launch with the names of values that its statements repeat; what is known of ranges has both."""
    computing = [each for each in resolved.launch.statements if isinstance(each, Computing) and _has_names(each)]
    if not computing:
        return resolved
    loops = tuple(statements(resolved.launch.body, Parallel))
    inside = {id(stmt): loop for loop in loops for stmt in statements(loop.body, Stmt)}
    program = resolved.program
    taken = names_of(resolved.launch) | {each.name for each in program.constants}
    taken |= {each.name for each in program.derived} | {each.name for each in program.sizes}
    taken |= {each.name for each in (*program.params, *program.workspaces)}
    of_loops: dict[int, set[str]] = {}  # a loop's names end with it
    found: dict[int, Body] = {}
    for stmt in sorted(computing, key=lambda stmt: id(stmt) in inside):
        loop = inside.get(id(stmt))
        names = taken if loop is None else of_loops.setdefault(id(loop), {*taken})
        if named := _Naming(resolved, stmt, loop, names, number=len(found)).statements():
            found[id(stmt)] = named
    if not found:
        return resolved
    # Where a name's value is printed instead of it, such as where a window starts, what it repeats is whole again
    known = {id(stmt): (*found[id(stmt)], stmt) for stmt in computing if id(stmt) in found}
    whole = {id(loop): (replace(loop, body=with_instead(loop.body, known)),) for loop in loops}
    launch = replace(resolved.launch, body=with_instead(resolved.launch.body, known | whole))
    return replace(resolved, bounds=bounds_of(launch), named=found)


def _has_names(stmt: Computing) -> bool:
    return any(map(_named_parts, _expressions(stmt)))


@kept
def _named_parts(expr: Expr) -> frozenset[Expr]:
    """The parts of an expression, itself included, that the user has named."""
    own = (expr,) if user_name(expr) else ()
    return frozenset[Expr]().union(own, *map(_named_parts, children(expr)))


def _expressions(stmt: Computing) -> tuple[Expr, ...]:
    return (stmt.value, *stmt.indices) if isinstance(stmt, Store | Atomic) else (stmt.value,)


class _Naming:
    """Declares what a statement repeats; `taken` are the names in its scope, `number` is that of its variables."""

    def __init__(
        self, resolved: Resolved, stmt: Computing, loop: Parallel | None, taken: set[str], *, number: int
    ) -> None:
        self.stmt, self.taken, self.number = stmt, taken, number
        self.bounds, self.last = resolved.bounds, None if loop is None else loop.vars[-1]
        self.vector = 1 if loop is None else resolved.facts.get(loop, VECTOR) or 1
        self.indices = {var.name for var in variables_of_loops(resolved.launch)} | {
            var.name for var in resolved.launch.blocks
        }
        self.sizes = {each.value for each in resolved.program.derived}  # which have the names of the user's factory
        self.lets: tuple[Let, ...] = ()  # each needs only those before it

    def statements(self) -> Body:
        """The declarations, and the statement with their names; nothing where it repeats no value."""
        changed = self.stmt
        while (value := self._repeated((*(let.value for let in self.lets), *_expressions(changed)))) is not None:
            name = unused(user_name(value), self.taken)
            self.taken.add(name)
            let = self._let(name, value)
            instead = {value: let.var}
            changed = _with(changed, instead)
            self.lets = _in_order_of_use((let, *(_with(each, instead) for each in self.lets)), _expressions(changed))
        return under_comments(self.stmt, (*self.lets, changed)) if self.lets else ()

    def _let(self, name: str, value: Expr) -> Let:
        role = Role.THREAD if depends_on_thread(value) else Role.LET
        return Let(var=Var(value.dtype, name, role, self.number), value=value, span=self.stmt.span)

    def _repeated(self, exprs: tuple[Expr, ...]) -> Expr | None:
        """The largest value that has a name and occurs more than once, which can be computed before the statement."""
        if not any(map(_named_parts, exprs)):
            return None
        times = Counter(part for expr in exprs for part in walk(expr))
        evaluated = {part for expr in exprs for part in walk_evaluated(expr)}
        divided_by = {each for part in evaluated for each in divisors(part)}
        found = (
            part
            for expr in exprs
            for part in walk(expr)
            if user_name(part)
            and _is_worth_a_name(part, times[part])
            and self._can_be_declared(part)
            and (part in evaluated or _is_safe(part, divided_by))
        )
        return max(found, key=_size, default=None)

    def _can_be_declared(self, value: Expr) -> bool:
        """Whether a value is one that a name may have: in a loop over vectors no index that moves with their elements.

        One whose name is that of another index would be mistaken for that.
        """
        if works_among_threads(value) or is_weak(value) or user_name(value) in self.indices:
            return False
        if value in self.sizes or not _has_its_type(value, self.bounds):
            return False
        if self.last is None or self.vector == 1 or not moved_index(self._let("", value), self.last):
            return True
        return is_run(value, self.last, self.vector, self.bounds)


def _with(stmt: Kind, values: Mapping[Expr, Expr]) -> Kind:
    changed = replace(stmt, value=substitute(stmt.value, values))
    if isinstance(changed, Store | Atomic):
        return replace(changed, indices=tuple(substitute(index, values) for index in changed.indices))
    return changed


def _is_worth_a_name(value: Expr, times: int) -> bool:
    operations = _operations(value)
    return operations >= _LEAST_OPERATIONS and operations * (times - 1) >= _LEAST_SAVED


def _is_safe(value: Expr, divided_by: set[Expr]) -> bool:
    """Whether a value can be computed in any case: it reads no memory, and divides by nothing that may be zero.

    What the statement always divides by is not.
    """
    return not buffers_loaded(value) and divided_by.issuperset(each for part in walk(value) for each in divisors(part))


def _has_its_type(value: Expr, bounds: Bounds) -> bool:
    """Whether the type of a value is what C++ computes: of narrow integers that is int, of floats of 8 bits float."""
    if not _is_narrow(value):
        return True
    if any(isinstance(part, Call) and _is_narrow(part) and part.function not in _OF_TYPE for part in walk(value)):
        return False
    return not isinstance(value, Unary | Binary) or (value.dtype.is_int and bounds.is_of_its_type(value))


def _is_narrow(value: Expr) -> bool:
    return value.dtype.bits < (INT32.bits if value.dtype.is_int else FLOAT16.bits) and value.dtype != BOOL


def _in_order_of_use(lets: tuple[Let, ...], exprs: tuple[Expr, ...]) -> tuple[Let, ...]:
    """The declarations in the order in which expressions need them, each behind those that it needs itself."""
    found: dict[Expr, Let] = {}
    left: dict[Expr, Let] = {let.var: let for let in lets}
    for expr in exprs:
        for part in walk(expr):
            if part in left and part not in found:
                needed = _in_order_of_use(lets, (left[part].value,))
                found |= {each.var: each for each in (*needed, left[part])}
    return tuple(found.values())


@kept
def _operations(expr: Expr) -> int:
    """How much a reader has to follow: the operators and functions, without those of the indices of elements."""
    if static_value(expr) is not None or isinstance(expr, Load):
        return 0
    return isinstance(expr, Unary | Binary | Call) + sum(map(_operations, children(expr)))


@kept
def _size(expr: Expr) -> int:
    return 1 + sum(map(_size, children(expr)))
