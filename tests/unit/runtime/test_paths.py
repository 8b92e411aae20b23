"""Where things are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tile2cu_runtime import paths


def test_a_checkout_uses_its_own_headers(headers: Path) -> None:
    assert paths.headers_dir() == headers
    assert (paths.engine_dir() / "fiber.cpp").is_file()


def test_an_installed_package_uses_its_copy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(paths, "_PACKAGE", tmp_path / "site-packages" / "tile2cu_runtime")
    assert paths.headers_dir() == tmp_path / "site-packages" / "tile2cu_runtime" / "headers"


def test_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TILE2CU_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert paths.cache_dir() == tmp_path / "tile2cu"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert paths.cache_dir() == Path("/home/somebody/.cache/tile2cu")
    monkeypatch.setenv("TILE2CU_CACHE", str(tmp_path / "own"))
    assert paths.cache_dir() == tmp_path / "own"


def run(*arguments: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(Path(paths.__file__).parents[1])}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_command_line(headers: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILE2CU_CACHE", str(tmp_path))
    assert run("-m", "tile2cu_runtime", "--includes") == f"-I{headers}"
    assert run("-m", "tile2cu_runtime", "--cache") == str(tmp_path)
    assert run("-m", "tile2cu_runtime", "--target").startswith("cuda:sm_")


def test_importing_needs_the_standard_library_only() -> None:
    heavy = "{'numpy', 'torch', 'cppimport', 'setuptools', 'ml_dtypes', 'mako', 'filelock', 'tile2cu'}"
    assert run("-c", f"import sys, tile2cu_runtime; print(sorted({heavy} & set(sys.modules)))") == "[]"
