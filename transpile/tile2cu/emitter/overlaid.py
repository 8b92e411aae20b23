"""Where shared tiles lie in the struct of shared memory, parts of which may share one place."""

from tile2cu.core.decisions import ALIASING
from tile2cu.core.schedule import Overlay, Part
from tile2cu.plan.settled import Settled
from tile2cu.styles.tl.expressions import Printer


def place_of(name: str, settled: Settled, printer: Printer) -> str:
    """Where a tile is in the struct of shared memory."""
    return ".".join(("tl::shared<Shared>()", *_parts_around(name, settled, printer), printer.names(name)))


def type_place_of(name: str, settled: Settled, printer: Printer) -> str:
    """A tile as a member of the struct's type."""
    inside = [type_of(part) for part in _parts_around(name, settled, printer)]
    return "::".join(("Shared", *inside, printer.names(name)))


def _parts_around(name: str, settled: Settled, printer: Printer) -> list[str]:
    """The part that the tile belongs to, if there is one."""
    parts = overlay_of(settled).parts
    return [part_name(number, parts, printer) for number, part in enumerate(parts) if name in part.tiles]


def overlay_of(settled: Settled) -> Overlay:
    return settled.facts.get(settled.launch, ALIASING) or Overlay(())


def part_name(number: int, parts: tuple[Part, ...], printer: Printer) -> str:
    """The member that one part of shared memory is."""
    return printer.names(f"__{('early', 'late')[number]}" if len(parts) == 2 else f"__part_{number + 1}")


def type_of(member: str) -> str:
    return "".join(word.capitalize() for word in member.split("_"))
