"""Random numbers of curandStatePhilox4_32_10_t: number so many of a sequence, computed without those before it."""

from __future__ import annotations

import numpy as np

from tests.conformance.reference.numbers import Array, CannotInterpret

# J. K. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011, Philox-4x32-10.
_MULTIPLIERS, _WEYL, _ROUNDS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 10
_WORD = np.uint64(0xFFFFFFFF)
_STEP = float(np.float32(2.0**-32))


def numbers(seed: Array | int, sequence: Array | int, place: Array) -> Array:
    """The 32-bit numbers at these places of these sequences."""
    seed, sequence, place = (part.astype(np.uint64) for part in np.broadcast_arrays(seed, sequence, place))
    key, block = _words(seed), place // np.uint64(4)
    counter = [*_words(block), *_words(sequence)]
    for _ in range(_ROUNDS):
        first, second = (counter[at] * np.uint64(by) for at, by in zip((0, 2), _MULTIPLIERS, strict=True))
        (low_0, high_0), (low_1, high_1) = _words(first), _words(second)
        counter = [high_1 ^ counter[1] ^ key[0], low_1, high_0 ^ counter[3] ^ key[1], low_0]
        key = [(word + np.uint64(by)) & _WORD for word, by in zip(key, _WEYL, strict=True)]
    return np.choose((place % np.uint64(4)).astype(np.int64), counter).astype(np.uint32)


def _words(value: Array) -> list[Array]:
    """The lower and the upper half of 64 bits."""
    return [value & _WORD, value >> np.uint64(32)]


class Generators:
    """Each thread's own generator: where in which sequence it is, and the second of two normal numbers."""

    def __init__(self, seed: Array, sequence: Array, place: Array, threads: int) -> None:
        self._seed, self._sequence, self._place = (np.resize(part, threads) for part in (seed, sequence, place))
        self._place = self._place.astype(np.uint64)
        self._second = np.full(threads, np.nan)

    def start(self, other: Generators, mask: Array) -> None:
        """The threads of the mask start again with the given state."""
        for mine, theirs in (
            (self._seed, other._seed),
            (self._sequence, other._sequence),
            (self._place, other._place),
            (self._second, other._second),
        ):
            mine[mask] = theirs[mask]

    def take(self, kind: str, mask: Array) -> Array:
        """The next number of each thread of the mask: "next", "uniform" or "normal".

        If the block has a single thread, which executes the elements of a loop one after another, one per element.
        """
        if len(mask) == len(self._place):
            return self._of(kind, mask)
        if len(self._place) > 1:
            raise CannotInterpret("random numbers of elements, which threads share as a layout says")
        found = np.zeros(len(mask), np.uint32 if kind == "next" else np.float64)
        for element in np.flatnonzero(mask):
            found[element] = self._of(kind, np.ones(1, bool))[0]
        return found

    def _of(self, kind: str, mask: Array) -> Array:
        if kind == "next":
            return self._next(mask)
        if kind == "uniform":
            return self._uniform(mask)
        has_second = ~np.isnan(self._second)
        first = mask & ~has_second
        radius = np.sqrt(-2 * np.log(self._uniform(first)))
        angle = 2 * np.pi * (self._next(first).astype(np.float64) * _STEP + _STEP / 2)
        found = np.where(has_second, self._second, np.sin(angle) * radius)
        self._second = np.where(mask, np.where(has_second, np.nan, np.cos(angle) * radius), self._second)
        return found

    def _next(self, mask: Array) -> Array:
        found = numbers(self._seed, self._sequence, self._place)
        self._place = self._place + mask.astype(np.uint64)
        return found

    def _uniform(self, mask: Array) -> Array:
        return self._next(mask).astype(np.float32).astype(np.float64) * _STEP + _STEP / 2
