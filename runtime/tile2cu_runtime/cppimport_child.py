"""`python -m tile2cu_runtime.cppimport_child BINDING.cpp`: builds a binding by cppimport, and does not load it.

cppimport's own command loads what it has built, and a kernel for the CPU engine loads only beside the engine.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from cppimport.importer import build_safely, setup_module_data


def main(path: str) -> None:
    # The compiler's command lines are logged as information; the parent shows them when the build fails.
    logging.basicConfig(level=logging.INFO)
    build_safely(path, setup_module_data(Path(path).stem, path))


if __name__ == "__main__":
    main(sys.argv[1])
