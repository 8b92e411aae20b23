"""The arguments of a simulated launch, AMD or PTX: arrays in global memory, and the bytes of the others."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tile2cu_runtime.amdgcn.arrays import Array
from tile2cu_runtime.amdgcn.errors import SimulatorError
from tile2cu_runtime.amdgcn.global_memory import Buffer, GlobalMemory

Extent = tuple[int, int, int]


@dataclass(frozen=True)
class Pointer:
    """A pointer argument: `offset` bytes into an array."""

    array: Array
    offset: int


@dataclass(frozen=True)
class Record:
    """An argument passed by value, with pointers at some of its byte offsets; `names` are those of their arrays."""

    content: bytes
    pointers: Mapping[int, Pointer]
    names: Mapping[int, str] = field(default_factory=dict)


ArgumentValue = int | float | bytes | np.generic | Array | Pointer | Record


def extent_of(value: int | Sequence[int]) -> Extent:
    """Three extents from up to three."""
    given = (value,) if isinstance(value, int) else tuple(value)
    x, y, z = (*given, 1, 1, 1)[:3]
    return x, y, z


class Arguments:
    """A launch's arguments and their names for findings. SimulatorError for a non-contiguous array.

    Pointers into one array share its buffer, so that their distances are preserved.
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
            found = [(self._names[number], pointer)]
            if isinstance(value, Record):
                found += [(value.names.get(at, self._names[number]), each) for at, each in value.pointers.items()]
            for name, each in found:
                if isinstance(each, Pointer):
                    if not each.array.flags.c_contiguous:
                        raise SimulatorError(f"argument {number} must be a contiguous array")
                    self._arrays[id(each.array)] = (name, each.array)

    @property
    def contents(self) -> list[tuple[str, bytes | Array]]:
        """The arrays, for a GlobalMemory."""
        return list(self._arrays.values())

    def place(self, buffers: Sequence[Buffer]) -> dict[int, int]:
        """The address of each array argument, by its index; `buffers` are those of `contents`."""
        self._buffers = dict(zip(self._arrays, buffers, strict=True))
        return {number: self._address(each) for number, each in self._pointers.items()}

    def _address(self, pointer: Pointer) -> int:
        return self._buffers[id(pointer.array)].address + pointer.offset

    def write_back(self, memory: GlobalMemory) -> None:
        """Copies memory back to the arrays after the launch; read-only arrays are unchanged."""
        for key, (_, array) in self._arrays.items():
            if array.flags.writeable:
                array.reshape(-1).view(np.uint8)[:] = memory.read(self._buffers[key])

    def bytes_of(self, number: int, size: int, addresses: dict[int, int], kernel: str) -> bytes:
        """The `size` bytes of an argument. SimulatorError if its size differs."""
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
