"""The command line: `tile2cu kernel.py -o out/`, and verbs for projects. Each verb is a module of this package.

A verb's module has `HELP` (one line), `add_arguments(parser)` and `run(options)`, which returns the exit status. It is
imported only when its verb is called, so that the command starts quickly.
"""

import argparse
import atexit
import contextlib
import gc
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from tile2cu.core.errors import Tile2CuError
from tile2cu.version import VERSION
from tile2cu_runtime.errors import Error

VERBS = {
    "emit": "writes one file's kernels; the word may be left out",
    "explain": "explains decisions about a kernel, their reasons, and what would change them; or a rule or an error",
    "build": "writes what pyproject.toml lists; also when neither a verb nor a file is given",
    "run": "runs a kernel on made-up data: on a GPU, on the CPU engine with its checks, or on the AMD simulator",
    "bench": "times a kernel on a GPU against its peers, as a fraction of the roofline; on the CPU, counts its work",
    "tune": "measures settings of a kernel's tiles on a GPU, and keeps the fastest for each shape in a file next to it",
    "review": "writes one page: Python and emitted source side by side, decisions, layouts, pipeline, resources",
    "layout": "plots which thread holds which element of a tile, or in which banks a shared tile stores it, as SVG",
    "resources": "reports registers, spills, shared memory, occupancy, waves and instruction counts of a kernel",
    "check": "checks whether the files are what would be emitted now: exit status 0 yes, 1 no, 2 failure",
    "update": "builds, and merges manual edits with the regenerated sources",
    "migrate": "prints what a program for TileLang would need to change to run with tile2cu.tilelang",
    "map": "translates a line of the text to the Python line it comes from, and back",
    "completion": "prints a script that completes the command line in bash, zsh or fish",
    "vendor": "makes a folder with all that another project needs to build the kernels",
}
FORM_NAMES = ("github", "json", "sarif", "text")  # of --format
_ALIKE = 0.7  # of an unknown option and the one that may have been meant: difflib's ratio
_OF_THE_RUNTIME = ("cppimport", "filelock", "ml_dtypes", "numpy", "setuptools")  # packages of the extra "run"
_COLLECTED = 200_000  # new objects after which cycles are collected: an import makes a tenth of them
_FILE = "emit"  # the verb of `tile2cu kernel.py`


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit status: 0 done, 1 a diagnostic, 2 a wrong call (of check: it failed)."""
    if arguments is None:  # the process ends with the command: a fifth of its time would go to collections of cycles
        gc.set_threshold(_COLLECTED)
        atexit.register(gc.freeze)
    given = list(sys.argv[1:] if arguments is None else arguments)
    named = given.pop(0) if given and given[0] in VERBS else ""
    module = importlib.import_module(f"tile2cu.cli.{named or _FILE}")
    parser = _parser(named)
    reports = add_arguments(module, parser)
    failed = int(getattr(module, "FAILED", 1))
    options, others = parser.parse_known_args(given)
    try:
        _expect_no_more(parser, options, others)
        status = int(module.run(options)) if reports else _run_and_report(module, options, failed)
        sys.stdout.flush()
        return status
    except Error as error:
        _print_error(error, options.format)
        return failed
    except ModuleNotFoundError as error:
        if error.name not in _OF_THE_RUNTIME:
            raise
        help = "pip install 'tile2cu[run]' brings what builds and runs kernels"
        missing = Tile2CuError("T2C-C019", f"the Python package {error.name} is not installed", help=help)
        _print_error(missing, options.format)
        return failed
    except BrokenPipeError:  # who reads the output has enough, as `| head` does
        _write_no_more()
        return failed
    except OSError as error:
        if error.filename is not None:
            raise
        _write_no_more()
        unwritten = Tile2CuError("T2C-C005", f"cannot write to the standard output: {error.strerror}")
        _print_error(unwritten)
        return failed
    except Exception:
        if failed == 1:  # Python's own status for an error
            raise
        traceback.print_exc()
        return failed


def add_arguments(module: ModuleType, parser: argparse.ArgumentParser) -> bool:
    """The options of a verb. Whether it reports its diagnostics itself: by a --format of its own."""
    module.add_arguments(parser)
    if "--format" in parser._option_string_actions:
        return True
    help = "how errors and warnings are printed: text (default), or one document on the standard output, where the "
    help += "standard error has all else"
    parser.add_argument("--format", choices=FORM_NAMES, default="text", help=help)
    return False


def _run_and_report(module: ModuleType, options: argparse.Namespace, failed: int) -> int:
    """Runs a verb, of which --format other than text prints the diagnostics alone on the standard output."""
    if options.format == "text":
        return int(module.run(options))
    from tile2cu.cli.diagnostics import report

    options.said = []
    try:
        with contextlib.redirect_stdout(sys.stderr):
            status = int(module.run(options))
    except Error as error:
        options.said.append(error)
        status = failed
    report(options.said, options.format)
    return status


def _print_error(error: Error, form: str = "text") -> None:
    from tile2cu.cli.colour import coloured

    if form != "text":
        from tile2cu.cli.diagnostics import report

        report([error], form)
        return
    print(coloured(str(error), sys.stderr), file=sys.stderr)


def _write_no_more() -> None:
    """What is still to be written goes nowhere, so that the end of the process does not fail by it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _expect_no_more(parser: argparse.ArgumentParser, options: argparse.Namespace, others: list[str]) -> None:
    """Ends the command where words are left over. The first one may have been meant for a verb."""
    if not others:
        return
    file = getattr(options, "file", None)
    if isinstance(file, Path) and not file.exists():
        raise no_such_file(file)
    parser.error(f"unrecognized arguments: {' '.join(others)}; {_way_out(parser, others[0])}")


def _way_out(parser: argparse.ArgumentParser, word: str) -> str:
    """The option that may have been meant; with a file, no word can be one."""
    import difflib

    if not word.startswith("-"):
        return "one file is taken at a time"
    near = difflib.get_close_matches(word.partition("=")[0], parser._option_string_actions, n=1, cutoff=_ALIKE)
    return f"did you mean `{near[0]}`?" if near else f"`{parser.prog} --help` lists what there is"


def no_such_file(path: Path) -> Tile2CuError:
    """What is given is no file, but may have been meant for a verb, or for another file."""
    import difflib

    verbs = [f"tile2cu {verb}" for verb in difflib.get_close_matches(str(path), VERBS, n=1)]
    files = [each.name for each in path.parent.glob("*.py") if each.is_file()]
    near = verbs or [str(path.with_name(name)) for name in difflib.get_close_matches(path.name, files, n=1)]
    help = f"did you mean `{near[0]}`?" if near else ""
    return Tile2CuError("T2C-C001", f"cannot read `{path}`: there is no such file", help=help)


def _parser(verb: str) -> argparse.ArgumentParser:
    if verb:
        return argparse.ArgumentParser(prog=f"tile2cu {verb}", description=f"tile2cu {verb} {VERBS[verb]}.")
    verbs = "\n".join(f"  tile2cu {name:9} {help}" for name, help in VERBS.items())
    parser = argparse.ArgumentParser(
        prog="tile2cu",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Transpiles tile-language Python to CUDA C++ or HIP that a reviewer can read. "
        "The file is never executed.",
        epilog=f"verbs (tile2cu VERB --help has details):\n{verbs}",
    )
    parser.add_argument("--version", action="version", version=f"tile2cu {VERSION}")
    return parser
