"""Occupancy against values of NVIDIA's calculator and LLVM's, and the table of limits against the transpiler's."""

from __future__ import annotations

import pytest

from tile2cu.targets import find
from tile2cu_runtime.chips import CHIPS, chip_of
from tile2cu_runtime.errors import DeviceError
from tile2cu_runtime.occupancy import Waves, occupancy


@pytest.mark.parametrize("target", CHIPS)
def test_limits_agree_with_the_transpilers_targets(target: str) -> None:
    chip, theirs = chip_of(target), find(target)
    assert chip.sms == theirs.multiprocessors
    assert chip.shared_bytes == theirs.shared_memory
    assert chip.warp_size == theirs.warp_size
    if theirs.is_amd:
        assert (chip.partitions, chip.shared_step) == (theirs.simds, theirs.lds_step)
        assert chip.registers == theirs.simds * theirs.max_registers * theirs.warp_size


# CUDA Toolkit, cuda_occupancy.h: threads, registers, bytes of shared memory; blocks, and what limits them.
@pytest.mark.parametrize(
    ("target", "threads", "registers", "shared", "blocks", "limits"),
    [
        ("cuda:sm_80", 128, 32, 0, 16, ("registers", "warps")),
        ("cuda:sm_80", 32, 16, 0, 32, ("blocks",)),
        ("cuda:sm_80", 128, 255, 0, 2, ("registers",)),
        ("cuda:sm_80", 128, 33, 0, 12, ("registers",)),  # allocated as 40 registers
        ("cuda:sm_80", 128, 32, 48 << 10, 3, ("shared memory",)),
        ("cuda:sm_80", 288, 154, 0, 1, ("registers",)),
        ("cuda:sm_80", 128, 32, (164 << 10) - 1023, 0, ("shared memory",)),
        ("cuda:sm_89", 128, 32, 0, 12, ("warps",)),
        ("cuda:sm_89", 32, 16, 0, 24, ("blocks",)),
        ("cuda:sm_90a", 384, 168, 227 << 10, 1, ("registers", "shared memory")),
        ("hip:gfx942", 256, 64, 0, 8, ("registers", "warps")),
        ("hip:gfx942", 256, 65, 0, 7, ("registers",)),  # allocated as 72 registers
        ("hip:gfx942", 256, 128, 32 << 10, 2, ("shared memory",)),
        ("hip:gfx942", 256, 512, 0, 1, ("registers",)),
    ],
)
def test_blocks_and_what_limits_them(
    target: str, threads: int, registers: int, shared: int, blocks: int, limits: tuple[str, ...]
) -> None:
    chip = chip_of(target)
    found = occupancy(chip, threads=threads, registers=registers, shared_bytes=shared)
    assert (found.blocks_per_sm, found.limited_by) == (blocks, limits)
    assert found.warps_per_sm == blocks * -(-threads // chip.warp_size)


def test_waves_count_the_last_one() -> None:
    waves = Waves(blocks=133, sms=132, blocks_per_wave=132)
    assert (waves.count, waves.efficiency) == (133 / 132, 133 / 264)
    assert Waves(blocks=5, sms=132, blocks_per_wave=0).count == 0.0


def test_an_unknown_target_is_an_error() -> None:
    with pytest.raises(DeviceError, match="sm_70"):
        chip_of("cuda:sm_70")
