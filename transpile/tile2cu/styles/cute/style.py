"""The style of CUTLASS's CuTe."""

from collections.abc import Mapping

from tile2cu.analysis.uses import statements
from tile2cu.core.decisions import CALL, INSTRUCTION, ROW_ALIGNMENT_IF
from tile2cu.core.instruction import MmaUnit
from tile2cu.core.program import Copy, Gemm, Program, Scope
from tile2cu.core.schedule import Multiple, strictest
from tile2cu.plan.copies import BY_TMA
from tile2cu.plan.kernel import kernel
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.slabs import ping_pong_of
from tile2cu.plan.tensors import instance_alignment
from tile2cu.styles.base.constants import Constants
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.layouts import has_tv_layout
from tile2cu.styles.base.names import names_in
from tile2cu.styles.base.roles import work_types
from tile2cu.styles.base.style import Style
from tile2cu.styles.base.tensor_map import TensorMap
from tile2cu.styles.base.view import KernelParts
from tile2cu.styles.cute import maps as map_texts
from tile2cu.styles.cute import support
from tile2cu.styles.cute.kernel import CuteKernel
from tile2cu.styles.cute.types import TYPES, WORD
from tile2cu.styles.cute.vocabulary import ALL_NAMES, RESERVED


class Cute(Style):
    """Writes kernels in CuTe's names."""

    uses = "// tested with CUTLASS 4.2.0, whose asserts end the process without -DNDEBUG\nusing namespace cute;"
    printing = (
        "print_tensor(NAME) there, by one thread, prints what it holds of a fragment, or all stages of a shared tile, "
        "of which others may be written meanwhile."
    )
    checked_by = "--device ptx"
    types = TYPES
    library = "cute/ of CUTLASS"
    flags = "--expt-relaxed-constexpr -DNDEBUG"
    unaligned = "they are narrower"

    def reserved(self, constants: frozenset[str]) -> frozenset[str]:
        """What kernels use unqualified, and constants named like anything in cute: the launcher sees both."""
        return RESERVED | (constants & names_in(ALL_NAMES))

    def check(self, launches: tuple[Resolved, ...]) -> None:
        """Errors: T2C-E034 where the target is not supported."""
        support.check(launches)

    def word_multiples(self, resolved: Resolved) -> tuple[Multiple, ...]:
        """That the rows of all tensors which cp.async loads start at multiples of 4 bytes."""
        copies = (op for op in statements(resolved.launch.body, Copy) if resolved.facts.get(op, CALL) == "copy_async")
        tensors = dict.fromkeys(op.src.buffer for op in copies if resolved.row_alignment(op.src.buffer) == 0)
        asked = ((each, resolved.facts.get(each, ROW_ALIGNMENT_IF)) for each in tensors if each.dtype.bits < WORD * 8)
        rows = (Multiple(found.value, each.dtype.elements_in(WORD)) for each, found in asked if found is not None)
        return strictest(rows) if instance_alignment(resolved) > WORD else ()

    def headers(self, launches: tuple[Resolved, ...]) -> tuple[str, ...]:
        """One header, which includes CuTe's; for TMA and wgmma another, one for warpgroups that alternate, and one for
        copies without MMAs.
        """
        if any(ping_pong_of(each) is not None for each in launches):
            return ("cute_ping_pong.h",)
        if any(map(_by_hardware, launches)):
            return ("cute_sm90.h",)
        return ("cute_copies.h",) if _copies_alone(launches[0].program) else ("cute.h",)

    def map_parameter(self, view: TensorMap) -> str:
        """A TiledCopy by TMA."""
        return map_texts.parameter(view)

    def map_argument(self, view: TensorMap, printer: Printer) -> str:
        """A call of the function that makes it."""
        return map_texts.argument(view, printer)

    def parts(self, resolved: Resolved, printer: Printer, maps: Mapping[int, TensorMap]) -> KernelParts:
        """One kernel. Errors: T2C-E034 for an operation that the style does not support."""
        if resolved.program.user_code:
            raise support.unsupported("inline user code", resolved.launch.span)
        plan = kernel(resolved)
        constants, file = Constants.of(resolved, printer.names), resolved.program.source.name
        cute = CuteKernel(plan, printer, constants, file, maps, copies_alone=_copies_alone(resolved.program))
        start = cute.early_exit(plan.early, plan.grid.blocks, cute.printer)
        leading = cute.leading()
        body = cute.body()  # it decides on the tiled copies and views
        return KernelParts(
            shared=cute.struct(),
            shared_bytes=plan.memory.total,
            registers=plan.registers.count,
            layouts=cute.registers(),
            maps=cute.map_functions(),
            setup=cute.setup(),
            producer=leading,
            work=work_types(plan.persistent, printer),
            fragments=cute.tensors(),
            body=body,
            start=start,
            places=tuple(cute.places),
            tv_layouts=any(map(has_tv_layout, cute.fragments.partitions)),
        )


def _copies_alone(program: Program) -> bool:
    """Whether a program's kernels copy tiles to shared memory, and have no MMAs."""
    bodies = [launch.body for launch in program.launches]
    copies = (op for body in bodies for op in statements(body, Copy))
    to_shared = any((op.src.buffer.scope, op.dst.buffer.scope) == (Scope.GLOBAL, Scope.SHARED) for op in copies)
    return to_shared and not any(list(statements(body, Gemm)) for body in bodies)


def _by_hardware(resolved: Resolved) -> bool:
    """Whether a launch loads or stores by TMA, or multiplies by wgmma."""
    return any(
        (fact.key is CALL and fact.value in BY_TMA)
        or (fact.key is INSTRUCTION and fact.value.unit is MmaUnit.WARPGROUP)
        for fact in resolved.facts
    )
