"""What has been decided, by which rule, and because of which line."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tile2cu.core.errors import Note, Tile2CuError
from tile2cu.core.program import Buffer, Launch, Stmt
from tile2cu.core.span import Span

Subject = Buffer | Stmt | Launch


@dataclass(frozen=True)
class Fact:
    """`what` of `about` is `value`, said by `rule` because of the line at `span`."""

    about: Subject
    what: str
    value: Any
    rule: str
    span: Span


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """The value of a fact that says what was not chosen: a `candidate`, why not, and the `edit` that would allow it.

    `edit` is empty where the user's file cannot do anything about it. The fact's `what` is `not CANDIDATE`.
    """

    candidate: str
    because: str
    edit: str = ""

    def __str__(self) -> str:
        return self.because


def rejected(about: Subject, candidate: str, because: str, edit: str = "") -> tuple[Subject, str, Rejected]:
    """The decision of a rule against a candidate."""
    return about, f"not {candidate}", Rejected(candidate=candidate, because=because, edit=edit)


class Facts:
    """Settled facts. A second, different value for the same thing is an error that names both rules."""

    def __init__(self) -> None:
        self._settled: dict[tuple[int, str], Fact] = {}

    def settle(self, fact: Fact) -> bool:
        """Adds a fact; True if it is new. Raises T2C-L001 when it contradicts a settled one."""
        key = (id(fact.about), fact.what)
        old = self._settled.get(key)
        if old is None:
            self._settled[key] = fact
            return True
        if old.value != fact.value:
            raise _contradiction(old, fact)
        return False

    def get(self, about: Subject, what: str) -> Any:
        """The settled value, or None."""
        fact = self._settled.get((id(about), what))
        return None if fact is None else fact.value

    def __getitem__(self, key: tuple[Subject, str]) -> Any:
        """The settled value. Raises KeyError when nothing was decided."""
        return self.fact(*key).value

    def fact(self, about: Subject, what: str) -> Fact:
        """The whole fact. Raises KeyError when nothing was decided."""
        return self._settled[(id(about), what)]

    def rule(self, about: Subject, what: str) -> str:
        """The id of the rule that settled it. Raises KeyError when nothing was decided."""
        return self.fact(about, what).rule

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._settled.values())


def name_of(subject: Subject) -> str:
    """How a message speaks of a subject: a buffer's name in back quotes, or a line."""
    if isinstance(subject, Buffer):
        return f"`{subject.name}`"
    return f"line {subject.span.line}"


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
