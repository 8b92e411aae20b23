"""The declarations of what threads hold in registers."""

from collections.abc import Iterator

from tile2cu.core.dtype import DType
from tile2cu.core.layout import FragmentLayout
from tile2cu.core.program import Buffer, Scope
from tile2cu.plan.registers import LocalArray, Registers
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.layouts import of_now
from tile2cu.styles.base.view import Declaration
from tile2cu.styles.tl import vocabulary as tl
from tile2cu.styles.tl.layouts import Layouts


def declarations(registers: Registers, printer: Printer, layouts: Layouts) -> tuple[Declaration, ...]:
    """The fragments, those of one type in one declaration; and private arrays."""
    groups: dict[str, list[str]] = {}
    same: dict[tuple[DType, FragmentLayout], list[str]] = {}  # what C++ takes for one type are together
    names, alternation = printer.names, registers.alternation
    for fragment in registers.fragments:
        tile, layout = fragment.tile, fragment.layout
        if tile.of is not None or layout is None:
            continue
        kind = f"{tl.FRAGMENT}<{tile.dtype.cpp}, {layouts.of_tile(tile)}>"
        groups.setdefault(kind, []).append(names(tile.name))
        same.setdefault((tile.dtype, layout), []).append(kind)
        for other in alternation.besides(tile) if alternation is not None else ():
            kind = f"{tl.FRAGMENT}<{other.dtype.cpp}, {layouts.of_tile(tile)}>"
            groups.setdefault(kind, []).append(names(other.name))
    about = of_now(alternation, names) if alternation is not None else ()
    kinds = dict.fromkeys((*(kind for each in same.values() for kind in each), *groups))
    first = next(iter(kinds), "")
    declared = (Declaration(f"{kind} {', '.join(groups[kind])};", about if kind == first else ()) for kind in kinds)
    return (*declared, *_local(registers, printer))


def _local(registers: Registers, printer: Printer) -> Iterator[Declaration]:
    """Private arrays, and names for a thread's own elements in another shape."""
    for each in registers.declared:
        if each.tile.of is not None:
            yield _view(each.tile, each.tile.of, printer)
        elif isinstance(each, LocalArray):
            kind = ", ".join((each.tile.dtype.cpp, *map(printer.index, each.tile.shape)))
            aligned = "alignas(16) " if each.addressed else ""
            yield Declaration(f"{aligned}{tl.ARRAY}<{kind}> {printer.names(each.tile.name)};")
    if registers.random:
        yield Declaration(f"{tl.PHILOX} random;", ("each thread's own",))


def _view(tile: Buffer, of: Buffer, printer: Printer) -> Declaration:
    """A name for a thread's own elements in another shape: of a fragment, or of a private array."""
    name, shown = printer.names(tile.name), printer.names(of.name)
    about = (f"{shown} in another shape: the same registers",)
    if tile.scope is Scope.FRAGMENT:
        split = f"{tl.SPLIT_COLUMNS}<{printer.index(tile.shape[-1])}>({shown})"
        return Declaration(f"auto {name} = {split};", about)
    array = "".join(f"[{printer.index(extent)}]" for extent in tile.shape)
    return Declaration(f"auto& {name} = {tl.VIEW_AS}<{tile.dtype.cpp}{array}>({shown});", about)
