"""Facts: decisions, with the rule that made each and the source line that caused it."""

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from tile2cu.core.errors import Note, Tile2CuError
from tile2cu.core.program import Buffer, Launch, Stmt
from tile2cu.core.record import Record
from tile2cu.core.span import Span

Subject = Buffer | Stmt | Launch
T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
Kinds = type | tuple[type, ...]
Place = tuple[int, "Key[Any]"]  # of a decision: the id of its subject, and its key


class Key(Record, Generic[T_co], frozen=True, eq=False):
    """A decision `about` a kind of subject: a value of type T_co, whose class is `value`.

    `name` is printed; `doc` describes in one line what the value means. The keys are listed in core/decisions.py. Two
    keys are equal only if they are one object, so that keys of different subjects may share a printed name.
    """

    name: str
    doc: str
    about: Kinds
    value: Kinds


class Fact(Record, frozen=True):
    """`key` of `about` is `value`, stated by `rule` because of the line at `span`."""

    about: Subject
    key: Key[Any]
    value: Any
    rule: str
    span: Span

    @property
    def what(self) -> str:
        """The printed name of the key."""
        return self.key.name


class Rejected(Record, frozen=True, kw_only=True):
    """The value of a fact about a rejected `candidate`: why it was rejected, and the `edit` that would allow it.

    `edit` is empty where the user's file cannot change it.
    """

    candidate: str
    because: str
    edit: str = ""

    def __str__(self) -> str:
        return self.because


def candidate(name: str, doc: str, about: Kinds) -> Key[Rejected]:
    """The key of the facts that reject a candidate; they are printed as `not NAME`."""
    return Key(f"not {name}", doc, about, Rejected)


def rejected(
    about: Subject, key: Key[Rejected], because: str, edit: str = "", *, named: str = ""
) -> tuple[Subject, Key[Rejected], Rejected]:
    """The decision of a rule against a candidate, printed as `named` where the key's name is not exact enough."""
    return about, key, Rejected(candidate=named or key.name.removeprefix("not "), because=because, edit=edit)


class UndeclaredError(Exception):
    """A rule reads or writes a key that it does not declare, which is an error of the rule."""


class Facts:
    """The facts so far. A second, different value for the same key and subject is an error that names both rules."""

    def __init__(self) -> None:
        self._decided: dict[tuple[int, Key[Any]], Fact] = {}
        self._readable: frozenset[Key[Any]] | None = None
        self._reader = ""
        self._read: set[Place] = set()

    def seen_by(self, reader: str, keys: frozenset[Key[Any]]) -> "Facts":
        """The same facts, as a rule sees them: reading any other key is an UndeclaredError."""
        seen = Facts()
        seen._decided, seen._reader, seen._readable = self._decided, reader, keys
        return seen

    def read_since(self) -> set[Place]:
        """The subjects and keys that were read since the last call, whether they were decided or not."""
        found, self._read = self._read, set()
        return found

    def add(self, fact: Fact) -> bool:
        """Adds a fact; True if it is new.

        Errors: T2C-L001 when it contradicts an earlier one; TypeError where its subject or its value is not of the
        types that the key declares, which is an error of the rule.
        """
        key = (id(fact.about), fact.key)
        old = self._decided.get(key)
        if old is None:
            _check(fact)
            self._decided[key] = fact
            return True
        if old.value != fact.value:
            raise _contradiction(old, fact)
        return False

    def get(self, about: Subject, key: Key[T]) -> T | None:
        """The value of a fact, or None."""
        if self._readable is not None and key not in self._readable:
            raise UndeclaredError(f"`{self._reader}` does not declare that it reads `{key.name}`")
        self._read.add((id(about), key))
        fact = self._decided.get((id(about), key))
        return None if fact is None else fact.value

    def __getitem__(self, key: tuple[Subject, Key[T]]) -> T:
        """The value of a fact. Raises KeyError when nothing was decided."""
        value: T = self.fact(*key).value
        return value

    def fact(self, about: Subject, key: Key[Any]) -> Fact:
        """The whole fact. Raises KeyError when nothing was decided."""
        if self._readable is not None and key not in self._readable:
            raise UndeclaredError(f"`{self._reader}` does not declare that it reads `{key.name}`")
        self._read.add((id(about), key))
        return self._decided[(id(about), key)]

    def rule(self, about: Subject, key: Key[Any]) -> str:
        """The id of the rule that stated it. Raises KeyError when nothing was decided."""
        return self.fact(about, key).rule

    def sort(self, rank: Callable[[str], int]) -> None:
        """Orders the facts by the rank of their rules; those of one rank keep their order."""
        facts = sorted(self._decided.items(), key=lambda item: rank(item[1].rule))
        self._decided = dict(facts)

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._decided.values())


def name_of(subject: Subject) -> str:
    """The name of a subject in messages: a buffer's name in back quotes, or a line."""
    if isinstance(subject, Buffer):
        return f"`{subject.name}`"
    return f"line {subject.span.line}"


def _check(fact: Fact) -> None:
    if not isinstance(fact.about, fact.key.about) or not isinstance(fact.value, fact.key.value):
        found = f"{type(fact.value).__name__} about {type(fact.about).__name__}"
        raise TypeError(f"`{fact.rule}` states a {found} under the key `{fact.what}`")


def _contradiction(old: Fact, new: Fact) -> Tile2CuError:
    return Tile2CuError(
        "T2C-L001",
        f"two rules want a different {old.what} for {name_of(old.about)}",
        new.span,
        notes=(
            Note(f"`{new.rule}` asks for {new.value}"),
            Note(f"`{old.rule}` asked for {old.value}", old.span),
        ),
        help="copy the tile through shared memory between the two uses, or use two tiles",
    )
