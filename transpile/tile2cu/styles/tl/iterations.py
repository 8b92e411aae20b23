"""The texts of the iterations of loops with a producer."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tile2cu.core.expr import Role, Var, binary, static_value
from tile2cu.core.program import Buffer
from tile2cu.plan.producer_ops import Iterations, Ring, Visiting
from tile2cu.styles.base.names import Names
from tile2cu.styles.tl.constants import Constants
from tile2cu.styles.tl.expressions import Printer
from tile2cu.styles.tl.pipelined import part_name


@dataclass(frozen=True)
class Texts:
    """How a loop's iterations are written: the number of one, `turn`, which counts from 0, and how many there are.

    `slot` is the ring's stage where that continues from loop to loop. `before`, added to `turn`, counts the iterations
    of tiles of work that are done; `first_before` those of a published tile. `variable` declares the user's own;
    `trips` is the trip count, `turns` a name for it.
    """

    turn: str
    slot: str
    before: str
    first_before: str
    told: bool
    load: str
    stages: str
    trips: str
    turns: str
    variable: str

    @property
    def parts(self) -> dict[str, str]:
        """The same for a template."""
        return {
            "turn": self.turn,
            "slot": self.slot,
            "before": self.before,
            "first_before": self.first_before,
            "told": "yes" if self.told else "",
            "load": self.load,
            "stages": self.stages,
            "trips": self.trips,
            "turns": self.turns,
            "variable": self.variable,
        }


@contextmanager
def iterations(of: Iterations, printer: Printer, constants: Constants) -> Iterator[Texts]:
    """The texts of a loop's iterations; inside, its tiles print with their iteration's stage."""
    name, from_zero = printer.names(of.var.name), static_value(of.start) == 0
    turn, stages = name if from_zero else f"{name}_turn", constants.stages(of.stages)
    slot = printer.names("__stage") if of.continues else ""
    trips = printer.text(of.stop if from_zero else binary("-", of.stop, of.start))
    changes = isinstance(of.stop, Var) and of.stop.role is Role.MUTABLE
    named = not changes and (trips.isdigit() or trips.isidentifier() or (from_zero and isinstance(of.stop, Var)))
    outside, told = dict(printer.slots), bool(of.published)
    before = "k_base + " if of.persistent else ""  # a ring counts the iterations of all tiles of work
    first_before = f"{before}tile_iter + " if told else before  # and a stage that ends a tile of work
    if told and of.loading:  # who finds the iterations counts them there
        turn, counted, first_counted = "k_base", "k_base", "k_base + tile_iter"
    else:
        counted, first_counted = f"{before}{turn}", f"{first_before}{turn}"
    printer.counts = {tile.name: first_counted if tile in of.published else counted for tile in of.tiles}
    stage = {name: f"({count})" if " " in count else count for name, count in printer.counts.items()}
    printer.slots |= {tile.name: slot or f"{stage[tile.name]} % {stages}" for tile in of.tiles}
    yield Texts(
        turn=turn,
        slot=slot,
        before=before,
        first_before=first_before,
        told=told,
        load=part_name("load", of.number, printer),
        stages=stages,
        trips=trips,
        turns=trips if named else "num_iterations",
        variable="" if from_zero else f"const int {name} = {printer.text(of.start)} + {turn};",
    )
    printer.slots = outside


def pipeline_name(tile: Buffer, names: Names) -> str:
    """The pipeline of a tile that is loaded by itself."""
    return names(f"{tile.name}_pipeline")


def barriers_name(ring: Ring, names: Names) -> str:
    """The barriers of such a ring."""
    return names(f"{ring.tile.name}_barriers")


def called(visiting: Visiting, names: Names) -> dict[str, str]:
    """How the text calls what is visited, its type, the way, and the tile of work of which it is one."""
    if not visiting.iterations:
        return {"type": names("__WorkTile"), "each": names("__each_work_tile"), "work": names("__work"), "of": ""}
    of = {"of": names("__work"), "of_type": names("__WorkTile")} if visiting.within_tile else {"of": ""}
    return {"type": names("__Turn"), "each": names("__each_turn"), "work": names("__turn"), **of}


@contextmanager
def fields(visiting: Visiting, printer: Printer) -> Iterator[dict[str, str]]:
    """Prints what is done where the way leads: what the way gives is a part of what is visited."""
    names = called(visiting, printer.names)
    outside = printer.fields
    printer.fields = outside | {var: f"{names['work']}.{printer.names(var.name)}" for var in visiting.values}
    yield names
    printer.fields = outside
