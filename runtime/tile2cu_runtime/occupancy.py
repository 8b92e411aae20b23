"""Occupancy: how many thread blocks reside on an SM at a time, what limits them, and the waves of a grid."""

from __future__ import annotations

from dataclasses import dataclass

from tile2cu_runtime.chips import Chip


@dataclass(frozen=True, kw_only=True)
class Occupancy:
    """Of one SM (AMD: CU). `limited_by` names what admits no further block; `blocks_per_sm` is 0 if none fits."""

    blocks_per_sm: int
    warps_per_sm: int
    max_warps_per_sm: int
    limited_by: tuple[str, ...]

    @property
    def fraction(self) -> float:
        return self.warps_per_sm / self.max_warps_per_sm


@dataclass(frozen=True, kw_only=True)
class Waves:
    """A grid of `blocks` on `sms` SMs. `count` is blocks / (SMs * resident blocks): its fraction is the last wave."""

    blocks: int
    sms: int
    blocks_per_wave: int

    @property
    def count(self) -> float:
        return self.blocks / self.blocks_per_wave if self.blocks_per_wave else 0.0

    @property
    def efficiency(self) -> float:
        """Blocks over the places of all waves, the last one included."""
        places = -(-self.blocks // self.blocks_per_wave) * self.blocks_per_wave if self.blocks_per_wave else 0
        return self.blocks / places if places else 0.0


def occupancy(chip: Chip, *, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """The occupancy of a block: `registers` per thread, `shared_bytes` static and dynamic together."""
    warps = max(1, -(-threads // chip.warp_size))
    per_warp = max(chip.register_step, _rounded(registers * chip.warp_size, chip.register_step))
    # A warp's registers are in one partition.
    fitting_warps = chip.partitions * (chip.registers // chip.partitions // per_warp)
    per_block = _rounded(shared_bytes + chip.shared_reserved, chip.shared_step)
    limits = {
        "registers": fitting_warps // warps,
        "shared memory": chip.shared_bytes // per_block if per_block else chip.blocks,
        "warps": chip.warps // warps,
        "blocks": chip.blocks,
    }
    blocks = min(limits.values())
    return Occupancy(
        blocks_per_sm=blocks,
        warps_per_sm=blocks * warps,
        max_warps_per_sm=chip.warps,
        limited_by=tuple(name for name, limit in limits.items() if limit == blocks),
    )


def _rounded(number: int, step: int) -> int:
    return -(-number // step) * step
