"""The style of Composable Kernel's ck_tile."""

from collections.abc import Mapping

from tile2cu.core.decisions import ROW_ALIGNMENT
from tile2cu.core.schedule import Multiple
from tile2cu.plan.kernel import kernel
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.tensors import viewed_tensors
from tile2cu.styles.base.constants import Constants
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.names import names_in
from tile2cu.styles.base.style import Style
from tile2cu.styles.base.tensor_map import TensorMap
from tile2cu.styles.base.view import KernelParts, Limit
from tile2cu.styles.ck import support
from tile2cu.styles.ck.fragments import Temporary
from tile2cu.styles.ck.kernel import CkKernel
from tile2cu.styles.ck.limits import size_limits
from tile2cu.styles.ck.tensors import has_vectors
from tile2cu.styles.ck.types import TYPES
from tile2cu.styles.ck.vocabulary import ALL_NAMES, RESERVED
from tile2cu.targets import Target


class Ck(Style):
    """Writes kernels in ck_tile's names."""

    # The revision of tools/fetch_ck.py, which the tests compile against.
    uses = "// tested with ck_tile of Composable Kernel e8709c24 (in flash-attn 2.8.3)\nusing namespace ck_tile;"
    functor = True
    offset_bits = 32
    printing = (
        'printf("%g\\n", type_convert<float>(NAME.get_thread_buffer()[n])); there prints value n of each lane of a '
        "fragment; type_convert<float>(NAME[s](row, column)) is an element of stage s of a tile in LDS. Print under a "
        "condition on the tile's indices, the iteration and threadIdx.x."
    )
    checked_by = "--device sim"
    types = TYPES
    library = "ck_tile/ of Composable Kernel"
    unaligned = "they are of single elements"

    def reserved(self, constants: frozenset[str]) -> frozenset[str]:
        """What kernels use unqualified, and constants named like anything in ck_tile: the launcher sees both."""
        return RESERVED | (constants & names_in(ALL_NAMES))

    def seen(self, target: Target) -> Target:
        """Without gfx950's loads from global memory to LDS, and its transposing reads of LDS."""
        return support.seen(target)

    def check(self, launches: tuple[Resolved, ...]) -> None:
        """Errors: T2C-E034 where the target is not supported."""
        support.check(launches)

    def limits(self, launches: tuple[Resolved, ...], printer: Printer) -> tuple[Limit, ...]:
        """Tensors have less than 2 GiB."""
        return tuple(size_limits(launches, printer))

    def multiples(self, resolved: Resolved) -> tuple[Multiple, ...]:
        """The last elements of a tensor of one dimension are a vector: ck_tile asks for its first element only."""
        return tuple(
            Multiple(value=tensor.shape[0], of=16 // tensor.dtype.bytes)
            for tensor in viewed_tensors(resolved)
            if has_vectors(tensor, resolved.facts[tensor, ROW_ALIGNMENT])
        )

    def headers(self, launches: tuple[Resolved, ...]) -> tuple[str, ...]:
        """One header, which includes ck_tile's."""
        return ("ck.h",)

    def parts(self, resolved: Resolved, printer: Printer, maps: Mapping[int, TensorMap]) -> KernelParts:
        """One kernel. Errors: T2C-E034 for an operation that the style does not support."""
        if resolved.program.user_code:
            raise support.unsupported("inline user code", resolved.launch.span)
        plan = kernel(resolved)
        ck = CkKernel(plan, printer, Constants.of(resolved, printer.names), resolved.program.source.name)
        start = ck.early_exit(plan.early, plan.grid.blocks, ck.printer)
        body = ck.views(plan.body)  # it decides on the views, distributions and windows
        tiles = ck.tiles()
        with printer.names.noted() as on_host:
            shared, layouts = ck.struct(), ck.registers()
        return KernelParts(
            shared=shared,
            shared_bytes=ck.shared.bytes,
            layouts=layouts,
            on_host=frozenset(on_host),
            setup=ck.setup(),
            fragments=tiles,
            body=body,
            start=start,
            own_layouts=ck.shared.own_layouts(),
            registers=ck.tile_registers,
            places=tuple(ck.places),
            operands=ck.fragments.temporaries.get(Temporary.OPERANDS, 0),
        )
