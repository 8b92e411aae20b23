"""A GPU without a GPU: settings take the time that a function gives, with noise from a seed."""

import random
from collections.abc import Callable, Mapping, Sequence

from tile2cu.core.choice import Setting


class Machine:
    """A Measurer. `us_of` gives a setting's time; `wrong` are settings whose results differ."""

    clocks = "1980 MHz, 700.00 W"
    tools = "tile2cu 0, nvcc 0"

    def __init__(
        self,
        us_of: Callable[[Mapping[str, int]], float],
        *,
        noise: float = 0.0,
        seed: int = 0,
        wrong: Callable[[Mapping[str, int]], bool] = lambda setting: False,
        card: str = "Fake GPU",
    ) -> None:
        self.card = card
        self.prepared: list[Setting] = []
        self.races: list[tuple[tuple[Setting, ...], int]] = []
        self._us_of, self._noise, self._random, self._wrong = us_of, noise, random.Random(seed), wrong

    def prepare(self, settings: Sequence[Setting]) -> Mapping[Setting, str]:
        self.prepared += settings
        return {setting: "it is wrong" for setting in settings if self._wrong(dict(setting))}

    def race(self, settings: Sequence[Setting], rounds: int) -> Mapping[Setting, Sequence[float]]:
        assert set(settings) <= set(self.prepared), "only what was checked is timed"
        self.races.append((tuple(settings), rounds))
        drift = [1 + self._noise * self._random.uniform(-1, 1) for _ in range(rounds)]  # of all settings in a round
        return {
            setting: [
                self._us_of(dict(setting)) * each * (1 + self._noise / 4 * self._random.uniform(-1, 1))
                for each in drift
            ]
            for setting in settings
        }
