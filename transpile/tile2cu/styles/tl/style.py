"""The style of headers/tl: tiles, layouts and pipelines as its functions and types name them."""

from collections.abc import Mapping

from msgspec.structs import replace

from tile2cu.analysis.sync_calls import syncs_grid
from tile2cu.analysis.uses import statements
from tile2cu.core.decisions import INSTRUCTION
from tile2cu.core.instruction import MmaInstruction, MmaUnit
from tile2cu.core.program import Gemm
from tile2cu.plan.kernel import kernel
from tile2cu.plan.mma import unit_of
from tile2cu.plan.resolved import Resolved
from tile2cu.styles.base.constants import Constants
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.grid import block_indices
from tile2cu.styles.base.roles import work_types
from tile2cu.styles.base.style import Style
from tile2cu.styles.base.tensor_map import TensorMap
from tile2cu.styles.base.view import KernelParts
from tile2cu.styles.tl import maps as map_texts
from tile2cu.styles.tl import vocabulary as tl
from tile2cu.styles.tl.body import Body
from tile2cu.styles.tl.layouts import Layouts
from tile2cu.styles.tl.operations import Operations
from tile2cu.styles.tl.registers import declarations
from tile2cu.styles.tl.roles import Roles
from tile2cu.styles.tl.setup import setup
from tile2cu.styles.tl.shared import Shared

# By the types of accumulators and operands.
_WGMMA_HEADERS = {
    "float32.float16": "sm90/wgmma_half.h",
    "float16.float16": "sm90/wgmma_half_accumulators.h",
    "float32.bfloat16": "sm90/wgmma_bfloat16.h",
    "float32.float32": "sm90/wgmma_tfloat32.h",
    "float32.tfloat32": "sm90/wgmma_tfloat32.h",
    "float32.float8_e4m3fn": "sm90/wgmma_float8.h",
    "float32.float8_e5m2": "sm90/wgmma_float8.h",
    "int32.int8": "sm90/wgmma_int8.h",
    "int32.uint8": "sm90/wgmma_int8.h",
}


class Tl(Style):
    """Writes kernels in the names of headers/tl."""

    is_partial = False
    printing = (
        f'{tl.PRINT}("NAME", NAME), called by all threads that are there, prints elements with their coordinates; a '
        "tile in stages is NAME[s], with the stage s that the statements there read. Print under a condition on the "
        "tile's indices and the iteration: printf's buffer is limited."
    )
    printing_own = f"Where one warpgroup has the tile, {tl.PRINT_OWN} prints it from that warpgroup's threads."
    checked_by = ""
    unaligned = "each copy tests its rows, and has narrower accesses where these are not aligned"

    def check(self, launches: tuple[Resolved, ...]) -> None:
        """It supports all of them."""

    def headers(self, launches: tuple[Resolved, ...]) -> tuple[str, ...]:
        """What the text includes of tl: wgmma's instructions of each type are in a header of their own."""
        first = "grid.h" if any(syncs_grid(each.launch.body) for each in launches) else "tl.h"
        types = {
            _types_of(each.facts[op, INSTRUCTION])
            for each in launches
            for op in statements(each.launch.body, Gemm)
            if unit_of(op, each.facts) is MmaUnit.WARPGROUP
        }
        return first, *sorted({_WGMMA_HEADERS[pair] for pair in types})

    def map_notes(self, maps: Mapping[int, TensorMap]) -> tuple[str, ...]:
        """On dimensions that are not the last two."""
        return map_texts.notes(maps)

    def map_parameter(self, view: TensorMap) -> str:
        """A map of CUDA's driver."""
        return map_texts.parameter(view)

    def map_argument(self, view: TensorMap, printer: Printer) -> str:
        """A call with the tile's type."""
        return map_texts.argument(view, printer)

    def parts(self, resolved: Resolved, printer: Printer, maps: Mapping[int, TensorMap]) -> KernelParts:
        """One kernel; `maps` by the id of the statement."""
        plan, constants = kernel(resolved), Constants.of(resolved, printer.names)
        held, memory = plan.registers, Shared(printer, constants)
        layouts = Layouts(held, printer, 0 if resolved.launch.shares else resolved.launch.threads)
        body = Body(
            Operations.of(printer, maps),
            constants,
            resolved.program.source.name,
            layouts.of_extents,
            layouts.of_tile,
            by_one=plan.producer is not None and plan.producer.nested_by_one,
        )
        indices = block_indices(plan.grid, printer) if plan.grid.persistent else ()
        start = body.early_exit(plan.early, plan.grid.blocks, body.printer)
        roles = Roles(plan.producer, body, indices) if plan.producer is not None else None
        leading = roles.views() if roles is not None else ()
        done = (*body.views(plan.body), *(replace(body.view(op), line=0, gap=True) for op in plan.each_end))
        end = tuple(replace(body.view(op), gap=True) for op in plan.end)
        return KernelParts(
            shared=memory.struct(plan.memory),
            shared_bytes=plan.memory.total,
            layouts=layouts.section(),
            setup=setup(plan, memory, printer),
            producer=leading,
            fragments=declarations(held, printer, layouts),
            body=done if plan.persistent is not None else (*done, *end),
            each_tile=roles.each_tile() if roles is not None else (),
            counted=roles.counted() if roles is not None else "",
            work=work_types(plan.persistent, printer),
            work_type=f"{printer.names('__WorkTile')} {printer.names('__work')}" if plan.persistent is not None else "",
            next_tile=roles.next_tile() if roles is not None else "",
            start=start,
            end=end if plan.persistent is not None else (),
            registers=plan.registers.count,
            operands=plan.registers.read_operands,
            places=tuple(body.places),
            tv_layouts=layouts.in_tv,
        )


def _types_of(instruction: MmaInstruction) -> str:
    """The types of an instruction's accumulator and operands, as the table of headers has them."""
    return f"{instruction.accumulator}.{instruction.operands[0]}"
