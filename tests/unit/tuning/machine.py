"""A GPU without a GPU: settings take the time that a function gives, with noise from a seed."""

import os
import random
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tile2cu.core.choice import Candidate
from tile2cu.tuning.run import Task
from tile2cu.tuning.search import Identity


class Machine:
    """A Measurer. `us_of` gives a setting's time; `wrong` are settings whose results differ."""

    def __init__(
        self,
        us_of: Callable[[Candidate], float],
        *,
        noise: float = 0.0,
        seed: int = 0,
        wrong: Callable[[Candidate], bool] = lambda candidate: False,
        card: str = "Fake GPU",
    ) -> None:
        self.identity = Identity(card, "1980 MHz, 700.00 W", "tile2cu 0, nvcc 0")
        self.prepared: list[Candidate] = []
        self.races: list[tuple[tuple[Candidate, ...], int]] = []
        self._us_of, self._noise, self._random, self._wrong = us_of, noise, random.Random(seed), wrong

    def prepare(self, candidates: Sequence[Candidate]) -> Mapping[Candidate, str]:
        self.prepared += candidates
        return {each: "it is wrong" for each in candidates if self._wrong(each)}

    def race(self, candidates: Sequence[Candidate], rounds: int) -> Mapping[Candidate, Sequence[float]]:
        assert set(candidates) <= set(self.prepared), "only what was checked is timed"
        self.races.append((tuple(candidates), rounds))
        drift = [1 + self._noise * self._random.uniform(-1, 1) for _ in range(rounds)]  # of all settings in a round
        return {
            candidate: [
                self._us_of(candidate) * each * (1 + self._noise / 4 * self._random.uniform(-1, 1)) for each in drift
            ]
            for candidate in candidates
        }


FACTORS = {"gemm_few_rows.py": 0.2, "gemm_clusters.py": 2.0}


def us_of(candidate: Candidate) -> float:
    """Fastest are the most columns and stages, gemm_few_rows takes a fifth of the others' time, gemm_clusters twice."""
    setting = dict(candidate.setting)
    return 1000.0 / (setting["block_N"] + setting["num_stages"]) * FACTORS.get(candidate.file, 1.0)


@dataclass(frozen=True)
class FakeGpu:
    """A Device whose settings take the time that `us_of` gives. `log` gets the process of each measurement.

    The first process that measures ends itself, if `dies` is set.
    """

    us_of: Callable[[Candidate], float] = us_of
    log: Path | None = None
    dies: bool = False

    def identity(self) -> Identity:
        return Machine(self.us_of).identity

    def measurer(self, task: Task, default: Candidate) -> Machine:
        if self.log is not None:
            before = self.log.read_text(encoding="utf-8") if self.log.exists() else ""
            self.log.write_text(f"{before}{os.getpid()}\n", encoding="utf-8")
            if self.dies and not before:
                os.kill(os.getpid(), signal.SIGKILL)
        return Machine(self.us_of)
