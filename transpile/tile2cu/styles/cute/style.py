"""The style of CUTLASS's CuTe."""

from collections.abc import Mapping

from tile2cu.core.schedule import Multiple
from tile2cu.plan.kernel import kernel
from tile2cu.plan.settled import Settled
from tile2cu.styles.base.constants import Constants
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.tensor_map import TensorMap
from tile2cu.styles.base.view import KernelParts, Limit
from tile2cu.styles.cute import support
from tile2cu.styles.cute.kernel import CuteKernel
from tile2cu.styles.cute.types import in_cute
from tile2cu.styles.cute.vocabulary import RESERVED, all_names


class Cute:
    """Writes kernels in CuTe's names."""

    uses = "using namespace cute;"
    functor = False
    offset_bits = 64

    def reserved(self, constants: frozenset[str]) -> frozenset[str]:
        """What kernels use unqualified, and constants named like anything in cute: the launcher sees both."""
        return RESERVED | (constants & all_names())

    def check(self, launches: tuple[Settled, ...]) -> None:
        """Errors: T2C-E034 where the target is not supported."""
        support.check(launches)

    def limits(self, launches: tuple[Settled, ...], printer: Printer) -> tuple[Limit, ...]:
        """None besides what every launcher checks."""
        return ()

    def multiples(self, settled: Settled) -> tuple[Multiple, ...]:
        """None besides those of rows."""
        return ()

    def headers(self, launches: tuple[Settled, ...]) -> tuple[str, ...]:
        """One header, which includes CuTe's."""
        return ("cute.h",)

    def in_style(self, text: str) -> str:
        """The text with CuTe's names of element types."""
        return in_cute(text)

    def parts(self, settled: Settled, printer: Printer, maps: Mapping[int, TensorMap]) -> KernelParts:
        """One kernel. Errors: T2C-E034 for an operation that the style does not support."""
        if settled.program.user_code:
            raise support.unsupported("inline user code", settled.launch.span)
        plan = kernel(settled)
        cute = CuteKernel(plan, printer, Constants.of(settled), settled.program.source.name)
        start = cute.start()
        body = cute.views(plan.body)  # it decides on the tiled copies and views
        return KernelParts(
            shared=cute.struct(),
            shared_bytes=plan.memory.total,
            layouts=cute.registers(),
            setup=cute.setup(),
            fragments=cute.tensors(),
            body=body,
            start=start,
        )
