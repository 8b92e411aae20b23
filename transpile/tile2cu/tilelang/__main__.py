"""`python -m tile2cu.tilelang script.py ...`: runs a program that is written for TileLang, unchanged."""

import argparse
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from tile2cu.tilelang import aliases
from tile2cu.tilelang.options import DEVICE, TARGET
from tile2cu_runtime.errors import Error


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program with its own arguments; 1 where tile2cu has a diagnostic, else the program's exit."""
    parser = argparse.ArgumentParser(prog="python -m tile2cu.tilelang", description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda", "hip"), help="where kernels run; cpu is the CPU engine")
    parser.add_argument("--target", help="what kernels are emitted for, as cuda:sm_90a")
    parser.add_argument("script", type=Path, help="the program, or -m and a module's name")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's own arguments")
    options = parser.parse_args(arguments)
    for name, value in ((DEVICE, options.device), (TARGET, options.target)):
        if value:
            os.environ[name] = value
    aliases.install()
    if os.environ.get(DEVICE) == "cpu":
        from tile2cu.tilelang import cpu_tensors

        cpu_tensors.install()
    sys.argv = [str(options.script), *options.arguments]
    sys.path[0] = str(options.script.absolute().parent)
    try:
        runpy.run_path(str(options.script), run_name="__main__")
    except Error as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
