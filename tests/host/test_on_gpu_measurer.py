"""The measurer of `tile2cu tune` with kernels on the CPU engine: what is wrong is rejected, the rest is raced."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tile2cu
from tile2cu.tuning.on_gpu import OnGpu
from tile2cu_runtime import Kernel

torch = pytest.importorskip("torch")
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
        return torch.from_numpy(np.ascontiguousarray(array))

    def difference(self, found: Any, expected: Any) -> float:
        return float((found.double() - expected.double()).norm() / expected.double().norm())


def kernel_of(setting: Mapping[str, int]) -> Kernel:
    text = (EXAMPLES / "gemm_relu.py").read_text(encoding="utf-8")
    path = EXAMPLES / "gemm_relu.py"
    if setting["block_M"] == 32:  # a kernel that is wrong
        path = Path(kernel_of.folder) / "gemm_relu.py"  # type: ignore[attr-defined]
        path.write_text(text.replace("T.max(C_local[i, j], 0)", "C_local[i, j] + 1"), encoding="utf-8")
    return tile2cu.load(path, target="cuda:sm_80", device="cpu", tiles="default", **setting)


def test_wrong_and_impossible_settings_are_rejected(tmp_path: Path) -> None:
    kernel_of.folder = tmp_path  # type: ignore[attr-defined]
    default, good, wrong, impossible = (
        tuple({"block_M": m, "block_N": n, "block_K": 32}.items())
        for m, n in ((64, 64), (64, 32), (32, 64), (4096, 4096))
    )
    measurer = OnGpu(kernel_of, default, SIZES, Stand())
    assert measurer.card == "stand-in"
    rejected = measurer.prepare([default, good, wrong, impossible])
    assert set(rejected) == {wrong, impossible}
    assert "differs from the file's own setting's" in rejected[wrong]
    assert rejected[impossible].startswith("T2C-")
    times = measurer.race([default, good], 3)
    assert {setting: len(each) for setting, each in times.items()} == {default: 3, good: 3}
    assert all(us == 1000.0 for each in times.values() for us in each)
