"""The measurer of `tile2cu tune` with kernels on the CPU engine: what is wrong is rejected, the rest is raced."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tile2cu
from tile2cu.core.choice import Candidate
from tile2cu.tuning.on_gpu import OnGpu
from tile2cu_runtime import Kernel

pytestmark = pytest.mark.needs("torch")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SIZES = {"M": 40, "N": 64, "K": 96}


class Clock:
    """A GPU's protocol for the timer, without a GPU: a call takes 1 ms."""

    def __init__(self) -> None:
        self.now = 0.0

    def flush(self) -> None: ...
    def hide_launch(self) -> None: ...
    def rest(self, seconds: float) -> None: ...
    def graph(self, call: Any) -> Any:
        return call

    def record(self) -> float:
        self.now += 1.0
        return self.now

    def elapsed_ms(self, pairs: list[tuple[float, float]]) -> list[float]:
        return [end - start for start, end in pairs]


class Stand:
    """Tensors of torch on the CPU."""

    name = "stand-in"

    def __init__(self) -> None:
        self.gpu = Clock()

    def tensor(self, spec: Any, array: Any) -> Any:
        import torch  # for long: not when all tests are collected

        return torch.from_numpy(np.ascontiguousarray(array))

    def difference(self, found: Any, expected: Any) -> float:
        return float((found.double() - expected.double()).norm() / expected.double().norm())


def kernel_of(candidate: Candidate) -> Kernel:
    setting = dict(candidate.setting)
    path = EXAMPLES / candidate.file
    if setting["block_M"] == 32:  # a kernel that is wrong
        text = path.read_text(encoding="utf-8").replace("T.max(C_local[i, j], 0)", "C_local[i, j] + 1")
        path = Path(kernel_of.folder) / candidate.file  # type: ignore[attr-defined]
        path.write_text(text, encoding="utf-8")
    return tile2cu.load(path, target="cuda:sm_80", device="cpu", tiles="default", **setting)  # type: ignore[arg-type]


@pytest.mark.nightly
def test_wrong_and_impossible_settings_are_rejected(tmp_path: Path) -> None:
    kernel_of.folder = tmp_path  # type: ignore[attr-defined]
    default, good, other, wrong, impossible = (
        Candidate(file, tuple({"block_M": m, "block_N": n, "block_K": 32}.items()))
        for file, m, n in (
            ("gemm_relu.py", 64, 64),
            ("gemm_relu.py", 64, 32),
            ("gemm_hybrid.py", 64, 64),
            ("gemm_relu.py", 32, 64),
            ("gemm_relu.py", 4096, 4096),
        )
    )
    measurer = OnGpu(kernel_of, default, SIZES, Stand())
    assert measurer.identity.card == "stand-in"
    rejected = measurer.prepare([default, good, other, wrong, impossible])
    assert set(rejected) == {wrong, impossible}
    assert "differs from the file's own setting's" in rejected[wrong]
    assert rejected[impossible].startswith("T2C-")
    times = measurer.race([default, good, other], 3)
    assert {candidate: len(each) for candidate, each in times.items()} == {default: 3, good: 3, other: 3}
    assert all(us == 1000.0 for each in times.values() for us in each)
