"""Faults: diagnostics that do not know their place yet.

Code deep inside the evaluator raises a Fault; the evaluator gives it the place of the innermost expression or
statement that was being evaluated, which makes it a Tile2CuError.
"""

import difflib
from collections.abc import Iterable

from tile2cu.core.errors import Note, Tile2CuError
from tile2cu.core.span import Span


class Fault(Exception):
    """A diagnostic without a place."""

    def __init__(self, code: str, message: str, *, help: str = "", notes: tuple[Note, ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.help = help
        self.notes = notes

    def at(self, span: Span) -> Tile2CuError:
        """The diagnostic at its place."""
        return Tile2CuError(self.code, self.message, span, notes=self.notes, help=self.help)


class Exhausted(Fault):
    """The budget of steps is spent. Its place is the loop that spent it, not the operation that came last."""


class UnboundSize(Tile2CuError):
    """A size that was left open until run time is needed now. `names` are the open ones, in order of use."""

    names: tuple[str, ...] = ()
    optional: bool = False


class Demand(Fault):
    """`what` needs the values of the open sizes `names` at transpile time; `optional` where it only does better so."""

    def __init__(self, what: str, names: tuple[str, ...], *, optional: bool = False) -> None:
        wanted = ", ".join(f"`{name}`" for name in names)
        options = " ".join(f"-D {name}=..." for name in names)
        super().__init__(
            "T2C-F006",
            f"{what} needs the value of {wanted}, which is left unbound",
            help=f"bind it with `{options}`, a default, or a call in the file",
        )
        self.names, self.optional = names, optional

    def at(self, span: Span) -> Tile2CuError:
        error = UnboundSize(self.code, self.message, span, help=self.help)
        error.names, error.optional = self.names, self.optional
        return error


def counted(number: int, word: str) -> str:
    """`1 name`, `2 names`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}{'es' if word.endswith('x') else 's'}"


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name most like `name`, or the empty string: the only one that has it as a word, if there is one."""
    candidates = sorted(set(known))
    containing = [candidate for candidate in candidates if name in candidate.split("_")]
    if len(containing) == 1:
        return containing[0]
    folded = {candidate.lower(): candidate for candidate in reversed(candidates)}
    found = difflib.get_close_matches(name.lower(), list(folded), n=1, cutoff=0.6)
    return folded[found[0]] if found else ""


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str:
    """A help line that names the nearest known name, or the empty string."""
    near = nearest(name, known)
    return f"did you mean `{prefix}{near}`?" if near else ""
