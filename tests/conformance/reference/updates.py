"""Atomic updates of which threads get old values: known where no other thread of the launch updates the element."""

from __future__ import annotations

import itertools

import numpy as np

from tests.conformance.reference.numbers import Array, CannotInterpret

_NOBODY, _SEVERAL = -1, -2
_MOST_LANES = 1 << 32


class Updates:
    """Who has updated each element in this launch, and of which elements a thread got the old value."""

    def __init__(self) -> None:
        self._who: dict[object, Array] = {}
        self._asked: dict[object, Array] = {}
        self._groups = itertools.count()

    def lanes(self, count: int) -> Array:
        """Numbers for elements that are computed side by side, unlike those of all others."""
        return next(self._groups) * _MOST_LANES + np.arange(count)

    def note(self, key: object, shape: tuple[int, ...], chosen: tuple[Array, ...], who: Array, *, asks: bool) -> None:
        """These update the elements `chosen` of a buffer.

        Errors: CannotInterpret where the order of several decides what a thread gets.
        """
        places = np.ravel_multi_index(chosen, shape) if shape else np.zeros(len(who), np.int64)
        known = self._who.setdefault(key, np.full(int(np.prod(shape)), _NOBODY))
        asked = self._asked.setdefault(key, np.zeros(len(known), bool))
        _, inverse, counts = np.unique(places, return_inverse=True, return_counts=True)
        before = known[places]
        several = (counts[inverse] > 1) | ((before != _NOBODY) & (before != who))
        known[places] = np.where(several, _SEVERAL, who)
        asked[places] |= asks
        if (asked[places] & (known[places] == _SEVERAL)).any():
            raise CannotInterpret("which thread comes first")
