"""A kernel's arguments as bytes, explicit and hidden, and the scalar registers that a wave starts with.

Source: LLVM, "User Guide for AMDGPU Backend": "Code Object V5 Metadata", "Initial Kernel Execution State".
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tile2cu_runtime.amdgcn.arrays import MASK32, Array
from tile2cu_runtime.amdgcn.code_object import Kernel
from tile2cu_runtime.amdgcn.errors import SimulatorError

Extent = tuple[int, int, int]


@dataclass(frozen=True)
class Pointer:
    """An argument that points into an array, `offset` bytes from its start."""

    array: Array
    offset: int


ArgumentValue = int | float | bytes | np.generic | Array | Pointer

# The kernel_code_properties bits and how many scalar registers each enables, in the order of the registers.
_PRIVATE_BUFFER, _DISPATCH, _QUEUE, _KERNARG, _DISPATCH_ID, _FLAT_SCRATCH, _PRIVATE_SIZE = (
    1 << bit for bit in range(7)
)


@dataclass(frozen=True, kw_only=True)
class Launch:
    """Grid in workgroups, block in work-items, and the bytes of dynamic LDS."""

    grid: Extent
    block: Extent
    dynamic_lds: int

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]


def kernarg_bytes(kernel: Kernel, values: Sequence[ArgumentValue], addresses: dict[int, int], launch: Launch) -> bytes:
    """The kernarg segment. `addresses` has the address of each argument that is an array, by its number."""
    explicit = [argument for argument in kernel.arguments if not argument.is_hidden]
    if len(explicit) != len(values):
        raise SimulatorError(f"{kernel.name} takes {len(explicit)} arguments, not {len(values)}")
    raw = bytearray(kernel.kernarg_bytes)
    for number, (argument, value) in enumerate(zip(explicit, values, strict=True)):
        content = struct.pack("<Q", addresses[number]) if number in addresses else _scalar(value, argument.size)
        if len(content) != argument.size:
            raise SimulatorError(f"argument {number} of {kernel.name} has {argument.size} bytes, not {len(content)}")
        raw[argument.offset : argument.offset + argument.size] = content
    hidden = hidden_values(launch)
    for argument in kernel.arguments:
        if argument.is_hidden:
            content = hidden.get(argument.value_kind, 0).to_bytes(argument.size, "little")
            raw[argument.offset : argument.offset + argument.size] = content
    return bytes(raw)


def hidden_values(launch: Launch) -> dict[str, int]:
    """What the hidden arguments are; those that are not here are 0 (offsets, remainders, pointers to the host)."""
    values = {"hidden_grid_dims": 3, "hidden_dynamic_lds_size": launch.dynamic_lds}
    for axis, count, size in zip("xyz", launch.grid, launch.block, strict=True):
        values[f"hidden_block_count_{axis}"] = count
        values[f"hidden_group_size_{axis}"] = size
    return values


def _scalar(value: ArgumentValue, size: int) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, np.generic):
        return value.tobytes()
    if isinstance(value, float):
        return struct.pack({2: "<e", 4: "<f", 8: "<d"}[size], value)
    if isinstance(value, int):
        return (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    raise SimulatorError(f"an argument of type {type(value).__name__} has no address here")


def dispatch_packet(launch: Launch) -> bytes:
    """The part of the AQL dispatch packet that kernels read: sizes of workgroup and grid in work-items."""
    work_items = [count * size for count, size in zip(launch.grid, launch.block, strict=True)]
    packet = struct.pack("<HHHHHHIII", 0, 3, *launch.block, 0, *work_items)
    return packet.ljust(64, b"\0")


def user_scalars(kernel: Kernel, kernarg: bytes, kernarg_address: int, packet_address: int) -> list[int]:
    """The user SGPRs from s0 on: what the descriptor enables, preloaded arguments, and zeros."""
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
