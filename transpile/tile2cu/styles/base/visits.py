"""What a kernel visits on the way to its producer's loop, tiles of work or iterations: how the source calls it."""

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from tile2cu.plan.producer_ops import EachActive, VisitedWork
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.names import Names
from tile2cu.styles.base.statements import Statements
from tile2cu.styles.base.view import StatementView, text_line

TILES = "The tiles of work of this block, in order: producer and consumers visit the same."
PUBLISHED = "The active iterations of a tile of work: the producer visits each, and publishes it to the consumers."
ITERATIONS = "The active iterations: producer and consumers visit the same."


def called(visiting: VisitedWork, names: Names) -> dict[str, str]:
    """How the text calls what is visited, its type, the way, and the tile of work of which it is one."""
    if not visiting.iterations:
        return {"type": names("__WorkTile"), "each": names("__for_each_work_tile"), "work": names("__work"), "of": ""}
    of = {"of": names("__work"), "of_type": names("__WorkTile")} if visiting.within_tile else {"of": ""}
    return {"type": names("__Iteration"), "each": names("__for_each_iteration"), "work": names("__iteration"), **of}


@contextmanager
def fields(visiting: VisitedWork, printer: Printer) -> Iterator[dict[str, str]]:
    """Prints what is done where the way leads: what the way gives is a part of what is visited."""
    names = called(visiting, printer.names)
    outside = printer.fields
    printer.fields = outside | {var: f"{names['work']}.{printer.names(var.name)}" for var in visiting.values}
    yield names
    printer.fields = outside


def visit(visiting: VisitedWork, body: Statements) -> StatementView:
    """Where the way has led."""
    names = body.printer.names
    given = ", ".join(names(var.name) for var in visiting.values)
    text = f"visit({called(visiting, names)['type']}{{{given}}});" if visiting.values else "visit();"
    return replace(text_line(text), gap=True)


def each_active(op: EachActive, body: Statements) -> StatementView:
    """What decides about iterations, and the visit."""
    printer = body.printer
    decided = text_line(f"return {printer.text(op.condition)};", 0, tuple(body.heading((op.branch,))))
    parts = {"start": printer.text(op.start), "stop": printer.text(op.stop), "variable": printer.names(op.var.name)}
    return StatementView(
        "for_each_active",
        parts,
        body=(*body.views(op.asked), decided),
        orelse=(*body.views(op.visited), replace(visit(op.visit.visiting, body), gap=False)),
        comments=("Each lane of a warp tests one iteration: the conditions of 32 are loaded together",),
    )
