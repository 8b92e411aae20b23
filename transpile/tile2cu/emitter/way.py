"""The way to a producer's loop through those around it: written once, for who loads and who computes."""

from itertools import groupby
from typing import TYPE_CHECKING

from tile2cu.analysis.prelude import Walk
from tile2cu.core.expr import Var
from tile2cu.core.program import Stmt
from tile2cu.core.schedule import Persistent
from tile2cu.emitter.tma import persistent_in
from tile2cu.plan.settled import Settled
from tile2cu.styles.base.comments import BODY_WIDTH, wrapped
from tile2cu.styles.base.view import Declaration, StatementView
from tile2cu.styles.tl.expressions import Printer
from tile2cu.styles.tl.iterations import called

if TYPE_CHECKING:
    from tile2cu.emitter.statements import Statements

_TILES = "The work of this block, one tile after the other: who loads and who computes go the same way, and visit each."
_TURNS = "The turns that are not skipped: who loads and who computes go the same way, and visit each."
_TAKEN = "The turns of a tile that are not skipped: who loads visits each, and hands it to the others."


def walk_view(walk: Walk, statements: "Statements") -> StatementView:
    """What a tile of the way is, and the way."""
    stays = persistent_in(statements.settled) is not None  # then shared memory holds turns: their type is outside
    visiting, printer = statements.lowering.producing.visiting(), statements.printer
    parts = {**called(visiting, printer.names), "fields": "" if stays else _members(walk.values, printer)}
    about = _TAKEN if stays else _TURNS if visiting.iterations else _TILES
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
