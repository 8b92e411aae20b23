"""Processes that build bindings by cppimport. One imports cppimport, with setuptools and Mako, once, and forks for each
build: the imports take longer than compiling a small kernel.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

COMMAND = (sys.executable, "-m", "tile2cu_runtime.cppimport_child")


@dataclass(frozen=True)
class Answer:
    """The result of a build: exit status and output."""

    status: int
    output: str


def build(binding: Path, environment: Mapping[str, str]) -> Answer:
    """Builds a binding by cppimport with these environment variables. Thread-safe.

    Runs in an empty folder, since setuptools reads pyproject.toml and setup.cfg of the current folder.
    """
    builder = _idle_builder() or _started(environment)
    with tempfile.TemporaryDirectory() as scratch:
        empty, output = Path(scratch, "empty"), Path(scratch, "output")
        empty.mkdir()
        request = {
            "binding": str(binding),
            "folder": str(empty),
            "output": str(output),
            "environment": dict(environment),
        }
        try:
            status = _asked(builder, json.dumps(request))
        except BaseException:  # also on KeyboardInterrupt: the build is abandoned
            _end(builder)
            raise
        _idle.append(builder)
        return Answer(status, output.read_text(encoding="utf-8", errors="replace") if output.exists() else "")


_idle: list[subprocess.Popen[str]] = []
# A fork of this process must not use the same pipes.
os.register_at_fork(after_in_child=_idle.clear)


def _idle_builder() -> subprocess.Popen[str] | None:
    while _idle:
        with contextlib.suppress(IndexError):  # another thread may have started one
            builder = _idle.pop()
            if builder.poll() is None:
                return builder
            _end(builder)
    return None


def _started(environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """Starts a builder in its own session: interrupts reach the requesting process, which then ends the builder."""
    return subprocess.Popen(
        COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        errors="replace",
        env=dict(environment),
        cwd=os.sep,  # -m searches the current folder
        start_new_session=True,
    )


def _asked(builder: subprocess.Popen[str], request: str) -> int:
    """The exit status of the requested build; 1 if the builder itself exits."""
    assert builder.stdin is not None and builder.stdout is not None
    try:
        builder.stdin.write(request + "\n")
        builder.stdin.flush()
    except BrokenPipeError:
        return 1
    return int(builder.stdout.readline() or 1)


def _end(builder: subprocess.Popen[str]) -> None:
    """Ends a builder and the compilers that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(builder.pid, signal.SIGKILL)
    with contextlib.suppress(BrokenPipeError):
        builder.__exit__(None, None, None)  # closes the pipes and waits


@atexit.register
def _end_all() -> None:
    while _idle:
        _end(_idle.pop())
