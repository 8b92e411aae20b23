"""The one traversal of a plan."""

from collections.abc import Iterator

from tile2cu.core.fields import fields_of
from tile2cu.core.record import Record
from tile2cu.plan.ops import Op
from tile2cu.plan.structure import Statement


def operations(*parts: object) -> Iterator[Op]:
    """All operations of parts of a plan, in order, each once: also those in blocks, loops and phases of loops."""
    return _operations(parts, set())


def _operations(part: object, seen: set[int]) -> Iterator[Op]:
    if isinstance(part, tuple):
        for each in part:
            yield from _operations(each, seen)
    elif isinstance(part, Statement):
        yield from _operations((*part.before, *part.first, part.op, *part.after), seen)
    elif isinstance(part, Record) and type(part).__module__.startswith("tile2cu.plan.") and id(part) not in seen:
        seen.add(id(part))
        if isinstance(part, Op):
            yield part
        yield from _operations(tuple(fields_of(part).values()), seen)
