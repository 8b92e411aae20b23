"""`python -m tile2cu_runtime --includes`: paths for builds of emitted kernels."""

from __future__ import annotations

import argparse

from tile2cu_runtime import paths
from tile2cu_runtime.device import auto_target


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tile2cu_runtime", description="Paths for builds of kernels")
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--includes", action="store_true", help="print the -I flag for the tl headers")
    choice.add_argument("--cache", action="store_true", help="print the folder of the build cache")
    choice.add_argument("--target", action="store_true", help="print the target for this machine")
    chosen = parser.parse_args()
    if chosen.includes:
        print(f"-I{paths.headers_dir()}")
    elif chosen.cache:
        print(paths.cache_dir())
    else:
        print(auto_target())


if __name__ == "__main__":
    main()
