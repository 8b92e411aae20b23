"""Accesses of a block's threads to shared tiles since the last barrier."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tile2cu.rules.sync.thread_ownership import Touch

# A tile's name, the group of threads that used it (None for the whole block), and whether that group has since had a
# barrier of its own, which synchronises only its threads.
Key = tuple[str, int | None, bool]
Touches = dict[Key, frozenset[Touch]]  # how the tiles were used


@dataclass
class Pending:
    """Accesses of the block's threads to shared tiles since the last barrier; `plainly` are the non-atomic ones."""

    written: Touches = field(default_factory=dict)
    read: Touches = field(default_factory=dict)
    plainly: frozenset[str] = frozenset()

    def copy(self) -> "Pending":
        return Pending(dict(self.written), dict(self.read), self.plainly)

    def merge(self, other: "Pending") -> "Pending":
        return Pending(_both(self.written, other.written), _both(self.read, other.read), self.plainly | other.plainly)

    def without(self, names: set[str]) -> "Pending":
        return self.kept(lambda key: key[0] not in names)

    def known_to(self, group: int) -> "Pending":
        """The accesses that are unordered after a barrier of a group."""
        written, read = (
            _joined(((name, user, known or user == group), how) for (name, user, known), how in table.items())
            for table in (self.written, self.read)
        )
        return Pending(written, read, self.plainly)

    def kept(self, keep: Callable[[Key], bool]) -> "Pending":
        return Pending(
            {key: touches for key, touches in self.written.items() if keep(key)},
            {key: touches for key, touches in self.read.items() if keep(key)},
            self.plainly,
        )


def _both(one: Touches, other: Touches) -> Touches:
    return _joined((*one.items(), *other.items()))


def _joined(items: Iterable[tuple[Key, frozenset[Touch]]]) -> Touches:
    found: Touches = {}
    for key, how in items:
        found[key] = found.get(key, frozenset()) | how
    return found


def for_all_of(group: int | None) -> int:
    """In place of a group: accesses of that group that all threads must wait for."""
    return -1 - (group or 0)


def is_of_all(group: int | None) -> bool:
    """Whether the whole block made the access, or one group for all."""
    return group is None or group < 0
