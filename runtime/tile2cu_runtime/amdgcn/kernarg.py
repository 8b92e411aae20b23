"""The kernarg segment, explicit and hidden arguments, and the initial scalar registers of a wave.

Source: LLVM, "User Guide for AMDGPU Backend": "Code Object V5 Metadata", "Initial Kernel Execution State".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tile2cu_runtime.amdgcn.arguments import Arguments, Extent
from tile2cu_runtime.amdgcn.arrays import MASK32
from tile2cu_runtime.amdgcn.code_object import Kernel
from tile2cu_runtime.amdgcn.errors import SimulatorError

# The kernel_code_properties bits and the number of scalar registers that each enables, in register order.
_PRIVATE_BUFFER, _DISPATCH, _QUEUE, _KERNARG, _DISPATCH_ID, _FLAT_SCRATCH, _PRIVATE_SIZE = (
    1 << bit for bit in range(7)
)


@dataclass(frozen=True, kw_only=True)
class Launch:
    """Grid in workgroups, block in work-items, dynamic LDS in bytes."""

    grid: Extent
    block: Extent
    dynamic_lds: int

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]


def kernarg_bytes(kernel: Kernel, arguments: Arguments, addresses: dict[int, int], launch: Launch) -> bytes:
    """The kernarg segment. `addresses` has the address of each array argument, by its index."""
    explicit = [argument for argument in kernel.arguments if not argument.is_hidden]
    if len(explicit) != len(arguments.values):
        raise SimulatorError(f"{kernel.name} takes {len(explicit)} arguments, not {len(arguments.values)}")
    raw = bytearray(kernel.kernarg_bytes)
    for number, argument in enumerate(explicit):
        content = arguments.bytes_of(number, argument.size, addresses, kernel.name)
        raw[argument.offset : argument.offset + argument.size] = content
    hidden = hidden_values(launch)
    for argument in kernel.arguments:
        if argument.is_hidden:
            content = hidden.get(argument.value_kind, 0).to_bytes(argument.size, "little")
            raw[argument.offset : argument.offset + argument.size] = content
    return bytes(raw)


def hidden_values(launch: Launch) -> dict[str, int]:
    """The values of the hidden arguments; missing ones are 0 (offsets, remainders, host pointers)."""
    values = {"hidden_grid_dims": 3, "hidden_dynamic_lds_size": launch.dynamic_lds}
    for axis, count, size in zip("xyz", launch.grid, launch.block, strict=True):
        values[f"hidden_block_count_{axis}"] = count
        values[f"hidden_group_size_{axis}"] = size
    return values


def dispatch_packet(launch: Launch) -> bytes:
    """The part of the AQL dispatch packet that kernels read: sizes of workgroup and grid in work-items."""
    work_items = [count * size for count, size in zip(launch.grid, launch.block, strict=True)]
    packet = struct.pack("<HHHHHHIII", 0, 3, *launch.block, 0, *work_items)
    return packet.ljust(64, b"\0")


def user_scalars(kernel: Kernel, kernarg: bytes, kernarg_address: int, packet_address: int) -> list[int]:
    """The user SGPRs from s0 on: those that the descriptor enables, preloaded arguments, and zeros."""
    wide = {_DISPATCH: packet_address, _QUEUE: 0, _KERNARG: kernarg_address, _DISPATCH_ID: 0, _FLAT_SCRATCH: 0}
    scalars = [0] * 4 if kernel.properties & _PRIVATE_BUFFER else []
    for bit, value in wide.items():
        if kernel.properties & bit:
            scalars += [value & MASK32, value >> 32]
    if kernel.properties & _PRIVATE_SIZE:
        scalars.append(kernel.private_bytes)
    if kernel.preload_words:
        scalars += struct.unpack_from(f"<{kernel.preload_words}I", kernarg, kernel.preload_offset)
    return scalars + [0] * (kernel.user_scalars - len(scalars))
