"""Runs programs as `python -m tile2cu.tilelang` does, in forks of a process that has imported torch, which takes longer
than most of the programs.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tile2cu.tilelang.__main__ import main

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["torch", "tile2cu.tilelang.__main__"])


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The program's exit status and what it has printed."""
    with tempfile.TemporaryDirectory() as folder:
        printed = Path(folder, "stdout"), Path(folder, "stderr")
        words = [str(word) for word in arguments]
        process = _FORKS.Process(target=_run, args=(words, *map(str, printed)))
        process.start()
        process.join()
        assert process.exitcode is not None
        out, err = (path.read_text(encoding="utf-8") for path in printed)
    return subprocess.CompletedProcess(words, process.exitcode, out, err)


def _run(arguments: list[str], *printed: str) -> None:
    for stream, path in enumerate(printed, start=1):
        file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(file, stream)
        os.close(file)
    sys.exit(main(arguments))
