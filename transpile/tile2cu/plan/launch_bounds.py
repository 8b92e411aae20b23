"""The threads of a block, and the registers that its launch bounds leave each of them."""

from enum import Enum
from typing import Any

from tile2cu.analysis.prelude import producer_loop
from tile2cu.core.decisions import REGISTER_SHARES, SETMAXNREG, WAVES_PER_SIMD
from tile2cu.core.facts import Key
from tile2cu.plan.resolved import Resolved


def producer_threads(resolved: Resolved) -> int:
    """Threads of a block besides those that tile operations see: the other groups', or a producer's.

    headers/tl/common/sm90/tma_pipeline.h: a warp, or a warpgroup where registers change hands."""
    if producer_loop(resolved.launch, resolved.facts) is None:
        return resolved.launch.block_threads - resolved.launch.threads
    return 32 if resolved.facts.get(resolved.launch, REGISTER_SHARES) is None else 128


def asked_blocks(resolved: Resolved) -> int:
    """The least number of blocks per SM that the source asks for; 0 where it asks for none.

    With setmaxnreg one block has all registers; AMD's compiler gets the waves per SIMD instead.
    """
    shares: tuple[Key[Any], ...] = (REGISTER_SHARES, SETMAXNREG)
    taken = any(resolved.facts.get(resolved.launch, key) is not None for key in shares)
    return 0 if taken or resolved.target.mfma else resolved.launch.least_blocks


class Occupancy(Enum):
    """What a kernel's launch bounds ask for besides its threads."""

    WAVES_PER_SIMD = "the waves per SIMD that its registers allow"
    BLOCKS_PER_SM = "the blocks per SM that the source asks for"
    ONE_BLOCK = "one block per SM, which then has all registers"


def occupancy(resolved: Resolved) -> Occupancy | None:
    """What the launch bounds ask for; None where they leave that to the compiler."""
    launch, facts = resolved.launch, resolved.facts
    if facts.get(launch, WAVES_PER_SIMD) is not None:
        return Occupancy.WAVES_PER_SIMD
    if asked_blocks(resolved):
        return Occupancy.BLOCKS_PER_SM
    alone = producer_loop(launch, facts) is not None or facts.get(launch, SETMAXNREG) is not None
    return Occupancy.ONE_BLOCK if alone else None


def registers_of_bounds(resolved: Resolved) -> int:
    """The registers that ptxas may use for a thread where an SM has the blocks that are asked for, one at least.

    Each quarter of an SM has as many warps. Registers are allocated to warps in units of 8 per thread.
    [CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"]
    """
    warps = -(-(resolved.launch.threads + producer_threads(resolved)) // 128) * 4 * max(1, asked_blocks(resolved))
    target = resolved.target
    return min(target.max_registers, target.registers_of_block // (32 * warps) // 8 * 8)


def registers_of_thread(resolved: Resolved) -> int:
    """The most registers that a thread can have.

    On AMD as the launch bounds allow for the waves of each SIMD, on Hopper a consumer's where setmaxnreg moves some.
    """
    launch, target = resolved.launch, resolved.target
    if target.is_amd:
        of_block = -(-launch.block_threads // (target.warp_size * target.simds))
        waves = resolved.facts.get(launch, WAVES_PER_SIMD)
        return target.max_registers // max(of_block, waves or 1)
    shares = resolved.facts.get(launch, REGISTER_SHARES)
    return shares.consumer if shares is not None else registers_of_bounds(resolved)
