"""Names for the variables of loops that passes write: i, j, ..., where nothing in scope has them."""

from collections.abc import Iterator
from functools import cached_property

from tile2cu.analysis.control import places
from tile2cu.analysis.uses import loop_variables, names_but_of_loops, names_used, variables_of_loops
from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Role, Var
from tile2cu.core.program import Launch, Stmt

_LETTERS = ("i", "j", "k", "l", "m", "n")


class LoopNames:
    """Variables for new loops of a launch.

    A name ends with its loop: other loops may have it, unless one is around or inside the new one. The names of all
    else, as of tiles, numbers of the file and scalars, are taken everywhere.
    """

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._number = max((var.number for var in variables_of_loops(launch)), default=0)

    @cached_property
    def _taken(self) -> set[str]:
        return names_but_of_loops(self._launch)

    @cached_property
    def _around(self) -> dict[int, frozenset[str]]:
        return {
            id(place.stmt): frozenset(var.name for outer in place.around for var in loop_variables(outer))
            for place in places(self._launch.body)
        }

    def variables(self, count: int, role: Role, at: Stmt) -> tuple[Var, ...]:
        """The variables of one more loop, in the place of a statement of the launch or around it."""
        self._number += 1  # so that variables of one name are not the same
        taken = self._taken | self._around.get(id(at), frozenset()) | names_used((at,))
        names = (name for name in _candidates() if name not in taken)
        return tuple(Var(INT32, next(names), role, self._number) for _ in range(count))


def _candidates() -> Iterator[str]:
    yield from _LETTERS
    number = 2
    while True:
        yield from (f"{letter}_{number}" for letter in _LETTERS)
        number += 1
