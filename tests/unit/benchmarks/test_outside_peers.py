"""Peers from outside: each is checked against its own or the workload's reference; what raises is left out."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

MODULE = """
def peers(work):
    a, b = work.inputs
    return {
        "right": lambda: a + b,
        "other work": (lambda: a - b, a - b),
        "wrong": lambda: a * b,
    }
"""
RAISES = """
def peers(work):
    raise RuntimeError("no such shape")
"""


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "benchmarks"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    import gpu

    return gpu


def test_outside_peers_are_checked(gpu: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    modules = {}
    for name, text in (("good", MODULE), ("broken", RAISES)):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        modules[name] = gpu.peers.outside(tmp_path / f"{name}.py").peers
    a, b = torch.rand(64), torch.rand(64)
    work = gpu.Workload(
        suite="vector_add", name="add", inputs=[a, b], output=torch.empty(64), peers={}, reference=a.double() + b
    )
    calls, errors = gpu.theirs(work, modules)
    assert list(calls) == ["right", "other work", "wrong"]
    assert errors["right"] < work.tolerance and errors["other work"] == 0 and errors["wrong"] > work.tolerance
    assert "broken: RuntimeError: no such shape" in capsys.readouterr().out
