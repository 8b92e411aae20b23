"""The two instances of a kernel of which the launcher chooses one, by where rows of tensors start."""

from collections.abc import Iterator

from tile2cu.analysis.uses import statements
from tile2cu.core.decisions import ROW_ALIGNMENT, ROW_ALIGNMENT_IF, TMA_IF
from tile2cu.core.facts import Fact, Key, Subject
from tile2cu.core.program import Buffer, Copy
from tile2cu.core.schedule import Multiple, strictest
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.tensors import POINTER_BYTES, instance_alignment, viewed_tensors


def aligned_when(resolved: Resolved, more: tuple[Multiple, ...] = ()) -> tuple[Multiple, ...]:
    """The run-time conditions under which the launcher chooses the instance for aligned rows: those of rows, and `more`
    of the style.
    """
    return strictest((*_conditions(resolved, rows_aligned_to(resolved, more)), *more))


def rows_aligned_to(resolved: Resolved, more: tuple[Multiple, ...] = ()) -> int:
    """The bytes that rows start at multiples of in that instance."""
    return POINTER_BYTES if more else instance_alignment(resolved)


def _conditions(resolved: Resolved, bytes_: int) -> Iterator[Multiple]:
    """That all rows are aligned to so many bytes."""
    for fact in _asked_of_rows(resolved):
        of = fact.about.dtype.elements_in(bytes_) if isinstance(fact.about, Buffer) else fact.value.of
        yield Multiple(fact.value.value, of)


def rule_of_rows(resolved: Resolved) -> str:
    """The rule that has them asked, or that decided how rows are accessed."""
    asked = next((fact.rule for fact in _asked_of_rows(resolved)), None)
    return asked or resolved.facts.rule(viewed_tensors(resolved)[0], ROW_ALIGNMENT)


def _asked_of_rows(resolved: Resolved) -> Iterator[Fact]:
    """Of tensors that the kernel reaches by pointer, and of stores that go by TMA if it reaches their rows."""
    unknown = (tensor for tensor in viewed_tensors(resolved) if resolved.row_alignment(tensor) == 0)
    asked: list[tuple[Subject, Key[Multiple]]] = [(tensor, ROW_ALIGNMENT_IF) for tensor in unknown]
    asked += [(op, TMA_IF) for op in statements(resolved.launch.body, Copy)]
    return (resolved.facts.fact(*key) for key in asked if resolved.facts.get(*key) is not None)
