"""A launcher in plain C++ in place of an emitted kernel, a separate cache, and no engine."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tile2cu_runtime import Kernel, binding, kernel, load_kernel

AXPY = Path(__file__).with_name("axpy")


class NoEngine:
    """What the loader asks of the engine, answered without one: memory is not checked, reports are empty."""

    @contextmanager
    def turn(self, options: object) -> Iterator[None]:
        yield

    def report(self) -> dict[str, Any]:
        return {}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder. Headers are not precompiled for it: that pays from the fourth kernel on."""
    monkeypatch.setenv("TILE2CU_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(binding, "precompiled_headers", lambda build: ())
    return tmp_path / "cache"


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "load_engine", NoEngine)


@pytest.fixture
def axpy_data() -> dict[str, Any]:
    """The manifest of axpy, decoded, to be changed by the test."""
    data: dict[str, Any] = json.loads((AXPY / "axpy.json").read_text(encoding="utf-8"))
    return data


@pytest.fixture
def axpy(tmp_path: Path) -> Path:
    """A folder with axpy that the test may edit."""
    return Path(shutil.copytree(AXPY, tmp_path / "axpy"))


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared_cache")


@pytest.fixture
def load_axpy(shared_cache: Path, no_engine: None, gxx: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Kernel]:
    """Loads axpy on the CPU, built once for all tests that do not look at building."""
    monkeypatch.setenv("TILE2CU_CACHE", str(shared_cache))
    return lambda **options: load_kernel(AXPY, device="cpu", **options)
