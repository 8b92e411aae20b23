"""What a kernel visits on the way to its producer's loop, tiles of work or iterations: how the source calls it."""

from collections.abc import Iterator
from contextlib import contextmanager

from tile2cu.plan.producer_ops import VisitedWork
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.names import Names

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
