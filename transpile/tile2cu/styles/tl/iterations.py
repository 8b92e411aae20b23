"""The texts of the iterations of loops with a producer."""

from collections.abc import Iterator
from contextlib import contextmanager

from tile2cu.core.program import Buffer
from tile2cu.core.record import Record
from tile2cu.plan.producer_ops import Iterations
from tile2cu.styles.base.barriers import numbered
from tile2cu.styles.base.comments import bracketed
from tile2cu.styles.base.constants import Constants
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.loops import FromZero
from tile2cu.styles.base.names import Names
from tile2cu.styles.tl.vocabulary import MAX


class Texts(Record, frozen=True):
    """How a loop's iterations are written: the number of one, `k`, which counts from 0, and the trip count.

    `stage` is the pipeline's where that continues from loop to loop, `stages` names its depth. `done_before`, added to
    `k`, count the iterations of tiles of work that are done; `first_done_before` those of a published tile, if the loop
    `publishes` one. `variable` declares the user's own; `count` is a name for the trip count `trips`. `counted`: the
    loop runs several times. `may_be_negative`: the trip count, of a loop that then does not run; `certain`: it is a
    number, and not 0.
    """

    k: str
    stage: str
    done_before: tuple[str, ...]
    first_done_before: tuple[str, ...]
    publishes: bool
    stages: str
    trips: str
    count: str
    variable: str
    counted: bool
    may_be_negative: bool
    certain: bool
    pipeline: str

    @property
    def before(self) -> str:
        """What is in front of `k` in a sum."""
        return "".join(f"{each} + " for each in self.done_before)

    @property
    def first_before(self) -> str:
        """The same for a published tile."""
        return "".join(f"{each} + " for each in self.first_done_before)

    @property
    def done(self) -> str:
        """What follows a run, of an iteration at least, of a loop whose earlier runs are `counted`."""
        return self.advanced(self.count)

    @property
    def done_of_tile(self) -> str:
        """What follows a tile of work, whose loop may have no iterations."""
        return self.advanced(f"{MAX}({self.count}, 0)" if self.may_be_negative else self.count)

    def advanced(self, count: str) -> str:
        """The iterations that are done, `count` more: modulo twice the stages, so that they never overflow."""
        return f"k_base = (k_base + {count}) % (2 * {self.stages});"

    @property
    def parts(self) -> dict[str, str]:
        """The same for a template."""
        return {
            "k": self.k,
            "stage": self.stage,
            "before": self.before,
            "first_before": self.first_before,
            "publishes": "yes" if self.publishes else "",
            "trips": self.trips,
            "count": self.count,
            "variable": self.variable,
            "pipeline": self.pipeline,
        }


@contextmanager
def iterations(of: Iterations, printer: Printer, constants: Constants) -> Iterator[Texts]:
    """The texts of a loop's iterations; inside, its tiles print with their iteration's stage."""
    loop = FromZero.of(of.var, of.start, of.stop, printer, lambda name: f"{name}_iter")
    k, stages = loop.k, constants.stages(of.stages)
    stage = numbered("stage", of, printer.names) if of.continues else ""
    outside, publishes = (printer.stages, printer.counts), bool(of.published)
    before = ("k_base",) * (of.persistent or of.counted)  # rings count all tiles of work, all runs of the loop
    first_before = (*before, *("tile_iter",) * publishes)  # and a stage that ends a tile of work
    if publishes and of.loading:  # who finds the iterations counts them there
        k, counted, first_counted = "k_base", "k_base", "k_base + tile_iter"
    else:
        counted, first_counted = " + ".join((*before, k)), " + ".join((*first_before, k))
    printer.counts = {tile.name: first_counted if tile in of.published else counted for tile in of.tiles}
    operands = {name: bracketed(count) for name, count in printer.counts.items()}
    printer.stages = outside[0] | {tile.name: stage or f"{operands[tile.name]} % {stages}" for tile in of.tiles}
    yield Texts(
        k=k,
        stage=stage,
        done_before=before,
        first_done_before=first_before,
        publishes=publishes,
        stages=stages,
        trips=loop.trips,
        count=loop.count or "num_iterations",
        variable=loop.variable,
        counted=of.counted,
        may_be_negative=of.may_be_negative,
        certain=loop.certain,
        pipeline=numbered("pipeline", of, printer.names),
    )
    printer.stages, printer.counts = outside


def pipeline_name(tile: Buffer, names: Names) -> str:
    """The pipeline of a tile that is loaded on its own."""
    return names(f"{tile.name}_pipeline")
