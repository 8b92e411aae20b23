"""Decisions in readable form, for the manifest and for `tile2cu explain`."""

from tile2cu.core.expr import Expr, Var
from tile2cu.core.facts import Fact
from tile2cu.core.layout import SLICES, FragmentLayout, Slice, Warps
from tile2cu.core.schedule import Hazard
from tile2cu.styles.base.layouts import described


def value_of(fact: Fact) -> str:
    """The decided value."""
    value = fact.value
    if isinstance(value, FragmentLayout):
        kind = type(value).__name__
        if isinstance(value, Slice):
            kind += f"<{SLICES[len(value.of.shape), value.kept][0]}>"
        return f"{kind}, {described(value)}"
    if isinstance(value, Warps):
        return f"{value.m} along M by {value.n} along N"
    if isinstance(value, tuple) and value:
        return _listed(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    about = getattr(value, "about", None)
    return str(about()) if callable(about) else str(about or value)


def _listed(value: tuple[object, ...]) -> str:
    if all(isinstance(part, Hazard) for part in value):
        hazards = (part for part in value if isinstance(part, Hazard))
        return "before it: " + ", ".join(f"`{part.buffer}` was {part.kind} by other threads" for part in hazards)
    if all(isinstance(part, bool) for part in value):
        return ", ".join("yes" if part else "no" for part in value)
    if all(isinstance(part, Expr) for part in value):
        return "where " + " and ".join(f"{part.name if isinstance(part, Var) else 'an extent'} is 1" for part in value)
    return str(value)
