"""Every source of emitted/cute compiles with each release of CUTLASS that docs/cute.md names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The first release that has what sources for sm_90a include, and the last before ours.
RELEASES = ("3.6.0.0", "3.8.0.0")
SOURCES = sorted(ROOT.glob("emitted/cute/**/*.cu"))


@pytest.fixture(scope="module", params=RELEASES)
def headers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The headers of one release, from its package."""
    folder = tmp_path_factory.mktemp("cutlass")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
    subprocess.run([*pip, f"nvidia-cutlass=={request.param}"], check=True)
    return folder / "cutlass_library" / "source" / "include"


@pytest.mark.nightly
@pytest.mark.needs("nvcc")
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "emitted/cute")))
def test_sources_compile_with_other_releases(source: Path, headers: Path, nvcc: str, tmp_path: Path) -> None:
    arch = source.relative_to(ROOT / "emitted/cute").parts[0]
    flags = ["-std=c++17", "-O3", "-DNDEBUG", "--ptx", f"-arch={arch}", f"-I{ROOT / 'headers'}", f"-I{headers}"]
    subprocess.run([nvcc, *flags, str(source), "-o", str(tmp_path / "kernel.ptx")], check=True)


def test_the_documentation_names_these_releases() -> None:
    text = " ".join((ROOT / "docs/cute.md").read_text(encoding="utf-8").split())
    assert SOURCES and all(release.removesuffix(".0") in text for release in RELEASES)
