"""Branches on the thread, distributed over statements: more threads run tile operations, the rest stays conditional."""

from collections import Counter
from functools import partial

from msgspec.structs import replace

from tile2cu.analysis.accesses import expressions
from tile2cu.analysis.control import steps
from tile2cu.analysis.effects import REGISTERS, Order, effects
from tile2cu.analysis.groups import asked_warpgroups, is_tile_work, tile_work
from tile2cu.analysis.prelude import depends_on
from tile2cu.analysis.uniformity import MEMORY, Uniformity
from tile2cu.analysis.uses import all_expressions, declared_by_arms, declares, names_of, statements, unused
from tile2cu.core.expr import Call, Expr, Load, Var, is_of_thread, may_trap, walk
from tile2cu.core.program import Copy, Declare, If, Launch, Let, Loop, Scope, Stmt
from tile2cu.core.rebuild import Body, with_all_bodies, with_expressions


def is_only_tile_work(body: Body) -> bool:
    """Whether the statements are operations on whole tiles, in uniform loops and branches."""
    return all(
        (is_tile_work(stmt) and not (isinstance(stmt, Copy) and (stmt.begun or stmt.barrier is not None)))
        or isinstance(stmt, Let | Loop | If)
        for stmt in steps(body)
    ) and not any(map(is_of_thread, all_expressions(body)))


def shared_out(body: Body, condition: Expr, known: Uniformity, said: str = "") -> Body | None:
    """An arm of the branch `condition` with its operations on whole tiles outside of it.

    The value of a tile does not depend on how many threads compute it, so other threads may take part. None where the
    computed values may differ between threads, where a statement of single threads orders the operations around it, or
    defines a value that they need. `said` is the comment over statements of single threads.
    """
    found: list[Stmt] = []
    alone: list[Stmt] = []  # adjacent statements of single threads

    def end_of_run() -> None:
        if alone:
            comments = (said,) if said else ()
            found.append(If(condition=condition, then=tuple(alone), span=alone[0].span, comments=comments))
            alone.clear()

    for stmt in body:
        if is_plain_value(stmt):
            end_of_run()
            found.append(stmt)
        elif not any(tile_work((stmt,))):
            if not orders_nothing(stmt):
                return None
            alone.append(stmt)
        else:
            end_of_run()
            done = _by_more(stmt, condition, known, said)
            if done is None:
                return None
            found.append(done)
    end_of_run()
    return None if _hidden(found) else tuple(found)


def declared(launch: Launch) -> Counter[str]:
    """The number of declarations of each name in a launch by statements; of others that it has, as of tiles, none."""
    found = Counter(dict.fromkeys(names_of(launch), 0))
    found.update(var.name for stmt in launch.statements for var in declares(stmt))
    return found


def with_own_names(body: Body, names: Counter[str]) -> Body:
    """Statements that move out of their blocks, with names that nothing else has."""
    for stmt in body:
        if isinstance(stmt, Let | Declare) and names[stmt.var.name] > 1:
            own = replace(stmt.var, name=unused(stmt.var.name, names))
            names.update({own.name: 1, stmt.var.name: -1})
            body = with_expressions(body, partial(_renamed, stmt.var, own))
    return body


def _renamed(var: Var, own: Var, part: Expr) -> Expr | None:
    return own if part == var else None


def is_plain_value(stmt: Stmt) -> bool:
    """Whether it names a value that every thread may compute without side effects."""
    match stmt:
        case Let(value=value) | Declare(init=Expr() as value):
            parts = tuple(walk(value))
            return not may_trap(value) and not any(isinstance(part, Load) or _may_fail(part) for part in parts)
        case _:
            return False


def _may_fail(part: Expr) -> bool:
    """Whether a part of an expression exchanges values between threads, or is inline user code."""
    return isinstance(part, Call) and is_of_thread(part) and part.function not in ("thread", "lane")


def _by_more(stmt: Stmt, condition: Expr, known: Uniformity, said: str) -> Stmt | None:
    """A statement with operations on whole tiles, executed by more threads; None where that is not possible."""
    if is_only_tile_work((stmt,)):
        return stmt if are_uniform((stmt,), known) else None
    if not all(known.holds(expr) for expr in expressions(stmt)):
        return None
    if not isinstance(stmt, Loop | If) or asked_warpgroups(stmt) is not None:
        return None
    return with_all_bodies(stmt, lambda body: shared_out(body, condition, known, said))


def are_uniform(body: Body, known: Uniformity) -> bool:
    """Whether the operations on whole tiles of an arm are uniform."""
    return all(_is_uniform(stmt, known) for stmt in tile_work(body))


def _is_uniform(stmt: Stmt, known: Uniformity) -> bool:
    """Whether the scalars and private arrays that an operation reads from outside are uniform."""
    found = effects(stmt)
    private = (access.buffer for access in found.reads if access.buffer.scope is Scope.LOCAL)
    return all(map(known.holds, found.scalars_read)) and all(map(known.holds_in, private))


def orders_nothing(stmt: Stmt) -> bool:
    """Whether statements of single threads only compute, read and write: no other thread waits for them.

    A loop on memory contents waits for other threads.
    """
    found = effects(stmt)
    polls = found.may_not_terminate and any(access.root.scope in MEMORY for access in found.reads)
    ordered = found.orders - {Order.WARP, Order.GROUP} or found.starts or found.awaits
    if polls or ordered or found.may_leave or REGISTERS in found.scalars_written:
        return False
    return all(asked_warpgroups(part) is None for part in statements((stmt,), If))


def _hidden(body: list[Stmt]) -> bool:
    """Whether a statement needs a name that is bound under the condition before it."""
    names: set[Var] = set()
    for stmt in body:
        if names & depends_on(stmt):
            return True
        if isinstance(stmt, If):
            names |= declared_by_arms(stmt)
    return False
