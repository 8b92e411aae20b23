"""Which statements are together under one comment, as the user wrote them."""

from tile2cu.analysis.control import arms
from tile2cu.analysis.uses import statements
from tile2cu.core.program import If, Loop, LoopKind, Stmt, While


def groups(body: tuple[Stmt, ...], barriers: frozenset[int]) -> list[tuple[Stmt, ...]]:
    """The paragraphs of a block, as the user wrote them.

    A paragraph ends before a comment, an empty line, a loop or branch, and a barrier; `barriers` are
    the ids of the statements that have one before them.
    """
    found: list[list[Stmt]] = []
    for stmt in body:
        previous = found[-1][-1] if found else None
        if previous is None or id(stmt) in barriers or _starts_paragraph(previous, stmt):
            found.append([])
        found[-1].append(stmt)
    return [tuple(group) for group in found]


def is_of_rules(stmt: Stmt) -> bool:
    """Whether a branch or a pipelined loop is none of the user's."""
    match stmt:
        case If():
            (inside, _), _ = arms(stmt)
        case Loop(kind=LoopKind.PIPELINED):
            inside = stmt.body
        case _:
            return False
    return bool(inside) and inside[0].span == stmt.span


def last_line(stmt: Stmt) -> int:
    """The last line of a statement, of what it holds too."""
    return max(part.span.line for part in statements((stmt,), Stmt))


def _starts_paragraph(previous: Stmt, stmt: Stmt) -> bool:
    compound = isinstance(stmt, Loop | If | While) or isinstance(previous, Loop | If | While)
    elsewhere = stmt.span.file != previous.span.file
    return bool(stmt.comments) or compound or elsewhere or stmt.span.line > last_line(previous) + 1
