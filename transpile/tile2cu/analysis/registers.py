"""Registers that fragments need at one time."""

from collections.abc import Mapping

from tile2cu.analysis.lifetimes import Lifetimes
from tile2cu.core.program import Buffer, Launch
from tile2cu.core.record import Record


class Peak(Record, frozen=True):
    """The fragments that are live together where most registers per thread are needed, and these registers."""

    words: int
    tiles: tuple[Buffer, ...]


def peak_of(launch: Launch, words: Mapping[Buffer, int]) -> Peak:
    """Where the fragments of a launch need most registers per thread; `words` are those of each fragment."""
    lifetimes = Lifetimes(launch, {})
    found = [(tile, lifetime) for tile in words if (lifetime := lifetimes.of(tile)) is not None]
    live = (
        tuple(tile for tile, other in found if other.first <= lifetime.first <= other.last) for _, lifetime in found
    )
    peaks = (Peak(sum(words[tile] for tile in tiles), tiles) for tiles in live)
    return max(peaks, key=lambda peak: peak.words, default=Peak(0, ()))
