"""A producer's part of a kernel in words, and the values that it shares with the others."""

from itertools import groupby

from tile2cu.core.expr import Var
from tile2cu.core.record import Record
from tile2cu.core.schedule import Persistent
from tile2cu.plan.roles import Producer
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.names import Names
from tile2cu.styles.base.view import Declaration

ONE_THREAD = "one thread issues all loads"
SOONER = "Issued before values for the loop are read from memory, so that their latencies overlap"


class Notes(Record, frozen=True):
    """The comments on a producer's role."""

    producer: Producer
    names: Names

    def at_top(self) -> str:
        """The roles, and how far the producer prefetches."""
        stages = self.producer.iterations.stages
        distance = f"up to {stages} tile{'s' * (stages > 1)} {self._ahead()}."
        return f"Warp-specialised: {self._who()} {self._loads()}, {distance}{self._first()}{self._shares()}"

    def _loads(self) -> str:
        if self.producer.stages is None or not self.producer.stages.gathered:
            return "issues all loads"
        return "gather the rows of all tiles by cp.async"

    def nested(self) -> str:
        """The same of a loop in others."""
        producer, stages = self.producer, self.producer.iterations.stages
        distance = f"up to {stages} iteration{'s' * (stages > 1)} {self._ahead()}."
        across = " The producer prefetches tiles of the next tile of work while the consumers finish this one."
        across = "" if producer.once else across
        return f"Warp-specialised: {self._who()} issues all loads, {distance}{self._first()}{across}{self._shares()}"

    def persistent(self, persistent: Persistent) -> str:
        """How tiles are scheduled, and who loads."""
        producer = self.producer
        how = "from a dynamic scheduler" if persistent.queue else "by a static schedule"
        return (
            f"Persistent kernel: one block per SM takes tiles of work {how}; the producer prefetches the next tile's "
            f"first stages during the epilogue  [{producer.persistent_rule}]. Warp-specialised: {self._who()} issues "
            f"all loads, up to {producer.iterations.stages} iterations {self._ahead()}."
            f"{self._shares()}"
        )

    def _ahead(self) -> str:
        return f"ahead of the consumers' last release  [{self.producer.rule}]"

    def prologue_tiles(self) -> str:
        """The tiles that are loaded once."""
        copies = self.producer.prologue.copies if self.producer.prologue is not None else ()
        return ", ".join(self.names.in_comments(load.dst.buffer.name) for load in copies)

    def _first(self) -> str:
        return f" It loads {self.prologue_tiles()} first." if self.producer.prologue is not None else ""

    def _who(self) -> str:
        consumers = f"in addition to the {self.producer.threads} consumer threads"
        if self.producer.stages is not None and self.producer.stages.gathered:
            return f"the threads of a producer warpgroup, {consumers},"
        if self.producer.shares_rule:
            return f"one thread of a producer warpgroup, {consumers},"
        return f"one thread of a producer warp, {consumers},"

    def _shares(self) -> str:
        if not self.producer.shares_rule:
            return ""
        moved = "setmaxnreg moves most of the producer warpgroup's registers to the consumers"
        return f" {moved}  [{self.producer.shares_rule}]"


def work_types(persistent: Persistent | None, printer: Printer) -> tuple[Declaration, ...]:
    """The structs of what a producer hands to the others with a tile of work that it has drawn."""
    if persistent is None or not persistent.queue:
        return ()
    about = "A tile of work, and the values that follow from it: the producer computes and publishes them"
    text = f"struct {printer.names('__WorkTile')} {{ {members(persistent.work, printer)} }};"
    tile = Declaration(text, (about,))
    if not persistent.iteration:
        return (tile,)
    about = "An active iteration: the producer finds those, and publishes each with its tile"
    text = f"struct {printer.names('__Iteration')} {{ {members(persistent.iteration, printer)} }};"
    return (tile, Declaration(text, (about,)))


def members(values: tuple[Var, ...], printer: Printer) -> str:
    """The members of a struct of these values."""
    groups = groupby(values, lambda var: printer.type(var.dtype))
    return " ".join(f"{type_} {', '.join(printer.names(var.name) for var in each)};" for type_, each in groups)
