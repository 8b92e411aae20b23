"""`import tile2cu.tilelang as tilelang`: programs written for TileLang, with kernels that tile2cu transpiles.

The program runs as it is; functions with `@tilelang.jit` and `@T.prim_func` are read from their text, not run.
`python -m tile2cu.tilelang script.py` runs a program without a change. docs/migrating.md has a table of every name.
"""

import importlib
import logging
from typing import Any

from tile2cu.tilelang import aliases, contrib, language, layout, math, profiler, tools, transform, utils
from tile2cu.tilelang.autotuner import AutoTuner, autotune
from tile2cu.tilelang.env import (
    cached,
    clear_cache,
    disable_cache,
    enable_cache,
    env,
    is_cache_enabled,
    set_cache_dir,
    set_log_level,
)
from tile2cu.tilelang.jit import compile, jit, lazy_jit, par_compile
from tile2cu.tilelang.kernel import JITKernel
from tile2cu.tilelang.language import dtypes
from tile2cu.tilelang.layout import Fragment, Layout
from tile2cu.tilelang.lowering import lower
from tile2cu.tilelang.math import cdiv, ceildiv, next_power_of_2
from tile2cu.tilelang.options import PassConfigKey
from tile2cu.tilelang.profiler import Profiler, do_bench
from tile2cu.tilelang.supply import TensorSupplyType
from tile2cu.tilelang.symbols import DType as DataType
from tile2cu.tilelang.symbols import Symbol
from tile2cu.version import VERSION as __version__

__all__ = [
    "AutoTuner",
    "DataType",
    "Fragment",
    "JITKernel",
    "Layout",
    "PassConfigKey",
    "Profiler",
    "TensorSupplyType",
    "__version__",
    "autotune",
    "cached",
    "cdiv",
    "ceildiv",
    "clear_cache",
    "compile",
    "contrib",
    "disable_cache",
    "do_bench",
    "dtypes",
    "enable_cache",
    "env",
    "is_cache_enabled",
    "jit",
    "language",
    "layout",
    "lazy_jit",
    "logger",
    "lower",
    "math",
    "next_power_of_2",
    "par_compile",
    "profiler",
    "set_cache_dir",
    "set_log_level",
    "tools",
    "transform",
    "utils",
]

aliases.find_others()


logger = logging.getLogger(__name__)


def __getattr__(name: str) -> Any:
    """A module or a name of TileLang that has no counterpart here, as one of symbols."""
    if name in aliases.WITHOUT_COUNTERPART:
        return importlib.import_module(f"tile2cu.tilelang.{name}")
    if name in aliases.NAMES_WITHOUT_COUNTERPART:
        return Symbol(f"tilelang.{name}", f"tilelang.{name}")
    raise AttributeError(f"tile2cu.tilelang has no attribute {name!r}; docs/migrating.md lists what it has")
