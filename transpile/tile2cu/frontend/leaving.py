"""T.thread_return(): what is behind it is not done by the threads that leave, which is what an `if` states."""

from msgspec.structs import replace

from tile2cu.core.errors import Tile2CuError
from tile2cu.core.program import If, Loop, Parallel, Stmt, While, walk_stmts

Body = tuple[Stmt, ...]


class Leave(Stmt, frozen=True, kw_only=True):
    """A thread is done. No Program has it: see without_leaves."""


def without_leaves(body: Body) -> Body:
    """The body of a launch in which what follows a branch that leaves is the branch's other arm.

    Errors: T2C-F011 where threads leave from a loop, or from within a branch of which others come back.
    """
    found: list[Stmt] = []
    for place, stmt in enumerate(body):
        match stmt:
            case Leave():
                return tuple(found)
            case Loop() | While() | Parallel() if (leave := _leave_in(stmt.body)) is not None:
                raise _refusal(leave)
            case If() if _leave_in((*stmt.then, *stmt.orelse)) is not None:
                return (*found, *_either(stmt, body[place + 1 :]))
            case _:
                found.append(stmt)
    return tuple(found)


def _either(stmt: If, rest: Body) -> Body:
    """A branch in which some threads leave, with what the others do behind it."""
    if _ends(stmt.then):
        then, orelse = stmt.then, (*stmt.orelse, *rest)
    elif _ends(stmt.orelse):
        then, orelse = (*stmt.then, *rest), stmt.orelse
    elif not rest:
        then, orelse = stmt.then, stmt.orelse
    else:
        leave = _leave_in((*stmt.then, *stmt.orelse))
        assert leave is not None
        raise _refusal(leave)
    then, orelse = without_leaves(then), without_leaves(orelse)
    said = () if then else ("T.thread_return(): the others are done",)
    return replace(stmt, comments=(*stmt.comments, *said)).with_arms(then, orelse)


def _ends(body: Body) -> bool:
    """Whether no thread reaches the end."""
    return any(
        isinstance(stmt, Leave) or (isinstance(stmt, If) and _ends(stmt.then) and _ends(stmt.orelse)) for stmt in body
    )


def _leave_in(body: Body) -> Leave | None:
    return next((stmt for stmt in walk_stmts(body) if isinstance(stmt, Leave)), None)


def _refusal(leave: Leave) -> Tile2CuError:
    return Tile2CuError(
        "T2C-F011",
        "T.thread_return is only supported where all that take a branch of the kernel leave there",
        leave.span,
        help="put the rest into an `if`; a loop is left by `break`",
    )
