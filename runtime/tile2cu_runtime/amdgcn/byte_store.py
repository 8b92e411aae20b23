"""Byte memory that all lanes of many waves access at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tile2cu_runtime.amdgcn.arrays import U8, U16, U32, Array, round_up

_WORD = {1: U8, 2: U16, 4: U32}
_SHIFT = {1: 0, 2: 1, 4: 2, 8: 3, 16: 4}


def is_aligned(at: Array, width: int) -> bool:
    """Whether all addresses are multiples of the width (of 4 for 12 bytes)."""
    return not int(np.bitwise_or.reduce(at, axis=None)) & (width - 1 if width != 12 else 3)


class ByteStore:
    """Bytes with a view for each access width. Addresses are byte offsets, int64, and in bounds."""

    def __init__(self, size: int, fill: int = 0) -> None:
        padded = round_up(size + 16, 16)
        self.bytes: Array = np.full(padded, fill, U8) if fill else np.zeros(padded, U8)
        self._words = {width: self.bytes.view(kind) for width, kind in _WORD.items()}
        self._rows = {width: self.bytes.view(U32).reshape(-1, width // 4) for width in (8, 16)}

    def load(self, at: Array, width: int, aligned: bool | None = None) -> Array:
        """`width` bytes at each address, as 32-bit words before the axes of `at`: (words, ...), uint32.

        Narrow loads are zero-extended. `aligned`: the result of is_aligned, if already known.
        """
        if not (is_aligned(at, width) if aligned is None else aligned):
            return np.stack([self._assembled(at + first, min(4, width - first)) for first in range(0, width, 4)])
        if width in self._rows:
            rows = self._rows[width].take(at >> _SHIFT[width], axis=0, mode="clip")
            words: Array = rows.transpose(-1, *range(at.ndim))
            return words
        part = min(width, 4)
        words, index = self._words[part], at >> _SHIFT[part]
        loaded = [words.take(index + number, mode="clip") for number in range(-(-width // 4))]
        return np.stack(loaded).astype(U32, copy=False)

    def store(self, at: Array, words: Sequence[Array], width: int, aligned: bool | None = None) -> None:
        """Stores `width` bytes at each address; `words` has the 32-bit words in the form of load's result."""
        if not (is_aligned(at, width) if aligned is None else aligned):
            for number, word in enumerate(words):
                self._store_bytes(at + 4 * number, word, min(4, width - 4 * number))
        elif width in self._rows:
            self._rows[width][at >> _SHIFT[width]] = np.stack(words, axis=-1)
        else:
            part = min(width, 4)
            for number, word in enumerate(words):
                self._words[part][(at >> _SHIFT[part]) + number] = word.astype(_WORD[part], copy=False)

    def _assembled(self, at: Array, width: int) -> Array:
        word = self.bytes[at].astype(U32)
        for number in range(1, width):
            word |= self.bytes[at + number].astype(U32) << U32(8 * number)
        return word

    def _store_bytes(self, at: Array, word: Array, width: int) -> None:
        for number in range(width):
            self.bytes[at + number] = (word >> U32(8 * number)).astype(U8)
