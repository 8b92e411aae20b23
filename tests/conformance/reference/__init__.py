"""A reference interpreter of programs: what a kernel means, told apart from how it is emitted.

Blocks run one after the other, arithmetic is float64, and values are rounded to a buffer's type where the program
stores them; sums (products, reductions, atomics) stay float64 until they are copied or returned. There are no layouts,
pipelines or barriers, and nothing is shared with the rules, the emitter or the headers: it is what the emitted text is
compared with. Where a kernel speaks of single threads, all of them take each statement together, so that what they
write and read between barriers must not depend on turns; operations whose meaning does are CannotInterpret.
"""

from tests.conformance.reference.numbers import CannotInterpret, KernelFault, from_memory, in_memory, numpy_dtype
from tests.conformance.reference.program import interpret

__all__ = ["CannotInterpret", "KernelFault", "from_memory", "in_memory", "interpret", "numpy_dtype"]
