"""What prints the parts of loops with a producer: the kernel that they are in."""

from tile2cu.plan.kernel import Kernel
from tile2cu.styles.base.constants import Constants
from tile2cu.styles.base.statements import Statements
from tile2cu.styles.cute.copies import Copies
from tile2cu.styles.cute.expressions import CutePrinter
from tile2cu.styles.cute.fragments import Fragments


class Parts(Statements):
    """Prints statements of a kernel, of which it has the fragments and the copies."""

    printer: CutePrinter
    plan: Kernel
    constants: Constants
    fragments: Fragments
    copies: Copies
