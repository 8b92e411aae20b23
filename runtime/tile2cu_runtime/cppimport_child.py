"""`python -m tile2cu_runtime.cppimport_child`: builds bindings by cppimport without loading them.

cppimport's own command loads what it has built, but a kernel for the CPU engine loads only with the engine present.
Each input line is a request in JSON, each output line the exit status of its build (see builders.py).
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any, NoReturn


def main() -> None:
    _prepare()
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _build_and_exit(request)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _prepare() -> None:
    """Caches work that each build would repeat, half as long as compiling a small kernel takes.

    setuptools queries the entry points of all installed packages five times per build.
    """
    importlib.metadata.entry_points = functools.cache(importlib.metadata.entry_points)  # type: ignore[assignment]
    with contextlib.suppress(ImportError):  # the build reports what is missing
        import cppimport.importer  # noqa: F401
        import setuptools
        import setuptools.command.build_ext  # noqa: F401

        import tile2cu_runtime.binding  # noqa: F401  imported here once for all builds

        setuptools.Distribution().get_command_obj("build_ext").ensure_finalized()


def _build_and_exit(request: dict[str, Any]) -> NoReturn:
    """Builds in the forked process. Output goes to the request's file."""
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    # The compiler's command lines are logged at level INFO; the parent shows them if the build fails.
    logging.basicConfig(level=logging.INFO)
    status = 1
    try:
        _build(request["binding"])
        status = 0
    except SystemExit as problem:
        print(problem, file=sys.stderr)
    except BaseException:
        logging.exception("the build failed")
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _build(path: str) -> None:
    from cppimport.importer import build_safely, setup_module_data

    build_safely(path, setup_module_data(Path(path).stem, path))


if __name__ == "__main__":
    main()
