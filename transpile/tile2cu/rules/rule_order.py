"""The order of rules, which follows from the keys that each of them declares to read and to write."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from tile2cu.core.facts import Key


class Declared(Protocol):
    """A rule's declarations; `absent` are keys that the rule requires to be undecided."""

    @property
    def reads(self) -> tuple[Key[Any], ...]: ...
    @property
    def writes(self) -> tuple[Key[Any], ...]: ...
    @property
    def absent(self) -> tuple[Key[Any], ...]: ...


R = TypeVar("R", bound=Declared)


def groups(rules: Sequence[R], prefer: Callable[[R], float] | None = None) -> tuple[tuple[R, ...], ...]:
    """The rules in topological order. Rules that depend on one another are one group, in the order of the table.

    Of groups that are ready the one with the least `prefer` comes next, by default the first of the table.
    """
    before = _closed([[_precedes(rules, first, then) for then in range(len(rules))] for first in range(len(rules))])
    left = list(range(len(rules)))
    found = []
    while left:
        ready = [one for one in left if all(before[one][other] for other in left if before[other][one])]
        first = min(ready, key=lambda one: one if prefer is None else prefer(rules[one]))
        members = [one for one in left if one == first or (before[one][first] and before[first][one])]
        found.append(tuple(rules[one] for one in members))
        left = [one for one in left if one not in members]
    return tuple(found)


@functools.cache
def repeats(group: tuple[Declared, ...]) -> bool:
    """Whether facts of a group may lead to further facts of the group: it then iterates to a fixpoint."""
    return len(group) > 1 or bool(set(group[0].reads) & set(group[0].writes))


def _precedes(rules: Sequence[Declared], first: int, then: int) -> bool:
    """Whether a rule has to run before another: it writes a key that the other reads, or both write the same key.

    Rules that write the same key are alternatives: the earlier one of the table has priority. A rule that requires a
    key to be absent therefore waits for the earlier alternatives only.
    """
    writes = set(rules[first].writes)
    return first != then and (
        bool(writes & set(rules[then].reads))
        or (first < then and bool(writes & {*rules[then].writes, *rules[then].absent}))
    )


def _closed(edges: list[list[bool]]) -> list[list[bool]]:
    """The transitive closure of a relation."""
    for middle in range(len(edges)):
        for row in edges:
            if row[middle]:
                row[:] = [one or other for one, other in zip(row, edges[middle], strict=True)]
    return edges
