"""Damaged kernels on the command line: a diagnostic or files, never a traceback, and nothing outside of -o.

`--fuzz N` runs N of them, the same in each run; `--programs-seed S` others. Each batch is a process with limits of
memory and of CPU time, so that an input that exhausts either ends it; the failure names the input's number.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.mutations import mutated

BATCHES = 4  # so that several processes share the work
MEMORY = 3 << 30  # bytes of address space
SECONDS = 60  # of CPU, for one input
TARGETS = ("cuda:sm_80", "cuda:sm_90a", "hip:gfx942")
# Runs the numbered files of a folder; prints each number before it runs, and what is no diagnostic.
CHILD = """
import resource, sys, traceback
from pathlib import Path
from tile2cu.cli import main

for path in sorted(Path(sys.argv[1]).glob("*.py"), key=lambda path: int(path.stem.split("_")[1])):
    print(path.stem, file=sys.stderr, flush=True)
    used = int(resource.getrusage(resource.RUSAGE_SELF).ru_utime)
    resource.setrlimit(resource.RLIMIT_CPU, (used + int(sys.argv[4]), resource.RLIM_INFINITY))
    names = ["--name", sys.argv[5]] if sys.argv[5] else []
    try:
        status = main([str(path), "-o", sys.argv[2], "--target", sys.argv[3], "--format", "json", *names])
    except SystemExit as error:
        status = error.code
    except BaseException:
        print("TRACEBACK", path.stem, traceback.format_exc(), flush=True)
        continue
    if status not in (0, 1, 2):
        print("STATUS", path.stem, status, flush=True)
"""
NAMES = ("", "../../x", "a b;c", "printf", "$(touch x)", "gr\u00f6\u00dfe", "NULL", "-o", "a" * 400, "x/y", ".", "int")


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def files_below(folder: Path, *, but: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if but not in (path, *path.parents)}


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_damaged_kernels_give_diagnostics(batch: int, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    count, first = int(request.config.getoption("--fuzz")), int(request.config.getoption("--programs-seed")) << 20
    inputs, out, work = tmp_path / "inputs", tmp_path / "out", tmp_path / "work"
    for folder in (inputs, out, work):
        folder.mkdir()
    for number in range(first + batch, first + count, BATCHES):
        (inputs / f"input_{number}.py").write_bytes(mutated(number))
    before = files_below(tmp_path, but=out)
    name = NAMES[(batch + first) % len(NAMES)]
    command = [sys.executable, "-c", CHILD, str(inputs), str(out), TARGETS[batch % len(TARGETS)], str(SECONDS), name]
    environment = {**os.environ, "HOME": str(work), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=work, env=environment, preexec_fn=limited)
    last = done.stderr.strip().splitlines()[-1:]
    assert done.returncode == 0, f"ended at {last} with {done.returncode}"
    found = [line for line in done.stdout.splitlines() if line.startswith(("TRACEBACK", "STATUS"))]
    assert not found, done.stdout[done.stdout.index(found[0]) :][:4000]
    assert files_below(tmp_path, but=out) == before


def test_names_of_functions_are_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No file is written elsewhere, and none has a name that C does not take."""
    from tile2cu.cli import main

    source = Path(__file__).resolve().parents[2] / "examples" / "vector_add.py"
    out = tmp_path / "below" / "out"
    for name in NAMES[1:]:
        assert main([str(source), "-o", str(out), f"--name={name}"]) == 1, name
        assert "error[T2C-" in capsys.readouterr().err
    assert not list(tmp_path.rglob("*.cu"))
