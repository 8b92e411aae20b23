"""Libraries whose headers a kernel includes beside tl's."""

from pathlib import Path

import pytest

from tile2cu_runtime.compilers import cutlass_include
from tile2cu_runtime.errors import CompileError


def test_the_headers_of_cutlass_are_those_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "include" / "cute").mkdir(parents=True)
    (tmp_path / "include" / "cute" / "tensor.hpp").write_text("", encoding="utf-8")
    monkeypatch.setenv("CUTLASS_PATH", str(tmp_path))
    assert cutlass_include() == tmp_path / "include"


def test_without_them_the_diagnostic_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUTLASS_PATH", raising=False)
    monkeypatch.delenv("TILE2CU_CUTLASS", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CompileError, match="the headers of CUTLASS"):
        cutlass_include()
