"""A reference interpreter of programs: the semantics of a kernel, independent of how it is emitted.

Blocks run one after another, arithmetic is float64, and values are rounded to a buffer's type when the program stores
them; accumulations (GEMMs, reductions, atomics) stay float64 until they are copied or returned. There are no layouts,
pipelines or barriers, and no code is shared with the rules, the emitter or the headers: emitted sources are compared
with it. In kernels that address single threads, all threads execute each statement together, so accesses between
barriers must not depend on their order; operations that do raise CannotInterpret.
"""

from tests.conformance.reference.numbers import CannotInterpret, KernelFault, from_memory, in_memory, numpy_dtype
from tests.conformance.reference.program import interpret

__all__ = ["CannotInterpret", "KernelFault", "from_memory", "in_memory", "interpret", "numpy_dtype"]
