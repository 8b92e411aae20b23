"""Reads MessagePack, the format of a code object's metadata note. [msgpack.org, "MessagePack specification"]"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

# First byte of the fixed-size scalars, and their struct format.
_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_SIMPLE: dict[int, Any] = {0xC0: None, 0xC2: False, 0xC3: True}
# First byte of what carries its length, and the format of that length.
_STRINGS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_BINARIES = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I"}
_ARRAYS = {0xDC: ">H", 0xDD: ">I"}
_MAPS = {0xDE: ">H", 0xDF: ">I"}


def unpack(data: bytes) -> Any:
    """The first value in the data: None, bool, int, float, str, bytes, list or dict."""
    return _Reader(data).value()


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def value(self) -> Any:
        first = self._number(">B")
        if first in _SIMPLE:
            return _SIMPLE[first]
        if first in _NUMBERS:
            return self._number(_NUMBERS[first])
        for lengths, read in self._sized():
            if first in lengths:
                return read(self._number(lengths[first]))
        return self._short(first)

    def _sized(self) -> list[tuple[dict[int, str], Callable[[int], Any]]]:
        return [(_STRINGS, self._text), (_BINARIES, self._bytes), (_ARRAYS, self._list), (_MAPS, self._dict)]

    def _short(self, first: int) -> Any:
        """Values whose first byte holds the length or the number itself."""
        if first < 0x80:
            return first
        if first >= 0xE0:
            return first - 0x100
        if first < 0x90:
            return self._dict(first & 0x0F)
        if first < 0xA0:
            return self._list(first & 0x0F)
        return self._text(first & 0x1F)

    def _number(self, form: str) -> Any:
        (value,) = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return value

    def _bytes(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]

    def _text(self, count: int) -> str:
        return self._bytes(count).decode()

    def _list(self, count: int) -> list[Any]:
        return [self.value() for _ in range(count)]

    def _dict(self, count: int) -> dict[Any, Any]:
        return {self.value(): self.value() for _ in range(count)}
