"""The way to a producer's loop through those around it: written once, for who loads and who computes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from tile2cu.analysis.accesses import lets_for, variables
from tile2cu.analysis.prelude import Walk, is_one_turn
from tile2cu.core.expr import Var
from tile2cu.core.program import If, Loop, Stmt
from tile2cu.core.schedule import Persistent
from tile2cu.emitter.tma import persistent_in, producer_loop
from tile2cu.plan.settled import Settled
from tile2cu.styles.base.comments import BODY_WIDTH, heading, wrapped
from tile2cu.styles.base.view import Declaration, StatementView
from tile2cu.styles.tl.expressions import Printer

if TYPE_CHECKING:
    from tile2cu.emitter.statements import Statements

_TILES = "The work of this block, one tile after the other: who loads and who computes go the same way, and visit each."
_TURNS = "The turns that are not skipped: who loads and who computes go the same way, and visit each."
_TAKEN = "The turns of a tile that are not skipped: who loads visits each, and hands it to the others."


def walk_view(walk: Walk, statements: "Statements") -> StatementView:
    """What a tile of the way is, and the way."""
    stays = persistent_in(statements.settled) is not None  # then shared memory holds turns: their type is outside
    parts = {**called(statements), "fields": "" if stays else _members(walk.values, statements.printer)}
    about = _TAKEN if stays else _TURNS if _visits_turns(statements) else _TILES
    body = statements.loading(walk.way, walking=True)
    return StatementView("walk", parts, body=body, notes=tuple(wrapped(about, BODY_WIDTH)))


def _members(values: tuple[Var, ...], printer: Printer) -> str:
    """The members of a struct of these values."""
    names = printer.names
    groups = groupby(values, lambda var: var.dtype.cpp)
    return " ".join(f"{cpp} {', '.join(names(var.name) for var in each)};" for cpp, each in groups)


def tile_of_staying(persistent: Persistent, shared: tuple[Stmt, ...], statements: "Statements") -> StatementView:
    """Where a tile lies, of a block that stays, and the `shared` values that follow: a function for who loads and who
    computes. What is printed behind it reads them as parts of the tile.
    """
    printer, values = statements.printer, persistent.work
    text = f"return {printer.names('__WorkTile')}{{{', '.join(printer.names(var.name) for var in values)}}};"
    indices = (StatementView("line", {"text": each.text}, 0, each.comments) for each in statements.tile_indices)
    body = (*indices, *statements.paragraphs(shared), StatementView("line", {"text": text}))
    names = {"type": printer.names("__WorkTile"), "each": printer.names("__work_tile")}
    printer.fields = {var: f"{printer.names('__work')}.{printer.names(var.name)}" for var in values}
    fields = "" if persistent.queue else _members(values, printer)
    return StatementView("work_tile", {**names, "fields": fields}, body=body)


def work_of_tile(settled: Settled, printer: Printer) -> tuple[Declaration, ...]:
    """The struct of what a producer hands to the others with a tile that it has drawn."""
    persistent = persistent_in(settled)
    if persistent is None or not persistent.queue:
        return ()
    about = "Where a tile lies, and what follows from that for its turns: the producer computes it, and hands it on"
    text = f"struct {printer.names('__WorkTile')} {{ {_members(persistent.work, printer)} }};"
    tile = Declaration(text, (about,))
    if not persistent.turn:
        return (tile,)
    about = "A turn that is not skipped: the producer finds those, and hands each on with its tile"
    text = f"struct {printer.names('__Turn')} {{ {_members(persistent.turn, printer)} }};"
    return (tile, Declaration(text, (about,)))


def staying_tile(statements: "Statements") -> StatementView:
    """The tile that a block which stays is at."""
    names = statements.printer.names
    text = f"const {names('__WorkTile')} {names('__work')} = {names('__work_tile')}(tile);"
    return StatementView("line", {"text": text})


def visit(walk: Walk, statements: "Statements") -> StatementView:
    """Where the way has led to a tile."""
    given = ", ".join(statements.printer.names(var.name) for var in walk.values)
    text = f"visit({called(statements)['type']}{{{given}}});" if walk.values else "visit();"
    return StatementView("line", {"text": text}, gap=True)


def each_taken(walk: Walk, op: Loop, statements: "Statements") -> StatementView:
    """The turns of such a loop: what decides about them, and the visit."""
    printer = statements.printer
    branch = op.body[-1]
    assert isinstance(branch, If), "the loop's last statement says which turns are taken"
    decided = StatementView("line", {"text": f"return {printer.text(branch.condition)};"}, 0, tuple(heading((branch,))))
    parts = {"start": printer.text(op.start), "stop": printer.text(op.stop), "variable": printer.names(op.var.name)}
    return StatementView(
        "each_taken",
        parts,
        body=(*statements.paragraphs(lets_for(variables(branch.condition), op.body)), decided),
        orelse=(
            *statements.paragraphs(lets_for(set(walk.values), op.body)),
            replace(visit(walk, statements), gap=False),
        ),
        comments=("Each lane of a warp asks about one turn: what decides about 32 of them arrives at once",),
    )


def visits(walk: Walk, line: int, statements: "Statements", *, loading: bool) -> StatementView:
    """What those who load, or the others, do at each tile."""
    parts = {**called(statements), "values": "yes" if walk.values else ""}
    with _fields(walk, parts["work"], statements):
        body = statements.loading(*walk.loading) if loading else statements.body(walk.computing)
    if body[-1].kind == "overlap":
        return replace(body[-1], kind="overlap_taken", parts={**body[-1].parts, **parts})
    return StatementView("visits", parts, line, body=body)


@contextmanager
def _fields(walk: Walk, work: str, statements: "Statements") -> Iterator[None]:
    """Prints what is done at a tile: what the way gives is a part of the tile."""
    printer = statements.printer
    outside = printer.fields
    printer.fields = outside | {var: f"{work}.{printer.names(var.name)}" for var in walk.values}
    yield
    printer.fields = outside


def called(statements: "Statements") -> dict[str, str]:
    """How the text calls a tile of the way, or a turn, its type, the way, and the tile of which it is one."""
    names = statements.printer.names
    if not _visits_turns(statements):
        return {"type": names("__WorkTile"), "each": names("__each_work_tile"), "work": names("__work"), "of": ""}
    of = {"of": names("__work"), "of_type": names("__WorkTile")} if persistent_in(statements.settled) else {"of": ""}
    return {"type": names("__Turn"), "each": names("__each_turn"), "work": names("__turn"), **of}


def _visits_turns(statements: "Statements") -> bool:
    """Whether the way leads to single turns, not to tiles of several."""
    found = producer_loop(statements.settled)
    return found is not None and is_one_turn(found[0])
