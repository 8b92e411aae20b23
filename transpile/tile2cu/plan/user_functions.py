"""The user's own C++ functions, which kernels call by name."""

from collections.abc import Iterable, Iterator

from tile2cu.analysis.uses import all_expressions
from tile2cu.core.dtype import FLOAT16
from tile2cu.core.expr import Call, Expr, walk
from tile2cu.plan.grid import kernel_expressions
from tile2cu.plan.resolved import Resolved


def called(resolved: Resolved) -> set[str]:
    """The names of those that a launch calls."""
    return {call.function.removeprefix("::") for call in _calls(kernel_expressions(resolved))}


def may_use_cuda_half(resolved: Resolved) -> bool:
    """Whether inline code, or a function of CUDA's that the kernel calls by name, may have `__half`."""
    calls = _calls(all_expressions(resolved.launch.body))
    halves = (FLOAT16 in (call.dtype, *(arg.dtype for arg in call.args)) for call in calls)
    return bool(resolved.program.user_code) or any(halves)


def _calls(expressions: Iterable[Expr]) -> Iterator[Call]:
    parts = (part for expr in expressions for part in walk(expr))
    return (part for part in parts if isinstance(part, Call) and part.function.startswith("::"))
