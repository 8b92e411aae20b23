"""The registers of a thread's tiles, as a sum of those of each tile."""

from itertools import groupby

from msgspec.structs import replace

from tile2cu.plan.registers import Fragment, Registers
from tile2cu.styles.base.comments import listed, wrapped
from tile2cu.styles.base.names import Names
from tile2cu.styles.base.view import Section


def with_sum(section: Section, registers: Registers, names: Names) -> Section:
    """The section, with the terms of the sum that its title states above its first declaration."""
    terms = sorted(_terms(registers), key=lambda term: -term[1])
    if len(terms) < 2 or sum(count for _, count in terms) != registers.count or not section.declarations:
        return section
    names = names.in_comments
    groups = ((count, [names(name) for name, _ in each]) for count, each in groupby(terms, key=lambda term: term[1]))
    said = "; ".join(f"{listed(each)} {count}{' each' * (len(each) > 1)}" for count, each in groups)
    first, *others = section.declarations
    above = replace(first, comments=(*wrapped(said), *first.comments))
    return replace(section, declarations=(above, *others))


def _terms(registers: Registers) -> list[tuple[str, int]]:
    """The fragments whose registers count, with how many of 4 bytes each has."""
    owned = [each for each in registers.declared if isinstance(each, Fragment) and each.tile.of is None]
    counted = [(each.tile, each.layout) for each in owned if each.layout is not None]
    return [(tile.name, -(-layout.registers * tile.dtype.bits // 32)) for tile, layout in counted]
