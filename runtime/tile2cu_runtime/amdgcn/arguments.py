"""The arguments of a simulated launch, of AMD's and of PTX's: arrays in global memory, and the bytes of all others."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tile2cu_runtime.amdgcn.arrays import Array
from tile2cu_runtime.amdgcn.errors import SimulatorError
from tile2cu_runtime.amdgcn.global_memory import Buffer, GlobalMemory

Extent = tuple[int, int, int]


@dataclass(frozen=True)
class Pointer:
    """An argument that points into an array, `offset` bytes from its start."""

    array: Array
    offset: int


@dataclass(frozen=True)
class Record:
    """Bytes passed by value, some of which are addresses: pointers by where they lie."""

    content: bytes
    pointers: Mapping[int, Pointer]


ArgumentValue = int | float | bytes | np.generic | Array | Pointer | Record


def extent_of(value: int | Sequence[int]) -> Extent:
    """Three extents from up to three."""
    given = (value,) if isinstance(value, int) else tuple(value)
    x, y, z = (*given, 1, 1, 1)[:3]
    return x, y, z


class Arguments:
    """A launch's arguments with what findings call them. SimulatorError for an array with gaps.

    Pointers into one array share its buffer, so that their addresses are as far apart as they are.
    """

    def __init__(self, values: Sequence[ArgumentValue], names: Sequence[str] = ()) -> None:
        self.values = values
        self._names = names or [f"argument {number}" for number in range(len(values))]
        self._pointers: dict[int, Pointer] = {}
        self._arrays: dict[int, tuple[str, Array]] = {}
        for number, value in enumerate(values):
            pointer = Pointer(value, 0) if isinstance(value, np.ndarray) else value
            if isinstance(pointer, Pointer):
                self._pointers[number] = pointer
            inside = value.pointers.values() if isinstance(value, Record) else ()
            for each in (pointer, *inside):
                if isinstance(each, Pointer):
                    if not each.array.flags.c_contiguous:
                        raise SimulatorError(f"argument {number} must be a contiguous array")
                    self._arrays[id(each.array)] = (self._names[number], each.array)

    @property
    def contents(self) -> list[tuple[str, bytes | Array]]:
        """The arrays, for a GlobalMemory."""
        return list(self._arrays.values())

    def place(self, buffers: Sequence[Buffer]) -> dict[int, int]:
        """The address of each argument that is an array, by its number; `buffers` are those of `contents`."""
        self._buffers = dict(zip(self._arrays, buffers, strict=True))
        return {number: self._address(each) for number, each in self._pointers.items()}

    def _address(self, pointer: Pointer) -> int:
        return self._buffers[id(pointer.array)].address + pointer.offset

    def write_back(self, memory: GlobalMemory) -> None:
        """Gives the arrays what the launch has left in memory; those that cannot be written stay."""
        for key, (_, array) in self._arrays.items():
            if array.flags.writeable:
                array.reshape(-1).view(np.uint8)[:] = memory.read(self._buffers[key])

    def bytes_of(self, number: int, size: int, addresses: dict[int, int], kernel: str) -> bytes:
        """The `size` bytes of an argument. SimulatorError when it has as many not."""
        value = self.values[number]
        if isinstance(value, Record):
            raw = bytearray(value.content)
            for offset, pointer in value.pointers.items():
                struct.pack_into("<Q", raw, offset, self._address(pointer))
            content = bytes(raw)
        else:
            content = struct.pack("<Q", addresses[number]) if number in addresses else _scalar(value, size)
        if len(content) != size:
            raise SimulatorError(f"argument {number} of {kernel} has {size} bytes, not {len(content)}")
        return content


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
