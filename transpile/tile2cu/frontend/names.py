"""The last step: names that are clear in the whole program.

While a kernel is traced, a constant whose name already has another value is numbered, though the other may turn out
to be unused. Here every used constant gets its own name back where it can, and variables and tiles make way for it,
and for the arguments: a tensor's extent may have the name of a number that the kernel computes.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar, cast

from msgspec import field
from msgspec.structs import replace

from tile2cu.analysis.uses import declares
from tile2cu.core.expr import Expr, Named, Role, Var
from tile2cu.core.fields import fields_of
from tile2cu.core.program import Buffer, Launch, Range, Region, Scope, Stmt
from tile2cu.core.record import Record
from tile2cu.core.user_file import Constant

T = TypeVar("T")
_OWN_NAMES = (Role.SIZE, Role.SCALAR)  # variables that are arguments: callers know them by name


class Naming(Record, frozen=True):
    """New names, for those that change."""

    constants: Mapping[str, str]
    variables: Mapping[str, str]
    _seen: dict[int, tuple[object, object]] = field(default_factory=dict)

    def apply(self, value: T) -> T:
        """A value of the program with the new names; what does not change stays the same object."""
        return cast(T, self._applied(value)) if self.constants or self.variables else value

    def _applied(self, value: object) -> object:
        if isinstance(value, tuple):
            parts = tuple(self._applied(part) for part in value)
            return value if all(new is old for new, old in zip(parts, value, strict=True)) else parts
        if not isinstance(value, Expr | Stmt | Buffer | Region | Range | Launch):
            return value
        if id(value) not in self._seen:
            self._seen[id(value)] = (value, self._renamed(value))  # holding the value keeps its id its own
        return self._seen[id(value)][1]

    def _renamed(self, value: Expr | Stmt | Buffer | Region | Range | Launch) -> object:
        changes: dict[str, object] = {}
        for name, old in fields_of(value).items():
            new = self._name(value, old) if name == "name" else self._applied(old)
            if new is not old:
                changes[name] = new
        return replace(value, **changes) if changes else value

    def _name(self, value: object, name: str) -> str:
        match value:
            case Named():
                return self.constants.get(name, name)
            case Var() if value.role not in _OWN_NAMES:
                return self.variables.get(name, name)
            case Buffer() if value.scope is not Scope.GLOBAL:
                return self.variables.get(name, name)
            case _:
                return name


def naming(constants: Iterable[tuple[str, Constant]], arguments: Iterable[str], launches: Iterable[Launch]) -> Naming:
    """The names to change. `constants`: those used, by the name they have now; their Constant has the user's name."""
    arguments = set(arguments)
    taken = set(arguments)
    renamed: dict[str, str] = {}
    for current, constant in constants:
        name = free_name(constant.name, taken)
        taken.add(name)
        if name != current:
            renamed[current] = name
    declared = set(_declared_names(launches))
    hidden = sorted(declared & taken)
    taken |= declared
    variables: dict[str, str] = {}
    for name in hidden:
        variables[name] = free_name(name, taken)
        taken.add(variables[name])
    return Naming(renamed, variables)


def free_name(name: str, taken: set[str]) -> str:
    """The name, numbered if it is taken."""
    found, count = name, 0
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    return found


def _declared_names(launches: Iterable[Launch]) -> Iterator[str]:
    """The names that the kernels themselves declare."""
    for launch in launches:
        yield from (var.name for var in launch.blocks)
        yield from (tile.name for tile in launch.tiles)
        yield from (var.name for stmt in launch.statements for var in declares(stmt))
