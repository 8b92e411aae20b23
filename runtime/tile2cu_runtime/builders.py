"""Processes that build bindings by cppimport. One imports cppimport, with setuptools and Mako, once and forks for each
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
    """How a build ended: its exit status, and what it printed."""

    status: int
    output: str


def build(binding: Path, environment: Mapping[str, str]) -> Answer:
    """Builds a binding by cppimport with these environment variables; any thread.

    It is built in an empty folder, since setuptools obeys pyproject.toml and setup.cfg of where it stands.
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
        except BaseException:  # KeyboardInterrupt, too: nobody waits for the build any more
            _end(builder)
            raise
        _idle.append(builder)
        return Answer(status, output.read_text(encoding="utf-8", errors="replace") if output.exists() else "")


_idle: list[subprocess.Popen[str]] = []
# A fork of this process would write into the same pipes.
os.register_at_fork(after_in_child=_idle.clear)


def _idle_builder() -> subprocess.Popen[str] | None:
    while _idle:
        with contextlib.suppress(IndexError):  # another thread may have been faster
            builder = _idle.pop()
            if builder.poll() is None:
                return builder
            _end(builder)
    return None


def _started(environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """A new builder, in a session of its own: interrupts are for the process that asks, which ends it then."""
    return subprocess.Popen(
        COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        errors="replace",
        env=dict(environment),
        cwd=os.sep,  # -m looks for modules where it starts
        start_new_session=True,
    )


def _asked(builder: subprocess.Popen[str], request: str) -> int:
    """The exit status of the build that is asked for; 1 where the builder itself dies."""
    assert builder.stdin is not None and builder.stdout is not None
    try:
        builder.stdin.write(request + "\n")
        builder.stdin.flush()
    except BrokenPipeError:
        return 1
    return int(builder.stdout.readline() or 1)


def _end(builder: subprocess.Popen[str]) -> None:
    """Ends a builder with the compilers that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(builder.pid, signal.SIGKILL)
    with contextlib.suppress(BrokenPipeError):
        builder.__exit__(None, None, None)  # closes its pipes and waits


@atexit.register
def _end_all() -> None:
    while _idle:
        _end(_idle.pop())
