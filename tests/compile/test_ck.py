"""Sources of the style ck compile for the host without warnings, and without kernels' bodies, whose
templates would take two thirds of the time."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tile2cu_runtime.hip import simulator_build

pytestmark = pytest.mark.needs("ck")
SOURCES = Path(__file__).resolve().parents[2] / "emitted/ck/gfx942"


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("name", ["row_softmax", "gemm_relu", "attention"])
def test_the_host_compiles_no_body(name: str, tmp_path: Path) -> None:
    """One that does not compile is added to."""
    text = (SOURCES / f"{name}.hip").read_text(encoding="utf-8")
    assert text.count("#endif\n  }\n};") == 1
    source = tmp_path / f"{name}.hip"
    source.write_text(text.replace("#endif\n  }\n};", "    not_declared();\n#endif\n  }\n};"), encoding="utf-8")
    build = simulator_build(str(source), architecture="gfx942", needs=("composable_kernel",))
    flags = [flag for flag in build.compile if not re.match(r"-M|kernel\.|-c$|-o$|-Xclang$|-fcuda-include", flag)]
    checks = [f"-I{SOURCES}", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    done = subprocess.run([*flags, *checks], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
