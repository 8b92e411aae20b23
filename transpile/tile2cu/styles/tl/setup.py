"""What a kernel begins with: tensors, names of shared tiles, barriers, the block's indices."""

from collections.abc import Iterator

from tile2cu.plan.kernel import Kernel, StartedBarriers
from tile2cu.plan.tensors import TensorViews
from tile2cu.styles.base.comments import BODY_WIDTH, wrapped
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.grid import block_indices
from tile2cu.styles.base.scalars import prelude_values
from tile2cu.styles.base.shared import place_of
from tile2cu.styles.base.view import Declaration
from tile2cu.styles.tl import vocabulary as tl
from tile2cu.styles.tl.shared import Shared
from tile2cu.styles.tl.tensors import parameter


def setup(plan: Kernel, shared: Shared, printer: Printer) -> tuple[Declaration, ...]:
    """Views of the tensors, names for the shared tiles, and the block's indices."""
    declared = [Declaration(parameter(view, printer)) for view in plan.tensors.views]
    if declared:
        about = (line for sentence in _about(plan.tensors) for line in wrapped(sentence, BODY_WIDTH))
        declared[0] = Declaration(declared[0].text, tuple(about))
    for each in plan.shared:
        if each.tile.of is not None:
            declared.append(shared.view(each))
        else:
            declared.append(_named(each.tile.name, plan, printer))
    declared += [_named(staging.name, plan, printer) for staging in plan.staging]
    declared += [_named(space.name, plan, printer) for space in plan.workspaces]
    declared += _started(plan.barriers, printer) if plan.barriers is not None else []
    declared += [] if plan.grid.persistent else block_indices(plan.grid, printer)
    declared += prelude_values(plan.launch, printer)
    return tuple(declared)


def _named(name: str, plan: Kernel, printer: Printer) -> Declaration:
    return Declaration(f"auto& {printer.names(name)} = {place_of(name, plan.overlay, printer.names)};")


def _about(tensors: TensorViews) -> Iterator[str]:
    """What the marks on the tensors' extents and rows mean."""
    if any(any(view.checked) for view in tensors.views):
        guards = ["out-of-bounds loads return zero"] * tensors.loaded
        guards += ["out-of-bounds elements are not stored"] * tensors.stored
        yield (
            f"predicated: not all accesses are shown to be within this extent; {', '.join(guards)}  "
            f"[{tensors.bounds_rule}]"
        )
    if any(view.alignment for view in tensors.views):
        about = "Aligned<n>: rows start at multiples of n bytes, and no access is wider"
        yield f"{about}  [{tensors.rows_rule}]"
    asked = {view.by_instance for view in tensors.views if not view.alignment}
    if asked:
        ways = {True: "the launcher chooses the instance", False: "copies choose their width"}
        how = ways[asked.pop()] if len(asked) == 1 else "the launcher chooses, or copies do"
        yield f"A run-time size decides where rows start: {how}  [{tensors.rows_rule}]"


def _started(barriers: StartedBarriers, printer: Printer) -> Iterator[Declaration]:
    """Names for the user's barriers, and their initialisation, which a barrier then shows to all threads."""
    shown = f"{tl.SYNC_CLUSTER if barriers.in_cluster else tl.SYNC_BLOCK}()"
    for tile in barriers.tiles:
        name = printer.names(tile.name)
        yield Declaration(f"auto& {name} = {tl.SHARED}<Shared>().{name};")
    for number, tile in enumerate(barriers.tiles):
        about = (f"One thread initialises the barriers; {shown} makes them visible to all",) if not number else ()
        counts = ", ".join(map(str, tile.arrivals))
        yield Declaration(f"{tl.MBARRIER_INIT_ALL}({printer.names(tile.name)}, {{{counts}}});", about)
    if not barriers.shown_by_user:
        yield Declaration(f"{shown};")
