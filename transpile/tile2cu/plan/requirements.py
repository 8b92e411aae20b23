"""What the launcher requires: multiples of run-time sizes, and memory of the device, without which no kernel runs."""

from tile2cu.analysis.whole_quotients import whole_multiples, whole_quotients
from tile2cu.core.decisions import SHARED_BUDGET, TMA_COLUMNS_IF, TMA_IF
from tile2cu.core.expr import Binary, Expr, static_value
from tile2cu.core.program import Buffer, Program
from tile2cu.core.record import Record
from tile2cu.core.schedule import Multiple, implied, strictest
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.tensor_maps import mapped_tensors
from tile2cu.plan.tensors import tensors

_ALWAYS_ALLOWED = 48 << 10  # bytes of shared memory


def shared_asked(launches: tuple[Resolved, ...]) -> int:
    """The bytes of shared memory that a device must allow a block; 0 where all devices of the target do.

    Code for sm_80 runs on 8.6 and 12.0, too, which allow less; all devices allow 48 KiB.
    [CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"]
    """
    target = launches[0].target
    most = max(each.facts[each.launch, SHARED_BUDGET].total for each in launches)
    return most if most > _ALWAYS_ALLOWED and not (target.is_amd or target.arch.endswith("a")) else 0


def required_multiples(launches: tuple[Resolved, ...]) -> tuple[Multiple, ...]:
    """All sizes that must be multiples for the launcher."""
    wanted = (each.facts.get(tensor, TMA_IF) for each in launches for tensor in tensors(each))
    rows = (found for found in wanted if found is not None and static_value(found.value) is None)
    return strictest((*rows, *run_time_columns(launches), *whole_multiples(launches[0].program)))


def run_time_columns(launches: tuple[Resolved, ...]) -> tuple[Multiple, ...]:
    """The conditions on run-time sizes under which all boxes start at multiples of 16 bytes of a row."""
    wanted = (resolved.facts.get(resolved.launch, TMA_COLUMNS_IF) or () for resolved in launches)
    return tuple(dict.fromkeys(each for found in wanted for each in found))


def row_multiples(launches: tuple[Resolved, ...]) -> tuple[Multiple, ...]:
    """The sizes that must be multiples since TMA moves rows, and need not be since quotients of them are extents."""
    whole = whole_multiples(launches[0].program)
    found = strictest(found for each in launches for found in _run_time_rows(each))
    return tuple(each for each in found if not implied(each, whole))


def _run_time_rows(resolved: Resolved) -> tuple[Multiple, ...]:
    """The conditions on run-time sizes under which TMA can reach all its tensors, and all boxes of them."""
    wanted = (resolved.facts.get(tensor, TMA_IF) for tensor in mapped_tensors(resolved))
    rows = dict.fromkeys(m for m in wanted if m is not None and static_value(m.value) is None)
    return (*rows, *run_time_columns((resolved,)))


class Whole(Record, frozen=True, kw_only=True):
    """A size that must be a multiple of `divisor`, and the tensors of which quotients of it are extents."""

    size: Expr
    divisor: Expr
    extents: tuple[tuple[Buffer, Binary], ...]


def whole_sizes(program: Program) -> tuple[Whole, ...]:
    """The sizes of which quotients are extents, with the divisors that no other one implies."""
    found = whole_quotients(program)
    needed: dict[tuple[Expr, int], tuple[Binary, int]] = {}
    for _, extent, divisor in found:
        others = [by for _, other, by in found if other.lhs == extent.lhs and by != divisor]
        if not any(by % divisor == 0 for by in others):
            needed.setdefault((extent.lhs, divisor), (extent, divisor))
    return tuple(
        Whole(
            size=extent.lhs,
            divisor=extent.rhs,
            extents=tuple((t, other) for t, other, by in found if other.lhs == extent.lhs and divisor % by == 0),
        )
        for extent, divisor in needed.values()
    )
