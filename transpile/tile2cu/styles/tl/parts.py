"""What prints the parts of loops with a producer: the body that they are in."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tile2cu.core.program import Buffer
from tile2cu.plan.producer_ops import Iterations
from tile2cu.styles.base.constants import Constants
from tile2cu.styles.base.statements import Statements
from tile2cu.styles.tl.iterations import Texts, iterations
from tile2cu.styles.tl.operations import Operations


class Parts(Statements):
    """Prints statements of a kernel of `file`; `layout_of_tile` names layouts of fragments.

    `by_one`: only the thread that issues loads gets to them where they are in other loops.
    """

    def __init__(
        self,
        operations: Operations,
        constants: Constants,
        file: str,
        layout_of_tile: Callable[[Buffer], str],
        *,
        by_one: bool,
    ) -> None:
        super().__init__(file, operations.printer)
        self.by_one = by_one
        self.operations, self.constants, self.layout_of_tile = operations, constants, layout_of_tile
        self.texts: Texts | None = None  # of the producer's loop that is printed

    @contextmanager
    def iterations(self, of: Iterations) -> Iterator[Texts]:
        """The texts of a producer's loop that is printed."""
        outside = self.texts
        with iterations(of, self.printer, self.constants) as texts:
            self.texts = texts
            yield texts
        self.texts = outside
