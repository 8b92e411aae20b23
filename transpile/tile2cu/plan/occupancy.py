"""How many workgroups a CU of AMD's can have at a time. [AMD CDNA 3 ISA, "VGPR Allocation", "LDS"]"""

from tile2cu.core.decisions import SHARED_BUDGET
from tile2cu.core.record import Record
from tile2cu.plan.resolved import Resolved

_MOST_WAVES = 8  # of a SIMD
_UNIT = 8  # registers are allocated in steps of so many per lane


class Workgroups(Record, frozen=True, kw_only=True):
    """The workgroups of a CU: `least` to `most` by registers, as the compiler assigns these, and `by_lds`.

    `by_lds` is None for a kernel without LDS.
    """

    least: int
    most: int
    by_lds: int | None


def workgroups(resolved: Resolved, waves: int, registers: int) -> Workgroups:
    """Those of a launch that leaves registers for `waves` of a SIMD, and needs `registers` of a thread at least."""
    target, shared = resolved.target, resolved.facts[resolved.launch, SHARED_BUDGET].total
    waves_per_block = resolved.launch.block_threads // target.warp_size
    allocated = -(-max(registers, 1) // _UNIT) * _UNIT
    most_waves = max(waves, min(_MOST_WAVES, target.max_registers // allocated))
    least, most = (each * target.simds // waves_per_block for each in (waves, most_waves))
    lds = -(-shared // target.lds_step) * target.lds_step
    return Workgroups(least=least, most=most, by_lds=target.shared_limit // lds if shared else None)
